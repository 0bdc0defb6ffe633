"""Loads and runs a service when it is first needed."""

import gc
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

import anyio


class _Runs(Protocol):
    def running(self) -> AbstractAsyncContextManager[None]: ...


_log = logging.getLogger(__name__)

_Service = TypeVar("_Service", bound=_Runs)


class Lazily(Generic[_Service]):
    """A service that is loaded and run when it is first needed."""

    def __init__(self, load: Callable[[], Awaitable[_Service]]) -> None:
        self._load = load
        self._wanted = anyio.Event()
        self._running = anyio.Event()
        self._service: _Service | None = None
        self._fault: Exception | None = None

    @property
    def loaded(self) -> _Service | None:
        """The service; None if it is not running yet."""
        return self._service if self._running.is_set() else None

    def begin(self) -> None:
        """Start loading, if that has not happened yet. Returns at once."""
        self._wanted.set()

    def give_up(self, fault: Exception) -> None:
        """Have `run` raise `fault` instead of loading; nothing happens if loading has begun."""
        self._fault = fault
        self._wanted.set()

    async def get(self) -> _Service:
        """Wait for the running service, and return it."""
        self.begin()
        await self._running.wait()
        assert self._service is not None
        return self._service

    async def run(self) -> None:
        """Wait for `begin`, then load the service and run it until cancelled.

        Raises:
            Exception: What `give_up` was told, or whatever ends the service.
        """
        await self._wanted.wait()
        if self._fault is not None:
            raise self._fault
        gc.disable()  # imports leave no garbage; collecting it would take 0.03 of 0.3 s
        try:
            self._service = await self._load()
        finally:
            gc.enable()
        async with self._service.running():
            self._running.set()
            await anyio.sleep_forever()


class Retrying(Lazily[_Service]):
    """A service whose errors end nobody else: `get` raises one, and the next `get` loads again."""

    _error: Exception | None = None

    async def get(self) -> _Service:
        """Wait for the running service, and return it.

        Raises:
            Exception: What kept it from being loaded, or has ended it.
        """
        self.begin()
        await self._running.wait()
        if self._service is None:
            assert self._error is not None
            raise self._error
        return self._service

    async def run(self) -> None:
        """Load the service whenever it is needed and not there, and run it, until cancelled."""
        while True:
            try:
                await super().run()
            except Exception as error:  # noqa: BLE001 - `get` raises it
                _log.exception("what is loaded when it is needed has failed")
                self._error, self._service = error, None
                waited, self._running = self._running, anyio.Event()
                self._wanted = anyio.Event()
                waited.set()
