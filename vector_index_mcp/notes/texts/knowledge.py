"""A knowledge document, and what may be done to its chapters. Pure.

A document is front matter, an introduction, and chapters under headings of level two.
"""

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
class Document:
    """A document as it is read; its pieces, joined, are its text."""

    name: str
    """Of the file."""
    front: str
    parts: Parts

    @property
    def text(self) -> str:
        """The file's, to the letter."""
        return self.front + self.parts.text

    @property
    def metadata(self) -> matter.Metadata:
        """What it says of itself; its title is at least the name of its file."""
        found = matter.metadata(self.front)
        title = found.title or _heading(self.introduction) or PurePosixPath(self.name).stem
        return matter.Metadata(title, found.keywords, found.created, found.updated)

    @property
    def introduction(self) -> str:
        """Before the first chapter, without blank lines around it."""
        return self.parts.head.strip()


def document(name: str, text: str) -> Document:
    """The document in the file `name`."""
    front, rest = matter.parted(text)
    return Document(name, front, parts.split(rest))


def _heading(introduction: str) -> str:
    first = introduction.partition("\n")[0]
    return first.removeprefix("# ").strip() if first.startswith("# ") else ""


def first_line(part: Part) -> str:
    """What a chapter is about, as a whole document lists its chapters."""
    return part.content.partition("\n")[0].rstrip()[:_LONGEST_SUMMARY_CHARS] + _MORE


def summary(part: Part) -> str:
    """What a chapter is about, as it is listed by itself."""
    whole = part.paragraph
    return whole if len(whole) <= _LONGEST_SUMMARY_CHARS else whole[:_LONGEST_SUMMARY_CHARS] + _MORE


# -- changes ---------------------------------------------------------------------------------


def created(
    title: str, introduction: str, keywords: Sequence[str], chapters: Sequence[tuple[str, str]]
) -> str:
    """The text of a new document.

    Args:
        title: Of the document.
        introduction: What stands before the chapters.
        keywords: Words to find it by.
        chapters: Titles and contents, in order.

    Raises:
        Refusal: If chapters have the same title, or one of them would hide another.
    """
    moment = matter.now()
    front = matter.written(matter.Metadata(_line(title), tuple(keywords), moment, moment))
    found = parts.split(f"\n{introduction}\n")
    wanted: list[str] = []
    inner: list[str] = []
    for name, given in chapters:
        content = parts.without_heading(name, given)
        if name.strip() in wanted:
            raise Refusal(
                Code.INVALID_INPUT, f'Chapter "{name}" is there twice', chapter_title=name
            )
        wanted.append(_line(name).strip())
        inner += parts.titles_in(content)
        found = parts.inserted(found, len(found.parts), parts.made(name, content))
    check_nothing_is_hidden([*parts.titles_in(introduction), *wanted, *inner], found, _KIND)
    return front + found.text


def updated(found: Document, title: str, content: str) -> str:
    """The text of a document with other content in a chapter.

    Raises:
        Refusal: If there is no such chapter, or others would be hidden.
    """
    content = parts.without_heading(title, content)
    new = parts.replaced(found.parts, _number(found, title), content)
    return _changed(found, new, parts.titles_in(content))


def without(found: Document, title: str) -> str:
    """The text of a document without a chapter.

    Raises:
        Refusal: If there is no such chapter.
    """
    number = _number(found, title)
    return _changed(found, parts.removed(found.parts, number), [], gone=number)


def extended(
    found: Document, title: str, content: str, position: str, reference: str | None
) -> str:
    """The text of a document with one more chapter.

    Args:
        found: The document.
        title: Of the new chapter.
        content: Of it.
        position: `before` or `after` the reference, or `end`.
        reference: The title of a chapter.

    Raises:
        Refusal: If there is such a chapter, or no such reference, or others would be hidden.
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
    return _changed(found, new, [part.title, *parts.titles_in(content)])


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
        )
    return number + (position == "after")


def _number(found: Document, title: str) -> int:
    number = found.parts.find(title)
    if number is None:
        raise chapter_not_found(found, title)
    return number


def chapter_not_found(found: Document, title: str) -> Refusal:
    """Says that a document has no chapter of that title."""
    return Refusal(
        Code.CHAPTER_NOT_FOUND,
        f'Chapter "{title}" not found in {found.name}',
        filename=found.name,
        chapter_title=title,
        chapters=found.parts.titles[:MOST_SHOWN],
    )


def _changed(found: Document, new: Parts, titles: Sequence[str], gone: int | None = None) -> str:
    kept = [part.title for n, part in enumerate(found.parts.parts) if n != gone]
    check_nothing_is_hidden([*kept, *titles], new, _KIND)
    front = matter.touched(found.front, matter.now())
    if matter.parted(front + new.text)[0].rstrip("\r\n") != front.rstrip("\r\n"):
        raise Refusal(
            Code.INVALID_CONTENT,
            "the rule (---) at the top of the document and one in the new content would make "
            "front matter of what stands between them; use *** for a rule",
        )
    return front + new.text


def check_nothing_is_hidden(titles: Sequence[str], new: Parts, kind: str) -> None:
    """Refuse a change that makes a heading part of a block of code.

    Raises:
        Refusal: If one of `titles` is no part of `new`.
    """
    if hidden := parts.swallowed(titles, new):
        raise Refusal(
            Code.INVALID_CONTENT,
            f'{kind} "{hidden}" would become part of a block of code: a fence (``` or ~~~) before '
            "it is never closed; close it",
        )


def _line(title: str) -> str:
    """A title that can stand in a heading.

    Raises:
        Refusal: If it cannot.
    """
    if not title.strip() or len(title.splitlines()) > 1 or "\n" in title or "\r" in title:
        raise Refusal(Code.INVALID_INPUT, "A title is one line that says something", title=title)
    return title
