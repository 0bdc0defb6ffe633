"""What makes one candidate a better answer than another: one function per signal. Pure.

Each takes the query and a candidate and gives a factor for the candidate's score; 1 changes
nothing. What each is worth is measured by benchmarks/quality.py, which leaves them out one by one.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.spelling import composed, folded
from vector_index_mcp.engine.types import StoredChunk
from vector_index_mcp.engine.words import joined, last_name, words

_STEM_CHARS = 5
_SHORTEST_SINGULAR = 3
_OTHER_SPELLING = 0.7  # of the worth of a definition in the very spelling of the query


@dataclass(frozen=True, slots=True)
class Weights:
    """How strong the signals are. Chosen on the tuning half of benchmarks/labels."""

    semantic: float = 0.6
    """Share of vector search in the score of a sentence; full text has the rest."""
    semantic_for_symbols: float = 0.2
    defines: float = 1.0
    """In a sentence; a query that is an identifier wants its definition and nothing else."""
    defines_when_asked: float = 4.0
    path: float = 0.5
    coverage: float = 0.5
    named: float = 5.0
    quoted: float = 3.0
    support: float = 0.3
    repeated: float = 0.3
    """What is left of a score for each better chunk of the same file."""
    test: float = 0.3
    example: float = 0.5
    docs: float = 0.4
    generated: float = 0.4
    vendored: float = 0.5
    deprecated: float = 0.8
    declarations: float = 0.5
    barrel: float = 0.8
    data: float = 0.5


@dataclass(frozen=True, slots=True)
class Context:
    """One query over its candidates."""

    query: Query
    weights: Weights
    rarity: dict[str, float]
    """By the stem of each query word: how rare it is, and so how much a match means."""
    total: float
    """Of all rarities."""
    held: dict[StoredChunk, list[str]]
    """By candidate: the stems its text holds."""

    def share(self, stems: Iterable[str]) -> float:
        """How much of the query `stems` cover, 0 to 1, rare words counting more."""
        matched = sum(self.rarity.get(s, 0.0) for s in set(stems))
        return matched / self.total if self.total else 0.0


Signal = Callable[[Context, StoredChunk], float]


def context(query: Query, weights: Weights, chunks: Sequence[StoredChunk]) -> Context:
    """`query` with the rarity of its words among `chunks`."""
    stems = list(dict.fromkeys(map(stem, query.subject)))
    held = {}
    for chunk in chunks:
        text = folded(chunk.text)
        held[chunk] = [s for s in stems if s in text]
    holding = Counter(s for found in held.values() for s in found)
    rarity = {s: math.log(1 + (len(held) + 1) / (holding[s] + 0.5)) for s in stems}
    return Context(query, weights, rarity, sum(rarity.values()), held)


def stem(word: str) -> str:
    """The beginning of `word`, by which its inflections meet.

    Cutting off after five letters does for signals what a stemmer does: McNamee, Mayfield,
    Character N-Gram Tokenization for European Language Text Retrieval (2004), section 2. In a short
    word the plural is among those five: `diffs`.
    """
    is_plural = len(word) > _SHORTEST_SINGULAR and word[-1] == "s" and word[-2] not in "sui"
    return word[: min(_STEM_CHARS, len(word) - is_plural)]


def defines(ctx: Context, chunk: StoredChunk) -> float:
    """It defines what is asked for: the first thing somebody wants to see of an identifier."""
    wanted = ctx.query.symbols
    if not wanted or wanted.isdisjoint(joined(last_name(name)) for name in chunk.symbols):
        return 1.0
    names = (composed(last_name(name)) for name in chunk.symbols)
    in_that_spelling = not ctx.query.spellings.isdisjoint(names)
    asked = ctx.query.is_symbol
    weight = ctx.weights.defines_when_asked if asked else ctx.weights.defines
    return 1 + weight * (1 if in_that_spelling else _OTHER_SPELLING)


def path(ctx: Context, chunk: StoredChunk) -> float:
    """Its file or its folders are called what is asked for: nothing sums up a file better."""
    folders, _, name = chunk.key.rpartition("/")
    return 1 + ctx.weights.path * ctx.share(_stems(f"{folders}/{name.partition('.')[0]}"))


def names(chunks: Sequence[StoredChunk]) -> frozenset[str]:
    """The stems of what a file, its folder and what these chunks of it define are called."""
    folders, _, name = chunks[0].key.rpartition("/")
    own = f"{folders.rpartition('/')[2]}/{name.partition('.')[0]}"
    defined = (last_name(symbol) for chunk in chunks for symbol in chunk.symbols)
    return frozenset().union(_stems(own), *map(_stems, defined))


def share_of_names(ctx: Context, chunk: StoredChunk) -> float:
    """How much of the query stands in what a chunk is called: its path, scope and definitions."""
    return ctx.share(_stems(f"{chunk.key} {' '.join(chunk.symbols)} {chunk.scope}"))


def coverage(ctx: Context, chunk: StoredChunk) -> float:
    """It holds most of the query, not one word of it often."""
    covered = ctx.share(ctx.held[chunk])
    return 1 + ctx.weights.coverage * covered * covered


def named(ctx: Context, chunk: StoredChunk) -> float:
    """The query names this very file."""
    if not ctx.query.paths:
        return 1.0
    key = f"/{composed(chunk.key)}"
    has_folder = key.count("/") > 1  # a path that begins outside of the project may end in it
    is_named = any(
        key.endswith(f"/{path}") or (has_folder and f"/{path}".endswith(key))
        for path in ctx.query.paths
    )
    return 1 + ctx.weights.named * is_named


def quoted(ctx: Context, chunk: StoredChunk) -> float:
    """It holds what the query has in quotes, to the letter."""
    if not ctx.query.phrases:
        return 1.0
    text = composed(chunk.text)
    return 1 + ctx.weights.quoted * any(composed(p) in text for p in ctx.query.phrases)


def kind_of_file(ctx: Context, chunk: StoredChunk) -> float:
    """Tests, docs, generated and vendored code yield to the real thing, unless asked for."""
    factor = 1.0
    for kind in kinds.kinds_of(chunk.key, chunk.language) - ctx.query.kinds:
        factor *= getattr(ctx.weights, kind)
    return factor


SIGNALS: dict[str, Signal] = {
    signal.__name__: signal for signal in (defines, path, coverage, named, quoted, kind_of_file)
}
"""By name, for whoever wants to leave one out."""


@lru_cache(maxsize=20_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, words(text)))
