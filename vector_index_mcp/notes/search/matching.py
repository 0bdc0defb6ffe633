"""Searching by words, as the contract says: any word, anywhere in it, in any case. Pure.

What is found is the contract's; the order is ours. A word that stands in few documents says more
than one that stands in many (inverse document frequency), the third time says less than the first
(saturation as in BM25, with its usual constants), and a title says more than a text.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vector_index_mcp.notes.texts.knowledge import first_line
from vector_index_mcp.notes.texts.reading import Read

INTRODUCTION = "(Document Introduction)"
_AROUND_CHARS = 50
_MOST_CONTEXTS = 1  # of one word in one chapter; with three, an answer had 700 KB
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
_TITLE, _KEYWORD, _HEADING = 3.0, 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Match:
    """A chapter in which words of the query stand."""

    title: str
    summary: str
    text: str
    """Of the chapter, with its title."""
    words: tuple[str, ...]
    """Those that stand in it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document in which words of the query stand."""

    project: str
    read: Read
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """How often each word stands in a document, and where else it does."""

    found: Found
    counts: dict[str, int]
    boosts: dict[str, float]
    length: int


def words_of(query: str) -> list[str]:
    """The words that are looked for, each once."""
    return list(dict.fromkeys(query.lower().split()))


def search(documents: Iterable[tuple[str, Read]], query: str) -> list[Found]:
    """The documents in which one of the words stands, best first.

    Args:
        documents: Each with its project.
        query: Words between blanks.
    """
    words = words_of(query)
    total, length = 0, 0
    seen: list[_Seen] = []
    for project, read in documents:
        text = read.document.parts.text.lower()
        total += 1
        length += len(text)
        present = [word for word in words if word in text]
        if present and (matches := _matches(read, present)):
            seen.append(_seen(Found(project, read, tuple(matches)), text, present))
    weights = {
        word: math.log(1 + total / max(1, sum(word in each.counts for each in seen)))
        for word in words
    }
    usual = length / total if total else 1
    # Equal ones in the order of their names, so that the same question has the same answer.
    seen.sort(key=lambda each: (-_score(each, weights, usual), each.found.read.document.name))
    return [each.found for each in seen]


def best(matches: Sequence[Match], most: int) -> list[Match]:
    """At most so many of a document's matches: those with the most words, in the text's order."""
    if len(matches) <= most:
        return list(matches)
    ranked = sorted(range(len(matches)), key=lambda n: (-len(matches[n].words), n))
    return [matches[n] for n in sorted(ranked[:most])]


def _matches(read: Read, words: Sequence[str]) -> list[Match]:
    found = []
    for part in read.document.parts.parts:
        text = f"{part.title}\n{part.body}"
        if present := _present(text, words):
            found.append(Match(part.title, first_line(part), text, present))
    introduction = read.document.introduction
    if present := _present(introduction, words):
        first = introduction.partition("\n")[0]
        found.append(Match(INTRODUCTION, first, introduction, present))
    return found


def _present(text: str, words: Sequence[str]) -> tuple[str, ...]:
    lowered = text.lower()
    return tuple(word for word in words if word in lowered)


def contexts(text: str, words: Sequence[str]) -> dict[str, list[str]]:
    """What stands around each of `words` that is in `text`."""
    lowered = text.lower()
    # Some letters are longer in lower case; then places in one are none in the other.
    shown = text if len(text) == len(lowered) else lowered
    return {word: _around(shown, lowered, word) for word in words if word in lowered}


def _around(text: str, lowered: str, word: str) -> list[str]:
    found: list[str] = []
    at = lowered.find(word)
    while at >= 0 and len(found) < _MOST_CONTEXTS:
        end = at + len(word)
        piece = text[max(0, at - _AROUND_CHARS) : end + _AROUND_CHARS]
        found.append(f"...{' '.join(piece.split())}...")
        at = lowered.find(word, end + _AROUND_CHARS)  # behind what was shown
    return found


def _seen(found: Found, text: str, words: Sequence[str]) -> _Seen:
    document, data = found.read.document, found.read.metadata
    title, headings = data.title.lower(), "\n".join(document.parts.titles).lower()
    keywords = [keyword.lower() for keyword in data.keywords]
    boosts = {
        word: _TITLE * (word in title)
        + _KEYWORD * any(word in keyword for keyword in keywords)
        + _HEADING * (word in headings)
        for word in words
    }
    return _Seen(found, {word: text.count(word) for word in words}, boosts, len(text))


def _score(seen: _Seen, weights: dict[str, float], usual: float) -> float:
    share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * seen.length / max(1.0, usual)
    return sum(
        weight
        * (
            seen.boosts.get(word, 0.0)
            + (_SATURATION + 1)
            * seen.counts.get(word, 0)
            / (seen.counts.get(word, 0) + _SATURATION * share)
        )
        for word, weight in weights.items()
    )
