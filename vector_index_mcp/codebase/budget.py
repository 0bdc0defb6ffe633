"""Shortens the texts of hits so that an answer fits its limit. Pure.

Clients reject or cut off long answers, each at another limit. So texts are shortened first, the
longest before the others, and only then are results left out. The length of the structured answer
counts: it is longer than the readable one, and many clients pass only this one to a model.
"""

import json
from collections.abc import Sequence

CHARS_PER_TOKEN = 3
"""A cautious estimate for code: current models' tokenizers make a token of 3 to 4 characters."""
_SHORTEST_CHARS = 200  # a text is not cut below this, since a shorter piece is of no use


def fit(texts: Sequence[str], frames: Sequence[int], most_chars: int) -> list[str]:
    """Shorten or leave out texts so that all hits together fit.

    Args:
        texts: The texts of the hits, best first.
        frames: The characters that each hit takes in JSON beside its text.
        most_chars: The most characters of all hits together, as JSON.

    Returns:
        The texts, some cut after a whole line. Fewer texts if not all fit, but at least one.
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
    """The length of `text` in JSON, where a quote or a newline takes two characters."""
    return len(json.dumps(text, ensure_ascii=False)) - 2


def _longest(lengths: Sequence[int], budget: int) -> int:
    """The length at which to cut texts, so that all together fit into `budget`."""
    left, waiting = budget, len(lengths)
    for length in sorted(lengths):
        if length * waiting > left:
            return left // waiting
        left -= length
        waiting -= 1
    return max(lengths, default=0)


def _first_lines(text: str, chars: int) -> str:
    """The first whole lines that take at most `chars` in JSON, or a part of a longer first line."""
    end, left = 0, chars
    while after := text.find("\n", end) + 1:
        left -= sent_chars(text[end:after])
        if left < 0:
            break
        end = after
    return text[:end] or _beginning(text, chars)


def _beginning(text: str, chars: int) -> str:
    """The longest beginning of `text` that takes at most `chars` in JSON."""
    end = min(len(text), chars)
    while sent_chars(text[:end]) > chars:
        end -= max(1, (sent_chars(text[:end]) - chars) // 6)  # an escape takes at most six
    return text[:end]
