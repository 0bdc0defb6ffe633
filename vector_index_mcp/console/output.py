"""Prints the results of commands; each function returns the command's exit status."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vector_index_mcp.codebase import text
from vector_index_mcp.codebase.hits import SearchResult
from vector_index_mcp.codebase.limits import DEFAULT_TOP_K
from vector_index_mcp.console import results
from vector_index_mcp.console.searching import Search, in_options
from vector_index_mcp.console.terminal import write
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import counted
from vector_index_mcp.foreign import visible, visible_values

_SECONDS_PER_MINUTE = 60
_FOLLOWED = "the background service keeps it up to date"
_EMBEDS = "a running service embeds what is left, and so does `index`"
_NOTHING = (
    "nothing can be found: no file here has text to index; files that git ignores are left out"
)
_UNCOUNTED = (
    "ignored files are not counted: what git ignores, and what is never worth a search, such as "
    "node_modules and lock files"
)
_NO_LINE = "No single line matches; `--format text` shows what was found."
_NO_LINE_OF = "In {}, no single line matches; `--format text` shows the whole text."
_LINES_OF_BEST = "At most the lines of the best {} are printed; limit the search by `--glob`."
_NOT_FOLLOWED = (
    "no service keeps it up to date now; `search`, `serve PATH` or an MCP client starts one"
)

if TYPE_CHECKING:  # a command that asks a running service needs no LanceDB, a search no status
    from vector_index_mcp.codebase.wire import IndexStatus, RunReport
    from vector_index_mcp.indexing.verify import Report


def of_search(result: SearchResult, wanted: Search) -> int:
    """Print hits in the format that the command line chose.

    Args:
        result: The hits.
        wanted: The options of the command, among them the format.

    Returns:
        The exit status: 1 if no line is found and lines are wanted as grep writes them, else 0.
    """
    if wanted.format == "json":
        write(result.model_dump_json(indent=2))
        return 0
    texts = {"why_none": in_options(result.why_none or ""), "note": in_options(result.note or "")}
    result = result.model_copy(update=texts)
    query = _query_of(result, wanted)
    if wanted.format == "grep":
        return _as_grep(result, query, wanted)
    rows = None if wanted.is_full else results.rows_of_terminal()
    write(results.readable(result, query, wanted.folder, results.paint_for(wanted.color), rows))
    return 0


def _query_of(result: SearchResult, wanted: Search) -> Query:
    """Return the query that found these hits."""
    query = Query(result.respelled or wanted.query, is_regex=wanted.regex or None)
    return query.as_answered(is_pattern=result.is_pattern)


def _as_grep(result: SearchResult, query: Query, wanted: Search) -> int:
    """Print lines on stdout, and what there is to say of them on stderr; see `of_search`."""
    if wanted.is_whole and not result.is_pattern:  # it only looked like an expression
        result = result.model_copy(update={"results": result.results[:DEFAULT_TOP_K]})
    is_nowhere = {*result.absent}.issuperset(query.identifiers) and not result.respelled
    if result.absent and is_nowhere:  # what is near is no match
        result = result.model_copy(update={"results": []})
    for note in results.notes(result):
        write(note, sys.stderr)
    lines = results.grep_lines(result, query, wanted.folder)
    for line in lines:
        write(line)
    if result.results and not lines:
        write(_NO_LINE, sys.stderr)
        return 1
    if without := results.count_without_lines(result, query):
        write(_NO_LINE_OF.format(counted(without, "chunk")), sys.stderr)
    if query.pattern and len(result.results) >= wanted.most:
        write(_LINES_OF_BEST.format(counted(wanted.most, "chunk")), sys.stderr)
    return 0 if lines else 1


def of_status(status: "IndexStatus", *, as_json: bool) -> int:
    """Print the state of an index; returns 1 if nothing in it can be read."""
    readable = text.of_status(visible_status(status))
    write(status.model_dump_json(indent=2) if as_json else readable)
    return 1 if text.is_unread(status) else 0


def of_index(
    report: "RunReport", status: "IndexStatus", seconds: float, *, is_followed: bool
) -> int:
    """Print what a run did, what the index holds now and who keeps it up to date.

    Args:
        report: The report of the run.
        status: The status of the index after the run.
        seconds: How long the command took, vectors included.
        is_followed: Whether a service follows further changes.

    Returns:
        1 if something failed, otherwise 0.
    """
    status = visible_status(status)
    write(text.of_run(report))
    if error := status.error_message or visible(report.error or ""):
        write(f"error: {error}")
    write(f"{_held(status)}, in {_duration(seconds)}")
    if status.pending_path_count:
        write(f"pending: {counted(status.pending_path_count, 'changed path')}")
    if not status.indexed_file_count and not status.error_message:
        write(_NOTHING)
    model = status.model
    write(text.named(model))
    if model.reason:
        write(f"model problem: {model.reason}")
    if status.index_problem:
        write(f"index problem: {status.index_problem}; it lies in {status.index_location}")
    for line in text.lacking(status):
        write(line)
    write(_FOLLOWED if is_followed else _NOT_FOLLOWED)
    is_whole = not (report.error or status.error_message or status.failed)
    return 0 if is_whole and not status.unreadable_folders else 1


def _held(status: "IndexStatus") -> str:
    files, chunks = status.indexed_file_count, status.indexed_chunk_count
    done = status.embedded_chunk_count
    held = f"{counted(files, 'file')}, {counted(chunks, 'chunk')}"
    if not chunks:
        return held
    if done >= chunks:
        return f"{held}, all with vectors"
    return f"{held}, {f'{done:,}' if done else 'none'} with vectors"


def _duration(seconds: float) -> str:
    if seconds < _SECONDS_PER_MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _SECONDS_PER_MINUTE)
    return f"{minutes:,} min {rest} s"


def of_skipped(records: Sequence[FileRecord]) -> int:
    """Print which files are not indexed, and why."""
    for record in sorted(records, key=lambda record: record.key):
        write(f"{visible(record.key)}: {visible(record.reason)}")
    if not records:
        write(f"no file is skipped; {_UNCOUNTED}", sys.stderr)
    return 0


def of_verify(report: "Report") -> int:
    """Print how the index differs from the files; returns 1 if it does, or nobody can know."""
    for key, fault in sorted((report.unseen | report.faults).items()):
        write(f"{visible(key)} {fault}")
    counts = ", ".join(
        (
            counted(report.files, "file"),
            counted(report.chunks, "chunk"),
            counted(report.vectors, "vector"),
        )
    )
    if lacking := report.chunks - report.vectors:
        which = f"{lacking:,} of {counted(report.chunks, 'chunk')}"
        write(f"without a vector, so found by words only: {which}; {_EMBEDS}")
    if report.faults:
        count = len(report.faults)
        wrong = f"{counted(count, 'file')} {'differs' if count == 1 else 'differ'}"
        write(f"{counts}; {wrong} from the index; `verify --repair` rebuilds the index")
        return 1
    limit = ", as far as they can be read" if report.unseen else ""
    write(f"{counts}; the index is as the files are{limit}")
    return 1 if report.unseen else 0


def visible_status(status: "IndexStatus") -> "IndexStatus":
    """Return `status` with all names and messages made safe to print on a terminal."""
    return type(status).model_validate(visible_values(status.model_dump()))
