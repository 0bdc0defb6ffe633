"""The frozen values that the stages of the engine hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]
    Vectors = npt.NDArray[np.float32]
else:  # `initialize` and the crew do without numpy: a third of their start
    Vector = Vectors = Any

# Vector: one embedding, float32, shape (dimension,), unit length.
# Vectors: embeddings, float32, shape (n, dimension), rows of unit length.


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a text: whole lines, or a piece of one line too long to be kept whole."""

    text: str
    """Exactly the file's characters."""
    start_line: int
    """1-based, inclusive."""
    end_line: int
    """1-based, inclusive."""
    scope: str = ""
    """The definitions or sections it lies in, outermost first: `class Foo › function bar`."""
    symbols: tuple[str, ...] = ()
    """The names it defines, in order."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk with what the two searches see of it; made by `fields.entries`."""

    chunk: Chunk
    chunk_hash: str
    """SHA-256 of what is embedded, in hex: equal hash, equal vector."""
    search_text: str
    """What full-text search sees: words separated by spaces."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text ready to be stored: its chunks and what every row of it repeats."""

    key: str
    """The file's path relative to the project, POSIX; the engine only compares and matches it."""
    original_path: str
    """The path as seen on disk."""
    content_hash: str
    """SHA-256 of the bytes the text was decoded from, in hex."""
    modified: float
    """mtime, Unix seconds."""
    language: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One row of the table `files`: what the index knows of a file, indexed or not."""

    key: str
    stamp: tuple[int, int, int]
    """(bytes, mtime_ns, ctime_ns), as `files.scan` makes it; the engine only stores it."""
    content_hash: str
    """Empty when the file was never read whole."""
    chunk_count: int
    state: str
    """`indexed`, `skipped` or `failed`."""
    reason: str
    """Why it was skipped or failed, or is indexed without a look at its syntax; else empty."""
    masked: int = 0
    """How many credentials in its text were replaced by asterisks."""
    details: str = ""
    """What is known of the text as a whole, as JSON; the engine only stores it."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What the table `chunks` holds of one file."""

    content_hash: str
    """Empty when rows of several generations lie side by side."""
    rows: int
    unembedded: int


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """One row of the table `chunks`, without what only the search needs."""

    document_id: str
    key: str
    original_path: str
    content_hash: str
    modified: float
    chunk_index: int
    total_chunks: int
    text: str
    chunk_hash: str
    start_line: int
    end_line: int
    language: str
    scope: str
    """The definitions it lies in, outermost first: `class Foo › function bar`."""
    symbols: tuple[str, ...]
    """The names it defines."""
    revision: int


class Claim(NamedTuple):  # pickled for every row of an index that another machine made
    """What a stored row says of a chunk, but for its vector."""

    number: int
    document_id: str
    content_hash: str
    total: int
    text: str
    original_path: str
    chunk_hash: str
    start_line: int
    end_line: int
    language: str
    scope: str
    symbols: list[str]
    search_text: str


@dataclass(frozen=True, slots=True)
class UnembeddedChunk:
    """What of a stored chunk without a vector is needed to embed it."""

    key: str
    chunk_hash: str
    scope: str
    text: str


@dataclass(frozen=True, slots=True)
class Filters:
    """Which chunks a search is limited to; empty values limit nothing."""

    path: str = ""
    """A regular expression that the file's key matches."""
    languages: tuple[str, ...] = ()
    file: str = ""
    """The file's key."""
    folder: str = ""
    """What the file's key begins with, before a slash."""
    files: tuple[str, ...] = ()
    """The keys of the files that count; a thousand of them cost a search 7 ms."""
    kind: str = ""
    """One of `kinds.Kind`."""


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that one search proposes."""

    chunk: StoredChunk
    score: float
    """Of full-text search the BM25 score, of vector search the cosine."""


@dataclass(frozen=True, slots=True)
class Why:
    """What the place and the score of a hit come from."""

    words: float
    """Of its chunk: the BM25 score beside the best candidate's."""
    meaning: float | None
    """The cosine, 0 to 1 over the candidates; None if vectors did not propose it."""
    factors: Mapping[str, float]
    """The signals that raised or lowered both; those that did not are left out."""
    chunk: float
    """What comes of these: its score beside that of the best chunk."""
    file: Mapping[str, float]
    """In logits, what speaks for its file; empty if files were not put in order."""
    likelihood: Mapping[str, float]
    """In logits, what the likelihood adds up from."""
    judged: float | None = None
    """What a cross-encoder says of it, if one was asked."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored chunk with its place in an answer."""

    chunk: StoredChunk
    score: float
    """Between 0 and 1, the best has 1: comparable within one answer."""
    likelihood: float = 0.0
    """About how often such a hit is the right one: the same from answer to answer."""
    also: tuple[StoredChunk, ...] = ()
    """The next best chunks of the same file."""
    why: Why | None = None
    """What its place comes from, once it is known."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which embedding model made a vector."""

    name: str
    digest: str
    """SHA-256 over the weights and what shapes them, in hex; equal digest, equal vectors."""
    dimension: int
