"""The layout of a published index in a store, and its JSON documents. Pure.

    objects/AA/SHA256      files of an index, named by their digest; they never change
    snapshots/WHEN-N.json  one state of an index: its files, what made it, and its commit
    branches/NAME.json     the current snapshot of a branch

Anybody may have written these documents, so all of their content is checked here, once.
"""

import hashlib
import json
import re
import secrets
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.foreign import is_part
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import StorageError, StoreError
from vector_index_mcp.indexing.mirroring import limits

FORMAT = 1
"""The version of the layout. Change it if an older program could not read what this one publishes,
or the other way round."""
OBJECTS, SNAPSHOTS, BRANCHES = "objects/", "snapshots/", "branches/"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"(?:[0-9a-f]{40,64})?")
_SNAPSHOT = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{16}")
_WHEN = "%Y%m%dT%H%M%SZ"
_LATEST = 1 << 40  # the latest valid time, in seconds since 1970
_MOST_DIMENSIONS = 100_000
_LONGEST_FILE_NAME = 150  # file systems allow 255, and a digest may follow


@dataclass(frozen=True, slots=True)
class Blob:
    """The identity of a file's content."""

    digest: str
    """SHA-256, in hex."""
    size: int

    @property
    def name(self) -> str:
        """The name of the file's object in the store."""
        return f"{OBJECTS}{self.digest[:2]}/{self.digest}"


@dataclass(frozen=True, slots=True)
class Made:
    """The versions that made an index. A machine can use only an index with the same versions."""

    format: int
    """The format of the index's tables."""
    chunker: str
    model: ModelIdentity

    def why_not(self, chunker: str, model: ModelIdentity | None) -> str:
        """Why an index made so cannot be used with a chunker and a model; empty if it can.

        The reason continues a sentence about the index. A model that is None may be any.
        """
        if self.format != schema.FORMAT or self.chunker != chunker:
            return "was made by another version or with other settings"
        own = self.model
        if model is not None and (model.digest, model.dimension) != (own.digest, own.dimension):
            return f"has vectors of another model ({own.name})"
        return ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of an index."""

    branch: str
    commit: str
    """The commit of the indexed files; empty if it is unknown."""
    made: Made
    files: Mapping[str, Blob]
    """The files of the table of chunks, by their paths in its folder."""
    records: Blob
    """The file with the records of the indexed files, see the module `records`."""
    file_count: int
    """How many files were indexed."""
    chunk_count: int
    created: int
    """When the snapshot was made, in seconds since 1970."""

    @property
    def blobs(self) -> dict[str, Blob]:
        """All files that the snapshot needs, by digest."""
        return {blob.digest: blob for blob in (self.records, *self.files.values())}

    @property
    def size(self) -> int:
        """The size of all files together, in bytes."""
        return self.records.size + sum(blob.size for blob in self.files.values())

    @property
    def description(self) -> str:
        """The branch and commit, as a message names them."""
        return f"branch {self.branch}" + (f" at {self.commit[:12]}" if self.commit else "")

    def holds_what(self, other: "Snapshot") -> bool:
        """Whether both have the same index; the commits may differ."""
        mine, others = ((s.made, s.files, s.records) for s in (self, other))
        return mine == others

    def dumped(self) -> bytes:
        """The snapshot's JSON document."""
        fields = asdict(self)
        fields["files"] = {path: [b.digest, b.size] for path, b in self.files.items()}
        fields["records"] = [self.records.digest, self.records.size]
        return json.dumps({"version": FORMAT, **fields}, sort_keys=True).encode()

    @classmethod
    def loaded(cls, data: bytes) -> Self:
        """The snapshot in a JSON document.

        Raises:
            StorageError: If the document has another version, or is invalid.
        """
        try:
            fields = _object(json.loads(data))
            if fields.pop("version") != FORMAT:
                raise StorageError("it was published by another version of this program")
            files, made = _object(fields.pop("files")), _object(fields.pop("made"))
            made["model"] = ModelIdentity(**_object(made["model"]))
            snapshot = cls(
                files={path: _blob(given) for path, given in files.items()},
                records=_blob(fields.pop("records")),
                made=Made(**made),
                **fields,
            )
            _check(snapshot)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise StorageError(f"its description is invalid ({error!s:.100})") from error
        return snapshot


def new_name(now: float) -> str:
    """A name for a snapshot that is made now; see `snapshot_at` for its object."""
    when = datetime.fromtimestamp(now, UTC).strftime(_WHEN)
    return f"{when}-{secrets.token_hex(8)}"


def snapshot_at(name: str) -> str:
    """The name of a snapshot's object."""
    return f"{SNAPSHOTS}{name}.json"


def name_in(object_name: str) -> str | None:
    """The name of the snapshot in the object `object_name`; None if the object is no snapshot."""
    name = object_name.removeprefix(SNAPSHOTS).removesuffix(".json")
    return name if _SNAPSHOT.fullmatch(name) and snapshot_at(name) == object_name else None


def branch_at(branch: str) -> str:
    """The name of a branch's object. In git, a branch's name may be any bytes, not only UTF-8."""
    data = branch.encode("utf-8", "surrogateescape")
    name = urllib.parse.quote(data, safe="")
    if len(name) > _LONGEST_FILE_NAME:
        name = f"{name[:_LONGEST_FILE_NAME]}-{hashlib.sha256(data).hexdigest()}"
    return f"{BRANCHES}{name}.json"


def dumped_branch(snapshot: str) -> bytes:
    """The JSON document of a branch with this snapshot."""
    return json.dumps({"version": FORMAT, "snapshot": snapshot}).encode()


def loaded_branch(data: bytes) -> str:
    """The name of the snapshot in a branch's JSON document.

    Raises:
        StorageError: If the document has another version, or is invalid.
    """
    try:
        fields = _object(json.loads(data))
        version, name = fields["version"], fields["snapshot"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StorageError("the branch's document there is invalid") from error
    if version != FORMAT:
        raise StorageError("it was published by another version of this program")
    if not isinstance(name, str) or not _SNAPSHOT.fullmatch(name):
        raise StorageError("the branch's document there is invalid")
    return name


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError("an object was expected")
    return found


def _blob(given: Any) -> Blob:
    digest, size = given
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError("a digest is invalid")
    _check_number(size, 0, limits.MOST_BYTES)
    return Blob(digest, size)


def check(snapshot: Snapshot) -> None:
    """Make sure that `Snapshot.loaded` accepts a snapshot.

    Raises:
        StoreError: If it does not.
    """
    try:
        _check(snapshot)
    except (ValueError, TypeError) as error:
        raise StoreError(f"this cannot be published: {error}") from error


def _check(snapshot: Snapshot) -> None:
    made, model = snapshot.made, snapshot.made.model
    for text in (snapshot.branch, made.chunker, model.name, model.digest, snapshot.commit):
        _check_name(text)
    if not _COMMIT.fullmatch(snapshot.commit):
        raise ValueError("a commit is invalid")
    bytes.fromhex(model.digest)
    if not 0 < len(snapshot.files) <= limits.MOST_FILES:
        raise ValueError("there are too many files, or none")
    if not all(map(is_part, snapshot.files)):
        raise ValueError("it names a file that is no part of an index")
    _check_number(snapshot.size, 0, limits.MOST_BYTES)
    _check_number(snapshot.records.size, 0, limits.LARGEST_RECORDS_BYTES)
    _check_number(made.format, 0, 1_000)
    _check_number(model.dimension, 1, _MOST_DIMENSIONS)
    _check_number(snapshot.file_count, 0, limits.MOST_RECORDS)
    _check_number(snapshot.chunk_count, 0, limits.MOST_BYTES)
    _check_number(snapshot.created, 0, _LATEST)


def _check_name(text: Any) -> None:
    if not isinstance(text, str) or len(text) > limits.LONGEST_NAME or not text.isprintable():
        raise ValueError("a name is invalid")


def _check_number(number: Any, least: int, most: int) -> None:
    if type(number) is not int or not least <= number <= most:
        raise ValueError("a number is out of range")


def digest(data: bytes) -> str:
    """The SHA-256 of a file's content, in hex."""
    return hashlib.sha256(data).hexdigest()


def current_time() -> float:
    """Now, in seconds since 1970."""
    return time.time()
