"""Compares hits with the disk, so that a search shows only text that a file contains now."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vector_index_mcp.engine.types import Hit, StoredChunk
from vector_index_mcp.files import beneath, read
from vector_index_mcp.files.folder import Folder, Folders, Reading
from vector_index_mcp.files.scan import CLAIMED, UNKNOWN, Stamp, stamp_of
from vector_index_mcp.indexing.ledger import Ledger

_MOST_CHARS = 1_200  # of a hit whose lines have changed, unless the chunk was longer


@dataclass(slots=True)
class Checked:
    """The hits that may be shown, and the keys of files that differ from the index."""

    hits: list[Hit] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Files that do not exist any more."""
    stale: set[str] = field(default_factory=set)
    """Files that changed since they were indexed, or cannot be read now."""
    untrue: set[str] = field(default_factory=set)
    """Files that did not change, but do not contain the text of a hit: the index is wrong."""


def check_against_disk(
    folders: Folders,
    ledger: Ledger,
    hits: Sequence[Hit],
    limit: int,
    silent: Collection[Folder] = (),
) -> Checked:
    """Return the first `limit` hits that can be shown, with the text that their files have now.

    Where a file has changed, the hit gets the lines that its text has now, or if that is gone, the
    text that its lines contain now. A hit is left out if its file is gone or cannot be read, or if
    the file has not changed but does not contain the hit's text: then the index is wrong.

    Args:
        folders: The folders of the index.
        ledger: What is known of every file; it may be newer than the hits.
        hits: Best first.
        limit: How many are wanted.
        silent: Folders whose drives do not answer, so none of their files can be read.
    """
    checked = Checked()
    texts = _Texts(folders, ledger)
    for hit in hits:
        if len(checked.hits) == limit:
            break
        if folders.of(hit.chunk.key) in silent:
            checked.stale.add(hit.chunk.key)
        elif (shown := _shown(hit.chunk, texts, checked)) is not None:
            checked.hits.append(replace(hit, chunk=shown))
    return checked


def _shown(chunk: StoredChunk, texts: "_Texts", checked: Checked) -> StoredChunk | None:
    """The chunk as it may be shown; None if it must be left out."""
    key = chunk.key
    folder, record = texts.folders.of(key), texts.ledger.get(key)
    if folder is None:  # its folder has just been removed from the index
        checked.gone.add(key)
        return None
    try:
        stamp = stamp_of(beneath.status(folder.path, folder.path_of(key)))
    except OSError as error:
        (checked.gone if beneath.tells_absence(error) else checked.stale).add(key)
        return None
    is_stale = record is None or (record.stamp, record.content_hash) != (stamp, chunk.content_hash)
    is_claimed = record is not None and record.stamp == CLAIMED
    if read.is_converted(folder, key):  # converting it again takes too long: show what is indexed
        if is_stale:
            checked.stale.add(key)
        return chunk
    lines = texts.lines(folder, key, is_masked=is_stale or record is None or record.masked > 0)
    here = "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) + "\n"
    if not is_stale and chunk.text not in here:
        is_stale = read.stamp_now(folder, key) != stamp  # it was written while we read it
        if not is_stale:
            checked.untrue.add(key)
            return None
    if not is_stale or (is_claimed and chunk.text in here):
        return chunk
    checked.stale.add(key)
    if chunk.text in here:
        return chunk
    # It may have been saved after the stamp was taken, and hold a secret since.
    lines = texts.lines(folder, key, is_masked=True)
    return _where_it_is_now(chunk, lines) or _as_it_is_now(chunk, lines)


def _where_it_is_now(chunk: StoredChunk, lines: list[str]) -> StoredChunk | None:
    """`chunk` with the lines that it has now, the nearest ones; None if its text is gone."""
    before = lines[: chunk.start_line - 1]
    parts = chunk.text.removesuffix("\n").split("\n")
    here, wanted = ("\n".join(["", *each, ""]) for each in (lines, parts))
    place = sum(map(len, before)) + len(before)
    near = _last(here[: place + len(wanted) - 1], wanted), here.find(wanted, place)
    firsts = [here.count("\n", 0, at) + 1 for at in near if at >= 0]
    if not firsts:
        return None
    first = min(firsts, key=lambda line: abs(line - chunk.start_line))
    return replace(chunk, start_line=first, end_line=first + wanted.count("\n") - 2)


def _last(text: str, wanted: str) -> int:
    """Return what `rfind` does; that one takes the product of the lengths, seconds for 10 MB."""
    at = text[::-1].find(wanted[::-1])
    return len(text) - at - len(wanted) if at >= 0 else -1


def _as_it_is_now(chunk: StoredChunk, lines: list[str]) -> StoredChunk | None:
    """`chunk` with the text that its lines have now; None if there is none."""
    most, kept = max(_MOST_CHARS, len(chunk.text)), ""
    end = chunk.start_line - 1
    for line in lines[end : chunk.end_line]:
        if kept and len(kept) + len(line) > most:
            break
        kept, end = f"{kept}{line}\n", end + 1
    if not kept.strip():
        return None
    return replace(chunk, text=kept[:most], end_line=end, scope="", symbols=())


class _MaskedTexts:
    """The masked lines of files, as long as these do not change, up to some size in all.

    Masking takes up to a second for a megabyte, and every search that finds such a file needs it.
    """

    _MOST_BYTES = 8_000_000
    _BYTES_OF_A_LINE = 60  # of memory, besides its characters
    _RACY_NS = 2_000_000_000  # two states of a file that are nearer may have the same stamp

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Path, Reading], tuple[Stamp, list[str], int]]
        self._known = OrderedDict()
        self._size = 0

    def lines(self, folder: Folder, key: str, read_lines: Callable[[], list[str]]) -> list[str]:
        """Return the lines of a file; those that are known if it has not changed since."""
        place = folder.path / folder.path_of(key), folder.reading
        stamp = read.stamp_now(folder, key)
        with self._lock:
            known = self._known.get(place)
            if known is not None and known[0] == stamp != UNKNOWN:
                self._known.move_to_end(place)
                return known[1]
        lines = read_lines()
        is_old = stamp[2] < time.time_ns() - self._RACY_NS
        if is_old and read.stamp_now(folder, key) == stamp != UNKNOWN:
            self._keep(place, stamp, lines)
        return lines

    def _keep(self, place: tuple[Path, Reading], stamp: Stamp, lines: list[str]) -> None:
        size = sum(map(len, lines)) + self._BYTES_OF_A_LINE * len(lines)
        with self._lock:
            if (former := self._known.pop(place, None)) is not None:
                self._size -= former[2]
            self._known[place] = stamp, lines, size
            self._size += size
            while self._size > self._MOST_BYTES:
                _, (_, _, size) = self._known.popitem(last=False)
                self._size -= size


_masked_texts = _MaskedTexts()


class _Texts:
    """The lines of files, each read once."""

    def __init__(self, folders: Folders, ledger: Ledger) -> None:
        self.folders = folders
        self.ledger = ledger
        self._lines: dict[tuple[str, bool], list[str]] = {}

    def lines(self, folder: Folder, key: str, *, is_masked: bool) -> list[str]:
        """The lines of a file; none if it has no text.

        Args:
            folder: Where it lies.
            key: The file.
            is_masked: Whether to mask credentials. Looking for them takes ten times as long as
                reading, so set it only if the file has credentials or may have some.
        """
        place = key, is_masked

        def read_lines() -> list[str]:
            text = read.text_of(folder, key, is_masked=is_masked)
            return (text or "").removesuffix("\n").split("\n")

        if place not in self._lines:
            found = _masked_texts.lines(folder, key, read_lines) if is_masked else read_lines()
            self._lines[place] = found
        return self._lines[place]
