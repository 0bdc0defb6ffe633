"""The real program as a process: how the end-to-end tests start it and talk to it."""

import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import forked
import forked_hosts
import psutil
import pytest
import template
from anyio.streams.buffered import BufferedByteReceiveStream
from forked_child import HOOK, hook_of, obey_file_modes
from greeting import CLIENT
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult
from waiting import eventually
from writing import write

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.hits import SearchResult
from vector_index_mcp.engine.models.model import OFFLINE_PACKAGE
from vector_index_mcp.sharing.place import TOOL_SET

COMMAND = (sys.executable, "-m", "vector_index_mcp")
SEARCH = ("search", "--no-service")
"""Of a test that is not about services: what it finds does not depend on one."""
CHANGE_SECONDS = 25.0  # for a change on disk to be searchable; less than between two sweeps
ANSWER_SECONDS = 120.0  # for the process to start and answer, on a machine that does much else
MODEL_SECONDS = 150.0  # for the model to be loaded as well
NO_MODEL = {"VECTOR_INDEX_EMBEDDING_MODEL": "./no-such-model"}
"""Settings with which the program searches by words only, and says so."""
NO_FORKS = {template.VARIABLE: ""}
"""Settings with which services are started as users do."""
FAKE_MODEL = {"VECTOR_INDEX_EMBEDDING_MODEL": "nobody/no-such-model"}
"""Settings for `FAKE_WORKER`, where nobody else may find a model."""
MAX_LINE_BYTES = 10_000_000
WORKER = "vector_index_mcp.engine.models.worker"
_CAN_FORK = sys.platform == "linux"  # libraries of macOS do not survive a fork
_REAPING_SECONDS = 0.1  # an ended process may stay a zombie for as long as its parent likes

needs_model = pytest.mark.skipif(
    find_spec(OFFLINE_PACKAGE) is None, reason="the extra `offline` is not installed"
)
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals or modes")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """The variables of a process that has nothing to do with this machine's user and network.

    In tests, its services are forked (`forked_hosts`).
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("VECTOR_INDEX_", "XDG_"))}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    is_tested = "PYTEST_CURRENT_TEST" in os.environ
    return {
        **inherited,
        **(forked.host_variables() if is_tested and _CAN_FORK else {}),
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "PYTHONIOENCODING": "utf-8",
        "VECTOR_INDEX_EMBEDDING_CACHE_DIR": str(folder / "cache"),
        "VECTOR_INDEX_RUNTIME_DIR": str(folder / "run"),
        **settings,
    }


def with_import_hook(folder: Path, code: str, variables: dict[str, str]) -> dict[str, str]:
    """`variables` of a process that runs `code` before anything else is imported.

    The code may be about services, which are then not forked, unless it is that of the fake worker.
    """
    folder.mkdir()
    path = os.pathsep.join(filter(None, [str(folder), variables.get("PYTHONPATH", "")]))
    hosts = variables.get(template.VARIABLE, "") if code == FAKE_WORKER else ""
    if hosts:
        code += forked_hosts.STARTUP
    (folder / HOOK).write_text(code, encoding="utf-8")
    return {**variables, "PYTHONPATH": path, template.VARIABLE: hosts}


ANOTHER_VERSION = """
import vector_index_mcp
vector_index_mcp.__version__ = "0.0.1"
"""

# Stands in for the embedding worker: the same frames, no model, ready at once.
FAKE_WORKER = """
import sys
if "vector_index_mcp.engine.models.worker" in sys.orig_argv:
    import hashlib, json, math, os, struct
    def send(header, payload=b""):
        sys.stdout.buffer.write(json.dumps(header).encode() + bytes([10]) + payload)
        sys.stdout.buffer.flush()
    def vector(text):
        numbers = [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()]
        length = math.sqrt(sum(n * n for n in numbers))
        return struct.pack("<32f", *(n / length for n in numbers))
    send({"event": "model", "name": "fake", "digest": "fa", "dimension": 32})
    send({"event": "ready", "precision": "float32"})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        texts = request["texts"]
        header = {"id": request["id"], "rows": len(texts), "dimension": 32}
        send(header, b"".join(map(vector, texts)))
    os._exit(0)
"""


# -- commands --------------------------------------------------------------------------------


def run(
    *arguments: str | Path,
    cwd: Path,
    variables: dict[str, str],
    is_hook_first: bool = True,
    obeys_modes: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end: as a fork if possible, else as `started` does.

    Args:
        arguments: Those of the command.
        cwd: The folder that it runs in.
        variables: All of its environment.
        is_hook_first: Whether an import hook has to run before all imports, which a fork has done.
        obeys_modes: Whether it can do nothing that a mode forbids, even as root; only on POSIX.
        options: For `subprocess.run`; a fork takes none.
    """
    has_to_start = is_hook_first and hook_of(variables) is not None
    if options or has_to_start or not _CAN_FORK:
        if obeys_modes:
            options["preexec_fn"] = obey_file_modes
        return started(*arguments, cwd=cwd, variables=variables, **options)
    command = [*map(str, arguments)]
    return forked.run(command, cwd, variables, MODEL_SECONDS, obeys_modes=obeys_modes)


def started(
    *arguments: str | Path, cwd: Path, variables: dict[str, str], **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as users do, with all that it imports.

    Args:
        arguments: Those of the command.
        cwd: The folder that it runs in.
        variables: All of its environment.
        options: For `subprocess.run`.
    """
    options = {"stdin": subprocess.DEVNULL} | options
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=variables,
        capture_output=True,
        encoding="utf-8",
        timeout=MODEL_SECONDS,
        check=False,
        **options,
    )


def foreground(project: Path) -> tuple[str, ...]:
    """The arguments of a server of `project` with no other process involved."""
    return ("serve", str(project), "--foreground")


# -- a real client ---------------------------------------------------------------------------


@dataclass
class Session:
    """A server and the client connected to it."""

    client: Client
    project: Path
    server: psutil.Process

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """What the tool answers, be it an error."""
        return await self.client.call_tool(tool, arguments)

    async def search(self, query: str, top_k: int = 100) -> SearchResult:
        result = await self.call("search_index", query=query, top_k=top_k, verbose=True)
        assert not result.is_error, result.content
        return SearchResult.model_validate(result.structured_content)

    async def status(self) -> wire.IndexStatus:
        result = await self.call("get_status")
        assert not result.is_error, result.content
        return wire.IndexStatus.model_validate(result.structured_content)

    async def trigger(self, **arguments: Any) -> wire.TriggerResult:
        result = await self.call("trigger_index", **arguments)
        assert not result.is_error, result.content
        return wire.TriggerResult.model_validate(result.structured_content)

    async def complete(self) -> None:
        """Wait until every file is indexed and every chunk has its vector.

        The event of a write may come behind the walk that has found the file, which then waits
        anew.
        """

        async def is_complete() -> bool:
            return (await self.trigger()).complete

        await eventually(is_complete, MODEL_SECONDS)

    async def status_when(
        self, holds: Callable[[wire.IndexStatus], bool], seconds: float = ANSWER_SECONDS
    ) -> wire.IndexStatus:
        """The first status that `holds`; asked again and again."""
        status = None

        async def status_if_it_holds() -> wire.IndexStatus | None:
            nonlocal status
            status = await self.status()
            return status if holds(status) else None

        try:
            return await eventually(status_if_it_holds, seconds)
        except TimeoutError:
            pytest.fail(f"still {status}")

    async def converges(self, word: str, *expected: str) -> None:
        """Wait until `word` is found in the `expected` files and no others, and in them as it is.

        A hit by meaning need not hold the word, so hits without it do not count.
        """
        found: dict[str, bool] = {}

        async def is_found_there() -> bool:
            nonlocal found
            hits = (await self.search(word)).results
            found = {h.file_path: h.is_stale for h in hits if word in h.extracted_text_chunk}
            return found == dict.fromkeys(expected, False)

        try:
            await eventually(is_found_there, CHANGE_SECONDS)
        except TimeoutError:
            pytest.fail(f"{word} is found in (by file, whether stale) {found}")


@asynccontextmanager
async def session(
    project: Path, variables: dict[str, str], mode: Any = "auto"
) -> AsyncIterator[Session]:
    """A server on `project` for as long as this lasts, with a client of the protocol era `mode`."""
    command, *arguments = [*COMMAND, *foreground(project)]
    parameters = StdioServerParameters(
        command=command, args=arguments, env=variables, cwd=project.parent
    )
    before = set(psutil.Process().children())
    with (project.parent / "stderr.txt").open("a", encoding="utf-8") as stderr:
        transport = stdio_client(parameters, errlog=stderr)
        async with Client(transport, mode=mode, read_timeout_seconds=MODEL_SECONDS) as client:
            [server] = set(psutil.Process().children()) - before
            yield Session(client, project, server)


# -- no client, just lines -------------------------------------------------------------------


@dataclass
class Wire:
    """A server whose lines a test writes and reads itself."""

    process: anyio.abc.Process
    received: list[bytes] = field(default_factory=list)
    """Every line it has written."""

    def __post_init__(self) -> None:
        assert self.process.stdout is not None
        self._stdout = BufferedByteReceiveStream(self.process.stdout)
        self._number = 0

    async def send(self, message: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.process.stdin.send(line + b"\n")

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request, `result` or `error` and all."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self.send(request)
        while True:
            message = await self.hear()
            if message.get("id") == self._number:
                return message

    async def hear(self) -> dict[str, Any]:
        """Its next message."""
        with anyio.fail_after(ANSWER_SECONDS):
            line = await self._stdout.receive_until(b"\n", MAX_LINE_BYTES)
        self.received.append(line)
        message: dict[str, Any] = json.loads(line)
        return message

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a tool."""
        answer = await self.ask("tools/call", name=tool, arguments=arguments)
        return answer["result"]["structuredContent"]

    async def initialize(self) -> dict[str, Any]:
        answer = await self.ask("initialize", **CLIENT)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    async def complete(self) -> None:
        """Wait until every file is indexed and every chunk has its vector."""

        async def is_complete() -> bool:
            return (await self.call("trigger_index"))["complete"]

        await eventually(is_complete, math.inf)

    async def rest(self) -> list[bytes]:
        """Every line until the end of its output, those already read included."""
        data = b""
        with anyio.fail_after(ANSWER_SECONDS):
            try:
                while True:
                    data += await self._stdout.receive()
            except anyio.EndOfStream:
                pass
        self.received += data.splitlines()
        return self.received

    async def leave(self) -> int:
        """Close its input, as a client does at the end of a session; returns the exit status."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        return await self.exit_status()

    async def exit_status(self) -> int:
        with anyio.fail_after(ANSWER_SECONDS):
            return await self.process.wait()


def wired(
    *arguments: str | Path, cwd: Path, variables: dict[str, str]
) -> AbstractAsyncContextManager[Wire]:
    """The server that `arguments` start; killed at the end if it is still there."""
    return wire_of([*COMMAND, *map(str, arguments)], cwd, variables)


@asynccontextmanager
async def wire_of(
    command: Sequence[str], cwd: Path, variables: dict[str, str]
) -> AsyncIterator[Wire]:
    """The server that a command starts; killed at the end if it is still there."""
    with (cwd / "stderr.txt").open("ab") as stderr:
        process = await anyio.open_process(command, env=variables, cwd=cwd, stderr=stderr)
    try:
        yield Wire(process)
    finally:
        if process.returncode is None:
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def those_left(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Which of `processes` do not end in time."""
    wait = partial(psutil.wait_procs, processes, timeout=ANSWER_SECONDS)
    _, left = await anyio.to_thread.run_sync(wait)
    return [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


# -- the background service --------------------------------------------------------------------


def is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended, be it that nobody has asked for its exit status yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def command_of(process: psutil.Process) -> list[str]:
    """Its arguments; none if it has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def workers_below(service: psutil.Process) -> list[psutil.Process]:
    """The children of a service that embed, one at most; others may prepare files."""
    return workers_among(service.children())


def workers_among(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that embed: children of a service, or of the host that services share."""
    return [process for process in processes if WORKER in command_of(process)]


@dataclass
class Place:
    """A project with a background service of its own, and what its processes are told."""

    folder: Path
    project: Path
    variables: dict[str, str]

    @property
    def runtime(self) -> Path:
        return Path(self.variables["VECTOR_INDEX_RUNTIME_DIR"])

    @property
    def endpoint(self) -> Endpoint:
        """Where the service of the project is met."""
        name = hashlib.sha256(os.fsencode(self.project)).hexdigest()[:16]
        return Endpoint(self.runtime, name, "codebase", str(self.project))

    def report(self) -> dict[str, Any]:
        """What the service says of itself; empty if there is none."""
        return contact.ask(self.endpoint, greeting.REPORT) or {}

    def service(self) -> psutil.Process:
        return psutil.Process(self.report()["pid"])

    def relayed(self, path: str | Path = "") -> AbstractAsyncContextManager[Wire]:
        """A front end; killed at the end if it is still there."""
        return wired(path or self.project, cwd=self.folder, variables=self.variables)

    async def run(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        options: dict[str, Any] | None = None,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        settings = self.variables | variables
        where = {"cwd": cwd or self.folder, "variables": settings}
        command = partial(run, *arguments, **where, **(options or {}))
        return await anyio.to_thread.run_sync(command)

    def workers(self) -> list[psutil.Process]:
        """The shared embedding workers."""
        return workers_among(self.processes())

    def services(self) -> list[dict[str, Any]]:
        """The records of the services that are there or have died, without the shared worker's."""
        records = [json.loads(path.read_text("utf-8")) for path in self.runtime.glob("*.json")]
        return [record for record in records if record.get("set") != TOOL_SET]

    def processes(self) -> list[psutil.Process]:
        """Everything that was started with our variables and is still there, but us."""
        return processes_below(self.runtime)


def processes_below(folder: Path) -> list[psutil.Process]:
    """Everything whose runtime folder is `folder` or lies in it and is still there, but us."""
    found = []
    for process in psutil.process_iter():
        try:
            runtime = process.environ().get("VECTOR_INDEX_RUNTIME_DIR", "")
            is_ours = f"{runtime}/".startswith(f"{folder}/")
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:  # somebody else's, or it has just ended
            continue
    return found


def reaped(processes: Sequence[psutil.Process]) -> None:
    """Kill `processes` and wait for their ends."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=_REAPING_SECONDS)


@contextmanager
def place_of(files: dict[str, str], **settings: str) -> Iterator[Place]:
    """A place whose processes are killed at the end; sockets need a short path."""
    with TemporaryDirectory(prefix="vi") as name:
        folder = Path(name).resolve()
        project = write(folder / "project", files)
        place = Place(folder, project, environment(folder, **settings))
        try:
            yield place
        finally:
            while left := place.processes():
                reaped(left)
