"""How much of the found text fits into an answer. Pure.

Clients reject or cut off long answers, each at a limit of its own. So texts are shortened first,
the longest before the others, and only then are results left out. What counts is the structured
answer, which is the longer one: many clients give a model nothing else.
"""

import json
from collections.abc import Sequence

CHARS_PER_TOKEN = 3
"""Of code, on the cautious side: tokenizers of current models make 3 to 4 characters a token."""
_SHORTEST_CHARS = 200  # less of a chunk says nothing


def fit(texts: Sequence[str], frames: Sequence[int], most_chars: int) -> list[str]:
    """As much as fits of the texts of hits, best first; one hit at least, however short.

    Args:
        texts: Of the hits.
        frames: The characters that each hit takes beside its text.
        most_chars: The length of all of them together, as JSON.

    Returns:
        The texts, or whole lines of their beginnings; fewer, if not all have room.
    """
    lengths = [sent_chars(text) for text in texts]
    left, count = most_chars - sum(frames), len(texts)
    while count > 1 and left < sum(min(length, _SHORTEST_CHARS) for length in lengths[:count]):
        count -= 1
        left += frames[count]
    longest = max(_longest(lengths[:count], left), _SHORTEST_CHARS)
    return [
        text if length <= longest else _first_lines(text, longest)
        for text, length in zip(texts[:count], lengths, strict=False)
    ]


def sent_chars(text: str) -> int:
    """The length of `text` as JSON, where a quote or the end of a line takes two characters."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


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
    """The whole lines within `chars` as JSON; a part of the first one if that alone is longer."""
    end, left = 0, chars
    while after := text.find("\n", end) + 1:
        left -= sent_chars(text[end:after])
        if left < 0:
            break
        end = after
    return text[:end] or _beginning(text, chars)


def _beginning(text: str, chars: int) -> str:
    """The characters at the beginning of `text` that take no more than `chars` as JSON."""
    end = min(len(text), chars)
    while sent_chars(text[:end]) > chars:
        end -= max(1, (sent_chars(text[:end]) - chars) // 6)  # an escape takes six at the most
    return text[:end]
