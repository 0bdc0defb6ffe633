"""Parses a knowledge document, and changes its chapters. Pure.

A document has front matter, an introduction, and chapters under headings of level two.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.texts import matter, parts
from vector_index_mcp.notes.texts.parts import Part, Parts

_LONGEST_SUMMARY_CHARS = 300
_MORE = "..."
_KIND = "Chapter"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text changes."""

    number: int
    """The part that is replaced, or before which others are put."""
    gone: int
    """How many parts are replaced: one or none."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document; its pieces, joined, are exactly its text."""

    name: str
    """The file's name."""
    front: str
    """The front matter with its rules; empty if there is none."""
    parts: Parts

    @property
    def text(self) -> str:
        """The exact text of the file."""
        return self.front + self.parts.text

    @property
    def metadata(self) -> matter.Metadata:
        """The metadata; a missing title is taken from the first heading, or the file's name."""
        found = matter.metadata(self.front)
        title = found.title or _heading(self.introduction) or PurePosixPath(self.name).stem
        return matter.Metadata(title, found.keywords, found.created, found.updated)

    @property
    def introduction(self) -> str:
        """The text before the first chapter, without surrounding blank lines."""
        return self.parts.head.strip()


def document(name: str, text: str) -> Document:
    """Parse the text of the file `name`."""
    front, rest = matter.parted(text)
    return Document(name, front, parts.split(rest))


def _heading(introduction: str) -> str:
    first = introduction.partition("\n")[0]
    return first.removeprefix("# ").strip() if first.startswith("# ") else ""


def first_line(part: Part) -> str:
    """Return a chapter's first line, as the answer with a whole document summarizes chapters."""
    return part.content.partition("\n")[0].rstrip()[:_LONGEST_SUMMARY_CHARS] + _MORE


def summary(part: Part) -> str:
    """Return a chapter's first paragraph, cut if it is long, as lists of chapters show it."""
    whole = part.paragraph
    return whole if len(whole) <= _LONGEST_SUMMARY_CHARS else whole[:_LONGEST_SUMMARY_CHARS] + _MORE


# -- changes ---------------------------------------------------------------------------------


def created(
    title: str, introduction: str, keywords: Sequence[str], chapters: Sequence[tuple[str, str]]
) -> str:
    """Return the text of a new document.

    Args:
        title: The document's title.
        introduction: The text before the chapters.
        keywords: Words that help to find the document.
        chapters: Title and content of each chapter, in order.

    Raises:
        Refusal: If two chapters have the same title, or an open code block would hide a chapter.
    """
    moment = matter.now()
    front = matter.written(matter.Metadata(_line(title), tuple(keywords), moment, moment))
    found = parts.split(f"\n{introduction}\n")
    wanted: list[str] = []
    for name, given in chapters:
        content = parts.without_heading(name, given)
        if name.strip() in wanted:
            raise Refusal(
                Code.INVALID_INPUT, f'Chapter "{name}" is given twice', chapter_title=name
            )
        wanted.append(_line(name).strip())
        before, place = found, Place(len(found.parts), 0)
        found = parts.inserted(before, place.number, parts.made(name, content))
        check_others_stay(before, found, place, [wanted[-1], *parts.titles_in(content)], _KIND)
    _check_titles(found)
    return front + found.text


def updated(found: Document, title: str, content: str) -> str:
    """Return the document's text with new content in a chapter.

    Raises:
        Refusal: If there is no such chapter, an open code block would hide another one, or one in
            it hides another one, which would be lost.
    """
    content, number = parts.without_heading(title, content), _number(found, title)
    check_nothing_is_lost(found.parts.parts[number], content, _KIND)
    new = parts.replaced(found.parts, number, content)
    own = [found.parts.titles[number], *parts.titles_in(content)]
    return _changed(found, new, Place(number, 1), own)


def without(found: Document, title: str) -> str:
    """Return the document's text without a chapter.

    Raises:
        Refusal: If there is no such chapter, or an open code block in it hides another one.
    """
    number = _number(found, title)
    check_nothing_is_lost(found.parts.parts[number], "", _KIND)
    return _changed(found, parts.removed(found.parts, number), Place(number, 1), [])


def extended(
    found: Document, title: str, content: str, position: str, reference: str | None
) -> str:
    """Return the document's text with one more chapter.

    Args:
        found: The document.
        title: The new chapter's title.
        content: The new chapter's content.
        position: `before` or `after` the reference, or `end`.
        reference: The title of an existing chapter; needed unless `position` is `end`.

    Raises:
        Refusal: If the chapter exists already, the reference does not, or an open code block would
            hide a chapter.
    """
    if found.parts.find(_line(title)) is not None:
        raise Refusal(
            Code.FILE_ALREADY_EXISTS,
            f'Chapter "{title}" already exists in {found.name}',
            filename=found.name,
            chapter_title=title,
        )
    number = len(found.parts.parts)
    if position != "end":
        number = _place(found, position, reference)
    content = parts.without_heading(title, content)
    part = parts.made(title, content)
    new = parts.inserted(found.parts, number, part)
    return _changed(found, new, Place(number, 0), [part.title, *parts.titles_in(content)])


def _place(found: Document, position: str, reference: str | None) -> int:
    if reference is None:
        raise Refusal(
            Code.INVALID_INPUT,
            'Position "before" or "after" requires reference_chapter',
            position=position,
        )
    number = found.parts.find(reference)
    if number is None:
        raise Refusal(
            Code.CHAPTER_NOT_FOUND,
            f'Reference chapter "{reference}" not found in {found.name}',
            filename=found.name,
            reference_chapter=reference,
            chapters=found.parts.titles[:MOST_SHOWN],
        )
    return number + (position == "after")


def _number(found: Document, title: str) -> int:
    number = found.parts.find(title)
    if number is None:
        raise chapter_not_found(found, title)
    return number


def chapter_not_found(found: Document, title: str) -> Refusal:
    """Return the Refusal that a document has no chapter with that title."""
    return Refusal(
        Code.CHAPTER_NOT_FOUND,
        f'Chapter "{title}" not found in {found.name}',
        filename=found.name,
        chapter_title=title,
        chapters=found.parts.titles[:MOST_SHOWN],
    )


def _changed(found: Document, new: Parts, place: Place, own: Sequence[str]) -> str:
    check_others_stay(found.parts, new, place, own, _KIND)
    _check_titles(new, found.parts)
    front = matter.touched(found.front, matter.now())
    if matter.parted(front + new.text)[0].rstrip("\r\n") != front.rstrip("\r\n"):
        raise Refusal(
            Code.INVALID_CONTENT,
            "the document begins with a rule (---), and the text up to a rule in the new content "
            "would become front matter; use *** for a rule",
        )
    return front + new.text


def _check_titles(new: Parts, old: Parts | None = None) -> None:
    """Refuse a second chapter of a title, which no call could name, but keep those there are."""
    were = Counter(part.title for part in old.parts) if old is not None else Counter()
    for title, count in Counter(part.title for part in new.parts).items():
        if count > max(1, were[title]):
            raise Refusal(
                Code.INVALID_INPUT,
                f'"## {title}" begins a chapter that there is already; give it another title, or '
                "make it a heading of three signs (###)",
                chapter_title=title,
            )


def check_others_stay(old: Parts, new: Parts, place: Place, own: Sequence[str], kind: str) -> None:
    """Check that a change leaves the parts around it as they are, whatever its text begins or ends.

    Args:
        old: The text before the change.
        new: The text after the change.
        place: Where the text changes.
        own: The titles of the parts that the change puts there.
        kind: What a part is called.

    Raises:
        Refusal: If a heading would become code, or code a heading.
    """
    before, after = old.parts[: place.number], old.parts[place.number + place.gone :]
    titles = [part.title for part in before] + [*own] + [part.title for part in after]
    check_nothing_is_hidden(titles, new, kind)
    kept = [*before, *after]
    now = [*new.parts[: len(before)], *new.parts[len(new.parts) - len(after) :]]
    pairs = zip(map(_essence, kept), map(_essence, now), strict=False)
    other = next((was[0] for was, part in pairs if was != part), "")
    if other or old.head.strip("\r\n") != new.head.strip("\r\n") or new.titles != titles:
        where = f'{kind} "{other}"' if other else "The text"
        raise Refusal(
            Code.INVALID_CONTENT,
            f"{where} would be read in another way: a comment (<!--) or a code block (```) that "
            f"begins in one {kind.lower()} would end in another; end it where it begins",
        )


def _essence(part: Part) -> tuple[str, str]:
    """Return what a change elsewhere keeps of a part: all but the blank lines around it."""
    return part.title, part.body.strip("\r\n")


def check_nothing_is_hidden(titles: Sequence[str], new: Parts, kind: str) -> None:
    """Refuse a change that would make a heading part of a fenced code block.

    Raises:
        Refusal: If one of `titles` is missing from `new`.
    """
    if hidden := parts.swallowed(titles, new):
        holders = [part.title for part in new.parts if hidden in parts.behind_open_fence(part)]
        where = f'in "{holders[0]}"' if holders else "before it"
        raise Refusal(
            Code.INVALID_CONTENT,
            f'{kind} "{hidden}" would become part of a code block: a fence (``` or ~~~) {where} '
            "is never closed; close it",
        )


def check_nothing_is_lost(old: Part, content: str, kind: str) -> None:
    """Check that replacing a part, which has a fence that is never closed, loses no later heading.

    Raises:
        Refusal: If a line behind that fence looks like a heading, and `content` does not have it.
    """
    hidden, kept = parts.behind_open_fence(old), parts.titles_of(content.split("\n"))
    lost = next(iter(Counter(hidden) - Counter(kept)), "")
    if lost:
        raise Refusal(
            Code.INVALID_CONTENT,
            f'{kind} "{old.title}" has a fence (``` or ~~~) that is never closed, so "## {lost}" '
            "behind it counts as code and would be lost; update the part with its whole text, in "
            "which the fence is closed",
        )


def _line(title: str) -> str:
    """Return `title` if it can be a heading.

    Raises:
        Refusal: If it is blank, or has more than one line.
    """
    if not title.strip() or len(title.splitlines()) > 1 or "\n" in title or "\r" in title:
        raise Refusal(Code.INVALID_INPUT, "A title must be one line that is not blank", title=title)
    return title
