"""Merges Markdown documents, chapter by chapter. Pure.

If both sides have changed a chapter, ours stays, and theirs follows as a chapter of its own, with a
mark at its top.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from vector_index_mcp.engine.text.fences import open_fence
from vector_index_mcp.notes.merging import fronts
from vector_index_mcp.notes.merging.threeway import Key, Verdict, keys, normalized, ordered, verdict
from vector_index_mcp.notes.texts import knowledge
from vector_index_mcp.notes.texts.knowledge import Document
from vector_index_mcp.notes.texts.parts import Part

MARK = "<!-- conflict: changed on both sides; keep what is right and remove this chapter -->"
"""The first line of a chapter that is a second version of the chapter before it."""

_INTRODUCTION = "Introduction"
_HEAD: Key = ("", 0)  # no chapter has such a title
_NOWHERE = -1
_LONGEST_TITLE = 200  # UTF-16 code units, the most that a tool's argument may have


def conflicts(text: str) -> list[str]:
    """Return the titles of a document's chapters that still carry the conflict mark."""
    return [p.title for p in knowledge.document("", text).parts.parts if _is_marked(p.body)]


def _is_marked(body: str) -> bool:
    return body.lstrip().partition("\n")[0].rstrip() == MARK


def merged(
    base: str | None, ours: str, theirs: str, label: str, where: str
) -> tuple[str, list[str]] | None:
    """Merge the chapters of both sides.

    Args:
        base: The text that both sides had in common; None if there was none.
        ours: The text on our side.
        theirs: The text on their side.
        label: The name of their side, for titles and comments.
        where: The document's name for people.

    Returns:
        The merged text, and sentences about what both sides have changed. None if the merged text,
        parsed again, would not have the same chapters.
    """
    documents = [knowledge.document("", text or "") for text in (base, ours, theirs)]
    old, mine, other = (document.front for document in documents)
    front, notes = fronts.merged(old, mine, other, label, where)
    chapters = _Chapters([_pieces(n, each) for n, each in enumerate(documents)], label, where)
    text = _composed(front, chapters.merged())
    return None if text is None else (text, [*notes, *chapters.notes])


@dataclass(frozen=True)
class _Piece:
    """A chapter or the introduction of one version, and its place there."""

    part: Part
    side: int
    number: int
    is_last: bool

    @property
    def compared(self) -> str | None:
        """The text to compare; None for a missing introduction."""
        found = normalized(self.part.body)
        return None if not found and not self.part.line else found

    def stands_before(self, other: "_Piece") -> bool:
        """Return whether both are from the same document, and `other` follows directly."""
        return self.side == other.side and self.number + 1 == other.number


def _pieces(side: int, document: Document) -> dict[Key, _Piece]:
    found = [Part(_INTRODUCTION, "", document.parts.head), *document.parts.parts]
    names = [_HEAD, *keys(document.parts.titles)]
    return {
        key: _Piece(part, side, number, number == len(found) - 1)
        for number, (key, part) in enumerate(zip(names, found, strict=True))
    }


class _Chapters:
    """The chapters of three versions of a document."""

    def __init__(self, versions: Sequence[dict[Key, _Piece]], label: str, where: str) -> None:
        self._versions = versions
        self._label = label
        self._where = where
        self._taken = {title for version in versions for title, _ in version}
        self.notes: list[str] = []

    def merged(self) -> list[_Piece]:
        """Return the pieces of the merged document; the introduction, perhaps empty, is first."""
        _, ours, theirs = self._versions
        return [piece for key in ordered(list(ours), list(theirs)) for piece in self._of(key)]

    def _of(self, key: Key) -> list[_Piece]:
        found = [version.get(key) for version in self._versions]
        _, ours, theirs = found
        decided = verdict(*(piece and piece.compared for piece in found))
        kept = [theirs if decided is Verdict.THEIRS else ours]
        if decided is Verdict.RESCUED and (ours is None or ours.compared is None):
            kept = [theirs]
        elif decided is Verdict.BOTH and theirs:
            kept = [ours, self._marked(theirs)]
        self._note(key, decided)
        return [piece for piece in kept if piece]

    def _note(self, key: Key, decided: Verdict) -> None:
        name = "the introduction" if key == _HEAD else f'chapter "{key[0]}"'
        if decided is Verdict.BOTH:
            self.notes.append(
                f"{name} of {self._where} was changed on both sides; both versions are kept"
            )
        if decided is Verdict.RESCUED:
            self.notes.append(
                f"{name} of {self._where} was removed on one side and changed on the other; "
                "it is kept"
            )

    def _marked(self, piece: _Piece) -> _Piece:
        """Return their chapter with a new title and the conflict mark."""
        title, body = self._title(piece.part.title), piece.part.body
        end = _end(piece.part.text)
        if not body.startswith(("\n", "\r\n")):
            body = end + body
        mark = "" if _is_marked(body) else end + MARK + end
        part = Part(title, f"## {title}{end}", mark + body)
        return replace(piece, part=part, side=_NOWHERE)

    def _title(self, title: str) -> str:
        number = 1
        while True:
            end = f" ({self._label})" if number == 1 else f" ({self._label}, {number})"
            found = _shortened(title, _LONGEST_TITLE - len(end.encode("utf-16-le")) // 2) + end
            if found not in self._taken:
                self._taken.add(found)
                return found
            number += 1


def _shortened(title: str, units: int) -> str:
    return title.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore").rstrip()


# -- one text --------------------------------------------------------------------------------


def _composed(front: str, pieces: Sequence[_Piece]) -> str | None:
    """Join `pieces` into a document; None if it would not be parsed into the same pieces."""
    texts = [
        piece.part.text if piece.stands_before(following) else _closed(piece.part.text)
        for piece, following in pairwise(pieces)
    ]
    last = pieces[-1]
    texts.append(last.part.text if last.is_last else _trimmed(last.part.text))
    if front and not front.endswith("\n") and any(texts):
        front += "\n"
    for found in (texts, [*map(_sealed, texts[:-1]), texts[-1]]):
        if _is_read_as(front, found):
            return front + "".join(found)
    return None


def _is_read_as(front: str, texts: Sequence[str]) -> bool:
    found = knowledge.document("", front + "".join(texts))
    read = [found.front, found.parts.head, *(part.text for part in found.parts.parts)]
    return read == [front, *texts]


def _closed(text: str) -> str:
    """Return `text` with a blank line at its end, so that a heading may follow."""
    end = _end(text)
    if not text.strip():
        return text + end if text and not text.endswith("\n") else text
    if not text.endswith("\n"):
        return text + end + end
    return text if text.endswith(("\n\n", "\n\r\n")) else text + end


def _trimmed(text: str) -> str:
    """Return `text` without the blank lines at its end, which separated it from the next piece."""
    bare = text.rstrip("\r\n")
    return text if text[len(bare) :] in {"", "\n", "\r\n"} else bare + _end(text)


def _sealed(text: str) -> str:
    """Return `text` with an open fenced code block closed, so that it does not swallow the rest."""
    fence, end = open_fence(text.split("\n")), _end(text)
    return text.rstrip("\r\n") + end + fence.mark + end + end if fence else text


def _end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
