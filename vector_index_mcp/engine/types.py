"""The frozen values that the stages of the engine hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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

SCOPE_SEPARATOR = " › "
"""Stands between the definitions or headings that a chunk lies in, the outermost first."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a text: whole lines, or a piece of a line that is too long for one chunk."""

    text: str
    """Exactly the characters in the file."""
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
    """A chunk prepared for both searches; made by `fields.entries`."""

    chunk: Chunk
    chunk_hash: str
    """SHA-256 of the embedded text, in hex: equal hash, equal vector."""
    search_text: str
    """The words that full-text search matches, separated by spaces."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text ready to be stored: its chunks, and the values that all their rows share."""

    key: str
    """The file's path relative to the project, POSIX; the engine only compares and matches it."""
    original_path: str
    """The path as it is on disk."""
    content_hash: str
    """SHA-256 of the bytes the text was decoded from, in hex."""
    modified: float
    """mtime, Unix seconds."""
    language: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One row of the table `files`: what the index knows about a file, indexed or not."""

    key: str
    stamp: tuple[int, int, int]
    """(bytes, mtime_ns, ctime_ns), as `files.scan` makes it; the engine only stores it."""
    content_hash: str
    """Empty when the file was never read whole."""
    chunk_count: int
    state: str
    """`indexed`, `skipped` or `failed`."""
    reason: str
    """Why it was skipped or failed, or was indexed without its syntax; else empty."""
    masked: int = 0
    """How many credentials in its text were replaced by asterisks."""
    details: str = ""
    """Properties of the text as a whole, as JSON; the engine only stores them."""


@dataclass(frozen=True, slots=True)
class Holding:
    """How many rows the table `chunks` has of one file."""

    content_hash: str
    """Of the text that the rows were made of; empty if rows of several texts lie side by side."""
    rows: int
    unembedded: int


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """One row of the table `chunks`, without the columns that only the search needs."""

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
    has_vector: bool
    """Whether a search by meaning can find it."""


class Claim(NamedTuple):  # a tuple, as it is pickled for each row of an index from elsewhere
    """A row that another machine made of a chunk, without its vector; it may be wrong."""

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
    search_text: str | None
    """None if nobody compares the row's search words."""


@dataclass(frozen=True, slots=True)
class UnembeddedChunk:
    """A stored chunk without a vector: the columns that are needed to embed it."""

    key: str
    chunk_hash: str
    scope: str
    text: str


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on the chunks that a search returns; an empty value sets no condition."""

    path: str = ""
    """A regular expression that the file's key matches."""
    languages: tuple[str, ...] = ()
    file: str = ""
    """The file's key."""
    folder: str = ""
    """A folder: the file's key begins with this and a slash."""
    files: tuple[str, ...] = ()
    """The keys of several files; a thousand of them cost a search 7 ms."""
    kind: str = ""
    """One of `kinds.Kind`."""
    text: str = ""
    """A regular expression that the chunk's text matches. All texts are read: 1 ms for 2,000."""


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk that full-text search or vector search found."""

    chunk: StoredChunk
    score: float
    """The BM25 score of full-text search, or the cosine of vector search."""
    vector: Vector | None = field(default=None, compare=False, repr=False)
    """The chunk's vector, if full-text search was asked for it."""
    cosine: float | None = None
    """Of a candidate of full-text search: the cosine of its vector and the query's, if known."""


@dataclass(frozen=True, slots=True)
class Why:
    """The numbers that led to the place and the score of a hit."""

    words: float
    """The chunk's BM25 score as a share of the best candidate's."""
    meaning: float | None
    """The chunk's cosine, scaled to 0…1 over the candidates; None if vectors did not find it."""
    factors: Mapping[str, float]
    """The signals that raised or lowered the fused score; those with a factor of 1 are left out."""
    chunk: float
    """The score after these signals, as a share of the best chunk's."""
    file: Mapping[str, float]
    """What each feature of its file adds, in logits; empty if files were not ordered."""
    likelihood: Mapping[str, float]
    """What each feature adds to the likelihood, in logits."""
    judged: float | None = None
    """The cross-encoder's score; None if no cross-encoder was used."""
    in_file: Mapping[str, float] = field(default_factory=dict)
    """What each feature adds beside other chunks of its file, in logits; empty as `file` is."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored chunk with its place in an answer."""

    chunk: StoredChunk
    score: float
    """From 0 to 1, the best hit has 1: comparable only within one answer."""
    likelihood: float = 0.0
    """About how often such a hit is the right one, 0 to 1: comparable between answers."""
    also: tuple[StoredChunk, ...] = ()
    """The next best chunks of the same file."""
    why: Why | None = None
    """The explanation of its place; None until it has been computed."""
    leads: bool = False
    """Whether it answers the query by itself, and no ranking puts another hit before it."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which embedding model made a vector."""

    name: str
    digest: str
    """SHA-256 over all files that shape an embedding, in hex; equal digest, equal vectors."""
    dimension: int
