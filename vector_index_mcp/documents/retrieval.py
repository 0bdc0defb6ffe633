"""Reads named documents from their files as they are now; changed files are indexed again."""

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from vector_index_mcp.documents import lines, names
from vector_index_mcp.documents.catalog import Entry, Links, entry_at, keys_of, keys_with_hash
from vector_index_mcp.documents.contexts import context_of
from vector_index_mcp.documents.limits import LARGEST_BYTES
from vector_index_mcp.documents.matching import FindOne, matching
from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.reach import out_of_reach
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.documents.uris import SCHEME, hash_asked, uri_of, without_quotes
from vector_index_mcp.engine.prose.properties import bare_name_of
from vector_index_mcp.errors import counted
from vector_index_mcp.files import beneath, read
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.scan import UNKNOWN, Stamp
from vector_index_mcp.indexing.ledger import Ledger

_MOST_BYTES_TOGETHER = 2_000_000  # of what one call returns
_MOST_BYTES_READ = 50_000_000  # for one call, which may return a few lines of each document
_MOST_SKIPPED = 1_000  # of the files that are too large, so many are named
_MOST_SUGGESTED = 3
_CONVERSION_SECONDS = 10.0  # how long to wait for the conversion of a document that has changed


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a document to return: by default all lines, without numbers."""

    from_line: int | None = None
    max_lines: int | None = None
    is_numbered: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A document, or a part of it."""

    key: str
    title: str
    context: str
    """The contexts of the document; empty if it has none."""
    body: str
    """The lines of the document, or of the part."""
    size: int
    """The size of the whole document, in bytes."""
    links: Links = Links((), ())
    """The links to other documents, and from them."""
    note: str = ""
    """Why the part has no lines; empty if it has some, or none were asked for."""

    @property
    def uri(self) -> str:
        """The URI of the document."""
        return uri_of(self.key)

    @property
    def with_context(self) -> str:
        """The lines, after comments with the document's context and links."""
        linked = lines.with_links(self.body, self.links.out, self.links.back)
        return lines.with_context(linked, self.context)


@dataclass(frozen=True, slots=True)
class Missing:
    """The answer for a name that means no document."""

    asked: str
    """The name."""
    similar: tuple[str, ...]
    """Paths of documents with similar names."""
    reason: str = ""
    """Why the name may mean a file that is no document, such as one that is skipped; or empty."""

    @property
    def sentence(self) -> str:
        """The error message."""
        parts = [f"Document not found: {self.asked}"]
        if self.reason:
            parts.append(f"{self.reason}.")
        if self.similar:
            likely = "\n".join(f"  - {path}" for path in self.similar)
            parts.append(f"Did you mean one of these?\n{likely}")
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A document that is too large to be returned together with others."""

    key: str
    size: int
    """Its size in bytes."""


@dataclass(frozen=True, slots=True)
class Many:
    """Several documents."""

    documents: tuple[Text | TooLarge, ...]
    errors: tuple[str, ...]
    """Messages about parts of the pattern that could not be answered, or mean others as well."""


async def get(
    documents: Documents, asked: str, part: Part, places: Places | None = None
) -> Text | Missing:
    """Return the document that `asked` names.

    Args:
        documents: The documents; they must be running.
        asked: A key or its end, a URI, a docid or a path on disk; optionally with `:LINE`, which
            overrides the first line in `part`.
        part: The lines to return.
        places: Where paths on disk start; by default, relative paths on disk mean nothing.
    """
    ledger = await documents.known()
    keys = dict.fromkeys(keys_of(ledger))
    where = places or places_of(documents)
    found = await anyio.to_thread.run_sync(_found, documents, ledger, keys, asked, where)
    if found is None:
        why = await anyio.to_thread.run_sync(lambda: _skipped(_reasons(ledger), asked, where))
        if why:
            return Missing(asked, (), why)
        similar = await anyio.to_thread.run_sync(names.similar, keys, asked, _MOST_SUGGESTED)
        return Missing(asked, tuple(similar), await out_of_reach(documents))
    line = part.from_line if found.line is None else found.line
    text = await text_at(documents, found.key, entry_at(ledger, found.key))
    if text is None:
        return Missing(asked, (), await out_of_reach(documents, found.key.partition("/")[0]))
    cut = lines.cut(text.body, line, part.max_lines)
    body = lines.numbered(cut.text, cut.start) if part.is_numbered else cut.text
    links = await documents.links_of(ledger, text.key)
    notes = [_about_others("The same name", found.others)]
    if cut.start > max(count := len(lines.lines_of(text.body)), 1):
        end = f"The document has {counted(count, 'line')}; line {cut.start:,} is behind its end"
        notes.insert(0, end)
    return replace(text, body=body, links=links, note=". ".join(filter(None, notes)))


def _about_others(name: str, keys: Sequence[str]) -> str:
    """Say that a name means other documents as well; empty if it does not."""
    if not keys:
        return ""
    more = f" and {len(keys) - _MOST_SUGGESTED:,} more" if len(keys) > _MOST_SUGGESTED else ""
    return f"{name} means {', '.join(keys[:_MOST_SUGGESTED])}{more} as well"


async def multi_get(
    documents: Documents,
    pattern: str,
    part: Part,
    max_bytes: int = LARGEST_BYTES,
    *,
    is_rest: bool = False,
    places: Places | None = None,
    suggests: bool = True,
) -> Many:
    """Return the documents that a pattern means.

    Args:
        documents: The documents; they must be running.
        pattern: A glob, names with commas between them, or one name.
        part: The lines of each document to return.
        max_bytes: Larger documents are left out.
        is_rest: Whether the answer is for REST, whose notes about cut documents have other words.
        places: Where paths on disk start; by default, relative paths on disk mean nothing.
        suggests: Whether the error for an unknown name lists similar names.

    Raises:
        QueryError: If the pattern is too complex or has too many names.
    """
    where = places or places_of(documents)
    ledger = await documents.known()
    keys = keys_of(ledger)
    notes: list[str] = []
    find_one = _noting_others(ledger, keys, where, notes)
    matched = await anyio.to_thread.run_sync(matching, keys, pattern, where, find_one)
    if not matched.keys and not (matched.is_list and matched.missing):
        reason = await out_of_reach(documents)
        return Many((), (f"No files matched pattern: {pattern}", *filter(None, [reason])))

    def find_none() -> list[str]:
        near, reasons, missing = keys if suggests else (), _reasons(ledger), matched.missing
        return [_not_found(near, name, _skipped(reasons, name, where)) for name in missing]

    errors = await anyio.to_thread.run_sync(find_none)
    texts: list[Text | TooLarge] = []
    amount = _Amount()
    for number, key in enumerate(matched.keys):
        size = await anyio.to_thread.run_sync(_size_of_text, documents, key)
        if size > max_bytes:
            texts.append(TooLarge(key, size))
            continue
        if not amount.has_room(size, part):
            left = len(matched.keys) - number
            errors.append(f"{counted(left, 'more file')} matched; ask for fewer files at once")
            break
        text = await text_at(documents, key, entry_at(ledger, key))
        if text is None:
            errors.append(_not_found(keys, key))
            continue
        if text.size > max_bytes:
            texts.append(TooLarge(key, text.size))
            continue
        texts.append(shown := _shortened(text, part, is_rest=is_rest))
        amount.add(text, shown)
    if errors and (reason := await out_of_reach(documents)):
        errors.append(reason)
    return _with_few_skipped(texts, [*dict.fromkeys(notes), *errors])


def _noting_others(
    ledger: Ledger, keys: Sequence[str], places: Places, notes: list[str]
) -> FindOne:
    """Return what finds the document of a name, and adds to `notes` which others the name means."""
    known = dict.fromkeys(keys)

    def find_one(name: str) -> str | None:
        if (found := _known(ledger, known, name, places)) is None:
            return None
        notes.extend(filter(None, [_about_others(name, found.others)]))
        return found.key

    return find_one


def _with_few_skipped(texts: Sequence[Text | TooLarge], errors: Sequence[str]) -> Many:
    """Return the answer with the first of the files that are too large; the others are counted."""
    skipped = [each for each in texts if isinstance(each, TooLarge)]
    others = {each.key for each in skipped[_MOST_SKIPPED:]}
    if not others:
        return Many(tuple(texts), tuple(errors))
    counting = (
        f"Too large as well: {counted(len(others), 'more file')}; ask for fewer files at once, or "
        "for one with get"
    )
    return Many(tuple(each for each in texts if each.key not in others), (*errors, counting))


@dataclass(slots=True)
class _Amount:
    """How much one call of `multi_get` has read and returns, in bytes."""

    returned: int = 0
    read: int = 0

    def has_room(self, size: int, part: Part) -> bool:
        """Return whether a text of `size` bytes may be read, too; the first one always may."""
        least = size if part.max_lines is None else 0  # how long lines are is not known before
        return not self.returned or (
            self.returned + least <= _MOST_BYTES_TOGETHER and self.read + size <= _MOST_BYTES_READ
        )

    def add(self, text: Text, shown: Text) -> None:
        self.read += text.size
        self.returned += len(shown.body.encode())


def places_of(documents: Documents) -> Places:
    """Return the folders of the collections."""
    return Places({c.name: c.path for c in documents.configuration.collections})


def _shortened(text: Text, part: Part, *, is_rest: bool) -> Text:
    cut = lines.cut(text.body, part.from_line, part.max_lines)
    body = cut.text + lines.ending(cut.left, is_rest=is_rest)
    if part.is_numbered:
        body = lines.numbered(body, cut.start)
    return replace(text, body=body)


def _not_found(keys: Sequence[str], name: str, skipped: str = "") -> str:
    if skipped:
        return f"File not found: {name} ({skipped})"
    similar = names.similar(keys, name, _MOST_SUGGESTED)
    likely = f" (did you mean: {', '.join(similar)}?)" if similar else ""
    return f"File not found: {name}{likely}"


def _found(
    documents: Documents, ledger: Ledger, keys: dict[str, None], asked: str, places: Places
) -> names.Found | None:
    """Return the document that `asked` means, even if it is not in the index yet."""
    if found := _known(ledger, keys, asked, places):
        return found
    new = _not_indexed_yet(documents, asked)
    return None if new is None else names.Found(new)


def _reasons(ledger: Ledger) -> dict[str, str]:
    """Return why each file that is no document is none, by key."""
    return {record.key: record.reason for record in ledger.not_indexed()}


def _skipped(reasons: Mapping[str, str], asked: str, places: Places) -> str:
    """Say why the file that `asked` means is no document; empty if it means none."""
    found = names.find(dict.fromkeys(reasons), asked, places)
    return f"{found.key} is not indexed: {reasons[found.key]}" if found else ""


def _known(ledger: Ledger, keys: dict[str, None], asked: str, places: Places) -> names.Found | None:
    """Return the document in the index that `asked` means."""
    is_docid = asked.strip().strip("\"'`").startswith("#")
    found = None if is_docid else names.find(keys, asked, places)
    if found is not None:
        return found
    docid, line = names.parted(without_quotes(asked))
    beginning = hash_asked(docid)
    if beginning and (alike := keys_with_hash(ledger, beginning)):
        return names.Found(alike[0], line, alike[1:])
    return names.find(keys, asked, places) if is_docid else None  # a name may begin with a #


def _not_indexed_yet(documents: Documents, asked: str) -> str | None:
    """Return the key of a new file that belongs to a collection and is not indexed yet."""
    indexer = documents.index.indexer
    key = asked.strip().removeprefix(SCHEME)
    view = indexer.outlook.view_of(key) if indexer is not None else None
    if view is None or ".." in key.split("/") or "\0" in key:
        return None
    if documents.index.ledger.get(key) is not None:  # it is in the ledger, but not as a document
        return None
    path = view.folder.path_of(key)
    is_document = bool(path) and not view.ignore.is_ignored(path, is_folder=False)
    return key if is_document and _size(view.folder, key) is not None else None


def _size(folder: Folder, key: str) -> int | None:
    """Return the size of a regular file in bytes; None if there is no such file."""
    try:
        status = beneath.status(folder.path, folder.path_of(key))
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _size_of_text(documents: Documents, key: str) -> int:
    """Return the size of a document in bytes; 0 if only its text can tell, or there is none."""
    folder = documents.index.folders.of(key)
    if folder is None or read.is_converted(folder, key):
        return 0
    return _size(folder, key) or 0


async def text_at(documents: Documents, key: str, entry: Entry | None) -> Text | None:
    """Return a document with the present text of its file; None if the file is gone.

    Args:
        documents: The documents; they must be running.
        key: The key of the document.
        entry: Its entry in the index; None if it has none yet.
    """
    index = documents.index
    folder = index.folders.of(key)
    if folder is None:
        return None
    stamp = await anyio.to_thread.run_sync(read.stamp_now, folder, key)
    is_stale = entry is None or entry.record.stamp != stamp
    if index.indexer is not None and is_stale:
        index.indexer.look_again([key])
    if read.is_converted(folder, key):
        body = await _converted(documents, key, stamp)
    else:
        body = await anyio.to_thread.run_sync(read.whole_text, folder, key)
    if body is None:
        return None
    title = entry.title if entry is not None else bare_name_of(key)
    context = context_of(documents.configuration, key)
    return Text(key, title, context, body, len(body.encode("utf-8", "replace")))


async def _converted(documents: Documents, key: str, stamp: Stamp) -> str | None:
    """Return the text that a document was converted to, from its chunks in the index.

    A changed document is converted when it is indexed; this waits some seconds for it. A file that
    is gone has no text, although the index may still have its chunks.
    """
    if stamp == UNKNOWN:
        return None
    index = documents.index
    with anyio.move_on_after(_CONVERSION_SECONDS):
        while index.indexer is not None and stamp != _indexed(index.ledger, key):
            await index.indexer.live.text_moved.wait()
    async with index.reading() as (opened, _):
        rows = await opened.store.rows([key])
    return "".join(chunk.text for chunk, _ in rows[key]) if key in rows else None


def _indexed(ledger: Ledger, key: str) -> Stamp | None:
    record = ledger.get(key)
    return None if record is None else record.stamp
