"""Calls a server with OpenAI's API over HTTP: JSON requests and JSON answers.

The embeddings use it, and the language model that documents may have.

The server is not trusted. Its answers are bounded in time and size, and errors never repeat them,
because servers quote the texts that they were sent. Redirects are not followed, so that texts and
the key reach only the host that the user has named.
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
"""HTTP statuses after which the same request may succeed later."""


class OpenAiApi:
    """The API below `url`. Usable inside `async with api.open()`."""

    def __init__(self, url: str, key: str = "", *, is_local: bool) -> None:
        """Prepare.

        Args:
            url: The part of the address before `/embeddings` and the like.
            key: Sent as a bearer token; empty for none.
            is_local: Whether the server runs on this machine; else the system's proxies are used.
        """
        self.key = key
        self._url = url.rstrip("/")
        self._is_local = is_local
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Allow requests while the context is open; close all connections at its end."""
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
        """Return which certificates to trust: the usual ones, or none if the URL needs none.

        Loading the usual ones takes 50 ms.
        """
        is_encrypted = self._url.lower().startswith("https:")
        return True if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def post(
        self, path: str, body: Mapping[str, Any], *, most_bytes: int, seconds: float
    ) -> Any:
        """Post `body` and return the JSON of the answer.

        Args:
            path: The path below the URL, without a leading slash.
            body: The request, to be sent as JSON.
            most_bytes: The greatest length of an answer, in bytes.
            seconds: How long the whole answer may take.

        Raises:
            ServerError: If the server does not answer, or answers with an error or without JSON.
        """
        try:
            with anyio.fail_after(seconds):
                answer = await self._received(path, json.dumps(body).encode(), most_bytes)
        except TimeoutError:
            raise ServerError(f"does not answer within {seconds:g} s", is_passing=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise ServerError(
                _why_not_reached(error),
                is_passing=True,
                is_unreachable=isinstance(error, httpx2.ConnectError),
            ) from None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise ServerError("answers with something that is no JSON") from None

    async def _received(self, path: str, data: bytes, most_bytes: int) -> bytes:
        assert self._client is not None, "the API is used outside of `open()`"
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
    """Return the seconds that a `Retry-After` header asks to wait; it has seconds or a date."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):  # neither of them
        return 0.0
