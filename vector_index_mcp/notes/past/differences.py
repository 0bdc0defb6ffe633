"""Writes the difference between two states of some files as a unified diff. Pure."""

import difflib
from collections.abc import Iterator, Mapping, Sequence

from vector_index_mcp.errors import counted

_AROUND = 3
_MOST_LINES = 5_000  # of one side; difflib takes many seconds for more
_NO_FILE = "/dev/null"
_NO_END = "\\ No newline at end of file"
_Opcode = tuple[str, int, int, int, int]


def unified(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the lines of a diff, without line ends.

    Args:
        old: The earlier contents by path.
        new: The later contents by path.
    """
    for path in sorted({*old, *new}):
        before, after = old.get(path), new.get(path)
        if before != after:
            yield f"--- {path if before is not None else _NO_FILE}"
            yield f"+++ {path if after is not None else _NO_FILE}"
            yield from _of_file(before or b"", after or b"")


def _of_file(before: bytes, after: bytes) -> Iterator[str]:
    try:
        old, new = _lines(before.decode()), _lines(after.decode())
    except UnicodeDecodeError:
        old_bytes = counted(len(before), "byte")
        yield f"@@ {old_bytes} became {len(after):,}; they are no text in UTF-8 @@"
        return
    # Most edits change a few lines. Skip the equal lines at both ends, to save time.
    first = max(0, _same(old, new) - _AROUND)
    last = max(0, _same(old[first:][::-1], new[first:][::-1]) - _AROUND)
    old_part, new_part = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old_part), len(new_part)) > _MOST_LINES:
        yield f"@@ {counted(len(old_part), 'line')} from {first + 1} on became {len(new_part):,} @@"
        return
    matcher = difflib.SequenceMatcher(None, old_part, new_part)
    for group in matcher.get_grouped_opcodes(_AROUND):
        yield _heading(group, first)
        for opcode in group:
            yield from _changed(opcode, old_part, new_part)


def _lines(text: str) -> list[str]:
    """Split a text into lines with their line feeds, which the last line may lack."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines at the beginning are equal."""
    shorter = min(len(old), len(new))
    return next((n for n in range(shorter) if old[n] != new[n]), shorter)


def _heading(group: Sequence[_Opcode], first: int) -> str:
    old = _range(group[0][1] + first, group[-1][2] + first)
    new = _range(group[0][3] + first, group[-1][4] + first)
    return f"@@ -{old} +{new} @@"


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + 1 if count else start},{count}"


def _changed(opcode: _Opcode, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    tag, start, end, new_start, new_end = opcode
    if tag == "equal":
        yield from _marked(" ", old[start:end])
    else:
        yield from _marked("-", old[start:end])
        yield from _marked("+", new[new_start:new_end])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield _NO_END
