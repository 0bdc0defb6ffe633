"""How a published index lies in a store, and what its documents say. Pure.

    objects/AA/SHA256      files of an index, by what is in them; they never change
    snapshots/WHEN-N.json  one state of an index: its files, what made it, which commit it is of
    branches/NAME.json     the snapshot that a branch has now

What is read may be anybody's: it is checked here, once and completely.
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

from vector_index_mcp.engine.store.foreign import is_part
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import StorageError, StoreError
from vector_index_mcp.indexing.mirroring import limits

FORMAT = 1
"""Changes when an older program could not read what this one publishes, or the other way round."""
OBJECTS, SNAPSHOTS, BRANCHES = "objects/", "snapshots/", "branches/"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"(?:[0-9a-f]{40,64})?")
_SNAPSHOT = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{16}")
_WHEN = "%Y%m%dT%H%M%SZ"
_LATEST = 1 << 40  # a time, in seconds since 1970
_MOST_DIMENSIONS = 100_000
_LONGEST_FILE_NAME = 150  # where no file's name may have more than 255


@dataclass(frozen=True, slots=True)
class Blob:
    """A file by what is in it."""

    digest: str
    """SHA-256, in hex."""
    size: int

    @property
    def name(self) -> str:
        """Of its object."""
        return f"{OBJECTS}{self.digest[:2]}/{self.digest}"


@dataclass(frozen=True, slots=True)
class Made:
    """What made an index: where another one would make another index, this one is of no use."""

    format: int
    """Of the index."""
    chunker: str
    model: ModelIdentity


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of an index."""

    branch: str
    commit: str
    """Of the files; empty if nobody knows."""
    made: Made
    files: Mapping[str, Blob]
    """Of the table of chunks, by their paths in its folder."""
    records: Blob
    """What is known of the indexed files, see `records_of`."""
    file_count: int
    """How many were indexed."""
    chunk_count: int
    created: int
    """In seconds since 1970."""

    @property
    def blobs(self) -> dict[str, Blob]:
        """All that it needs, by digest."""
        return {blob.digest: blob for blob in (self.records, *self.files.values())}

    @property
    def size(self) -> int:
        """Of its files together, in bytes."""
        return self.records.size + sum(blob.size for blob in self.files.values())

    @property
    def description(self) -> str:
        """What it is of, as a message names it."""
        return f"branch {self.branch}" + (f" at {self.commit[:12]}" if self.commit else "")

    def holds_what(self, other: "Snapshot") -> bool:
        """Whether both are of the same index, be it of different commits."""
        mine, others = ((s.made, s.files, s.records) for s in (self, other))
        return mine == others

    def dumped(self) -> bytes:
        """The document."""
        fields = asdict(self)
        fields["files"] = {path: [b.digest, b.size] for path, b in self.files.items()}
        fields["records"] = [self.records.digest, self.records.size]
        return json.dumps({"version": FORMAT, **fields}, sort_keys=True).encode()

    @classmethod
    def loaded(cls, data: bytes) -> Self:
        """What a document says.

        Raises:
            StorageError: If it is of another version, or makes no sense.
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
            raise StorageError(f"its description makes no sense ({error!s:.100})") from error
        return snapshot


def new_name(now: float) -> str:
    """The name of a snapshot that is made now; its object is `snapshot_at` it."""
    when = datetime.fromtimestamp(now, UTC).strftime(_WHEN)
    return f"{when}-{secrets.token_hex(8)}"


def snapshot_at(name: str) -> str:
    """The name of a snapshot's object."""
    return f"{SNAPSHOTS}{name}.json"


def name_in(object_name: str) -> str | None:
    """The name of the snapshot in an object of that name; None if it is none."""
    name = object_name.removeprefix(SNAPSHOTS).removesuffix(".json")
    return name if _SNAPSHOT.fullmatch(name) and snapshot_at(name) == object_name else None


def branch_at(branch: str) -> str:
    """The name of a branch's object; git's names are bytes, which need be no UTF-8."""
    data = branch.encode("utf-8", "surrogateescape")
    name = urllib.parse.quote(data, safe="")
    if len(name) > _LONGEST_FILE_NAME:
        name = f"{name[:_LONGEST_FILE_NAME]}-{hashlib.sha256(data).hexdigest()}"
    return f"{BRANCHES}{name}.json"


def dumped_branch(snapshot: str) -> bytes:
    """The document of a branch that has that snapshot."""
    return json.dumps({"version": FORMAT, "snapshot": snapshot}).encode()


def loaded_branch(data: bytes) -> str:
    """The name of the snapshot that a branch has.

    Raises:
        StorageError: If its document makes no sense.
    """
    try:
        fields = _object(json.loads(data))
        version, name = fields["version"], fields["snapshot"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StorageError("what it says of the branch makes no sense") from error
    if version != FORMAT:
        raise StorageError("it was published by another version of this program")
    if not isinstance(name, str) or not _SNAPSHOT.fullmatch(name):
        raise StorageError("what it says of the branch makes no sense")
    return name


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError("an object was expected")
    return found


def _blob(given: Any) -> Blob:
    digest, size = given
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError("a digest is none")
    _check_number(size, 0, limits.MOST_BYTES)
    return Blob(digest, size)


def check(snapshot: Snapshot) -> None:
    """Make sure that a snapshot is one that `loaded` takes.

    Raises:
        StoreError: If it is not.
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
        raise ValueError("a commit is none")
    bytes.fromhex(model.digest)
    if not 0 < len(snapshot.files) <= limits.MOST_FILES:
        raise ValueError("there are too many files, or none")
    if not all(map(is_part, snapshot.files)):
        raise ValueError("it names a file that no index has")
    _check_number(snapshot.size, 0, limits.MOST_BYTES)
    _check_number(snapshot.records.size, 0, limits.LARGEST_RECORDS_BYTES)
    _check_number(made.format, 0, 1_000)
    _check_number(model.dimension, 1, _MOST_DIMENSIONS)
    _check_number(snapshot.file_count, 0, limits.MOST_RECORDS)
    _check_number(snapshot.chunk_count, 0, limits.MOST_BYTES)
    _check_number(snapshot.created, 0, _LATEST)


def _check_name(text: Any) -> None:
    if not isinstance(text, str) or len(text) > limits.LONGEST_NAME or not text.isprintable():
        raise ValueError("a name is none")


def _check_number(number: Any, least: int, most: int) -> None:
    if type(number) is not int or not least <= number <= most:
        raise ValueError("a number is out of range")


def digest(data: bytes) -> str:
    """The SHA-256 of what a file holds, in hex."""
    return hashlib.sha256(data).hexdigest()


def current_time() -> float:
    """Now, in seconds since 1970."""
    return time.time()
