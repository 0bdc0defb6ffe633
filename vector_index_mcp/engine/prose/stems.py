"""Stems words of prose for full-text search. Pure.

`engine.text.words` splits a text into words; an English stemmer cuts off the endings of words in
ASCII. It sometimes shortens words of other languages as well, but in texts and queries alike.
"""

from typing import TYPE_CHECKING

from vector_index_mcp.engine.text.words import asked_words, spelled_out

if TYPE_CHECKING:
    from Stemmer import Stemmer

_MOST_KEPT = 200_000  # as many distinct words as a large collection has; 20 MB


class _Stems(dict[str, str]):
    """A cache of stems by word."""

    def __init__(self) -> None:
        self._stemmer: Stemmer | None = None

    def __missing__(self, word: str) -> str:
        if self._stemmer is None:
            from Stemmer import Stemmer  # not needed for code

            # Porter's second algorithm: https://snowballstem.org/algorithms/english/stemmer.html
            self._stemmer = Stemmer("english", 0)
        if len(self) >= _MOST_KEPT:
            self.clear()
        stem: str = self._stemmer.stemWord(word) if word.isascii() else word
        self[word] = stem
        return stem


_STEMS = _Stems()


def stemmed(text: str) -> str:
    """Return the stems of the words of `text`, in order, in one string with spaces between them."""
    return " ".join(map(_STEMS.__getitem__, spelled_out(text).split()))


def stems_of(text: str) -> list[str]:
    """Return the stems of the words of `text`, in order."""
    return stemmed(text).split()


def asked_stems(query: str) -> list[str]:
    """Return the stems of a query's words, with repeats but without stop words."""
    return [_STEMS[word] for word in asked_words(query)]
