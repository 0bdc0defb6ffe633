"""Finds the words of a query that no indexed file contains, and other files that have them.

An answer has to name them, since a reader would take the nearest hit for a match otherwise.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text import scripts
from vector_index_mcp.engine.text.spelling import folded
from vector_index_mcp.engine.text.words import joined, last_name, words
from vector_index_mcp.engine.types import NO_FILTERS, FileRecord, Filters
from vector_index_mcp.errors import quoted
from vector_index_mcp.files import secrets
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.read import BINARY, MINIFIED, TOO_LARGE, raw_bytes
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED, SKIPPED, is_passed_over

_MOST_ASKED = 6  # words to look up in the index, 2 ms each
_MOST_REPORTED = 3  # words; for each of them, all texts are scanned
_MOST_READ_BYTES = 10_000_000  # of skipped files, for one answer; 20 ms if they were read lately
_MOST_MASKED_BYTES = 2_000_000
"""The same of those that contain a name: masking takes 20 ms for a megabyte of most texts, but a
second for one that names keys or tokens in every line."""
_SEARCHED = {MINIFIED, TOO_LARGE, BINARY}
"""The reasons for which a text is skipped that may be searched for a name all the same."""
_LEAST_HIDDEN = 6  # characters of a masked value that is looked for
_MOST_FILES = 3  # files that one sentence names
_ACRONYM = re.compile(r"(?<![^\W_])[A-Z]{3,8}(?![^\W\d_])")
_LINE = re.compile(r"\bline(?= \d)|(?<=\bline )\d+|(?<=\w:)\d+\b")
"""A line's number, and the word `line` before it, in a traceback."""
_SAYS_LITTLE = frozenset(
    "after again all also always any been before being both came come comes declared defined does "
    "doing done during each eight else ever every first five four gave get gets give given gives "
    "goes good got happen happens implemented kept lets long made make makes many more most much "
    "never new nine not off once one only other out over put puts said same say says second seen "
    "seven six some still such taken tell tells ten than third three told too took two under until "
    "used uses using very want wants was well were while whose without".split()
)
"""Words of a question that nobody looks for: that no text has one tells nothing."""
_LONGEST_ASKED = 12  # words of a query; a longer one is a pasted text, such as a log


@dataclass(frozen=True, slots=True)
class Absent:
    """What of a query no chunk contains; of many words, the first few."""

    names: tuple[str, ...] = ()
    """Its identifiers."""
    others: tuple[str, ...] = ()
    """Its other words."""
    is_all: bool = False
    """Whether it is a question none of whose words, few or many, stands in a chunk."""


async def absent(store: Store, query: Query, texts: Sequence[str], filters: Filters) -> Absent:
    """What of `query` no chunk contains.

    Args:
        store: Where to look.
        query: The query.
        texts: The paths and texts of the best hits; words in one of them need no lookup.
        filters: Which chunks to look at.

    Raises:
        StoreError: If the index cannot be read.
    """
    if len(query.tokens) > _LONGEST_ASKED:
        return Absent()
    spelled = _spelled(texts)
    acronyms = _acronyms_of(query)
    names = [name for name in query.identifiers if not _stands_in(spelled, name, acronyms)]
    # Report the parts of `user-name`, and not `username`, which nobody typed.
    known = query.compounds | {part for name in query.identifiers for part in words(name)}
    ignored = _SAYS_LITTLE.union(_LINE.findall(query.text.lower()))
    subject = [word for word in query.subject if word not in ignored] or query.subject
    whole = [word for word in subject if not _is_fragment(word, query)]
    others = [w for w in whole if w not in known and not _stands_in(spelled, w, acronyms)]
    # The words of a question are all looked up as long as nothing has any of them.
    may_be_all = query.is_question and not names and len(others) == len(query.subject) > 0
    lacking: list[str] = []
    asked = [*names, *others]
    for word in asked if may_be_all else asked[:_MOST_ASKED]:
        if len(lacking) >= _MOST_REPORTED and not may_be_all:
            break
        if await lacks(store, word, filters, is_acronym=word.lower() in acronyms):
            lacking.append(word)
        else:
            may_be_all = False
    told = lacking[:_MOST_REPORTED]
    return Absent(
        tuple(name for name in told if name in names),
        tuple(word for word in told if word not in names),
        may_be_all,
    )


def outside(names: Sequence[str], texts: Iterable[str], query: Query) -> tuple[str, ...]:
    """The names of a query that stand in none of these texts, which may be newer than the index."""
    spelled = _spelled(texts) if names else []
    acronyms = _acronyms_of(query)
    return tuple(name for name in names if not _stands_in(spelled, name, acronyms))


def _acronyms_of(query: Query) -> frozenset[str]:
    """The words that are typed in capital letters."""
    return frozenset(map(str.lower, _ACRONYM.findall(query.text)))


def _is_fragment(word: str, query: Query) -> bool:
    """Whether a word is only a pair of characters of a sentence without spaces, maybe of two."""
    return not word.isascii() and scripts.is_unspaced(word) and word not in query.tokens


def _spelled(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Each text as it is written, and folded."""
    return [(text, folded(text)) for text in texts]


def _stands_in(texts: Iterable[tuple[str, str]], word: str, acronyms: Collection[str]) -> bool:
    name = folded(last_name(word))
    if word.lower() not in acronyms:
        return any(name in plain for _, plain in texts)
    return any(_ends_with(name.upper(), text) or name in words(plain) for text, plain in texts)


def _ends_with(acronym: str, text: str) -> bool:
    """Return whether a name in capitals ends with an acronym, as STARTTLS does with TLS.

    QUICKSORT has nothing to do with QUIC.
    """
    return any(not rest.removeprefix("s")[:1].isalpha() for rest in text.split(acronym)[1:])


async def lacks(store: Store, word: str, filters: Filters, *, is_acronym: bool = False) -> bool:
    """Whether no chunk contains `word`, in any spelling, or as a part of a longer word.

    Args:
        store: Where to look.
        word: The word.
        filters: Which chunks to look at.
        is_acronym: Whether of a longer word only the end counts, in capitals: STARTTLS contains
            TLS, and neither `quick` nor QUICKSORT contains QUIC.

    Raises:
        StoreError: If the index cannot be read.
    """
    name = last_name(word)
    asked = [joined(name)] if name.isascii() else words(name)
    if not asked or not asked[0]:
        return False
    for each in asked:
        if not await store.matching([each], 1, filters):
            if is_acronym:
                # As `_ends_with` looks for it.
                pattern = rf"{re.escape(name.upper())}s?(?:[^\pL]|$)"
                return not await store.contents.has_match(pattern, filters)
            return not await store.contents.has_text(name, filters)
    return False


async def left_out(store: Store, query: Query, absent_words: Sequence[str]) -> list[str]:
    """Those of the words that `absent` has returned which the index contains all the same.

    Raises:
        StoreError: If the index cannot be read.
    """
    acronyms = _acronyms_of(query)
    return [
        word
        for word in absent_words
        if not await lacks(store, word, NO_FILTERS, is_acronym=word.lower() in acronyms)
    ]


def elsewhere(
    names: Collection[str], files: Collection[str], ledger: Ledger, project: Folder
) -> str:
    """Sentences about what the index does not have: files, and names that files have or contain.

    The files are empty, skipped, or have masked credentials. Empty if there are none. Reads files
    that are text, the smallest first, up to 10 MB, and names no file that takes too long to mask.

    Args:
        names: Identifiers that no chunk contains.
        files: The keys of files that have no text in the index.
        ledger: What is known of the project's files.
        project: The project.
    """
    called = {name.casefold() for name in names}
    left, left_to_mask = _MOST_READ_BYTES, _MOST_MASKED_BYTES
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for record in sorted(_without_text(ledger, files), key=lambda record: record.stamp[0]):
        state = _state_of(record)
        size = record.stamp[0]
        if record.key in files or record.key.rpartition("/")[2].casefold() in called:
            found["", state].append(record.key)
        elif _is_searched(record) and size <= left:
            left -= size
            data = raw_bytes(project, record.key, size)
            wanted = {name: last_name(name).encode("utf-8", "replace") for name in names}
            held = {name: value for name, value in wanted.items() if value in data}
            if held and size <= left_to_mask:
                left_to_mask -= size
                for name in _may_be_told(held, data, is_indexed=record.masked > 0):
                    found[name, state].append(record.key)
    return " ".join(_sentence(keys, name, state) for (name, state), keys in found.items())


def _is_searched(record: FileRecord) -> bool:
    """Whether the text of a file that is not in the index, or not as it is, may be searched."""
    return record.masked > 0 or (record.reason in _SEARCHED and is_passed_over(record))


def _may_be_told(held: Mapping[str, bytes], data: bytes, *, is_indexed: bool) -> list[str]:
    """The names whose values a text may be said to contain: it shows them, or masks them whole.

    Who asks for the beginnings of a masked value must not learn it letter by letter.

    Args:
        held: What the text contains, by name.
        data: The text.
        is_indexed: Whether the index has what is shown of the text, and so lacks the values there.
    """
    text = data.decode("utf-8", "replace")
    shown = secrets.masked(text)[0]
    hidden = "".join(old if old != new else " " for old, new in zip(text, shown, strict=True))
    visible, whole = shown.encode(), set(hidden.encode().split())
    return [
        name
        for name, value in held.items()
        if (not is_indexed and value in visible) or (len(value) >= _LEAST_HIDDEN and value in whole)
    ]


def _without_text(ledger: Ledger, files: Collection[str]) -> Iterator[FileRecord]:
    """Yield the records of `files`, and of others whose text is not in the index as it is."""
    for record in map(ledger.get, ledger.keys()):
        if record is None:
            continue
        is_other = record.state == SKIPPED or record.masked or not record.stamp[0]
        if is_other or record.key in files:
            yield record


def _state_of(record: FileRecord) -> str:
    if record.masked:
        return "indexed with credentials masked"
    return "empty" if record.state == INDEXED else f"not indexed ({record.reason})"


def _sentence(keys: Sequence[str], name: str, state: str) -> str:
    """Say that files in this state contain `name`; if it is empty, that they exist."""
    files = ", ".join(map(quoted, sorted(keys)[:_MOST_FILES]))
    more = f" and {len(keys) - _MOST_FILES} more" if len(keys) > _MOST_FILES else ""
    verb, thing = ("contain", f" `{name}`") if name else ("exist", "")
    end, are = ("s", "is") if len(keys) == 1 else ("", "are")
    return f"{files}{more} {verb}{end}{thing} and {are} {state}."
