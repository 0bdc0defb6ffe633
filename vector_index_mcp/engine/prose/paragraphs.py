"""Cuts paragraphs into chunks along lines, and long lines along sentences. Pure.

Many people write a paragraph as one line, which may be longer than a chunk.
"""

import re
from collections.abc import Iterator

from vector_index_mcp.engine.chunk.lines import cut_lines
from vector_index_mcp.engine.types import Chunk

# A sentence ends only if no lower-case letter follows the white space: `e.g. this` goes on.
_END = re.compile(r"""(?<!\d)[.!?…]["'”’»)\]*_]{0,3}\s++(?![a-z])|[。！？]["'”’»」』）]{0,3}\s*+""")
_FEWEST_CHARS = 20  # for shorter chunks, sentences do not matter
_OF_ENDS = 3  # characters: a line feed after a piece, and the line's own ending


def cut_paragraphs(text: str, max_chars: int) -> list[Chunk]:
    """Cut `text` as `cut_lines` does, but cut long lines where a sentence or a word ends."""
    lines = text.split("\n")
    if max_chars < _FEWEST_CHARS or max(map(len, lines)) < max_chars:
        return cut_lines(text, max_chars)
    pieces: list[str] = []
    numbers: list[int] = []  # of the lines that they are from
    for number, line in enumerate(lines, 1):
        ended = f"{line}\n" if number < len(lines) else line
        found = [*_pieces(ended, max_chars)]
        pieces += found
        numbers += [number] * len(found)
    # `cut_lines` cuts the pieces as if they were lines; the text is cut at the same places.
    apart = "".join(piece if piece.endswith("\n") else f"{piece}\n" for piece in pieces[:-1])
    return [
        Chunk(
            "".join(pieces[chunk.start_line - 1 : chunk.end_line]),
            numbers[chunk.start_line - 1],
            numbers[chunk.end_line - 1],
        )
        for chunk in cut_lines(apart + pieces[-1], max_chars)
    ]


def _pieces(line: str, max_chars: int) -> Iterator[str]:
    """Yield `line`, cut into pieces if it is too long.

    It is cut after a sentence; if none fits, after a word; if none fits, anywhere.
    """
    if len(line) <= max_chars:
        if line:
            yield line
        return
    most = max_chars - _OF_ENDS
    end_of_text = len(line) - (2 if line.endswith("\r\n") else line.endswith("\n"))
    ends = [match.end() for match in _END.finditer(line)]
    start = 0
    for end in (*ends, len(line)):
        while min(end, end_of_text) - start > most:
            middle = line.rfind(" ", start, start + most) + 1 or start + most
            yield line[start:middle]
            start = middle
        if start < end:
            yield line[start:end]
        start = end
