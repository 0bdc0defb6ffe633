"""An event that happens again and again, and that several tasks may wait for."""

import anyio


class Signal:
    """Each `send` wakes the tasks that wait at that moment. Use it inside one event loop."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def send(self) -> None:
        """Wake all tasks that wait now."""
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        """Wait for the next `send`."""
        await self._event.wait()
