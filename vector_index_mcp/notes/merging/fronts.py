"""Merges the front matter of documents, key by key. Pure.

An entry is a key with the lines below that belong to it. A comment is an entry of its own.
"""

import re
from dataclasses import dataclass

from vector_index_mcp.engine.text import front_matter
from vector_index_mcp.notes.merging.threeway import (
    Key,
    Verdict,
    is_later,
    keys,
    normalized,
    ordered,
    verdict,
)
from vector_index_mcp.notes.texts import matter

_RULE = "---"
_KEY = re.compile(r"([^\s#:\-\[\]{}][^:\n]{0,60}):(?=\s|$)")
_BELONG = (" ", "\t", "-", "]", "}")
"""The first characters of lines that belong to the key above."""
_COMMENT = "\n"  # marks the name of a comment's entry: no key begins with it
_KEYWORDS: Key = ("keywords", 0)
UPDATED: Key = ("updated", 0)
"""The entry with the time of a document's last change."""
_NOT_PLAIN = frozenset("#{}&*|>")
_LONGEST_READ = 1_000  # characters of a value
_MOST_READ = 250  # values of a list
_BOTH = "changed on both sides; ours stays, theirs is kept in a comment"
_RESCUED = "removed on one side and changed on the other; the changed version stays"


@dataclass
class Front:
    """Front matter, split into entries."""

    first: str
    """The first rule, with its line end; empty if there is no front matter."""
    entries: dict[Key, str]
    """The exact text of each entry, comments among them."""
    last: str
    """The second rule."""

    @property
    def text(self) -> str:
        """The exact text of the front matter."""
        return self.first + "".join(self.entries.values()) + self.last


def pieces(front: str) -> Front:
    """Split `front`, which `matter.parted` has returned."""
    first, *inner = [f"{line}\n" for line in front.removesuffix("\n").split("\n")]
    if not inner:
        return Front("", {}, "")
    names: list[str] = []
    texts: list[str] = []
    for line in inner[:-1]:
        if texts and line.startswith(_BELONG):
            # A comment between a key and its lines belongs to the key.
            while len(texts) > 1 and names[-1].startswith(_COMMENT):
                names.pop()
                texts[-2:] = ["".join(texts[-2:])]
        if texts and (line.startswith(_BELONG) or not line.strip()):
            texts[-1] += line
        else:
            match = _KEY.match(line)
            name = match[1].strip().strip("\"'").lower() if match else _COMMENT + line.strip()
            names.append(name)
            texts.append(line)
    return Front(first, dict(zip(keys(names), texts, strict=True)), inner[-1])


def merged(base: str, ours: str, theirs: str, label: str, where: str) -> tuple[str, list[str]]:
    """Merge the front matter of both sides. An empty text stands for none.

    Args:
        base: The front matter that both sides had in common.
        ours: Our side's.
        theirs: Their side's.
        label: The name of their side, for comments.
        where: The document's name for people.

    Returns:
        The merged front matter, and sentences about the entries that both sides have changed.
    """
    decided = verdict(base, ours, theirs)
    if decided in {Verdict.OURS, Verdict.THEIRS}:
        return (ours if decided is Verdict.OURS else theirs), []
    mine, other = pieces(ours), pieces(theirs)
    old = pieces(base).entries
    found: dict[Key, str] = {}
    notes: list[str] = []
    for key in ordered(list(mine.entries), list(other.entries)):
        versions = [side.get(key) for side in (old, mine.entries, other.entries)]
        text, note = _entry(key, versions, label)
        if text:
            found[key] = text
        if note:
            notes.append(f'"{key[0].strip()}" at the top of {where} was {note}')
    if not found and "" in {ours, theirs}:
        return "", notes
    frame = mine if ours else other
    return Front(frame.first, found, frame.last).text, notes


def _entry(key: Key, versions: list[str | None], label: str) -> tuple[str, str]:
    """Return the merged text of an entry, and a note about it; the note may be empty."""
    ours, theirs = (text or "" for text in versions[1:])
    if key == UPDATED and ours and theirs:
        return (theirs if is_later(value(theirs), value(ours)) else ours), ""
    decided = verdict(*(None if text is None else normalized(text) for text in versions))
    if decided in {Verdict.OURS, Verdict.THEIRS}:
        return (ours if decided is Verdict.OURS else theirs), ""
    if decided is Verdict.RESCUED:
        return ours or theirs, _RESCUED
    if key == _KEYWORDS and (both := _all_keywords(ours, theirs)):
        return both, ""
    return ours + _comment(theirs, label, _end(ours)), _BOTH


def value(entry: str) -> str:
    """Return an entry's value without blanks and quotes; empty if it is not a plain text."""
    found = front_matter.split([_RULE, *entry.split("\n"), _RULE])[0]
    text = next(iter(found.values()), "")
    return text if isinstance(text, str) else ""


def _all_keywords(ours: str, theirs: str) -> str:
    """Return the keywords of both sides as one line; empty unless both are plain lists."""
    if not all(map(_is_plain, (ours, theirs))):
        return ""
    lists = [matter.metadata(_alone(entry)).keywords for entry in (ours, theirs)]
    data = matter.Metadata("", tuple(dict.fromkeys([*lists[0], *lists[1]])), "", "")
    line = next(line for line in matter.written(data).split("\n") if line.startswith("keywords"))
    return line + _end(ours)


def _is_plain(entry: str) -> bool:
    """Return whether an entry is a list of words that can be parsed without losing anything."""
    is_short = len(entry) <= _LONGEST_READ and entry.count(",") + entry.count("\n") < _MOST_READ
    return is_short and entry.count("[") <= 1 and not _NOT_PLAIN & {*entry}


def _alone(entry: str) -> str:
    return f"{_RULE}\n{entry}{_RULE}\n"


def _comment(entry: str, label: str, end: str) -> str:
    lines = (line.rstrip() for line in entry.split("\n"))
    return "".join(f"# {label}: {line}{end}" for line in lines if line)


def _end(entry: str) -> str:
    return "\r\n" if entry.endswith("\r\n") else "\n"
