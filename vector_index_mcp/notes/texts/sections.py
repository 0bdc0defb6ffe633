"""Changes of the sections of a project's main text. Pure."""

from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.texts import parts
from vector_index_mcp.notes.texts.knowledge import Place, check_nothing_is_lost, check_others_stay
from vector_index_mcp.notes.texts.parts import Parts, split

_KIND = "Section"


def updated(text: str, header: str, content: str) -> str:
    """Return `text` with new content in a section, which ends with a line feed.

    Raises:
        Refusal: If there is no such section, an open code block would hide another one, or one in
            it hides another one, which would be lost.
    """
    found, content = split(text), parts.without_heading(_title(header), content)
    number = _number(found, header)
    check_nothing_is_lost(found.parts[number], content, _KIND)
    ended = content if content.endswith("\n") or not content else f"{content}\n"
    new = parts.replaced(found, number, ended)
    own = [found.titles[number], *parts.titles_in(content)]
    return _checked(found, new, Place(number, 1), own)


def without(text: str, header: str) -> str:
    """Return `text` without a section.

    Raises:
        Refusal: If there is no such section, or an open code block in it hides another one.
    """
    found = split(text)
    number = _number(found, header)
    check_nothing_is_lost(found.parts[number], "", _KIND)
    return _checked(found, parts.removed(found, number), Place(number, 1), [])


def extended(text: str, header: str, content: str, position: str, reference: str | None) -> str:
    """Return `text` with one more section.

    Args:
        text: The project's main text.
        header: The new section's heading line.
        content: The new section's content.
        position: `before` or `after` the reference, or `end`.
        reference: The heading line of an existing section; needed unless `position` is `end`.

    Raises:
        Refusal: If the section exists already, the reference does not, or an open code block would
            hide a section.
    """
    found, title = split(text), _title(header)
    content = parts.without_heading(title, content)
    if found.find(title) is not None:
        raise Refusal(
            Code.FILE_ALREADY_EXISTS,
            f'{_KIND} "{header}" already exists in project main',
            section_header=header,
        )
    number = len(found.parts)
    if position != "end":
        number = _place(found, header, position, reference)
    new = parts.inserted(found, number, parts.made(title, content))
    return _checked(found, new, Place(number, 0), [title, *parts.titles_in(content)])


def _title(header: str) -> str:
    title = parts.title_of(header)
    if not title or "\n" in title or "\r" in title:
        raise Refusal(Code.INVALID_INPUT, "A section's header must be one line with a title")
    return title


def _place(found: Parts, header: str, position: str, reference: str | None) -> int:
    if reference is None:
        raise Refusal(
            Code.INVALID_INPUT,
            'reference_header is required when position is "before" or "after"',
            section_header=header,
            position=position,
        )
    number = found.find(_title(reference))
    if number is None:
        raise Refusal(
            Code.SECTION_NOT_FOUND,
            f'Reference section "{reference}" not found in project main',
            reference_header=reference,
            sections=found.titles[:MOST_SHOWN],
        )
    return number + (position == "after")


def _number(found: Parts, header: str) -> int:
    number = found.find(_title(header))
    if number is None:
        raise Refusal(
            Code.SECTION_NOT_FOUND,
            f'{_KIND} "{header}" not found in project main',
            section_header=header,
            sections=found.titles[:MOST_SHOWN],
        )
    return number


def _checked(found: Parts, new: Parts, place: Place, own: list[str]) -> str:
    check_others_stay(found, new, place, own, _KIND)
    return new.text
