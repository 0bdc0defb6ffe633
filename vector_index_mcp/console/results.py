"""Formats search results for people at a terminal, and for editors. Pure.

It colours them without a library: importing one takes as long as the search.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TypeAlias

from vector_index_mcp.codebase import colours
from vector_index_mcp.codebase.cited import line_meant, places_in
from vector_index_mcp.codebase.hits import Mode, Reasons, SearchHit, SearchResult
from vector_index_mcp.codebase.lines import best_line
from vector_index_mcp.codebase.places import Place
from vector_index_mcp.codebase.text import miss, nothing_found
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.errors import counted
from vector_index_mcp.foreign import visible

_TAB_COLUMNS = 4
_MODES: dict[Mode, str] = {"hybrid": "by words and by meaning", "lexical": "by words only"}
_BOLD, _DIM, _RED, _GREEN, _MAGENTA, _CYAN = 1, 2, 31, 32, 35, 36
# Only colours that are readable on dark and light backgrounds: no yellow, blue or bright colours.
_STYLES = {
    colours.COMMENT: _DIM,
    colours.STRING: _GREEN,
    colours.NUMBER: _CYAN,
    colours.KEYWORD: _MAGENTA,
    colours.NAME: _BOLD,
    colours.ATTRIBUTE: _MAGENTA,
    colours.BUILTIN: _CYAN,
}
_AROUND_ROWS = 4  # below the results: the footer, the remarks, and the next prompt
_OF_HIT_ROWS = 2  # the header of a hit, and the empty line after the hit
_LEAST_SHOWN = 0.005  # a smaller number would be printed as 0.00
_OF_WHY_ROWS = 4  # the explanation of a hit, with --explain

Paint: TypeAlias = Callable[[str, int], str]
"""Returns a text in the style of an ECMA-48 (SGR) code."""


def plain(text: str, _: int) -> str:
    """Return `text` without any style."""
    return text


def painted(text: str, code: int) -> str:
    """Return `text` between the escape sequences that begin and end the style."""
    return f"\x1b[{code}m{text}\x1b[0m" if text else ""


def paint_for(color: str) -> Paint:
    """Return the function that styles text for standard output.

    Args:
        color: `always`, `never`, or `auto`: colours on a terminal that supports them, unless
            NO_COLOR is set.
    """
    knows = os.environ.get("TERM", "") != "dumb" and not os.environ.get("NO_COLOR")
    is_wanted = color == "always" or (color == "auto" and sys.stdout.isatty() and knows)
    return painted if is_wanted else plain


def rows_of_terminal() -> int | None:
    """Return how many lines the terminal shows at once; None if standard output is no terminal."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else None


def readable(
    result: SearchResult,
    query: Query,
    folder: str,
    paint: Paint = plain,
    rows: int | None = None,
) -> str:
    """Return the results with numbered lines, and a footer that says how they were searched.

    Args:
        result: The hits.
        query: The query that found them.
        folder: The project's folder as it was typed; printed paths begin with it.
        paint: Applies the styles.
        rows: How many lines the text should take, so that the best hit, which is printed first,
            does not scroll away. Each hit then shows only the lines that matter most, the best hit
            more than the others. None: show all lines.
    """
    blocks = [paint(visible(miss(result)), _RED)] if result.absent else []
    shares, is_cut = _shares(result.results, rows), False
    places = [] if rows is None else places_in(query.text)
    for number, (hit, share) in enumerate(zip(result.results, shares, strict=True), start=1):
        lines = _lines(hit, paint)
        shown = lines if share is None else _window(lines, hit, query, places, share)
        is_cut = is_cut or len(shown) < len(lines)
        also = [f"also {visible('; '.join(hit.also))}"] if hit.also else []
        below = [paint(line, _DIM) for line in (*also, *(_explained(hit.why) if hit.why else ()))]
        blocks.append("\n".join([_header(number, hit, _place(hit, folder), paint), *shown, *below]))
    footer = _footer(result) + ("; --full shows all lines" if is_cut else "")
    blocks.append(paint(footer, _DIM))
    if remarks := result.remarks:
        blocks.append(f"Note: {visible(remarks)}")
    return "\n\n".join(blocks)


def grep_lines(result: SearchResult, query: Query, folder: str) -> list[str]:
    """Return one line `path:line:text` for each result, as grep writes it and editors read it.

    The line is the one that the query names by its number, or else the one that has the most words
    of the query; of several, the first. For a regular expression, these are the lines that match,
    file by file, and none if no line does.
    """
    places = places_in(query.text)
    files: dict[str, dict[int, str]] = {}
    for hit in result.results:
        lines = files.setdefault(_place(hit, folder), {})
        for number, text in _grep_lines(hit, query, places):
            lines.setdefault(number, text)  # a long line stands in several chunks, in pieces
    return [
        f"{file}:{number}:{text}"
        for file, lines in files.items()
        for number, text in (sorted(lines.items()) if query.pattern else lines.items())
    ]


def count_without_lines(result: SearchResult, query: Query) -> int:
    """Return in how many hits a regular expression matches several lines together, and no line."""
    if query.pattern is None:
        return 0
    texts = [_grepped(hit) for hit in result.results]
    left = ["\n".join(lines) for lines in texts if not query.pattern.matching(lines)]
    whole = replace(query.pattern, regex=f"(?m){query.pattern.regex}")
    return len(whole.matching(left)) if left else 0


def notes(result: SearchResult) -> list[str]:
    """Return the lines that `readable` adds to the results, for formats that hold only results."""
    lines = [miss(result)] if result.absent else []
    lines += [] if result.results or result.absent else [nothing_found(result)]
    lines += [f"Note: {result.remarks}"] if result.remarks else []
    return [visible(line) for line in lines]


def _grep_lines(hit: SearchHit, query: Query, places: Sequence[Place]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of lines of a hit, and their texts."""
    lines = _grepped(hit)
    if query.pattern:
        indexes = query.pattern.matching(lines)
    else:
        indexes = [_line_that_matters(lines, hit, query, places)]
    for index in indexes:
        yield hit.start_line + index, lines[index]


def _grepped(hit: SearchHit) -> list[str]:
    """Return the lines of a hit that can be printed."""
    return visible(hit.extracted_text_chunk, keep="\n\t").removesuffix("\n").split("\n")


def _line_that_matters(
    lines: Sequence[str], hit: SearchHit, query: Query, places: Sequence[Place]
) -> int:
    """Return the index of the line that the query names, or else the one with most of its words."""
    named = line_meant(places, hit.file_path, hit.start_line, hit.start_line + len(lines) - 1)
    return best_line(lines, query, hit.symbols) if named is None else named


def _shares(hits: Sequence[SearchHit], rows: int | None) -> Sequence[int | None]:
    """Return how many lines of its text each hit may show; None means all of them."""
    count = len(hits)
    if rows is None or not count:
        return [None] * count
    left = (
        rows
        - _AROUND_ROWS
        - sum(_OF_HIT_ROWS + bool(hit.also) + _OF_WHY_ROWS * bool(hit.why) for hit in hits)
    )
    other = max(1, left // (count + 1))
    return [max(2, left - other * (count - 1)), *[other] * (count - 1)]


def _window(
    lines: list[str], hit: SearchHit, query: Query, places: Sequence[Place], most: int
) -> list[str]:
    """Return at most `most` lines around the one that matters most; a third of them before it."""
    if len(lines) <= most:
        return lines
    text = visible(hit.extracted_text_chunk, keep="\n\t").split("\n")
    matters = _line_that_matters(text, hit, query, places)
    first = min(matters - most // 3, len(lines) - most)
    first = max(0, first)
    return lines[first : first + most]


def _place(hit: SearchHit, folder: str) -> str:
    path = PurePath(folder) / hit.file_path
    # One stands below the project: `../src/a.py` in `src` is `a.py`.
    return visible(os.path.relpath(path) if path.parts[0] == os.pardir else str(path))


def _header(number: int, hit: SearchHit, place: str, paint: Paint) -> str:
    scope = f" in {visible(hit.scope)}" if hit.scope else ""
    warnings = [", changed since it was indexed"] if hit.is_stale else []
    warnings += [", credentials masked"] if hit.is_masked else []
    return "".join(
        [
            paint(f"{number}. ", _DIM),
            paint(place, _BOLD),
            f":{hit.start_line}-{hit.end_line}{scope}",
            paint(f" (score {hit.score:.2f}", _DIM),
            *[paint(warning, _RED) for warning in warnings],
            paint(")", _DIM),
        ]
    )


def _lines(hit: SearchHit, paint: Paint) -> list[str]:
    """Return the lines of a hit with their numbers."""
    text = visible(hit.extracted_text_chunk, keep="\n\t").rstrip("\n").expandtabs(_TAB_COLUMNS)
    width = max(len(str(hit.end_line)), 4)
    shown = []
    for number, line in enumerate(_painted_lines(text, hit.language, paint), hit.start_line):
        gap = "  " if line else ""
        shown.append(paint(f"{number:>{width}}{gap}", _DIM) + line)
    return [*shown, paint(f"{'...':>{width}}", _DIM)] if hit.is_cut else shown


def _painted_lines(text: str, language: str, paint: Paint) -> Iterator[str]:
    """Yield the lines of `text`, each with styles that end in it.

    A style that went on would also colour the number of the next line.
    """
    if paint is plain:
        yield from text.split("\n")
        return
    line = ""
    for name, piece in colours.pieces(text, language):
        first, *others = piece.split("\n")
        line += _styled(first, name, paint)
        for other in others:
            yield line
            line = _styled(other, name, paint)
    yield line


def _styled(text: str, name: str, paint: Paint) -> str:
    code = _STYLES.get(name)
    return text if code is None or not text.strip() else paint(text, code)


def _explained(why: Reasons) -> list[str]:
    """Return lines that explain the rank and the score of a hit."""
    nearness = "not found by meaning" if why.meaning is None else f"meaning {why.meaning:.2f}"
    factors = "".join(f", {name} ×{factor:.2f}" for name, factor in why.factors.items())
    judged = "" if why.judged is None else f"; the cross-encoder says {why.judged:.2f}"
    beside = f"beside the best {why.chunk:.2f}{judged}"
    lines = [f"why: words {why.words:.2f}, {nearness}{factors}; {beside}"]
    if why.file:
        lines.append(f"file: {_added(why.file)}")
    if why.in_file:
        lines.append(f"in its file: {_added(why.in_file)}")
    return [*lines, f"score: {_added(why.likelihood)} in logits"]


def _added(parts: Mapping[str, float]) -> str:
    """Return the named numbers and their sum; those that round to 0.00 are left out."""
    named = (f"{name} {part:+.2f}" for name, part in parts.items() if abs(part) >= _LEAST_SHOWN)
    return f"{', '.join(named)} = {sum(parts.values()):.2f}"


def _footer(result: SearchResult) -> str:
    if not result.results:
        return nothing_found(result)
    return f"{counted(len(result.results), 'result')}, {_MODES[result.mode]}"
