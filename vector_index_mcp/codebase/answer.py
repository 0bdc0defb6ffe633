"""The answer of a search, and the note in it that says why something may be missing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vector_index_mcp.codebase.behind import MAY_LACK_CHANGES, UNDER_WAY
from vector_index_mcp.codebase.wanted import UNLIKELY, Wanted
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.types import Hit
from vector_index_mcp.errors import counted
from vector_index_mcp.indexing.backlog import Backlog
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.writing.run import Kind


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a search."""

    wanted: Wanted
    """The request."""
    hits: list[Hit]
    stale: frozenset[str]
    """Files of hits that changed since they were indexed; they are queued to be indexed again."""
    is_hybrid: bool
    """Whether it was searched by meaning as well as by words."""
    is_pattern: bool
    """Whether the hits are what the query matches as a regular expression."""
    masked: frozenset[str]
    """Files of hits in which credentials were masked."""
    absent: tuple[str, ...]
    """The identifiers of the query that no searched file contains."""
    missing: tuple[str, ...]
    """The other words of the query that no searched file contains."""
    no_file: str
    """The path that the query is and that no file has; empty for none."""
    meant: Mapping[str, str]
    """Names and paths of the project that are spelled like one of these, by the word or path."""
    respelled: str
    """The name that was searched instead of the query's only word; empty for none."""
    is_unlikely: bool
    """Whether not even the best hit is likely to answer the question."""
    why_none: str
    """Why there are no hits; empty if there are, or if the reason is unknown."""
    note: str
    """Why something may be missing from the answer; empty if nothing may be."""
    seconds: float
    """How long the search took."""

    @property
    def searched(self) -> Query:
        """What the hits are for."""
        return Query(self.respelled) if self.respelled else self.wanted.query

    @property
    def is_miss(self) -> bool:
        """Whether no hit is likely to be right, so that few would read their whole texts."""
        if self.absent and not self.respelled:
            return all(hit.likelihood < UNLIKELY for hit in self.hits)
        return self.is_unlikely


def note(
    lack: str,
    ledger: Ledger,
    backlog: Backlog,
    untrue: int = 0,
    unjudged: str = "",
    remarks: Iterable[str] = (),
) -> str:
    """Sentences about why something may be missing from an answer; empty if nothing may be.

    Args:
        lack: Why nothing was searched by meaning; empty if it was.
        ledger: What the index knows of the files.
        backlog: Why the index may not match the project.
        untrue: How many files the index was wrong about.
        unjudged: Why the cross-encoder did not rank the hits; empty if it did, or did not have to.
        remarks: What else there is to say, in sentences.
    """
    notes = _lacking_vectors(lack, ledger), _lacking_changes(backlog), _lacking_files(backlog)
    sentences = [sentence for kind in notes for sentence in kind]
    if untrue:
        sentences.append(
            f"The index was wrong about {counted(untrue, 'file')}; hits in there were left out, "
            "and it is indexed again."
        )
    if unjudged:
        sentences.append(f"Ranked without the cross-encoder: {unjudged}.")
    return " ".join([*sentences, *filter(None, remarks)])


def _lacking_vectors(lack: str, ledger: Ledger) -> Iterator[str]:
    if not ledger.chunk_count:
        return  # nothing can be found by words either, and vectors are not what it waits for
    if lack:
        yield f"Searched by words only, not by meaning: {lack}."
    elif ledger.is_waiting:
        # Rounded down: while a chunk lacks its vector, it is not all of them.
        percent = 100 * (ledger.chunk_count - ledger.unembedded_count) // ledger.chunk_count
        yield f"{percent}% of the chunks can be found by meaning so far, all by words."


def _lacking_changes(backlog: Backlog) -> Iterator[str]:
    run = backlog.run
    if backlog.error:
        yield f"{MAY_LACK_CHANGES}: {backlog.error}."
    elif not backlog.is_kept:
        yield f"{MAY_LACK_CHANGES}: no process keeps this index up to date now."
    elif run is not None and run.kind is not Kind.REBUILD and run.files_done < run.files_to_do:
        files = counted(run.files_to_do, "file")
        yield f"{UNDER_WAY}: {run.files_done:,} of {files} done."
    elif run is not None and run.kind is Kind.START and not run.files_seen:
        yield f"{MAY_LACK_CHANGES}: the project is still being compared with the index."
    elif backlog.pending:
        yield f"{MAY_LACK_CHANGES}: {counted(backlog.pending, 'changed path')} to index."
    if backlog.polling:
        yield f"{MAY_LACK_CHANGES}: {backlog.polling}."


def _lacking_files(backlog: Backlog) -> Iterator[str]:
    if backlog.unreadable:
        yield f"{counted(backlog.unreadable, 'folder')} cannot be read (see get_status)."
    if backlog.failed:
        yield f"{counted(backlog.failed, 'file')} could not be indexed (see get_status)."
    if backlog.disobeyed:
        are = "is" if backlog.disobeyed == 1 else "are"
        yield f"{counted(backlog.disobeyed, 'ignore file')} {are} not obeyed (see get_status)."
    if backlog.left_out:
        yield f"{counted(backlog.left_out, 'file')} did not fit into the index."
