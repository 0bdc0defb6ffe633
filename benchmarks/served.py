"""The program as its clients use it: a front end over standard streams, a service behind it."""

import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp import Client, StdioServerParameters

COMMAND = [sys.executable, "-m", "vector_index_mcp"]
_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
POLL_SECONDS = 0.2  # a status costs 10 ms of processor time, which is the service's for that long


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Variables that keep everything but the index below `folder`, with `settings` besides.

    An installed program is compiled once, so it is here, whatever a developer has set.
    """
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        **{name: value for name, value in os.environ.items() if name != _UNCOMPILED},
        "VECTOR_INDEX_EMBEDDING_CACHE_DIR": str(folder / "cache"),
        "VECTOR_INDEX_RUNTIME_DIR": str(runtime),
        "XDG_STATE_HOME": str(folder / "state"),
        **{f"VECTOR_INDEX_{name.upper()}": value for name, value in settings.items()},
    }


@contextlib.asynccontextmanager
async def front_end(project: Path, variables: dict[str, str]) -> AsyncIterator[Client]:
    """A client of the project's service, which is started if it does not run."""
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], str(project)], env=variables
    )
    async with Client(server, mode="legacy") as client:
        yield client


async def stop(project: Path, variables: dict[str, str]) -> None:
    """End the project's service."""
    await anyio.run_process([*COMMAND, "stop", str(project)], env=variables)


async def end_worker(variables: dict[str, str]) -> None:
    """End the embedding worker that services with `variables` share; else it outlives them."""
    for process in psutil.process_iter(["cmdline"]):
        if "embedding" in (process.info["cmdline"] or []):
            with contextlib.suppress(psutil.Error):
                runtime = process.environ().get("VECTOR_INDEX_RUNTIME_DIR")
                if runtime == variables["VECTOR_INDEX_RUNTIME_DIR"]:
                    process.terminate()
                    await anyio.to_thread.run_sync(process.wait)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool."""
    answer = await client.call_tool(tool, arguments)
    assert answer.structured_content is not None, answer.content
    return answer.structured_content


async def status(client: Client) -> dict[str, Any]:
    return await call(client, "get_status")


async def found_files(client: Client, query: str) -> list[str]:
    """The files of the first five results, best first."""
    results = (await call(client, "search_index", query=query))["results"]
    return [hit["file_path"] for hit in results]


async def status_when(
    client: Client, condition: Callable[[dict[str, Any]], bool], every: float = POLL_SECONDS
) -> dict[str, Any]:
    """The first status that meets `condition`."""
    while not condition(now := await status(client)):
        await anyio.sleep(every)
    return now


def is_indexed(status: dict[str, Any]) -> bool:
    """Whether all text can be found."""
    waits = status["pending_path_count"] or status["current_run"]
    return status["status"] == "WATCHING" and bool(status["indexed_chunk_count"]) and not waits


def is_complete(status: dict[str, Any]) -> bool:
    """Whether every chunk has its vector besides."""
    return is_indexed(status) and status["embedded_chunk_count"] == status["indexed_chunk_count"]


def service_of(project: Path) -> psutil.Process:
    """The process of the project's service."""
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if str(project) in line and "host" in line:
            return process
    raise LookupError(f"no service of {project}")


def cpu_seconds(service: psutil.Process) -> float:
    """Processor time of a service with all its children, running or gone."""
    times = service.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in service.children():
        with contextlib.suppress(psutil.Error):
            own = child.cpu_times()
            total += own.user + own.system
    return float(total)


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Until now."""
        return time.perf_counter() - self._start
