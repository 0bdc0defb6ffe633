"""One background service per project, and the front ends that clients start."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import psutil
import pytest
from processes import (
    ANOTHER_VERSION,
    ANSWER_SECONDS,
    CHANGE_SECONDS,
    COMMAND,
    FAKE_WORKER,
    MODEL_SECONDS,
    NO_FORKS,
    Place,
    Wire,
    command_of,
    foreground,
    is_gone,
    linux_only,
    needs_model,
    place_of,
    reaped,
    started,
    wired,
    with_import_hook,
)
from waiting import eventually
from writing import write

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and modes"),
]

PROJECT = {
    "load.py": "def parse_config(path):\n    return read_settings(path)\n",
    "server/listen.py": "def accept_connections(port):\n    bind(port)\n",
    "README.md": "# Weather\n\nShows whether it rains.\n",
}
CLIENTS = 8
MANY_FILES = 1_500
SHORT_MINUTES = 0.02
# A system on which no service can be started.
NO_HOST = """
import subprocess
start = subprocess.Popen.__init__
def refuse(self, args, *others, **options):
    if "host" in args:
        raise OSError(11, "Resource temporarily unavailable")
    start(self, args, *others, **options)
subprocess.Popen.__init__ = refuse
"""
# A user whom the system does not know, without HOME, as in a container.
NO_HOME = """
import posixpath
posixpath.expanduser = lambda path: path
"""
# What a front end has imported when its client has left it.
TELL_MODULES = """
import sys
from vector_index_mcp.cli import run
status = run(sys.argv[1:])
sys.stderr.write(" ".join(sys.modules))
sys.exit(status)
"""


@pytest.fixture
def embedding() -> Iterator[Place]:
    """The same with vectors, of a worker that is ready at once."""
    with place_of(PROJECT) as place:
        place.variables = with_import_hook(place.folder / "hook", FAKE_WORKER, place.variables)
        yield place


async def indexed(client: Wire, files: int = len(PROJECT)) -> dict:
    """The status once all files are indexed."""

    async def status_if_all_are() -> dict | None:
        status = await client.call("get_status")
        is_all = status["indexed_file_count"] == files and status["status"] == "WATCHING"
        return status if is_all else None

    return await eventually(status_if_all_are)


async def files_found(client: Wire, query: str) -> list[str]:
    found = await client.call("search_index", query=query)
    return [hit["file_path"] for hit in found["results"]]


async def found_by_meaning(client: Wire, query: str) -> dict:
    """The first result that the model has taken part in."""

    async def found_if_hybrid() -> dict | None:
        found = await client.call("search_index", query=query)
        return found if found["mode"] == "hybrid" else None

    return await eventually(found_if_hybrid, MODEL_SECONDS)


async def have_ended(*processes: psutil.Process) -> bool:
    return await eventually(lambda: all(map(is_gone, processes)))


async def worker_of(place: Place) -> psutil.Process:
    """The embedding worker, once it is there."""
    [worker] = await eventually(place.workers)
    return worker


# -- many clients ----------------------------------------------------------------------------


@needs_model
@linux_only
async def test_a_server_has_not_loaded_what_no_session_uses(served):
    def libraries(pid: int) -> str:
        return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")

    loaded = libraries(served.report()["pid"])
    assert "/lancedb/" in loaded
    assert "/torch/" not in loaded
    assert "/tree_sitter/" not in loaded
    arguments = foreground(served.project)
    async with wired(*arguments, cwd=served.folder, variables=served.variables) as client:
        await client.initialize()
        assert "/pydantic_core/" in libraries(client.process.pid)
        assert "/torch/" not in libraries(client.process.pid)


async def test_eight_clients_at_once_share_a_service_a_worker_and_a_writer():
    with place_of(PROJECT, **NO_FORKS) as place:
        answers, writers = [], []
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(place.relayed()) for _ in range(CLIENTS)]

            async def use(client: Wire) -> None:
                await client.initialize()
                assert (await client.call("trigger_index"))["complete"]
                found = await found_by_meaning(client, "which port is listened on")
                answers.append(found["results"][0]["file_path"])
                writers.append((await client.call("get_status"))["is_writer"])

            async with anyio.create_task_group() as tasks:
                for client in clients:
                    tasks.start_soon(use, client)
            assert answers == ["server/listen.py"] * CLIENTS
            assert writers == [True] * CLIENTS
            service = place.service()
            assert place.report()["clients"] == CLIENTS
            [worker] = place.workers()
            front_ends = [psutil.Process(client.process.pid) for client in clients]
            others = {service, worker, worker.parent()}
            await eventually(lambda: set(place.processes()) == {*others, *front_ends})
            for client in clients:
                await client.process.stdin.aclose()
                assert await client.exit_status() == 0
        await eventually(lambda: place.report()["clients"] == 0)


async def test_progress_goes_to_the_client_that_asked(served):
    async with served.relayed() as asking, served.relayed() as other:
        for client in (asking, other):
            await client.initialize()
        await asking.ask(
            "tools/call",
            name="trigger_index",
            arguments={"force_reindex": True},
            _meta={"progressToken": "mine"},
        )
        assert await files_found(other, "parse_config") == ["load.py"]
    assert any(b"notifications/progress" in line for line in asking.received)
    assert not any(b"notifications/progress" in line for line in other.received)


async def test_a_client_that_leaves_does_not_stop_the_first_indexing(place):
    write(place.project, {f"{i}.py": f"value_{i} = {i}\n" for i in range(MANY_FILES)})
    async with place.relayed() as client:
        await client.initialize()

        async def current_run() -> dict | None:
            return (await client.call("get_status"))["current_run"]

        run = await eventually(current_run)
        assert run["files_done"] < MANY_FILES
        service = place.service()
        await client.process.stdin.aclose()
        assert await client.exit_status() == 0
    await eventually(lambda: place.report()["state"] == "WATCHING")
    assert place.report()["clients"] == 0
    async with place.relayed() as client:
        await client.initialize()
        status = await client.call("get_status")
        assert status["indexed_file_count"] == MANY_FILES + len(PROJECT)
        assert status["last_run"]["kind"] == run["kind"]  # the one that the first client has seen
        assert place.service() == service


async def test_a_first_index_has_a_head_start_and_a_second_needs_none(place):
    place.variables |= NO_FORKS  # a fork would have no need of it
    for start in (1, 2):
        async with place.relayed() as client:
            await client.initialize()
            await indexed(client)
        log = place.endpoint.log.read_text("utf-8")
        assert len(re.findall(r"[1-9]\d* files had a head start", log)) == 1
        assert log.count("listens") == start
        await place.run("stop", place.project)


async def test_every_path_to_a_folder_reaches_the_same_service(served):
    link = served.folder / "link"
    link.symlink_to(served.project)
    before = served.report()
    for path in (link, f"{served.project}/", "project", "project/server/.."):
        async with served.relayed(path) as client:
            await client.initialize()
            assert await files_found(client, "parse_config") == ["load.py"]
            assert served.report()["clients"] == before["clients"] + 1
        await eventually(lambda: served.report()["clients"] == before["clients"])
    assert served.report()["pid"] == before["pid"]
    assert len(served.services()) == 1


# -- commands --------------------------------------------------------------------------------


async def test_ps_lists_a_running_service(served):
    ran = await served.run("ps")
    assert (ran.returncode, ran.stderr) == (0, "")
    heading, *lines = ran.stdout.splitlines()
    [line] = (line for line in lines if "embedding-worker" not in line)
    assert heading.split() == ["PID", "STATE", "CLIENTS", "MEMORY", "UPTIME", "PROJECT"]
    pid = served.report()["pid"]
    expected = rf" *{pid} +WATCHING +1 +\d+ MB +\d+ (s|min) +{re.escape(str(served.project))}"
    assert re.fullmatch(expected, line)


async def test_logs_shows_what_the_service_has_logged(served):
    ran = await served.run("logs", served.project)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"the service of {served.project} listens, version {__version__}" in ran.stdout


async def test_logs_with_follow_goes_on_until_it_is_interrupted(place):
    await place.run(place.project)
    async with wired(
        "logs", place.project, "--follow", cwd=place.folder, variables=place.variables
    ) as logs:
        told = b""
        with anyio.fail_after(ANSWER_SECONDS):
            while b"listens" not in told:
                told += await logs.process.stdout.receive()
            await place.run("stop", place.project)
            while b"ends" not in told:
                told += await logs.process.stdout.receive()
        logs.process.send_signal(signal.SIGINT)
        assert await logs.exit_status() == 130


async def test_logs_and_stop_are_about_the_project_that_you_stand_in(place):
    below = place.project / "server"
    (place.project / "pyproject.toml").touch()
    assert (await place.run(place.project)).returncode == 0
    ran = await place.run("logs", cwd=below)
    assert f"the service of {place.project} listens" in ran.stdout
    ran = await place.run("stop", cwd=below)
    assert (ran.returncode, ran.stdout) == (0, f"ended the service of {place.project}\n")


@pytest.mark.parametrize("has_service", [True, False])
async def test_logs_and_stop_of_a_folder_mean_the_project_whose_index_it_uses(place, has_service):
    below = place.project / "server"
    if has_service:
        assert (await place.run("search", place.project, "weather")).returncode == 0
        assert (place.project / ".lancedb").is_dir()
        ran = await place.run("logs", below)
        assert f"the service of {place.project} listens" in ran.stdout
        ran = await place.run("stop", below)
        assert (ran.returncode, ran.stdout) == (0, f"ended the service of {place.project}\n")
    else:
        ran = await place.run("stop", below)
        assert ran.stdout == f"no background service is running for {below}\n"


async def test_logs_of_a_project_that_never_had_a_service_says_so(place):
    ran = await place.run("logs", place.project)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "there is no log yet" in ran.stderr


async def test_stop_ends_a_service_and_says_when_there_is_none(place):
    assert (await place.run(place.project)).returncode == 0
    service = place.service()
    ran = await place.run("stop", place.project)
    assert (ran.returncode, ran.stdout) == (0, f"ended the service of {place.project}\n")
    assert await have_ended(service)
    assert {path.suffix for path in place.runtime.iterdir()} == {".lock", ".log"}
    ran = await place.run("stop", place.project)
    assert ran.returncode == 0
    assert ran.stdout == f"no background service is running for {place.project}\n"
    ran = await place.run("ps")
    assert (ran.returncode, ran.stdout) == (0, "no background service is running\n")


async def test_a_service_that_does_not_answer_is_listed_and_can_be_ended(place):
    assert (await place.run(place.project)).returncode == 0
    service = place.service()
    service.suspend()
    try:
        _, line = (await place.run("ps")).stdout.splitlines()
        expected = rf" *{service.pid} +not answering +- +- +\d+ s +{re.escape(str(place.project))}"
        assert re.fullmatch(expected, line)
        ran = await place.run("stop", place.project)
    finally:
        reaped([service])
    assert (ran.returncode, ran.stdout) == (0, f"ended the service of {place.project}\n")
    assert await have_ended(service)
    assert {path.suffix for path in place.runtime.iterdir()} == {".lock", ".log"}
    assert (await place.run(place.project)).returncode == 0  # another one is started as ever


async def test_who_searches_without_a_service_hears_that_it_does_not_answer(place):
    indexed = await place.run("index", place.project)
    assert indexed.returncode == 0
    assert (await place.run("search", place.project, "weather")).returncode == 0
    service = place.service()
    search = ("search", place.project, "unicorn_rides", "--no-service", "--json")
    said = f"Recent changes may be missing: the background service of {place.project} does not"
    assert said not in json.loads((await place.run(*search)).stdout)["note"]
    service.suspend()
    try:
        write(place.project, {"new.py": "def unicorn_rides(): pass\n"})
        assert said in json.loads((await place.run(*search)).stdout)["note"]
    finally:
        reaped([service])


async def test_a_clock_that_is_set_back_makes_no_uptime_negative(place):
    assert (await place.run(place.project)).returncode == 0
    set_back = "import time\nnow = time.time\ntime.time = lambda: now() - 86_400\n"
    variables = with_import_hook(place.folder / "hook", set_back, place.variables)
    _, line = (await place.run("ps", **variables)).stdout.splitlines()
    assert re.search(rf" 0 s  {re.escape(str(place.project))}$", line), line


async def test_a_search_does_without_a_service_that_does_not_answer(place):
    assert (await place.run(place.project)).returncode == 0
    service = place.service()
    service.suspend()
    try:
        ran = await place.run("search", place.project, "parse_config")
    finally:
        service.resume()
    assert "does not answer within 3 s; searching without one" in ran.stderr
    assert "load.py:1" in ran.stdout


async def test_a_service_whose_socket_is_gone_is_ended_by_a_signal_that_it_heeds(place):
    assert (await place.run(place.project)).returncode == 0
    service = place.service()
    place.endpoint.socket_path.unlink()
    assert "not answering" in (await place.run("ps")).stdout
    assert (await place.run("stop", place.project)).returncode == 0
    assert await have_ended(service)
    assert "ends" in place.endpoint.log.read_text("utf-8")


async def test_a_process_that_has_the_number_of_a_service_that_is_gone_is_left_alone(place):
    assert (await place.run(place.project)).returncode == 0
    service = place.service()
    record = place.endpoint.read_record()
    service.kill()
    assert await have_ended(service)
    place.endpoint.write_record(record | {"pid": os.getpid()})
    assert (await place.run("ps")).stdout == "no background service is running\n"
    ran = await place.run("stop", place.project)
    assert ran.stdout == f"no background service is running for {place.project}\n"


async def test_stop_all_ends_every_service(place):
    other = write(place.folder / "other", PROJECT)
    for project in (place.project, other):
        assert (await place.run(project)).returncode == 0
    services = place.processes()
    assert len(place.services()) == 2
    ran = await place.run("stop", "--all")
    assert ran.returncode == 0
    assert all(f"ended the service of {p}\n" in ran.stdout for p in (place.project, other))
    assert await have_ended(*services)
    ran = await place.run("stop", "--all")
    said = "no background service is running\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, said, "")


@pytest.mark.parametrize("command", ["stop", "logs"])
async def test_a_name_that_ps_does_not_list_is_refused(place, command):
    ran = await place.run(command, "embedding-worker-0")
    said = "embedding-worker-0 is neither a folder here nor a service that `ps` lists"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"vector-index-mcp: {said}\n")


async def test_services_share_a_worker_that_is_listed_and_ended_with_them(embedding):
    other = write(embedding.folder / "other", PROJECT)
    async with embedding.relayed() as one, embedding.relayed(other) as two:
        for client in (one, two):
            await client.initialize()
            await found_by_meaning(client, "parse_config")
        [worker] = embedding.workers()
        for client in (one, two):
            status = await client.call("get_status")
            assert status["worker_shared_by"] == 2
            assert status["worker_memory_bytes"] > 0
        ran = await embedding.run("ps")
        [line] = (line for line in ran.stdout.splitlines() if "embedding-worker-" in line)
        assert re.fullmatch(rf" *{worker.ppid()} +RESTING +2 +\d+ MB +.*", line)
        name = line.split()[-1]
        ran = await embedding.run("logs", name)
        assert f"the worker {worker.pid} of " in ran.stdout
        processes = embedding.services()
        ran = await embedding.run("stop", "--all")
        assert ran.stdout.splitlines()[-1] == f"ended the service of {name}"
        assert len(processes) == 2
        await eventually(lambda: not [each for each in embedding.processes() if is_host(each)])
        assert not embedding.workers()


def is_host(process: psutil.Process) -> bool:
    return "host" in command_of(process)


async def test_stop_wants_either_a_path_or_all(place):
    ran = await place.run("stop", "project", "--all")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "give either a PATH or --all" in ran.stderr


async def test_commands_ask_the_running_service(served):
    limits = {"path": "*.{md,py}", "language": "python", "max_tokens": 900}
    options = ["--glob", limits["path"], "--language", "python", "--max-tokens", "900"]
    commands = {
        "search": ["bind port", "--top-k", "2", "--json", *options],
        "status": ["--json"],
        "index": [],
    }
    ran = {}

    async def run(command: str) -> None:
        ran[command] = await served.run(command, served.project, *commands[command])

    async with served.relayed() as client:
        await client.initialize()
        async with anyio.create_task_group() as tasks:
            for command in commands:
                tasks.start_soon(run, command)
        assert {c: r.returncode for c, r in ran.items()} == dict.fromkeys(commands, 0), ran
        tool = await client.call("search_index", query="bind port", top_k=2, verbose=True, **limits)
        # Notes may differ: `index`, which runs beside, has the service look for a model again.
        assert json.loads(ran["search"].stdout) | {"note": ""} == tool | {"note": ""}
        status, printed = await client.call("get_status"), json.loads(ran["status"].stdout)
        assert printed["is_writer"]  # so it is the service's own word
        assert list(printed) == list(status)
        assert printed["indexed_chunk_count"] == status["indexed_chunk_count"] == 3
        assert ran["index"].stdout.startswith("3 files seen; nothing had changed\n")
        assert ran["index"].stdout.endswith("the background service keeps it up to date\n")
        assert ran["index"].stdout.endswith("the background service keeps it up to date\n")
        assert status["last_run"]["kind"] == "request"


async def test_all_pages_of_what_an_expression_matches_are_asked_for(place):
    comment = "    # a long comment, a long comment, a long comment\n" * 30
    parts = [f"def test_{n}():\n{comment}    pass\n\n\n" for n in range(150)]
    write(place.project, {"many.py": "".join(parts)})
    async with place.relayed() as client:
        await client.initialize()
        await client.call("trigger_index")
        asked = ("search", r"def test_\d+\(", "--format", "grep", "-C", str(place.project))
        ran = await place.run(*asked)
        assert len(ran.stdout.splitlines()) == len(parts)
        few = await place.run(*asked, "--top-k", "3")
        assert 3 <= len(few.stdout.splitlines()) < len(parts)


async def test_the_doctor_names_settings_that_the_running_service_does_not_have(served):
    async def told(**settings: str) -> dict:
        ran = await served.run("doctor", served.project, "--json", **settings)
        return next(c for c in json.loads(ran.stdout)["checks"] if c["name"] == "service")

    assert (await told())["verdict"] == "ok"
    harmless = {"VECTOR_INDEX_LOG_LEVEL": "DEBUG", "VECTOR_INDEX_HTTP_TOKEN": "a-secret-token"}
    assert (await told(**harmless))["verdict"] == "ok"
    found = await told(**harmless, VECTOR_INDEX_RESCAN_SECONDS="77", VECTOR_INDEX_LLM_KEY="secret")
    assert found["verdict"] == "warning"
    assert found["words"].endswith(
        "started with another value of VECTOR_INDEX_LLM_KEY, VECTOR_INDEX_RESCAN_SECONDS"
    )
    assert "vector-index-mcp stop" in found["remedy"]


async def test_what_the_service_refuses_is_told_by_the_command(served):
    ran = await served.run("search", served.project, "!?")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("vector-index-mcp: the query has no word")


@pytest.mark.parametrize(
    "command", [["search", "--no-service", "parse_config"], ["status"], ["index"], ["verify"]]
)
async def test_other_commands_start_no_service(place, command):
    ran = await place.run(
        *command,
        "-C" if "search" in command else place.project,
        *([place.project] if "search" in command else []),
    )
    assert ran.returncode in {0, 1}, ran.stderr
    assert not list(place.runtime.glob("*.lock"))
    assert place.processes() == []


async def test_without_a_home_folder_the_start_of_a_service_says_what_to_do(place):
    variables = with_import_hook(place.folder / "hook", NO_HOME, place.variables)
    for name in ("HOME", "VECTOR_INDEX_EMBEDDING_CACHE_DIR"):
        variables.pop(name)
    done = started("search", "parse_config", cwd=place.project, variables=variables)
    assert done.returncode == 2
    assert "your home folder is not known; set HOME to it" in done.stderr


async def test_a_search_starts_a_service_that_answers_the_next(place):
    first = await place.run("search", place.project, "parse_config")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"1. {place.project}/load.py:1-2 ")
    assert "started a background service, which keeps the index up to date" in first.stderr
    [record] = place.services()
    before = record["pid"]
    (place.project / "new.py").write_text("zebra_crossing = 1\n")

    async def is_found():
        again = await place.run("search", place.project, "zebra_crossing")
        assert "started" not in again.stderr
        return again.stdout.startswith(f"1. {place.project}/new.py:1-1 ")

    await eventually(is_found, CHANGE_SECONDS)
    assert place.service().pid == before


async def test_where_no_service_can_be_started_a_search_answers_by_itself(place):
    variables = with_import_hook(place.folder / "hook", NO_HOST, place.variables)
    ran = await place.run("search", place.project, "parse_config", **variables)
    assert (ran.returncode, ran.stdout[:2]) == (0, "1."), ran.stderr
    assert "no background service can be started" in ran.stderr
    assert "; searching without one" in ran.stderr


async def test_a_server_in_the_foreground_starts_no_service(place):
    arguments = foreground(place.project)
    async with wired(*arguments, cwd=place.folder, variables=place.variables) as server:
        await server.initialize()
        assert await files_found(server, "parse_config") == ["load.py"]
        assert not any(place.runtime.glob("*"))
        assert not any("host" in command_of(process) for process in place.processes())


# -- ends ------------------------------------------------------------------------------------


async def test_an_idle_service_ends_but_not_while_a_client_is_connected(place):
    place.variables["VECTOR_INDEX_SERVICE_IDLE_MINUTES"] = str(SHORT_MINUTES)
    async with place.relayed() as client:
        await client.initialize()
        await indexed(client)
        service = place.service()
        started = place.report()["started"]
        await eventually(lambda: time.time() - started > 2 * 60 * SHORT_MINUTES)
        assert place.service() == service
        assert await files_found(client, "parse_config") == ["load.py"]
        await client.process.stdin.aclose()
        assert await client.exit_status() == 0
    await eventually(lambda: not place.processes())
    assert {path.suffix for path in place.runtime.iterdir()} == {".lock", ".log"}


async def test_an_idle_worker_ends_and_comes_back_on_demand(embedding):
    embedding.variables["VECTOR_INDEX_WORKER_IDLE_MINUTES"] = str(SHORT_MINUTES)
    async with embedding.relayed() as client:
        await client.initialize()
        await found_by_meaning(client, "parse_config")
        await eventually(lambda: not embedding.workers())
        assert (await client.call("get_status"))["model"]["state"] == "off"
        found = await client.call("search_index", query="parse_config")
        assert found["mode"] == "lexical"
        assert "the embedding model is still loading" in found["note"]
        assert found["results"][0]["file_path"] == "load.py"
        found = await found_by_meaning(client, "parse_config")
        assert found["note"] is None
        assert len(embedding.workers()) == 1


async def test_a_service_that_nobody_finds_any_more_serves_its_clients_and_ends(place):
    async with place.relayed() as client:
        await client.initialize()
        await indexed(client)
        old = place.service()
        shutil.rmtree(place.runtime)
        assert (await place.run(place.project)).returncode == 0
        new = place.service()
        assert new != old
        assert await files_found(client, "parse_config") == ["load.py"]
        assert not is_gone(old)
        assert await client.leave() == 0
        assert await have_ended(old)
    assert place.service() == new


async def test_a_service_that_ends_leaves_the_files_of_another_one_in_a_new_runtime_folder(place):
    assert (await place.run(place.project)).returncode == 0
    old = place.service()
    old.suspend()  # or it could end before
    place.runtime.rename(place.folder / "before")
    assert (await place.run(place.project)).returncode == 0
    new = place.service()
    assert new != old
    old.terminate()
    old.resume()
    assert await have_ended(old)
    assert place.service() == new


@pytest.mark.parametrize("is_connected", [True, False], ids=["with a client", "without"])
async def test_sigterm_ends_the_service_and_its_worker(embedding, is_connected):
    async with embedding.relayed() as client:
        await client.initialize()
        await found_by_meaning(client, "parse_config")
        service, worker = embedding.service(), await worker_of(embedding)
        if not is_connected:
            assert await client.leave() == 0
        service.terminate()
        assert await have_ended(service, worker)
        if is_connected:
            assert await client.leave() == 0
    await eventually(lambda: not embedding.processes())
    assert {path.suffix for path in embedding.runtime.iterdir()} == {".lock", ".log"}


# -- kills -----------------------------------------------------------------------------------


async def test_a_killed_service_leaves_nobody_and_is_replaced_for_the_next_client(embedding):
    async with embedding.relayed() as client:
        await client.initialize()
        await found_by_meaning(client, "parse_config")
        service, worker = embedding.service(), await worker_of(embedding)
        service.kill()
        assert await have_ended(service, worker)
        assert await client.leave() == 0
    await eventually(lambda: not embedding.processes())
    assert embedding.endpoint.socket_path.exists()
    assert embedding.endpoint.read_record()["pid"] == service.pid
    async with embedding.relayed() as client:
        await client.initialize()
        found = await found_by_meaning(client, "accept_connections")
        assert found["results"][0]["file_path"] == "server/listen.py"
        assert embedding.service() != service
        assert (await client.call("get_status"))["model"]["chunks_embedded"] == 0


async def test_files_that_a_service_never_wrote_do_not_mislead(place):
    assert (await place.run(place.project)).returncode == 0
    assert (await place.run("stop", place.project)).returncode == 0
    endpoint = place.endpoint
    endpoint.socket_path.write_text("no socket", "utf-8")
    endpoint.record.write_text('{"project": ', "utf-8")
    for command in (["ps"], ["stop", "--all"], ["stop", place.project]):
        ran = await place.run(*command)
        assert (ran.returncode, ran.stderr) == (0, "")
    async with place.relayed() as client:
        await client.initialize()
        assert await files_found(client, "parse_config") == ["load.py"]
    assert endpoint.read_record()["pid"] == place.service().pid


async def test_a_killed_front_end_is_counted_out_and_the_service_lives(served):
    before = served.report()
    async with served.relayed() as client:
        await client.initialize()
        await client.send({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})
        assert served.report()["clients"] == before["clients"] + 1
        client.process.kill()
        await eventually(lambda: served.report()["clients"] == before["clients"])
    assert served.report()["pid"] == before["pid"]
    async with served.relayed() as client:
        await client.initialize()
        assert await files_found(client, "parse_config") == ["load.py"]


# -- replacement -----------------------------------------------------------------------------


async def test_a_service_of_another_version_is_replaced(place):
    old = with_import_hook(place.folder / "hook", ANOTHER_VERSION, place.variables)
    async with wired(place.project, cwd=place.folder, variables=old) as client:
        await client.initialize()
        await indexed(client)
        service = place.service()
        assert place.endpoint.read_record()["version"] == "0.0.1"
        async with place.relayed() as newer:
            assert (await newer.initialize())["serverInfo"]["version"] == __version__
            assert await files_found(newer, "parse_config") == ["load.py"]
            assert (await indexed(newer))["last_run"]["files_read"] == 0
            assert await have_ended(service)
            assert place.service() != service


async def test_a_service_lives_though_nobody_is_left_to_hear_that_it_does(place):
    command = [*COMMAND, "host", str(place.project)]
    reading, writing = os.pipe()
    os.close(reading)
    host = await anyio.open_process(command, env=place.variables, stdout=writing, stderr=None)
    os.close(writing)
    await eventually(lambda: list(place.runtime.glob("*.json")))  # the record of one that listens
    async with place.relayed() as client:
        await client.initialize()
        assert (await indexed(client))["indexed_file_count"] == len(PROJECT)
        assert place.report()["pid"] == host.pid
        host.terminate()
        assert await host.wait() == 0
        await host.aclose()


async def test_a_second_service_of_a_project_ends_at_once(served):
    before = served.report()
    ran = await served.run("host", served.project)
    assert (ran.returncode, ran.stdout) == (0, "busy\n")
    assert served.report()["pid"] == before["pid"]


# -- refusals --------------------------------------------------------------------------------


async def test_a_wrong_setting_is_told_by_the_front_end(place):
    ran = await place.run(place.project, VECTOR_INDEX_CHUNK_MAX_CHARS="many")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("vector-index-mcp: VECTOR_INDEX_CHUNK_MAX_CHARS='many': ")
    await eventually(lambda: not place.processes())


async def test_a_path_that_nobody_wants_indexed_is_refused_by_the_front_end(place):
    ran = await place.run("/")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "/ is a whole drive; " in ran.stderr
    await eventually(lambda: not place.processes())


async def test_only_the_user_can_reach_a_service(served):
    endpoint = served.endpoint
    assert served.runtime.stat().st_mode & 0o777 == 0o700
    for path in (endpoint.socket_path, endpoint.record, endpoint.lock):
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_runtime_folder_that_is_open_to_others_is_refused(place):
    place.runtime.mkdir(mode=0o700)
    place.runtime.chmod(0o770)
    await is_refused(place, f"; run `chmod 700 {place.runtime}`, or set VECTOR_INDEX_RUNTIME_DIR")


async def test_a_runtime_folder_that_is_a_link_is_refused(place):
    (place.folder / "elsewhere").mkdir(mode=0o700)
    place.runtime.symlink_to(place.folder / "elsewhere")
    await is_refused(place)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
async def test_a_runtime_folder_of_somebody_else_is_refused(place):
    place.runtime.mkdir(mode=0o700)
    os.chown(place.runtime, 12_345, -1)
    await is_refused(place)


async def is_refused(place: Place, advice: str = "; remove it, or set ") -> None:
    for arguments in ([place.project], ["ps"], ["stop", "--all"]):
        ran = await place.run(*arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert f"is not a private folder of yours{advice}" in ran.stderr
        assert "Traceback" not in ran.stderr
    assert list(place.runtime.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xfe\x00\n",
        b"[]\n",
        b"\n",
        b"x" * (greeting.LONGEST_LINE_BYTES + 10),
        b"[" * 60_000 + b"\n",
        greeting.hello(greeting.MCP, "wrong"),
        greeting.hello(greeting.STOP, ""),
        greeting.hello(greeting.REPORT, "wrong"),
        greeting.line({"nonce": 7, "proof": 7, "wants": None}),
    ],
    ids=range(10),
)
async def test_a_connection_that_does_not_know_the_secret_gets_nothing(served, words):
    before = served.report()
    answer = await answer_to(served, words)
    assert answer in {b"", greeting.line({"refused": "the secret is wrong"})}
    assert served.report() | {"memory_bytes": 0} == before | {"memory_bytes": 0}


async def test_a_wish_that_nobody_knows_is_refused(served):
    secret = served.endpoint.read_record()["secret"]
    assert b"refused" in await answer_to(served, greeting.hello("moon", secret))
    assert b"refused" in await answer_to(served, greeting.hello("", secret))


async def test_bytes_that_are_no_messages_do_no_harm(served):
    before = served.report()
    secret = served.endpoint.read_record()["secret"]
    noise = b"\xff\x00{not json\n[]\n\n" + b"y" * 100_000
    await answer_to(served, greeting.hello(greeting.MCP, secret) + noise)
    await eventually(lambda: served.report()["clients"] == before["clients"])
    assert served.report()["pid"] == before["pid"]


async def answer_to(place: Place, words: bytes) -> bytes:
    """Everything the service sends to a connection that says these words and no more."""
    answer = b""
    async with await anyio.connect_unix(place.endpoint.socket_path) as stream:
        with anyio.fail_after(ANSWER_SECONDS):
            try:
                await stream.send(words)
                await stream.send_eof()
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return answer


# -- costs -----------------------------------------------------------------------------------


async def test_a_front_end_imports_the_standard_library_alone(served):
    command = [sys.executable, "-c", TELL_MODULES, str(served.project)]
    ran = await anyio.run_process(
        command, env=served.variables, cwd=served.folder, stdin=subprocess.DEVNULL
    )
    loaded = {name.partition(".")[0] for name in ran.stderr.decode().split()}
    assert "vector_index_mcp" in loaded
    unwanted = {"mcp", "anyio", "pydantic", "psutil", "filelock", "numpy", "lancedb", "torch"}
    assert loaded & unwanted == set()
