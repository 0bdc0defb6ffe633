"""The answers of the tools as a person or an agent reads them. Pure."""

from vector_index_mcp.codebase.wire import (
    IndexStatus,
    RunReport,
    SearchHit,
    SearchResult,
    TriggerResult,
)

_MOST_NAMES = 8  # of a hit


def of_search(result: SearchResult) -> str:
    """Hits as `path:lines` with their text; the lines can be opened as they stand there."""
    blocks = []
    for number, hit in enumerate(result.results, start=1):
        stale = ", changed since it was indexed" if hit.is_stale else ""
        scope = f" in {hit.scope}" if hit.scope else ""
        scope += _defined(hit)
        cut = "\n…" if hit.is_cut else ""
        fence = _fence(hit.extracted_text_chunk)
        blocks.append(
            f"{number}. {hit.file_path}:{hit.start_line}-{hit.end_line}{scope} "
            f"(score {hit.score:.2f}{stale})\n"
            f"{fence}{hit.language}\n{hit.extracted_text_chunk.rstrip()}{cut}\n{fence}"
        )
    if not blocks:
        blocks.append(nothing_found(result))
    if result.note:
        blocks.append(f"Note: {result.note}")
    return "\n\n".join(blocks)


def _defined(hit: SearchHit) -> str:
    """The names that a hit defines, but for those that it lies in."""
    names = [name for name in hit.symbols if name not in hit.scope.split()]
    more = ", …" if len(names) > _MOST_NAMES else ""
    return f", defines {', '.join(names[:_MOST_NAMES])}{more}" if names else ""


def nothing_found(result: SearchResult) -> str:
    """What to say instead of hits; not that there are none where something is not searched yet."""
    if result.note:
        return "Nothing found in what could be searched."
    return "Nothing found. Try other words, or fewer."


def of_run(run: RunReport) -> str:
    """What a run has done, in one line."""
    parts = [f"{run.files_done} of {run.files_to_do} files to do"] if not run.finished else []
    parts += [
        f"{count} {word}"
        for count, word in (
            (run.files_indexed, "indexed"),
            (run.files_unchanged, "unchanged"),
            (run.files_removed, "removed"),
            (run.files_skipped, "skipped"),
            (run.files_failed, "failed"),
        )
        if count
    ]
    return f"{run.files_seen} files seen; " + (", ".join(parts) or "nothing had changed")


def of_trigger(result: TriggerResult) -> str:
    """The message and the counts."""
    return f"{result.message}\n{of_run(result.run)}; {_counts(result)}"


def of_status(status: IndexStatus) -> str:
    """The status as a few lines."""
    lines = [f"{_state(status)}: {status.project_path}"]
    if status.error_message:
        lines.append(f"error: {status.error_message}")
    lines.append(f"index: {_counts(status)}{_size(status.index_bytes)}")
    if status.index_problem:
        lines.append(f"index problem: {status.index_problem}; it lies in {status.index_location}")
    if status.current_run:
        lines.append(f"now: {status.current_run.kind}: {of_run(status.current_run)}")
        if status.current_run.seconds_left is not None:
            lines[-1] += f"; about {status.current_run.seconds_left:.0f} s left"
    if status.waiting_for:
        lines.append(f"waiting for: {'; '.join(status.waiting_for)}")
    if status.pending_path_count:
        lines.append(f"pending: {status.pending_path_count} changed paths")
    model = status.model
    lines.append(f"model: {model.name or 'none used yet'}, {model.state}")
    if model.reason:
        lines.append(f"model problem: {model.reason}")
    if status.watcher.mode != "off":
        lines.append(f"changes are noticed by: {status.watcher.mode}")
    if status.watcher.problem:
        lines.append(f"watching problem: {status.watcher.problem}")
    return "\n".join(lines + _lacking(status))


def _lacking(status: IndexStatus) -> list[str]:
    """What is not in the index, or not as it is in the files."""
    lines = []
    if status.skipped:
        skipped = ", ".join(f"{count} {reason}" for reason, count in status.skipped.items())
        lines.append(f"skipped: {skipped}")
    if status.masked_credential_count:
        lines.append(f"masked: {status.masked_credential_count} credentials")
    lines += [f"failed: {path}: {reason}" for path, reason in status.failed.items()]
    lines += [f"cut by lines: {path}: {reason}" for path, reason in status.cut_by_lines.items()]
    lines += [f"unreadable folder: {folder}" for folder in status.unreadable_folders]
    return lines


def _state(status: IndexStatus) -> str:
    """Its name, or what it means where nobody watches the project, or another process does."""
    if status.status == "INITIALIZING" and not status.is_writer:
        return "not served (start a client, or run `index`)"
    if status.status == "WATCHING" and status.watcher.mode == "off":
        return "up to date" if status.is_writer else "kept up to date by another process"
    return status.status


def _counts(counts: IndexStatus | TriggerResult) -> str:
    text = f"{counts.indexed_chunk_count} chunks of {counts.indexed_file_count} files"
    if counts.embedded_chunk_count < counts.indexed_chunk_count:
        text += f", {counts.embedded_chunk_count} with vectors so far"
    return text


def _size(size: int | None) -> str:
    return "" if size is None else f", {size / 1e6:.1f} MB"


def _fence(text: str) -> str:
    """A Markdown fence longer than any in `text`."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
