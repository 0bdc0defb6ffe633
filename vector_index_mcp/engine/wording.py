"""What an embedding model is given of a text: all of it, or its words alone.

A third of what the default model reads of code is punctuation, of which it knows little: it has
learned from sentences. Without it, embedding takes two thirds of the time, and the 256 tokens that
it reads hold the whole chunk for 95 in 100 chunks, and not for 36. What is found is as good;
benchmarks/README.md has the figures. Other models were not measured, and some have learned from
code: they are given whole texts.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from vector_index_mcp.engine import scripts
from vector_index_mcp.engine.model import OFFLINE_MODEL, full_name
from vector_index_mcp.engine.types import ModelIdentity


@dataclass(frozen=True, slots=True)
class Wording:
    """A way to give texts to a model."""

    name: str
    """Empty for whole texts."""
    given: Callable[[str], str]
    """What the model reads of a text."""
    chars_per_token: float
    """Of the whole text, as the default model's tokenizer counts."""

    def identity(self, model: ModelIdentity) -> ModelIdentity:
        """Which model it is so: to all who keep vectors another one than with whole texts."""
        if not self.name:
            return model
        return replace(model, digest=self.digest(model.digest))

    def digest(self, of_model: str) -> str:
        """The digest of a model that is given texts so, from that of the model."""
        if not self.name:
            return of_model
        return hashlib.sha256(f"{of_model}\0{self.name}".encode()).hexdigest()


# Measured: 3.4 in our own sources, 3.55 in those of transformers, 3.6 in our documents.
WHOLE = Wording("", str, 3.5)
# Measured: 4.8 to 6.7 in seven packages of five languages.
WORDS = Wording("words only", scripts.words_of, 5.4)


def is_of_model(digest: str, model: str) -> bool:
    """Whether vectors of `digest` can be asked by those that the model of digest `model` makes.

    A question in whole words finds texts of words alone as well (measured, see above).
    """
    return digest in {wording.digest(model) for wording in (WHOLE, WORDS)}


def of_code(model_name: str) -> Wording:
    """What a model of this name is given of code."""
    return WORDS if full_name(model_name) == OFFLINE_MODEL else WHOLE
