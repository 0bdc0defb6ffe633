"""Models that sentence-transformers loads and computes: any embedding model, any cross-encoder."""

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from vector_index_mcp.engine.models import lean_torch, lean_transformers
from vector_index_mcp.engine.models.model import Model
from vector_index_mcp.engine.models.model_folder import prompts_of
from vector_index_mcp.engine.types import Vectors

_BATCH_TEXTS = 64  # no limit in practice: requests are small enough to be computed at once
# Only what is on this machine, no pickles, and no code that comes with the model.
_SAFELY: Any = {
    "local_files_only": True,
    "trust_remote_code": False,
    "model_kwargs": {"use_safetensors": True},
}


class LibraryModel:
    """A model that sentence-transformers computes."""

    def __init__(self, model: Model, loaded: Any) -> None:
        self._of, self._loaded, self._prompts = model, loaded, prompts_of(model.folder)
        self.device: str = loaded.device.type

    def in_precision(self, precision: str) -> Self:
        """Return a copy in another precision, given by its name in torch."""
        import torch

        kind = getattr(torch, precision)
        return type(self)(self._of, copy.deepcopy(self._loaded).to(kind))

    def encode(self, texts: list[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`: float32 rows in their order, not normalized."""
        import torch

        encode = self._loaded.encode_query if are_queries else self._loaded.encode_document
        with torch.inference_mode():
            found = encode(
                texts,
                prompt=self._prompts.query if are_queries else self._prompts.document,
                batch_size=_BATCH_TEXTS,
                convert_to_tensor=True,
                show_progress_bar=False,
            )
        return np.asarray(found[:, : self._of.identity.dimension].float().cpu().numpy())


def embedding_model(model: Model, device: str) -> LibraryModel:
    """Load an embedding model; `device` is the name in torch."""
    return LibraryModel(model, _loaded(lambda: _sentence_transformer(model, device)))


def cross_encoder(model: Model, device: str) -> Any:
    """Load a cross-encoder whose scores are from 0 to 1; `device` is the name in torch."""
    return _loaded(lambda: _cross_encoder(model, device))


def _loaded(load: Callable[[], Any]) -> Any:
    """Return what `load` loads with a slimmed library; if that fails, with the whole library."""
    import torch

    lean_torch.complete()
    if lean_transformers.is_imported():
        return load()  # another thread may be computing with it
    try:
        with lean_transformers.standing_in(torch):
            return load()
    except (ImportError, AttributeError, TypeError, RuntimeError):
        # The model needs a module that was left out; transformers 4 then raises RuntimeError.
        lean_transformers.forget()
        return load()


def _sentence_transformer(model: Model, device: str) -> Any:
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    return SentenceTransformer(str(model.folder), device=device, **_SAFELY)


def _cross_encoder(model: Model, device: str) -> Any:
    import torch
    from sentence_transformers import CrossEncoder

    judge = torch.nn.Sigmoid()
    return CrossEncoder(str(model.folder), device=device, activation_fn=judge, **_SAFELY)
