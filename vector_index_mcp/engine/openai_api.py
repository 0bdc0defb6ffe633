"""A server with OpenAI's API, asked over HTTP: JSON there and back.

For the embeddings here, and for the language model that documents may have.

It is foreign: what it answers is bounded in time and size and is never repeated in an error, since
servers quote what they were sent. No redirect is followed, so that texts and the key reach the
host that the user has named and no other.
"""

import email.utils
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import httpx2

from vector_index_mcp.errors import ServerError

_CONNECT_SECONDS = 5.0
_MOST_CONNECTIONS = 8
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Answers after which the same request may succeed."""


class OpenAiApi:
    """The API below `url`. Usable inside `async with api.open()`."""

    def __init__(self, url: str, key: str = "", *, is_local: bool) -> None:
        """Prepare.

        Args:
            url: Up to what stands before `/embeddings` and the like.
            key: Sent as a bearer token; empty for none.
            is_local: Whether it runs on this machine; else the system's proxies are used.
        """
        self.key = key
        self._url = url.rstrip("/")
        self._is_local = is_local
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The time in which it may be asked; no connection is left after it."""
        limits = httpx2.Limits(max_connections=_MOST_CONNECTIONS)
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)  # `post` limits the rest
        async with httpx2.AsyncClient(
            limits=limits, timeout=timeout, trust_env=not self._is_local, verify=self._trusted()
        ) as self._client:
            try:
                yield
            finally:
                self._client = None

    def _trusted(self) -> ssl.SSLContext | bool:
        """Whose certificates are: the usual ones, which take 50 ms to load, or nobody's."""
        is_encrypted = self._url.lower().startswith("https:")
        return True if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def post(
        self, path: str, body: Mapping[str, Any], *, most_bytes: int, seconds: float
    ) -> Any:
        """What the server answers to `body`.

        Args:
            path: Below the URL, without a slash before it.
            body: JSON.
            most_bytes: The longest answer that is read.
            seconds: How long the whole answer may take.

        Raises:
            ServerError: If it does not answer, or with an error, or with no JSON.
        """
        try:
            with anyio.fail_after(seconds):
                answer = await self._received(path, json.dumps(body).encode(), most_bytes)
        except TimeoutError:
            raise ServerError(f"does not answer within {seconds:g} s", is_passing=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise ServerError(_why_not_reached(error), is_passing=True) from None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise ServerError("answers with something that is no JSON") from None

    async def _received(self, path: str, data: bytes, most_bytes: int) -> bytes:
        assert self._client is not None, "it is asked while it is open"
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        address = f"{self._url}/{path}"
        async with self._client.stream("POST", address, content=data, headers=headers) as answer:
            status = answer.status_code
            if status != httpx2.codes.OK:
                raise ServerError(
                    f"answers with {_named(status)}",
                    status=status,
                    is_passing=status in _PASSING,
                    retry_after=_seconds(answer.headers.get("retry-after", "")),
                )
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise ServerError("answers with something compressed, which nobody asked for")
            received = bytearray()
            async with aclosing(answer.aiter_raw()) as pieces:
                async for piece in pieces:
                    received += piece
                    if len(received) > most_bytes:
                        raise ServerError(f"answers with more than {most_bytes:,} bytes")
        return bytes(received)


def _named(status: int) -> str:
    if httpx2.codes.is_redirect(status):
        return f"HTTP {status}, which leads elsewhere and is not followed"
    return f"HTTP {status}"


def _why_not_reached(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "shows a certificate that this machine does not trust"
    return f"cannot be reached ({type(error).__name__})"


def _seconds(retry_after: str) -> float:
    """How long a server wants to be left alone: it gives seconds, or a date."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):  # nothing that one could make sense of
        return 0.0
