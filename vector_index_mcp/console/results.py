"""Search results as a person reads them in a terminal, and as an editor does. Pure."""

from collections.abc import Iterable
from pathlib import PurePath

from rich.console import Console
from rich.style import Style
from rich.text import Text

from vector_index_mcp.codebase import colours
from vector_index_mcp.codebase.recent import Mode
from vector_index_mcp.codebase.text import nothing_found
from vector_index_mcp.codebase.wire import SearchHit, SearchResult
from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.words import words
from vector_index_mcp.foreign import visible

_TAB_COLUMNS = 4
_MODES: dict[Mode, str] = {"hybrid": "by words and by meaning", "lexical": "by words only"}
# Only what reads on a dark and on a light background: no yellow, no blue, no bright colour.
_STYLES = {
    colours.COMMENT: Style(dim=True),
    colours.STRING: Style(color="green"),
    colours.NUMBER: Style(color="cyan"),
    colours.KEYWORD: Style(color="magenta"),
    colours.NAME: Style(bold=True),
    colours.ATTRIBUTE: Style(color="magenta"),
    colours.BUILTIN: Style(color="cyan"),
}


def console_for(color: str) -> Console | None:
    """What colours the text for standard output; None if it is to be plain.

    Args:
        color: `always`, `never`, or `auto`: on a terminal that knows colours, unless NO_COLOR is
            set.
    """
    if color == "never":
        return None
    if color == "always":
        return Console(
            force_terminal=True, color_system="standard", no_color=False, legacy_windows=False
        )
    console = Console()
    paints = console.is_terminal and console.color_system and not console.no_color
    return console if paints else None


def readable(result: SearchResult, folder: str, console: Console | None) -> str:
    """The results with numbered lines, and below them what was searched and how.

    Args:
        result: What was found.
        folder: The project's folder as it was typed; printed paths begin with it.
        console: What colours it; None for plain text.
    """
    blocks = []
    for number, hit in enumerate(result.results, start=1):
        header = _header(number, hit, _place(hit, folder))
        code = _text(hit) if console is None else _painted(hit)
        blocks.append(Text("\n").join([header, *_numbered(hit, code)]))
    blocks.append(Text(_footer(result), style="dim"))
    if result.note:
        blocks.append(Text(f"Note: {visible(result.note)}"))
    if console is None:
        return "\n\n".join(block.plain for block in blocks)
    with console.capture() as capture:
        console.print(Text("\n\n").join(blocks), soft_wrap=True, highlight=False, end="")
    return capture.get()


def grep_lines(result: SearchResult, query: Query, folder: str) -> list[str]:
    """One line `path:line:text` for each result, as grep writes it and editors read it.

    It is the line of the result with most words of the query; of several, the first.
    """
    asked = set(query.words)
    return [_grep_line(hit, asked, folder) for hit in result.results]


def _grep_line(hit: SearchHit, asked: set[str], folder: str) -> str:
    lines = visible(hit.extracted_text_chunk, keep="\n\t").split("\n")
    scores = [len(asked.intersection(words(line))) for line in lines]
    names = {word for symbol in hit.symbols for word in words(symbol)}
    if not any(scores):  # found by meaning
        scores = [bool(names.intersection(words(line))) for line in lines]
    if not any(scores):
        scores = [bool(line.strip()) for line in lines]
    best = scores.index(max(scores))
    return f"{_place(hit, folder)}:{hit.start_line + best}:{lines[best].rstrip()}"


def _place(hit: SearchHit, folder: str) -> str:
    return visible(str(PurePath(folder) / hit.file_path))


def _header(number: int, hit: SearchHit, place: str) -> Text:
    header = Text.assemble(
        (f"{number}. ", "dim"), (place, "bold"), f":{hit.start_line}-{hit.end_line}"
    )
    if hit.scope:
        header.append(f" in {visible(hit.scope)}")
    header.append(f" (score {hit.score:.2f}", "dim")
    if hit.is_stale:
        header.append(", changed since it was indexed", "red")
    return header.append(")", "dim")


def _text(hit: SearchHit) -> Text:
    text = visible(hit.extracted_text_chunk, keep="\n\t").rstrip("\n")
    return Text(text.expandtabs(_TAB_COLUMNS))


def _painted(hit: SearchHit) -> Text:
    painted = Text()
    for name, piece in colours.pieces(_text(hit).plain, hit.language):
        painted.append(piece, _STYLES.get(name))
    return painted


def _numbered(hit: SearchHit, code: Text) -> Iterable[Text]:
    width = max(len(str(hit.end_line)), 4)
    for number, line in enumerate(code.split("\n", allow_blank=True), start=hit.start_line):
        gap = "  " if line.plain else ""
        yield Text.assemble((f"{number:>{width}}{gap}", "dim"), line)
    if hit.is_cut:
        yield Text(f"{'...':>{width}}", "dim")


def _footer(result: SearchResult) -> str:
    if not result.results:
        return nothing_found(result)
    count = len(result.results)
    return f"{count} {'result' if count == 1 else 'results'}, {_MODES[result.mode]}"
