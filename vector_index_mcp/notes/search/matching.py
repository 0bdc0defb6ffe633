"""Search by words: a chapter matches if it contains any of the words, in any case. Pure.

The contract defines what matches; the ranking is ours. A word that few documents contain counts
more than a common one (inverse document frequency). A word's third occurrence counts less than its
first (saturation as in BM25, with the usual constants). Titles, keywords and headings add a boost.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vector_index_mcp.notes.texts.knowledge import first_line
from vector_index_mcp.notes.texts.reading import ReadDocument

INTRODUCTION = "(Document Introduction)"
_AROUND_CHARS = 50
_WORD = re.compile(r"\w+")
_LEAST_CHARS_OF_A_HINT = 3  # that a title has words like "do" and "in" says nothing
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
_TITLE, _KEYWORD, _HEADING = 3.0, 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Match:
    """A chapter that contains words of the query."""

    title: str
    summary: str
    text: str
    """The chapter's text, with its title."""
    words: tuple[str, ...]
    """The words of the query that it contains."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that contains words of the query."""

    project: str
    read: ReadDocument
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the score of a document is computed from."""

    found: Found
    counts: dict[str, int]
    """How often the document contains each word."""
    boosts: dict[str, float]
    """What each word adds for being in the title, the keywords or the headings."""
    length: int
    """Of the text, in characters."""


def words_of(query: str) -> list[str]:
    """Return the query's words in lower case, each once."""
    return list(dict.fromkeys(query.lower().split()))


def search(documents: Iterable[tuple[str, ReadDocument]], query: str) -> list[Found]:
    """Return the documents that contain any of the query's words, best first.

    Args:
        documents: The project's id and the document, for each document to search.
        query: Words separated by blanks.
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
    # Documents of equal score are sorted by name, so that the same query gets the same answer.
    seen.sort(key=lambda each: (-_score(each, weights, usual), each.found.read.document.name))
    return [each.found for each in seen]


def titled(documents: Iterable[tuple[str, ReadDocument]], query: str) -> tuple[str, str] | None:
    """Return a document and a word of the query that begins a word of its title or keywords."""
    words = [word for word in _WORD.findall(query.lower()) if not _says_nothing(word)]
    for _, read in documents:
        own = _WORD.findall(f"{read.metadata.title} {' '.join(read.metadata.keywords)}".lower())
        begins = (word for word in words if any(each.startswith(word) for each in own))
        if (word := next(begins, None)) is not None:
            return read.document.name, word
    return None


def _says_nothing(word: str) -> bool:
    return word.isascii() and len(word) < _LEAST_CHARS_OF_A_HINT


def best(matches: Sequence[Match], most: int) -> list[Match]:
    """Return up to `most` matches: those with the most words, in the order of the text."""
    if len(matches) <= most:
        return list(matches)
    ranked = sorted(range(len(matches)), key=lambda n: (-len(matches[n].words), n))
    return [matches[n] for n in sorted(ranked[:most])]


def _matches(read: ReadDocument, words: Sequence[str]) -> list[Match]:
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
    """Return, for each of `words` that `text` contains, the text around its first place."""
    lowered = text.lower()
    # Some letters become longer in lower case. Positions in `lowered` then do not fit `text`.
    shown = text if len(text) == len(lowered) else lowered
    # With three places of each word, an answer had 700 KB.
    places = ((word, lowered.find(word)) for word in words)
    return {word: [_around(shown, at, at + len(word))] for word, at in places if at >= 0}


def _around(text: str, first: int, end: int) -> str:
    piece = text[max(0, first - _AROUND_CHARS) : end + _AROUND_CHARS]
    return f"...{' '.join(piece.split())}..."


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
