"""Words as full-text search compares them in prose: without their endings. Pure.

`engine.words` splits and spells them; an English stemmer cuts off the endings of those in ASCII.
Words of other languages in Latin letters lose an ending now and then, in texts and queries alike.
"""

from typing import TYPE_CHECKING

from vector_index_mcp.engine.words import asked_words, spelled_out

if TYPE_CHECKING:
    from Stemmer import Stemmer

_MOST_KEPT = 200_000  # 20 MB; a large collection has so many distinct words


class _Stems(dict[str, str]):
    """The stem of each word met so far."""

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
    """The stems of the words of `text`, in their order, with a space between any two."""
    return " ".join(map(_STEMS.__getitem__, spelled_out(text).split()))


def stems_of(text: str) -> list[str]:
    """The stems of the words of `text`, in their order."""
    return stemmed(text).split()


def asked_stems(query: str) -> list[str]:
    """The stems of a query, without words that only carry its grammar; repeats count."""
    return [_STEMS[word] for word in asked_words(query)]
