"""The output of `status --watch`: a picture for a terminal, lines for anything else. Pure.

Its colours are readable on dark and light backgrounds. The caller makes all names safe to print.
"""

from collections import deque
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vector_index_mcp.codebase import text
from vector_index_mcp.codebase.wire import FileChange, IndexStatus, RunReport
from vector_index_mcp.errors import counted

_STATES = {"WATCHING": "green", "SCANNING": "cyan", "INITIALIZING": "cyan", "ERROR": "bold red"}
_CHANGES = {"indexed": "green", "removed": "magenta", "failed": "red", "skipped": "dim"}
_LABEL_COLUMNS = 9  # the longest label and a space
_WIDEST_BAR_COLUMNS = 60
_MOST_FAILED_SHOWN = 5
_MOST_CHANGES_SHOWN = 6  # with all the other rows, the picture fits into 24 lines
_RATE_SECONDS = 20.0  # a rate is measured over this time; a batch of vectors takes several seconds
NO_SERVICE = "no background service runs for this project"
_TO_START_ONE = "Waiting for one. An MCP client starts it, and so does `vector-index-mcp PATH`."


class Rate:
    """Measures how fast a count grows, from samples taken now and then."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()

    def note(self, now: float, count: int) -> None:
        """Add a sample: `count` at the time `now`, in seconds. A smaller count starts over."""
        if self._looks and count < self._looks[-1][1]:
            self._looks.clear()
        self._looks.append((now, count))
        while now - self._looks[0][0] > _RATE_SECONDS:
            self._looks.popleft()

    @property
    def per_second(self) -> float:
        """The growth per second; 0 if the count does not grow or has only one sample."""
        (began, first), (ended, last) = self._looks[0], self._looks[-1]
        return (last - first) / (ended - began) if ended > began else 0.0


class Picture:
    """Draws one status as a table, as wide as its console.

    Without a service that answers, the status is a sentence that says so; the usual one is
    `NO_SERVICE`.
    """

    def __init__(self, project: str, status: IndexStatus | str, vectors_per_second: float) -> None:
        self._project = project
        self._status = status
        self._vectors_per_second = vectors_per_second

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the project's name, and a table with a row for each fact."""
        room = max(options.max_width - _LABEL_COLUMNS, 1)
        yield Text(_end_of(self._project, options.max_width), style="bold")
        table = Table.grid()
        table.add_column(width=_LABEL_COLUMNS, no_wrap=True, style="dim")
        table.add_column(width=room, overflow="fold")
        for label, value in self._rows(room):
            # As a Text: in a plain string, rich would take [bold] for markup.
            table.add_row(label, Text(value) if isinstance(value, str) else value)
        yield table
        yield Text("Ctrl+C ends the view", style="dim")

    def _rows(self, room: int) -> Iterator[tuple[str, RenderableType]]:
        status = self._status
        if isinstance(status, str):
            is_usual = status == NO_SERVICE
            yield "state", Text(status, style="" if is_usual else "red")
            if is_usual:
                yield "", _TO_START_ONE
            return
        yield "state", Text(text.state_of(status), style=_STATES[status.status])
        if status.error_message:
            yield "error", Text(status.error_message, style="red")
        for stall in status.waiting_for:
            yield "waiting", Text(f"for {stall}", style="bold")
        yield from _progress(status, self._vectors_per_second, room)
        yield from _workings(status)
        yield from _lacking(status, room)
        yield from _changes(status, room)


def _progress(
    status: IndexStatus, vectors_per_second: float, room: int
) -> Iterator[tuple[str, RenderableType]]:
    run = status.current_run
    if run is None or not run.files_to_do:
        took = f", last scan took {status.last_run.seconds:.1f} s" if status.last_run else ""
        walking = ", looking for changes" if run else took
        yield "files", f"{status.indexed_file_count:,} indexed{walking}"
    else:
        yield "files", _of_run(run)
        yield "", _bar(run.files_done, run.files_to_do, room)
    if status.pending_path_count:
        yield "pending", f"{status.pending_path_count:,} changed paths"
    total, done = status.indexed_chunk_count, status.embedded_chunk_count
    yield "chunks", f"{total:,}"
    if total == done:
        yield "vectors", "all" if total else "none yet"
        return
    lacking = status.waiting_chunk_count
    if not lacking:
        yield "vectors", text.vectors_of(status)
        return
    pace = _pace(vectors_per_second, lacking)
    yield "vectors", f"{done:,} of {total:,}{pace}" if pace else text.vectors_of(status)
    yield "", _bar(done, total, room)


def _of_run(run: RunReport) -> str:
    done = f"{run.files_done:,} of {run.files_to_do:,}"
    per_second = run.files_done / run.seconds if run.seconds else 0.0
    return f"{done}{_pace(per_second, run.files_to_do - run.files_done)} ({run.kind})"


def _pace(per_second: float, left: int) -> str:
    if per_second <= 0:
        return ""
    return f", {per_second:,.{1 if per_second < 10 else 0}f}/s, {_duration(left / per_second)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _bar(done: int, total: int, room: int) -> ProgressBar:
    return ProgressBar(
        total=total,
        completed=done,
        width=min(room, _WIDEST_BAR_COLUMNS),
        style="dim",
        complete_style="green",
        finished_style="green",
    )


def _workings(status: IndexStatus) -> Iterator[tuple[str, RenderableType]]:
    model = status.model
    yield "model", ", ".join(filter(None, (model.name, model.state, model.precision)))
    if model.server:
        yield "", Text(model.server)
    if model.reason:
        yield "", Text(model.reason, style="red")
    mode = status.watcher.mode
    if mode == "off":
        yield "watching", "not yet" if status.is_writer else "another process does"
    else:
        yield "watching", f"by {mode}"
    if status.watcher.problem:
        yield "", Text(status.watcher.problem, style="red")
    asked = status.queries
    last = "" if asked.last_seconds is None else f", the last in {asked.last_seconds * 1000:.0f} ms"
    yield "queries", f"{asked.answered:,} answered{last}"
    worker = status.worker_memory_bytes
    sharers = status.worker_shared_by
    shared = f", shared by {sharers} services" if sharers > 1 else ""
    held = "" if worker is None else f", model {_megabytes(worker)}{shared}"
    yield "memory", f"service {_megabytes(status.memory_bytes)}{held}"
    if status.index_bytes is not None:
        yield "disk", _megabytes(status.index_bytes)


def _lacking(status: IndexStatus, room: int) -> Iterator[tuple[str, RenderableType]]:
    if status.skipped:
        yield "skipped", ", ".join(f"{count:,} {why}" for why, count in status.skipped.items())
    if status.masked_credential_count:
        yield "masked", counted(status.masked_credential_count, "credential")
    for number, (path, reason) in enumerate(status.failed.items()):
        label = "" if number else "failed"
        if number == _MOST_FAILED_SHOWN:
            yield label, "..."
            break
        yield label, Text(f"{_end_of(path, room)}: {reason}", style="red")
    if status.cut_by_lines:
        yield "by lines", f"{counted(len(status.cut_by_lines), 'file')} that could not be parsed"
    for folder in status.unreadable_folders[:_MOST_FAILED_SHOWN]:
        yield "folder", Text(f"{_end_of(folder, room)}: cannot be listed", style="red")


def _changes(status: IndexStatus, room: int) -> Iterator[tuple[str, RenderableType]]:
    for number, change in enumerate(status.last_changes[:_MOST_CHANGES_SHOWN]):
        line = Text(f"{_clock(change)} ", style="dim").append(
            f"{change.change} ", _CHANGES[change.change]
        )
        line.append(_end_of(change.file_path, room - cell_len(line.plain)))
        yield "" if number else "changed", line


def summary(status: IndexStatus) -> str:
    """Return the status in one line; the line changes only when something has happened."""
    parts = [
        counted(status.indexed_file_count, "file"),
        counted(status.indexed_chunk_count, "chunk"),
    ]
    if status.embedded_chunk_count < status.indexed_chunk_count:
        parts.append(f"{status.embedded_chunk_count:,} with vectors")
    if (run := status.current_run) and run.files_to_do:
        parts.append(f"{run.files_done:,} of {counted(run.files_to_do, 'file')} done")
    if status.pending_path_count:
        parts.append(f"{counted(status.pending_path_count, 'path')} pending")
    if status.failed:
        parts.append(f"{len(status.failed)} failed")
    asked = status.queries.answered
    parts += [f"model {status.model.state}", "1 query" if asked == 1 else f"{asked:,} queries"]
    error = f": {status.error_message}" if status.error_message else ""
    return f"{text.state_of(status)}: {', '.join(parts)}{error}"


def change_lines(before: IndexStatus | None, after: IndexStatus) -> list[str]:
    """Return a line for every file that changed between two statuses, oldest first."""
    known = before.last_changes if before is not None else after.last_changes
    new = [change for change in after.last_changes if change not in known]
    return [f"{_clock(change)} {change.change} {change.file_path}" for change in reversed(new)]


def _clock(change: FileChange) -> str:
    return change.time.astimezone().strftime("%H:%M:%S")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 10_000_000 else f"{size / 1e6:.1f} MB"


def _end_of(path: str, columns: int) -> str:
    """Shorten a path to `columns` from its beginning; its end tells one path from another."""
    if cell_len(path) <= columns:
        return path
    while path and cell_len(path) > max(columns - 2, 0):
        path = path[1:]
    return ".." + path
