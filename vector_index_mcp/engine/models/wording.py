"""Chooses what an embedding model reads of a text: all of it, or its words and its gist.

A third of the tokens of code is punctuation, which means little to the default model: it was
trained on sentences. Without punctuation, embedding takes two thirds of the time, and the model's
256 tokens hold 95 in 100 chunks whole instead of 36. Searches find as much, and with the gist
(see `gist`) more; benchmarks/README.md has the figures. Other models read whole texts: they were
not measured, and some were trained on code.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vector_index_mcp.engine.models import question_map
from vector_index_mcp.engine.models.model import OFFLINE_MODEL, full_name
from vector_index_mcp.engine.text import gist, scripts
from vector_index_mcp.engine.types import ModelIdentity, Vectors

# Beside 1 for the text's. NDCG@10 is the same from 0.5 to 0.8 (benchmarks/README.md).
_GIST_WEIGHT = 0.5


def _no_gist(_: str) -> str:
    return ""


def _as_it_is(vectors: Vectors) -> Vectors:
    return vectors


@dataclass(frozen=True, slots=True)
class Wording:
    """A way to turn a text into what a model reads."""

    name: str
    """Empty for whole texts. Change it whenever the same text is read in another way."""
    given: Callable[[str], str]
    """Returns what the model reads of a text."""
    chars_per_token: float
    """Characters of the whole text for each token of the default model's tokenizer."""
    gist: Callable[[str], str] = _no_gist
    """Returns what the model reads of a text once more, by itself; empty for nothing."""
    turned: Callable[[Vectors], Vectors] = _as_it_is
    """Returns the vectors with which queries search, from those that the model makes of them."""

    def identity(self, model: ModelIdentity) -> ModelIdentity:
        """Return the identity of a model used this way; it differs from that for whole texts."""
        if not self.name:
            return model
        return replace(model, digest=self.digest(model.digest))

    def digest(self, of_model: str) -> str:
        """Return the digest of a model used this way, from the digest of the model."""
        if not self.name:
            return of_model
        return hashlib.sha256(f"{of_model}\0{self.name}".encode()).hexdigest()


# Measured: 3.4 in our own sources, 3.55 in the sources of transformers, 3.6 in our documents.
WHOLE = Wording("", str, 3.5)
# Measured: 4.8 to 6.7 in seven packages of five languages.
WORDS = Wording("words only", scripts.words_of, 5.4)
WORDS_AND_GIST = replace(
    WORDS, name="words and gist", gist=gist.gist_of, turned=question_map.turned
)


class Reading:
    """Some texts as a model reads them, and what it makes of them."""

    def __init__(self, wording: Wording, texts: Sequence[str], *, are_queries: bool) -> None:
        """Read `texts`; of queries, there is no gist."""
        self._turned = wording.turned if are_queries else _as_it_is
        self._count = len(texts)
        gists = {} if are_queries else dict(enumerate(map(wording.gist, texts)))
        self._gists = {row: words for row, words in gists.items() if words}
        self.given = [*map(wording.given, texts), *self._gists.values()]
        """What to give the model."""

    def vectors(self, made: Vectors) -> Vectors:
        """Return the vectors of the texts, from those that the model has made of `given`.

        Args:
            made: float32 array of shape (len(given), dimension); rows of unit length.

        Returns:
            The same, of shape (number of texts, dimension).
        """
        vectors = made[: self._count].copy()
        rows = list(self._gists)
        vectors[rows] += np.float32(_GIST_WEIGHT) * made[self._count :]
        vectors[rows] /= np.linalg.norm(vectors[rows], axis=1, keepdims=True)
        return self._turned(vectors)


def is_of_model(digest: str, model: str) -> bool:
    """Return whether the model with the digest `model` can search vectors made with `digest`.

    A query with punctuation finds texts without punctuation as well (measured, see above).
    """
    return digest in {wording.digest(model) for wording in (WHOLE, WORDS, WORDS_AND_GIST)}


def of_code(model_name: str) -> Wording:
    """Return the wording of code for a model of this name."""
    return WORDS_AND_GIST if full_name(model_name) == OFFLINE_MODEL else WHOLE
