"""What one background service per project costs: time to answer, memory, queries under load.

On a copy of the installed sources of six packages (see questions.py), with the real model:

- `initialize` through a front end, when the service runs and when it has to be started;
- eight front ends at once: their memory together, and how many services, workers and writers run;
- queries while everything is being embedded;
- memory of the service with its worker, and after the worker has ended for lack of use.

Run it with `make background`; the results are kept in `results/`.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import psutil
from kept import keep
from mcp import Client
from questions import QUESTIONS, copy_sources
from served import environment, front_end, is_complete, status, status_when, stop

STARTS_WARM, STARTS_COLD, CLIENTS, WORKER_IDLE_SECONDS = 20, 5, 8, 6
QUIET_SECONDS = 190  # after a minute without a change the service tidies up; twice, then it rests


async def seconds_to_initialize(project: Path, variables: dict[str, str]) -> float:
    start = time.perf_counter()
    async with front_end(project, variables):
        return time.perf_counter() - start


async def milliseconds_of_queries_while_embedding(client: Client) -> list[float]:
    """Ask until half of the chunks have vectors, a question every fifth of a second."""
    taken = []
    questions = list(QUESTIONS)
    while True:
        now = await status(client)
        done, total = now["embedded_chunk_count"], now["indexed_chunk_count"]
        if done > total / 2:
            return taken
        if done and now["model"]["state"] == "ready":
            start = time.perf_counter()
            await client.call_tool("search_index", {"query": questions[len(taken) % 10]})
            taken.append(1000 * (time.perf_counter() - start))
        await anyio.sleep(0.2)


def processes(project: Path) -> dict[str, list[psutil.Process]]:
    """The program's processes for `project`, by what they are."""
    kinds: dict[str, list[psutil.Process]] = {"front ends": [], "services": [], "workers": []}
    workers = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "vector_index_mcp.engine.models.worker" in line:
            workers.append(process)
        if str(project) not in line or "vector_index_mcp" not in line:
            continue
        kind = "services" if "host" in line else "front ends"
        kinds[kind].append(process)
    # All services of a runtime folder share them.
    runtimes = {runtime_of(service) for service in kinds["services"]}
    kinds["workers"] = [worker for worker in workers if runtime_of(worker) in runtimes]
    return kinds


def runtime_of(process: psutil.Process) -> str:
    """Where a process meets others; empty if it has just ended."""
    try:
        return process.environ().get("VECTOR_INDEX_RUNTIME_DIR", "")
    except psutil.Error:
        return ""


def megabytes(found: list[psutil.Process]) -> float:
    return round(sum(process.memory_info().rss for process in found) / 1e6, 1)


async def measure(project: Path, variables: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with front_end(project, variables) as client:
        found["query_ms_while_embedding"] = await milliseconds_of_queries_while_embedding(client)
        found["chunks"] = (await status_when(client, is_complete))["indexed_chunk_count"]
    found["initialize_warm"] = [
        await seconds_to_initialize(project, variables) for _ in range(STARTS_WARM)
    ]
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(front_end(project, variables)) for _ in range(CLIENTS)
        ]
        for client in clients:
            await client.call_tool("search_index", {"query": "gzip middleware"})
        running = processes(project)
        found["processes"] = {kind: len(some) for kind, some in running.items()}
        found["front_ends_mb"] = megabytes(running["front ends"])
        while (await status(clients[0]))["model"]["state"] != "ready":
            await anyio.sleep(0.5)
        for client in clients:
            await client.call_tool("search_index", {"query": "gzip middleware"})
        running = processes(project)
        found["processes"] = {kind: len(some) for kind, some in running.items()}
        found["service_mb"] = megabytes(running["services"])
        found["worker_mb"] = megabytes(running["workers"])
    while processes(project)["workers"]:
        await anyio.sleep(0.5)
    await anyio.sleep(QUIET_SECONDS)
    found["idle_service_mb"] = megabytes(processes(project)["services"])
    found["initialize_cold"] = []
    for _ in range(STARTS_COLD):
        await stop(project, variables)
        found["initialize_cold"].append(await seconds_to_initialize(project, variables))
    await stop(project, variables)
    return found


def show(found: dict[str, Any]) -> list[tuple[str, str]]:
    queries = sorted(found["query_ms_while_embedding"])
    return [
        (
            "`initialize` when the service runs, median",
            f"{1000 * statistics.median(found['initialize_warm']):.0f} ms",
        ),
        (
            "`initialize` when it has to be started, median",
            f"{1000 * statistics.median(found['initialize_cold']):.0f} ms",
        ),
        (
            f"{found['processes']['front ends']} front ends together",
            f"{found['front_ends_mb']:.0f} MB",
        ),
        (f"service, {found['chunks']} chunks", f"{found['service_mb']:.0f} MB"),
        ("embedding worker", f"{found['worker_mb']:.0f} MB"),
        ("idle service, its worker ended", f"{found['idle_service_mb']:.0f} MB"),
        (
            "a query while everything is being embedded, median",
            f"{statistics.median(queries):.0f} ms",
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        project = folder / "project"
        copy_sources(project)
        variables = environment(folder, worker_idle_minutes=str(WORKER_IDLE_SECONDS / 60))
        found = anyio.run(measure, project, variables)
    print(f"processes with {CLIENTS} clients: {found['processes']}")
    for what, figure in show(found):
        print(f"| {what} | {figure} |")
    if arguments.keep:
        found["table"] = show(found)
        print(f"kept in {keep('background', found).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
