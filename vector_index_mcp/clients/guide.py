"""The section in AGENTS.md or CLAUDE.md that tells agents when to search. Pure."""

from vector_index_mcp.clients.edits import newline_of

_START = "<!-- vector-index-mcp: start -->"
_END = "<!-- vector-index-mcp: end -->"
_SECTION = f"""\
{_START}
## Finding code

This project is indexed by the MCP server vector-index-mcp. To find where something is done, call
`search_index` first: ask in plain words ("where are retries with backoff handled"), or name an
identifier in any spelling, or both. It finds by meaning and by word at once and answers with paths,
lines and text. Use grep for a complete list of literal occurrences.
{_END}
"""


def is_in(text: str) -> bool:
    """Whether the text has the section, in the words of any version."""
    return _written(text) is not None


def added(text: str) -> str:
    """Return `text` with this version's section: in place of an older one, or at the end."""
    newline = newline_of(text)
    section = _SECTION.replace("\n", newline)
    if (written := _written(text)) is not None:
        return text[: written[0]] + section.rstrip() + text[written[1] :]
    if not text:
        return section
    if text.endswith("\n"):
        return text + newline + section
    return text + newline * 2 + section.rstrip()


def removed(text: str) -> str:
    """Return `text` without the section, as it was before."""
    written = _written(text)
    if written is None:
        return text
    before, after = text[: written[0]], text[written[1] :]
    newline = newline_of(text)
    if after:
        return before.removesuffix(newline) + after.removeprefix(newline)
    return before.removesuffix(newline * 2)


def _written(text: str) -> tuple[int, int] | None:
    """Return the start and the end of the section in the text; None if there is none."""
    start = text.find(_START)
    end = text.find(_END, start + len(_START))
    return None if start < 0 or end < 0 else (start, end + len(_END))
