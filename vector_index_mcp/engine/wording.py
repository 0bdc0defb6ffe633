"""Chooses what an embedding model reads of a text: all of it, or its words without punctuation.

A third of the tokens of code is punctuation, which means little to the default model: it was
trained on sentences. Without punctuation, embedding takes two thirds of the time, and the model's
256 tokens hold 95 in 100 chunks whole instead of 36. Searches find as much; benchmarks/README.md
has the figures. Other models read whole texts: they were not measured, and some were trained on
code.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from vector_index_mcp.engine import scripts
from vector_index_mcp.engine.model import OFFLINE_MODEL, full_name
from vector_index_mcp.engine.types import ModelIdentity


@dataclass(frozen=True, slots=True)
class Wording:
    """A way to turn a text into what a model reads."""

    name: str
    """Empty for whole texts."""
    given: Callable[[str], str]
    """Returns what the model reads of a text."""
    chars_per_token: float
    """Characters of the whole text for each token of the default model's tokenizer."""

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


def is_of_model(digest: str, model: str) -> bool:
    """Return whether the model with the digest `model` can search vectors made with `digest`.

    A query with punctuation finds texts without punctuation as well (measured, see above).
    """
    return digest in {wording.digest(model) for wording in (WHOLE, WORDS)}


def of_code(model_name: str) -> Wording:
    """Return the wording of code for a model of this name."""
    return WORDS if full_name(model_name) == OFFLINE_MODEL else WHOLE
