"""Tasks as an older program wrote them: Markdown that says at its top what is completed. Pure."""

from collections.abc import Sequence

from vector_index_mcp.notes.merging import fronts
from vector_index_mcp.notes.merging.fronts import UPDATED, Front
from vector_index_mcp.notes.merging.threeway import Key, Verdict, is_later, said, verdict
from vector_index_mcp.notes.texts import matter

_COMPLETED: Key = ("completed", 0)


def merged(base: str | None, ours: str, theirs: str) -> tuple[str, bool]:
    """The task: completed if it is on one side, else as the side has it that has changed it.

    Returns:
        Its text, and whether that is ours though theirs says something else.
    """
    sides = [_parted(text) for text in (ours, theirs)]
    decided = verdict(None if base is None else _bare(base), _bare(ours), _bare(theirs))
    states = {key: _state([front for front, _ in sides], key) for key in (_COMPLETED, UPDATED)}
    front, rest = sides[decided is Verdict.THEIRS]
    front.entries.update((key, entry) for key, entry in states.items() if key in front.entries)
    return front.text + rest, decided is Verdict.BOTH


def _state(sides: Sequence[Front], key: Key) -> str:
    """What stands of an entry that both sides may have: what is true, or the later moment."""
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
    """All of it but how far the task has come."""
    front, rest = _parted(text)
    for key in (_COMPLETED, UPDATED):
        front.entries.pop(key, None)
    return said(front.text + rest)
