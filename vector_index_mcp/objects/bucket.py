"""Objects in a bucket of S3, Google Cloud Storage or Azure. The only importer of obstore.

obstore uses the same library as LanceDB to read buckets, so the same variables name the server and
its keys (AWS_ENDPOINT, AWS_ACCESS_KEY_ID and so on). It is an optional extra.
"""

import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.to_thread

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects.faults import Reason, quotable, reason_in
from vector_index_mcp.objects.profile import options_of
from vector_index_mcp.objects.store import (
    Content,
    Entry,
    at_once,
    kept_here,
    too_large,
    whole_or_nothing,
)

_AT_ONCE = 16  # requests; more are no faster at a round trip of 20 ms
_MOST_ENTRIES = 500_000
_SECONDS = 20.0  # for a request with a small answer, including the library's own retries
_STALL_SECONDS = 20.0  # between two pieces of a large one
_CLIENT = {"connect_timeout": "5s", "timeout": "10m", "read_timeout": "8s"}
_RETRIES: Any = {"max_retries": 2}
_PIECE_BYTES = 1 << 20
_PROFILES = (
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("AWS_CONFIG_FILE", "~/.aws/config"),
)


class _PastTheEndError(StorageError):
    """The wanted part of an object begins after its end."""


class BucketObjects:
    """The objects below a URI such as s3://bucket/folder."""

    def __init__(self, uri: str) -> None:
        """Prepare; sends no request to the server.

        Raises:
            StorageError: If the URI names no bucket, or obstore is not installed.
        """
        self.uri = uri.rstrip("/")
        self._limit: anyio.CapacityLimiter | None = None
        self._wants_bare_tags = False
        try:
            import obstore
        except ImportError as error:
            raise StorageError(
                f"the library that reads {uri} is not installed", Problem.STORE_READER_MISSING
            ) from error
        self._library: Any = obstore
        profile: Any = _of_profile() if self.uri.startswith("s3://") else None
        options: Any = {**_CLIENT, "allow_http": _may_be_read_on_the_way()}
        try:
            self._store: Any = obstore.store.from_url(
                self.uri,
                config=profile,
                client_options=options,
                retry_config=_RETRIES,
            )
        except (ValueError, obstore.exceptions.BaseError) as error:
            raise self._fault(str(error)) from error

    async def entries(self, prefix: str = "") -> list[Entry]:
        """See `Objects`."""
        found: list[Entry] = []
        async with self._asking(_SECONDS) as scope:
            async for page in self._library.list(self._store, prefix or None):
                found += (
                    Entry(each["path"], each["size"], each["last_modified"].timestamp())
                    for each in page
                )
                if len(found) > _MOST_ENTRIES:
                    raise StorageError(f"{self.uri} contains more than {_MOST_ENTRIES} objects")
                scope.deadline = anyio.current_time() + _SECONDS
        return sorted(found, key=lambda entry: entry.name)

    async def get(self, name: str, most_bytes: int) -> Content | None:
        """See `Objects`."""
        with contextlib.suppress(FileNotFoundError):
            async with self._asking(_SECONDS) as scope:
                answer = await self._library.get_async(self._store, name)
                if answer.meta["size"] > most_bytes:
                    raise too_large(self.uri, name, most_bytes)
                pieces = bytearray()
                async for piece in answer.stream(_PIECE_BYTES):
                    pieces += piece
                    scope.deadline = anyio.current_time() + _STALL_SECONDS
                return Content(bytes(pieces), answer.meta["e_tag"] or "")
        return None

    async def part(self, name: str, start: int, length: int) -> bytes | None:
        """See `Objects`."""
        try:
            async with self._asking(_time_for(length)):
                found = self._library.get_range_async(self._store, name, start=start, length=length)
                return bytes(await found)
        except FileNotFoundError:
            return None
        except _PastTheEndError:
            return b""

    async def put(self, name: str, data: bytes) -> None:
        """See `Objects`."""
        async with self._asking(_time_for(len(data)), is_write=True):
            await self._library.put_async(self._store, name, data, use_multipart=False)

    async def put_new(self, name: str, data: bytes) -> str | None:
        """See `Objects`."""
        return await self._put_if(name, data, "create")

    async def replace(self, name: str, data: bytes, tag: str) -> str | None:
        """See `Objects`."""
        if not self._wants_bare_tags:
            new = await self._put_if(name, data, {"e_tag": tag})
            if new is not None or await self._tag_of(name) != tag:
                return new
        # Refused although it has the tag: Ceph 16 answers with tags in quotes, and takes none so.
        new = await self._put_if(name, data, {"e_tag": tag.strip('"')})
        self._wants_bare_tags |= new is not None
        return new

    async def _tag_of(self, name: str) -> str | None:
        """Return the tag of an object; None if there is no such object."""
        with contextlib.suppress(FileNotFoundError):
            async with self._asking(_SECONDS):
                return str((await self._library.head_async(self._store, name))["e_tag"] or "")
        return None

    async def _put_if(self, name: str, data: bytes, mode: Any) -> str | None:
        errors = self._library.exceptions
        with contextlib.suppress(errors.AlreadyExistsError, errors.PreconditionError):
            async with self._asking(_SECONDS):
                put = await self._library.put_async(
                    self._store, name, data, mode=mode, use_multipart=False
                )
                return str(put["e_tag"] or "")
        return None

    async def delete(self, names: Sequence[str]) -> None:
        """See `Objects`."""
        if names:
            async with self._asking(_SECONDS + len(names) / 100):
                # Only some servers report a missing object as an error.
                with contextlib.suppress(FileNotFoundError):
                    await self._library.delete_async(self._store, list(names))

    async def download(self, name: str, path: Path, most_bytes: int) -> str | None:
        """See `Objects`."""
        with contextlib.suppress(FileNotFoundError):
            async with self._asking(_SECONDS) as scope:
                answer = await self._library.get_async(self._store, name)
                if answer.meta["size"] > most_bytes:
                    raise too_large(self.uri, name, most_bytes)
                return await _written(aiter(answer.stream(_PIECE_BYTES)), path, scope)
        return None

    async def upload(self, path: Path, name: str) -> None:
        """See `Objects`."""
        with kept_here(path):
            size = (await anyio.Path(path).stat()).st_size
        async with self._asking(_time_for(size), is_write=True):
            await self._library.put_async(self._store, name, path)

    @asynccontextmanager
    async def _asking(
        self, seconds: float, *, is_write: bool = False
    ) -> AsyncIterator[anyio.CancelScope]:
        """Make one request: limit how many run, set its deadline, translate its errors."""
        errors = self._library.exceptions
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(_AT_ONCE)
        async with self._limit:
            try:
                with anyio.fail_after(seconds) as scope:
                    yield scope
            except TimeoutError as error:
                raise self._fault("kind: Timeout") from error
            except FileNotFoundError as error:
                # The bucket or the object does not exist.
                if is_write or reason_in(str(error)) is not None:
                    raise self._fault(str(error)) from error
                raise
            except (errors.AlreadyExistsError, errors.PreconditionError):
                raise
            except (errors.BaseError, ValueError, OSError) as error:
                raise self._fault(f"{type(error).__name__} {error}") from error

    def _fault(self, text: str) -> StorageError:
        if "416 Range Not Satisfiable" in text:
            return _PastTheEndError()
        reason = reason_in(text)
        if reason is None:
            return StorageError(f"{self.uri} cannot be used: {quotable(text)}")
        return self._error_of(reason)

    def _error_of(self, reason: Reason) -> StorageError:
        return StorageError(f"{self.uri} cannot be used: {reason.words}", reason.problem)


async def _written(pieces: AsyncIterator[bytes], path: Path, scope: anyio.CancelScope) -> str:
    """Write a new file; return its SHA-256. While a piece is written, the next one is received.

    Args:
        pieces: The file's content.
        path: The file; it is removed if it is not written whole.
        scope: Its deadline moves with every piece.

    Raises:
        StorageError: If the file exists already or cannot be written.
    """
    digest, received = hashlib.sha256(), []

    async def receive() -> None:
        with contextlib.suppress(StopAsyncIteration):
            received.append(await anext(pieces))
        scope.deadline = anyio.current_time() + _STALL_SECONDS

    def write(file: IO[bytes], piece: bytes) -> None:
        with kept_here(path):
            file.write(piece)
        digest.update(piece)

    async with _new_file(path) as file:
        await receive()
        while received:
            writing = partial(anyio.to_thread.run_sync, write, file, received.pop())
            await at_once([receive, writing])
    return digest.hexdigest()


@asynccontextmanager
async def _new_file(path: Path) -> AsyncIterator[IO[bytes]]:
    """Open a new file for writing; it is removed if it is not written whole.

    Raises:
        StorageError: If the file exists already or cannot be written.
    """
    with kept_here(path):
        file = await anyio.open_file(path, "xb")
    with whole_or_nothing(path):
        try:
            yield file.wrapped
        finally:
            with kept_here(path):
                await file.aclose()


def _of_profile() -> dict[str, str] | None:
    """Return the options of the AWS profile that AWS_PROFILE names; None if it names none.

    Raises:
        StorageError: If the profile cannot be used.
    """
    name = os.environ.get("AWS_PROFILE")
    if not name:
        return None
    texts = []
    for variable, usual in _PROFILES:
        path = Path(os.environ.get(variable) or usual).expanduser()
        try:
            texts.append(path.read_text(encoding="utf-8") if path.is_file() else "")
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{path} cannot be read", Problem.STORE_REFUSES) from error
    credentials, config = texts
    return options_of(name, credentials, config, os.environ)


def _may_be_read_on_the_way() -> bool:
    """Return whether the user allows http://; obstore ignores the variable if it has options."""
    given = (os.environ.get(name, "") for name in ("AWS_ALLOW_HTTP", "ALLOW_HTTP"))
    return any(value.lower() in {"1", "true", "yes", "on"} for value in given)


def _time_for(size: int) -> float:
    """Return how many seconds so many bytes may take, at 100 kB a second."""
    return _SECONDS + size / 100_000
