"""How much of the found text fits into an answer. Pure.

Clients reject or cut off long answers, each at a limit of its own. So texts are shortened first,
the longest before the others, and only then are results left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vector_index_mcp.engine.types import Hit

CHARS_PER_TOKEN = 3
"""Of code, on the cautious side: tokenizers of current models make 3 to 4 characters a token."""
TOKENS_PER_HIT = 220
"""What a hit costs beside its text, in the structured result: paths, lines, hashes, punctuation."""
_SHORTEST_CHARS = 200  # less of a chunk says nothing


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit, and how much of its text is shown."""

    hit: Hit
    text: str
    """The chunk's text or its first lines."""

    @property
    def is_cut(self) -> bool:
        """Whether lines are missing."""
        return len(self.text) < len(self.hit.chunk.text)


def fit(hits: Sequence[Hit], max_tokens: int) -> list[Shown]:
    """The hits that fit into `max_tokens`, best first; one at least, however short."""
    count = len(hits)
    fewest = [min(len(hit.chunk.text), _SHORTEST_CHARS) for hit in hits]
    while count > 1 and _chars_left(max_tokens, count) < sum(fewest[:count]):
        count -= 1
    texts = [hit.chunk.text for hit in hits[:count]]
    longest = _longest([len(text) for text in texts], _chars_left(max_tokens, count))
    return [
        Shown(hit, _first_lines(text, max(longest, _SHORTEST_CHARS)))
        for hit, text in zip(hits, texts, strict=False)
    ]


def _chars_left(max_tokens: int, hits: int) -> int:
    return (max_tokens - hits * TOKENS_PER_HIT) * CHARS_PER_TOKEN


def _longest(lengths: Sequence[int], budget: int) -> int:
    """The length at which to cut, so that all texts together keep to `budget`."""
    left, waiting = budget, len(lengths)
    for length in sorted(lengths):
        if length * waiting > left:
            return left // waiting
        left -= length
        waiting -= 1
    return max(lengths, default=0)


def _first_lines(text: str, chars: int) -> str:
    """The whole lines within `chars`; a part of the first one if that alone is longer."""
    if len(text) <= chars:
        return text
    end = text.rfind("\n", 0, chars) + 1
    return text[: end or chars]
