"""Something that happens again and again, and that several tasks may wait for."""

import anyio


class Signal:
    """Each `send` wakes whoever waits at that moment. Used inside one event loop."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def send(self) -> None:
        """Wake whoever waits."""
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        """Wait until it is sent next."""
        await self._event.wait()
