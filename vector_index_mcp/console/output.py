"""What a command prints on stdout, and the exit status that goes with it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vector_index_mcp.codebase import text
from vector_index_mcp.codebase.wire import IndexStatus, RunReport, SearchResult
from vector_index_mcp.console import results
from vector_index_mcp.console.searching import Search
from vector_index_mcp.console.terminal import write
from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.foreign import visible, visible_values

if TYPE_CHECKING:  # a command that asks a running service needs no LanceDB
    from vector_index_mcp.indexing.verify import Report


def of_search(result: SearchResult, query: Query, wanted: Search) -> int:
    """Print hits in the format that is wanted.

    Args:
        result: What was found.
        query: What was looked for.
        wanted: How to print it.
    """
    if wanted.format == "json":
        write(result.model_dump_json(indent=2))
    elif wanted.format == "text":
        console = results.console_for(wanted.color)
        write(results.readable(result, wanted.folder, console))
    else:
        for line in results.grep_lines(result, query, wanted.folder):
            write(line)
    return 0


def of_status(status: IndexStatus, *, as_json: bool) -> int:
    """Print the state of an index."""
    write(status.model_dump_json(indent=2) if as_json else _readable(status))
    return 0


def of_index(report: RunReport, status: IndexStatus) -> int:
    """Print what a run did and what the index holds now; 1 if something failed."""
    write(f"{text.of_run(report)} in {report.seconds:.1f} s")
    write(_readable(status))
    return 1 if report.error or status.failed or status.unreadable_folders else 0


def of_skipped(records: Sequence[FileRecord]) -> int:
    """Print which files are not indexed, and why."""
    for record in sorted(records, key=lambda record: record.key):
        write(f"{visible(record.key)}: {visible(record.reason)}")
    return 0


def of_verify(report: "Report") -> int:
    """Print how the index differs from the files; 1 if it does."""
    for key, fault in sorted(report.faults.items()):
        write(f"{visible(key)} {fault}")
    counts = f"{report.files} files, {report.chunks} chunks, {report.vectors} vectors"
    if report.faults:
        wrong = "1 file is" if len(report.faults) == 1 else f"{len(report.faults)} files are"
        write(f"{counts}; {wrong} not as the index says; `verify --repair` builds it anew")
        return 1
    write(f"{counts}; the index is as the files are")
    return 0


def visible_status(status: IndexStatus) -> IndexStatus:
    """`status` with all names and messages fit for a terminal."""
    return IndexStatus.model_validate(visible_values(status.model_dump()))


def _readable(status: IndexStatus) -> str:
    return text.of_status(visible_status(status))
