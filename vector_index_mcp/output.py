"""What a command prints on stdout, and the exit status that goes with it."""

import sys
from collections.abc import Sequence

from vector_index_mcp.codebase import text
from vector_index_mcp.codebase.verify import Report
from vector_index_mcp.codebase.wire import IndexStatus, RunReport, SearchResult
from vector_index_mcp.engine.types import FileRecord


def of_search(result: SearchResult, *, as_json: bool) -> int:
    """Print hits."""
    _print(result.model_dump_json(indent=2) if as_json else text.of_search(result))
    return 0


def of_status(status: IndexStatus, *, as_json: bool) -> int:
    """Print the state of an index."""
    _print(status.model_dump_json(indent=2) if as_json else text.of_status(status))
    return 0


def of_index(report: RunReport, status: IndexStatus) -> int:
    """Print what a run did and what the index holds now; 1 if it lacks files it should have."""
    _print(f"{text.of_run(report)} in {report.seconds:.1f} s")
    _print(text.of_status(status))
    return 1 if report.error or status.failed or status.unreadable_folders else 0


def of_skipped(records: Sequence[FileRecord]) -> int:
    """Print which files are not indexed, and why."""
    for record in sorted(records, key=lambda record: record.key):
        _print(f"{record.key}: {record.reason}")
    return 0


def of_verify(report: Report) -> int:
    """Print what a comparison with the files found; 1 if the index is not true."""
    for key, fault in sorted(report.faults.items()):
        _print(f"{key} {fault}")
    counts = f"{report.files} files, {report.chunks} chunks, {report.vectors} vectors"
    if report.faults:
        wrong = "1 file is" if len(report.faults) == 1 else f"{len(report.faults)} files are"
        _print(f"{counts}; {wrong} not as the index says; `verify --repair` builds it anew")
        return 1
    _print(f"{counts}; the index is as the files are")
    return 0


def _print(line: str) -> None:
    # Names and texts may hold what the terminal's encoding lacks.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # TextIOWrapper
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
