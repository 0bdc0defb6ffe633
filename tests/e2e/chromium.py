"""A real Chromium, driven over its DevTools protocol: messages of JSON on two pipes.

https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

PROGRAM = shutil.which("chromium")
PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.02
_READ_BYTES = 65_536
# Chromium reads the protocol on descriptor 3 and writes it on 4.
_LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 10) for pipe in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

# What the protocol answers if a page is left in the middle of an evaluation.
_LEFT = ("context was destroyed", "Inspected target navigated or closed")

needs_chromium = pytest.mark.skipif(
    PROGRAM is None, reason="there is no `chromium` on the PATH (apt-get install chromium)"
)


class PageLeftError(Exception):
    """Raised when a page went to another one while it was asked something."""


class Tab:
    """One page of the browser, and everything it has asked for and complained about."""

    def __init__(self, browser: "Browser", target: str, session: str) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        """What is an error, or a warning, on its console."""
        self._browser = browser
        self._target = target
        self._session = session

    async def send(self, method: str, **values: Any) -> dict[str, Any]:
        return await self._browser.send(method, values, self._session)

    def hear(self, method: str, values: dict[str, Any]) -> None:
        """An event of this tab."""
        if method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(values["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in {"error", "warning"}:
            self.complaints.append(str(values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")

    async def open(self, url: str) -> None:
        await self.send("Page.navigate", url=url)

    async def close(self) -> None:
        await self._browser.send("Target.closeTarget", {"targetId": self._target})

    async def value(self, expression: str) -> Any:
        """What a piece of JavaScript comes to."""
        answer = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def _is_true(self, expression: str) -> bool:
        try:
            return bool(await self.value(f"Boolean({expression})"))
        except PageLeftError:
            return False

    async def until(self, expression: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it comes to something true."""
        try:
            with anyio.fail_after(seconds):
                while not await self._is_true(expression):  # noqa: ASYNC110 - no event
                    await anyio.sleep(_POLL_SECONDS)
        except TimeoutError:
            page = await self.value("document.body.innerText")
            pytest.fail(f"not true: {expression}; {self.complaints}; the page says:\n{page}")

    async def type(self, text: str) -> None:
        await self.send("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        if key == "Tab":  # which the browser itself obeys, by its number
            text = {"windowsVirtualKeyCode": 9}
        await self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def resize(self, width: int, height: int = 900) -> None:
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def use_scheme(self, scheme: str) -> None:
        """`light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self) -> bytes:
        """What it looks like, as PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot"))["data"])


class Browser:
    """The browser's process, and who waits for its answers."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._numbers = itertools.count(1)
        self._answers: dict[int, Any] = {}
        self._arrived = anyio.Event()
        self._tabs: dict[str, Tab] = {}

    async def send(self, method: str, values: dict[str, Any], session: str = "") -> dict[str, Any]:
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": values}
        if session:
            asked["sessionId"] = session
        os.write(self._writing, json.dumps(asked).encode() + b"\0")
        with anyio.fail_after(PATIENCE_SECONDS):
            while number not in self._answers:
                await self._arrived.wait()
        answer = self._answers.pop(number)
        message = answer.get("error", {}).get("message", "")
        if any(sign in message for sign in _LEFT):
            raise PageLeftError
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    async def tab(self) -> Tab:
        target = (await self.send("Target.createTarget", {"url": "about:blank"}))["targetId"]
        attached = await self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        tab = self._tabs[attached["sessionId"]] = Tab(self, target, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            await tab.send(f"{domain}.enable")
        return tab

    async def read(self) -> None:
        """Take in what the browser says, until it ends."""
        buffer = b""
        while True:
            await anyio.wait_readable(self._reading)
            data = os.read(self._reading, _READ_BYTES)
            if not data:
                return
            *messages, buffer = (buffer + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                elif tab := self._tabs.get(message.get("sessionId", "")):
                    tab.hear(message["method"], message["params"])
            self._arrived.set()
            self._arrived = anyio.Event()


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser of its own, with a profile of its own; gone at the end."""
    assert PROGRAM is not None
    to_browser, from_browser = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="chromium") as profile:
        process = _start(Path(profile), to_browser[0], from_browser[1])
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            async with anyio.create_task_group() as tasks:
                one = Browser(from_browser[0], to_browser[1])
                tasks.start_soon(one.read)
                try:
                    yield one
                finally:
                    with anyio.CancelScope(shield=True), suppress(TimeoutError, OSError):
                        await one.send("Browser.close", {})
                        await anyio.to_thread.run_sync(process.wait, PATIENCE_SECONDS)
                    tasks.cancel_scope.cancel()
        finally:
            process.kill()
            process.wait()
            os.close(to_browser[1])
            os.close(from_browser[0])


def _start(profile: Path, reading: int, writing: int) -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-c", _LAUNCH, str(reading), str(writing), str(PROGRAM)),
        "--headless=new",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        "--no-sandbox",  # which needs more rights than a container has; only our page is opened
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--hide-scrollbars",
        "about:blank",
    ]
    return subprocess.Popen(
        command,
        pass_fds=[reading, writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(profile)},
    )
