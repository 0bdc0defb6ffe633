"""The ranking signals: what makes one candidate a better answer than another. Pure.

Each signal is a function that takes the query and a candidate and returns a factor for the
candidate's score; 1 changes nothing. benchmarks/quality.py measures what each is worth by leaving
it out.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, Self

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.verbatim import Repeats
from vector_index_mcp.engine.text.spelling import composed, folded
from vector_index_mcp.engine.text.words import joined, last_name, parts_of, without_ending, words
from vector_index_mcp.engine.types import SCOPE_SEPARATOR, StoredChunk

_PREFIX_CHARS = 5
_SHORTEST_SINGULAR = 3
_SEPARATORS = str.maketrans("", "", "_-")
_FEWEST_CHARS = 3  # of a name; a shorter one stands anywhere
_FEWEST_CHARS_OF_A_PART = 4
_LEAST_HELD = 0.25  # of what the candidates have of a query, for one that may repeat much of it
_BETWEEN_NAMES = re.compile(rf"[\s{SCOPE_SEPARATOR}/.<>(),:]+")
_MANY_CHUNKS = 4  # a file that only passes on what others define has fewer
_UNIT_TESTS = re.compile(rf"(?:^|{SCOPE_SEPARATOR})module tests?(?:{SCOPE_SEPARATOR}|$)")
"""The scope of Rust's unit tests, which lie in the file that they test."""
_OTHER_SPELLING = 0.7  # the worth of a definition in another spelling than the query's


@dataclass(frozen=True, slots=True)
class Weights:
    """How strong the signals are. Chosen on the tuning half of benchmarks/labels."""

    semantic: float = 0.6
    """The share of vector search in the score, for a sentence; full-text search has the rest."""
    semantic_for_symbols: float = 0.2
    """The same, for a query that is an identifier."""
    owned: float = 2.0
    """How much a definition in the class or file that the query names counts beside others."""
    defines: float = 1.0
    """The worth of a definition, for a sentence."""
    defines_when_asked: float = 4.0
    """The same, for a query that is an identifier: it asks for the definition alone."""
    part_of_name: float = 4.0
    """The worth of a name that contains all of an identifier which stands nowhere."""
    holds: float = 6.0
    """The worth of an identifier in the text, for a query that is one."""
    path: float = 0.5
    coverage: float = 0.5
    named: float = 5.0
    quoted: float = 3.0
    numbered: float = 6.0
    verbatim: float = 8.0
    """The worth of a text that repeats the query, word for word."""
    verbatim_whole: float = 16.0
    """The same, for a text that repeats all of a long query: others have a similar message."""
    support: float = 0.3
    repeated: float = 0.3
    """A score is multiplied by this for each better chunk of the same file."""
    test: float = 0.3
    test_when_named: float = 0.45
    """The same, for a query that has a word for tests without asking for them."""
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
    """A query together with its candidates."""

    query: Query
    weights: Weights
    rarity: dict[str, float]
    """By the prefix of each query word: how rare it is; a match of a rare word counts more."""
    total: float
    """The sum of all rarities."""
    known: float
    """How much of the query all candidates cover together, 0 to 1."""
    held: dict[StoredChunk, list[str]]
    """By candidate: the query's prefixes that its text contains."""
    holders: dict[StoredChunk, float]
    """By candidate, if the query is an identifier: 1 if the text contains it, less in another
    spelling, 0 if it does not."""
    is_held: bool
    """Whether any candidate contains the identifier."""
    repeats: Repeats
    """Measures how much of the query a text repeats."""
    is_question: bool
    """Whether the query is a question, and no candidate defines a name that it spells out."""

    def share(self, prefixes: Iterable[str]) -> float:
        """Return how much of the query `prefixes` cover, 0 to 1; rare words count more."""
        matched = sum(self.rarity.get(p, 0.0) for p in set(prefixes))
        return matched / self.total if self.total else 0.0


Signal = Callable[[Context, StoredChunk], float]


def context(query: Query, weights: Weights, chunks: Sequence[StoredChunk]) -> Context:
    """Return the context of `query`, with the rarity of its words among `chunks`."""
    prefixes = list(dict.fromkeys(map(prefix_of, query.subject)))
    # Of `user_name`, the query has `username`, which stands in a text without separators alone.
    wholes = {prefix_of(word): word for word in query.compounds}
    names = _Names.of(query) if query.is_symbol else None
    held, holders = {}, {}
    for chunk in chunks:
        text = folded(chunk.text)
        squeezed = text.translate(_SEPARATORS) if wholes else ""
        held[chunk] = [p for p in prefixes if (wholes[p] in squeezed if p in wholes else p in text)]
        holders[chunk] = names.held_by(chunk.text) if names else 0.0
    holding = Counter(p for found in held.values() for p in found)
    rarity = {p: math.log(1 + (len(held) + 1) / (holding[p] + 0.5)) for p in prefixes}
    total = sum(rarity.values())
    known = sum(rarity[p] for p in holding) / total if total else 0.0
    nowhere = rarity.keys() - holding.keys()
    repeats = Repeats(query.text, lambda word: prefix_of(word) in nowhere)
    is_held = any(holders.values())
    is_name = any(_defines_any(query.spelled_out, chunk) for chunk in chunks)
    is_question = query.is_question and not is_name
    return Context(
        query, weights, rarity, total, known, held, holders, is_held, repeats, is_question
    )


class _Names(NamedTuple):
    """The identifiers that a query asks for, as whole words of a text."""

    typed: re.Pattern[str]
    alike: re.Pattern[str] | None
    """In any spelling; None if they are written in a way that tells them from plain words."""

    @classmethod
    def of(cls, query: Query) -> Self | None:
        """Return those of a query; None if they are too short to tell anything."""
        long = [n for n in query.spellings if len(joined(n)) >= _FEWEST_CHARS and not n.isdigit()]
        if not long:
            return None
        plain = [name for name in long if not (name.startswith("_") or name.endswith("_"))]
        spelled = ["[_-]?".join(map(re.escape, _parts(name))) for name in plain]
        return cls(
            _as_words(map(re.escape, long)), _as_words(spelled, re.IGNORECASE) if plain else None
        )

    def held_by(self, text: str) -> float:
        """Return how much a text holds of them: 1, less in another spelling, or 0."""
        if self.typed.search(composed(text)):
            return 1.0
        return _OTHER_SPELLING if self.alike and self.alike.search(text) else 0.0


def _parts(name: str) -> Sequence[str]:
    """Return what another spelling may separate: the letters of `urlfor`, as in `url_for`."""
    is_run_together = name.isascii() and name.isalpha() and name in {name.lower(), name.upper()}
    return name if is_run_together else parts_of(name)


def _as_words(patterns: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns)})(?![^\W_])", flags)


def prefix_of(word: str) -> str:
    """Return the first letters of `word`, which its inflected forms have in common.

    Cutting off after five letters is as good as a stemmer for the signals: McNamee, Mayfield,
    Character N-Gram Tokenization for European Language Text Retrieval (2004), section 2. In a
    short word, the plural's s is one of the five letters (`diffs`), so it is cut off as well.
    """
    is_plural = len(word) > _SHORTEST_SINGULAR and word[-1] == "s" and word[-2] not in "sui"
    return word[: min(_PREFIX_CHARS, len(word) - is_plural)]


def defines(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that defines an identifier of the query: people want the definition first.

    Most of all one in the class or file that the query names (`Foo.bar`). The words of a name, such
    as "get user", ask for its definition as well.
    """
    if not _defines_any(ctx.query.symbols | ctx.query.spelled_out, chunk):
        return 1.0
    names = (composed(last_name(name)) for name in chunk.symbols)
    in_that_spelling = not ctx.query.spellings.isdisjoint(names)
    asked = ctx.query.is_symbol or bool(ctx.query.spelled_out)
    weight = ctx.weights.defines_when_asked if asked else ctx.weights.defines
    worth = 1 if in_that_spelling else _OTHER_SPELLING
    return (1 + weight * worth) * (ctx.weights.owned if _is_owned(ctx.query.owners, chunk) else 1)


def _defines_any(names: Set[str], chunk: StoredChunk) -> bool:
    return bool(names) and not names.isdisjoint(joined(last_name(s)) for s in chunk.symbols)


def part_of_name(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that defines a longer name than the identifier asked for, if that is nowhere.

    It may be the part of a name that somebody remembers. Of 466 such parts, 82 % have the chunk
    with the definition first by this, 64 % without it (benchmarks/README.md).
    """
    if not ctx.query.is_symbol or ctx.is_held:
        return 1.0
    parts = [s for s in map(joined, ctx.query.spellings) if len(s) >= _FEWEST_CHARS_OF_A_PART]
    names = [joined(last_name(name)) for name in chunk.symbols] if parts else []
    shares = (len(part) / len(name) for part in parts for name in names if part in name)
    return 1 + ctx.weights.part_of_name * max(shares, default=0.0)


def _is_owned(owners: Set[str], chunk: StoredChunk) -> bool:
    """Return whether a chunk lies in the class or file that the query names, or defines it."""
    if not owners:
        return False
    around = (
        *_BETWEEN_NAMES.split(chunk.scope),
        *_BETWEEN_NAMES.split(chunk.key),
        *chain.from_iterable(map(_BETWEEN_NAMES.split, chunk.symbols)),
    )
    return any(joined(name) in owners for name in around)


def holds(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that contains the identifier asked for, before those with parts of it."""
    return 1 + ctx.weights.holds * ctx.holders[chunk]


def path(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk whose path contains words of the query: a name sums up a file best."""
    folders, _, name = chunk.key.rpartition("/")
    return 1 + ctx.weights.path * ctx.share(prefixes_of(f"{folders}/{without_ending(name)}"))


def names(chunks: Sequence[StoredChunk]) -> frozenset[str]:
    """Return the prefixes in the names of a file, its folder and the definitions in `chunks`."""
    folders, _, name = chunks[0].key.rpartition("/")
    own = f"{folders.rpartition('/')[2]}/{without_ending(name)}"
    defined = (last_name(symbol) for chunk in chunks for symbol in chunk.symbols)
    return frozenset().union(prefixes_of(own), *map(prefixes_of, defined))


def share_of_names(ctx: Context, chunk: StoredChunk) -> float:
    """Return how much of the query a chunk's path, scope and definitions contain, 0 to 1."""
    return ctx.share(prefixes_of(f"{chunk.key} {' '.join(chunk.symbols)} {chunk.scope}"))


def coverage(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that contains much of the query, rather than one of its words often."""
    covered = ctx.share(ctx.held[chunk])
    return 1 + ctx.weights.coverage * covered * covered


def named(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk whose file the query names by its path."""
    if not ctx.query.paths:
        return 1.0
    key = f"/{composed(chunk.key)}"
    has_folder = key.count("/") > 1  # a path may begin above the project
    is_named = any(
        key.endswith(f"/{path}") or (has_folder and f"/{path}".endswith(key))
        for path in ctx.query.paths
    )
    return 1 + ctx.weights.named * is_named


def quoted(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that contains, letter for letter, a phrase that the query has in quotes."""
    if not ctx.query.phrases:
        return 1.0
    text = composed(chunk.text)
    return 1 + ctx.weights.quoted * any(composed(p) in text for p in ctx.query.phrases)


def numbered(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that contains the number of a release that the query has."""
    return 1 + ctx.weights.numbered * any(_has(chunk.text, v) for v in ctx.query.versions)


def _has(text: str, version: str) -> bool:
    """Return whether a text has a number that is no part of a longer one.

    1.2.3 is a part of 1.2.34, 1.2.3.4 and 0.1.2.3.
    """
    alone = rf"(?<!\d)(?<!\d\.){re.escape(version)}(?!\.?\d)"
    return version in text and re.search(alone, text) is not None  # `in` is the faster one


def verbatim(ctx: Context, chunk: StoredChunk) -> float:
    """Raise a chunk that repeats much of the query word for word, such as an error message."""
    least = _LEAST_HELD * ctx.known  # saves half of the time
    if ctx.query.is_symbol or ctx.share(ctx.held[chunk]) < least:
        return 1.0
    # A question has words of grammar in the order of many sentences.
    repeated = ctx.repeats.found_in(chunk.text, with_gaps=not ctx.query.asks)
    is_whole = repeated.in_a_row == 1 and ctx.repeats.is_long and not ctx.query.asks
    weight = ctx.weights.verbatim_whole if is_whole else ctx.weights.verbatim
    return 1 + weight * max(repeated.in_a_row**2, repeated.in_order**3)


def kind_of_file(ctx: Context, chunk: StoredChunk) -> float:
    """Lower chunks of tests, docs, generated and vendored code, unless the query asks for them."""
    factor = 1.0
    for kind in _kinds_of(chunk) - ctx.query.kinds:
        if kind == kinds.TEST and ctx.query.names_tests:
            factor *= ctx.weights.test_when_named
        else:
            factor *= getattr(ctx.weights, kind)
    return factor


def _kinds_of(chunk: StoredChunk) -> frozenset[str]:
    """Return the kinds of a chunk: those of its file's path, but for what the file has in fact."""
    found = kinds.kinds_of(chunk.key, chunk.language)
    if chunk.symbols and chunk.total_chunks >= _MANY_CHUNKS:
        found -= {kinds.BARREL}
    if chunk.language == "rust" and _UNIT_TESTS.search(chunk.scope):
        found |= {kinds.TEST}
    return found


SIGNALS: dict[str, Signal] = {
    signal.__name__: signal
    for signal in (
        defines,
        part_of_name,
        holds,
        path,
        coverage,
        named,
        quoted,
        numbered,
        verbatim,
        kind_of_file,
    )
}
"""The signals by name, so that benchmarks can leave one out."""


@lru_cache(maxsize=20_000)
def prefixes_of(text: str) -> frozenset[str]:
    """Return the prefixes of the words in a text or a name."""
    return frozenset(map(prefix_of, words(text)))
