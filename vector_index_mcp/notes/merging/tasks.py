"""Merges tasks in Markdown, as the original program wrote them, with front matter. Pure."""

from collections.abc import Sequence

from vector_index_mcp.notes.merging import fronts
from vector_index_mcp.notes.merging.fronts import UPDATED, Front
from vector_index_mcp.notes.merging.threeway import Key, Verdict, is_later, normalized, verdict
from vector_index_mcp.notes.texts import matter

_COMPLETED: Key = ("completed", 0)


def merged(base: str | None, ours: str, theirs: str) -> tuple[str, bool]:
    """Merge a task: it is completed if either side has completed it.

    Returns:
        The merged text, and whether it drops a different change of their side.
    """
    sides = [_parted(text) for text in (ours, theirs)]
    decided = verdict(None if base is None else _bare(base), _bare(ours), _bare(theirs))
    states = {key: _state([front for front, _ in sides], key) for key in (_COMPLETED, UPDATED)}
    front, rest = sides[decided is Verdict.THEIRS]
    if front.first:
        front.entries |= {key: entry for key, entry in states.items() if entry}
    return front.text + rest, decided is Verdict.BOTH


def _state(sides: Sequence[Front], key: Key) -> str:
    """Return the merged entry that both sides may have: the true value, or the later time."""
    found = ""
    for entry in (side.entries.get(key, "") for side in sides):
        one, other = fronts.value(entry), fronts.value(found)
        is_more = is_later(one, other) if key == UPDATED else one.lower() == "true" != other
        if entry and (not found or is_more):
            found = entry
    return found


def _parted(text: str) -> tuple[Front, str]:
    front, rest = matter.parted(text)
    return fronts.pieces(front), rest


def _bare(text: str) -> str:
    """Return a task's text for a comparison: without its state and the time of its change."""
    front, rest = _parted(text)
    for key in (_COMPLETED, UPDATED):
        front.entries.pop(key, None)
    return normalized(front.text + rest)
