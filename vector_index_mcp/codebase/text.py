"""Words the answers of the tools for people and agents. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from vector_index_mcp.codebase.hits import MOST_NAMES, SearchHit, SearchResult
from vector_index_mcp.errors import counted, sentence
from vector_index_mcp.foreign import visible

if TYPE_CHECKING:  # imports more than a command that searches should wait for
    from vector_index_mcp.codebase.wire import (
        IndexStatus,
        ModelStatus,
        ProjectTriggered,
        RunReport,
        TriggerResult,
    )

_MOST_NAMED = 5  # of files that lack something
_TO_FOLLOW = "a connected MCP client does that; `index` brings the index up to date once"


def of_search(result: SearchResult) -> str:
    """The hits as `path:lines`, which editors can open, each with its text; and the remarks."""
    blocks = [visible(miss(result))] if result.absent else []
    blocks += [_of_hit(number, hit) for number, hit in enumerate(result.results, start=1)]
    if not result.results:
        blocks.append(nothing_found(result))
    if remarks := result.remarks:
        blocks.append(f"Note: {visible(remarks)}")
    return "\n\n".join(blocks) if _has_texts(result) else "\n".join(blocks)


def _has_texts(result: SearchResult) -> bool:
    return any(hit.extracted_text_chunk for hit in result.results)


def _of_hit(number: int, hit: SearchHit) -> str:
    scope = f" in {hit.scope}" if hit.scope else ""
    names = hit.defines
    more = ", …" if len(names) > MOST_NAMES else ""
    defined = f", defines {', '.join(names[:MOST_NAMES])}{more}" if names else ""
    stale = ", changed since it was indexed" if hit.is_stale else ""
    masked = ", credentials masked" if hit.is_masked else ""
    place = f"{number}. {hit.file_path}:{hit.start_line}-{hit.end_line}{scope}{defined}"
    # A name may hold line breaks; what comes behind them would seem to be the tool's own words.
    head = visible(f"{place} (score {hit.score:.2f}{stale}{masked})")
    also = f"\nalso in this file: {visible('; '.join(hit.also))}" if hit.also else ""
    text = hit.extracted_text_chunk.rstrip()
    if not text:
        return head + also
    fence, cut = _fence(text), "\n…" if hit.is_cut else ""
    return f"{head}\n{fence}{hit.language}\n{text}{cut}\n{fence}{also}"


def miss(result: SearchResult) -> str:
    """The sentence that names identifiers which no file contains, above what is shown instead."""
    return result.miss + (f"; {result.shown_instead}:" if result.results else ".")


def nothing_found(result: SearchResult) -> str:
    """The sentence in place of hits; a careful one if something could not be searched."""
    if result.remarks:
        return "Nothing found in what could be searched."
    return "Nothing found. Try other words, or fewer."


def of_run(run: "RunReport") -> str:
    """The counts of a run, in one line."""
    parts = (
        [f"{run.files_done:,} of {counted(run.files_to_do, 'file')} to do"]
        if not run.finished
        else []
    )
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
    nothing = "nothing had changed" if run.files_seen else "nothing to index"
    if run.error:
        nothing = "nothing was indexed"
    return f"{counted(run.files_seen, 'file')} seen; {', '.join(parts) or nothing}"


def of_trigger(result: "TriggerResult") -> str:
    """The answer of `trigger_index`: the message and the counts."""
    return f"{result.message}\n{of_run(result.run)}; {_counts(result)}"


def of_status(status: "IndexStatus") -> str:
    """The status, in a few lines."""
    lines = [f"{state_of(status)}: {status.project_path}"]
    if status.error_message:
        lines.append(f"error: {status.error_message}")
    held = "nothing in it can be read now" if is_unread(status) else _held(status)
    parts = (f"index: {held}{_size(status.index_bytes)}", vectors_of(status))
    lines.append("; ".join(filter(None, parts)))
    lines += _of_place(status)
    if status.current_run:
        lines.append(f"now: {status.current_run.kind}: {of_run(status.current_run)}")
        if status.current_run.seconds_left is not None:
            lines[-1] += f"; about {status.current_run.seconds_left:.0f} s left"
    if status.waiting_for:
        lines.append(f"waiting for: {'; '.join(status.waiting_for)}")
    if status.pending_path_count:
        lines.append(f"pending: {counted(status.pending_path_count, 'changed path')}")
    lines += _of_model(status.model)
    if status.watcher.mode != "off":
        lines.append(f"changes are noticed by: {status.watcher.mode}")
    if status.watcher.problem:
        lines.append(f"watching problem: {status.watcher.problem}")
    return "\n".join(map(visible, lines + lacking(status)))


def is_unread(status: "IndexStatus") -> bool:
    """Whether nobody knows what the index holds, since an error keeps it from being read."""
    nothing = not (status.indexed_file_count or status.skipped or status.failed)
    return bool(status.error_message) and nothing and status.index_bytes is None


def _of_place(status: "IndexStatus") -> Iterator[str]:
    """Lines about an index that does not lie at its usual place, or that was fetched."""
    if status.index_problem:
        yield f"index problem: {status.index_problem}; it lies in {status.index_location}"
    if status.index_writer:
        yield f"it lies at {status.index_location}; it is written by {status.index_writer}"
    if status.shared_index:
        yield f"shared index: {status.shared_index}"


def _of_model(model: "ModelStatus") -> Iterator[str]:
    if model.state == "unavailable":  # it may be another one than that whose vectors are there
        has = f"; the index has vectors of {model.name}" if model.name else ""
        yield f"model: unavailable{has}"
    else:
        yield named(model)
    if model.server:
        yield f"embedding: {model.server}"
    if model.team_vectors:
        yield f"team's vectors: {model.team_vectors}"
    if model.reason:
        yield f"model problem: {model.reason}"


def named(model: "ModelStatus") -> str:
    """The model's name and state, in a line."""
    state = "off until it is needed" if model.state == "off" else model.state
    return f"model: {model.name or 'none used yet'}, {state}"


def of_projects(statuses: "Mapping[str, IndexStatus | Exception]") -> str:
    """The status of several projects, each by its name, or why it is unknown."""
    return "\n\n".join(
        f"the status of {name} is unknown: {sentence(status)}"
        if isinstance(status, Exception)
        else of_status(status)
        for name, status in statuses.items()
    )


def of_triggered(results: "Mapping[str, ProjectTriggered | Exception]") -> str:
    """The progress of several projects after `trigger_index`, a line each."""
    return "\n".join(
        f"{name}: {sentence(result)}"
        if isinstance(result, Exception)
        else f"{result.project_path}: {result.message} {_counts(result)}"
        for name, result in results.items()
    )


def lacking(status: "IndexStatus") -> list[str]:
    """Lines about files that are not indexed, or not exactly as they are."""
    lines = []
    if status.skipped:
        skipped = ", ".join(f"{count} {reason}" for reason, count in status.skipped.items())
        lines.append(f"skipped: {skipped}")
    if texts := [f"{path} ({reason})" for path, reason in status.skipped_files.items()]:
        lines.append(f"of these, texts: {_some(texts)}")
    if status.masked_credential_count:
        count = counted(status.masked_credential_count, "credential")
        named = f" in {_some(status.masked_files)}" if status.masked_files else ""
        lines.append(f"masked: {count}{named}")
    lines += [f"failed: {path}: {reason}" for path, reason in status.failed.items()]
    lines += [f"cut by lines: {path}: {reason}" for path, reason in status.cut_by_lines.items()]
    lines += [f"unreadable folder: {folder}" for folder in status.unreadable_folders]
    return lines


def _some(items: Sequence[str]) -> str:
    more = ", …" if len(items) > _MOST_NAMED else ""
    return f"{', '.join(items[:_MOST_NAMED])}{more}"


def state_of(status: "IndexStatus") -> str:
    """The state's name, or what it means if this process does not follow changes."""
    if status.status == "INITIALIZING" and not status.is_writer:
        return f"nobody follows changes now ({_TO_FOLLOW})"
    if status.status == "SCANNING" and not status.is_writer:
        return "another process brings it up to date"
    if status.status == "WATCHING" and status.watcher.mode == "off":
        return "up to date" if status.is_writer else "kept up to date by another process"
    return status.status


def vectors_of(status: "IndexStatus") -> str:
    """How many chunks have vectors, and who makes the others; empty if all chunks have one."""
    total, done = status.indexed_chunk_count, status.embedded_chunk_count
    if done >= total:
        return ""
    text = f"{done:,} of {counted(total, 'chunk')} {'has' if total == 1 else 'have'} vectors"
    if given_up := status.given_up_chunk_count:
        text += f"; the model failed on {given_up:,}, found by words alone"
    if not status.waiting_chunk_count:
        return text
    if status.model.state == "unavailable":
        return f"{text}; the others wait for a model"
    if status.is_writer:
        return text if status.error_message else f"{text}; embedding goes on"
    if status.status == "WATCHING":
        return f"{text}; another process goes on with the others"
    if status.status == "ERROR":
        return text
    return f"{text}; embedding goes on when a client connects or you run `index`"


def _counts(counts: "TriggerResult | ProjectTriggered") -> str:
    text = _held(counts)
    if counts.embedded_chunk_count < counts.indexed_chunk_count:
        text += f", {counts.embedded_chunk_count:,} with vectors so far"
    return text


def _held(counts: "IndexStatus | TriggerResult | ProjectTriggered") -> str:
    chunks, files = counts.indexed_chunk_count, counts.indexed_file_count
    return f"{counted(chunks, 'chunk')} of {counted(files, 'file')}"


def _size(size: int | None) -> str:
    return "" if size is None else f", {size / 1e6:.1f} MB"


def _fence(text: str) -> str:
    """A Markdown fence longer than any in `text`."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
