"""The server as an MCP client runs it: a process on standard input and output."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest
from processes import (
    CHANGE_SECONDS,
    MODEL_SECONDS,
    NO_MODEL,
    SEARCH,
    Session,
    environment,
    foreground,
    linux_only,
    needs_model,
    posix_only,
    run,
    session,
    those_left,
    wired,
    with_import_hook,
    workers_below,
)
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.hits import SearchResult

pytestmark = pytest.mark.anyio

TOOLS = {"trigger_index", "get_status", "search_index"}
PROJECT = {
    "net/backoff.py": (
        "def attempt_again(call, tries):\n"
        '    """Wait twice as long after every failed request before the next one."""\n'
        "    for number in range(tries):\n        pause(2**number)\n        call()\n"
    ),
    "shop/cart.py": "class Cart:\n    def total_price(self):\n        return sum(self.prices)\n",
    "ui/theme.css": ".dark { background: black; color: white; }\n",
    "docs/install.md": "# Installation\n\nDownload the archive and unpack it.\n",
}
# Holds every import of a heavy library until somebody writes to the gate, a FIFO.
# Waits where a module is executed: while one is looked for, Python lets nobody import anything.
GATE = """
import os, sys
from importlib.machinery import PathFinder
class Gate:
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name in {heavy!r} else None
        if spec is None or not os.path.exists({gate!r}):
            return None
        execute = spec.loader.exec_module
        def execute_behind_the_gate(module):
            with open({gate!r}) as gate:
                gate.read()
            os.unlink({gate!r})
            execute(module)
        spec.loader.exec_module = execute_behind_the_gate
        return spec
sys.meta_path.insert(0, Gate)
"""
HEAVY = ["lancedb", "lance", "pyarrow", "torch", "sentence_transformers", "transformers"]
# What some libraries do when they are imported.
CHATTER = """
import os, sys
class Chatty:
    def find_spec(name, path=None, target=None):
        if name == "lancedb":
            print("printed by a library", flush=True)
            sys.__stdout__.write("written by a library\\n")
            sys.__stdout__.flush()
            os.write(1, b"written to descriptor 1\\n")
            os.system("echo echoed by a child")
sys.meta_path.insert(0, Chatty)
"""


@dataclass
class Indexed:
    """A project, the command that has indexed it, and a server that was started on it then."""

    command: subprocess.CompletedProcess[str]
    session: Session
    variables: dict[str, str]


@pytest.fixture(scope="module")
async def indexed(tmp_path_factory) -> AsyncIterator[Indexed]:
    """With the real model, for all tests here: each has files of its own."""
    folder = tmp_path_factory.mktemp("stdio")
    project = write(folder / "project", PROJECT)
    variables = environment(folder)
    command = await anyio.to_thread.run_sync(
        partial(run, "index", project, cwd=folder, variables=variables)
    )
    async with session(project, variables) as server:
        yield Indexed(command, server, variables)


@pytest.fixture
def shared(indexed) -> Session:
    return indexed.session


def libraries_of(process: psutil.Process) -> set[str]:
    """Which of the heavy libraries a process has loaded: parts of the paths it has mapped."""
    mapped = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
    return {name for name in HEAVY if f"/{name}/" in mapped}


# -- start -----------------------------------------------------------------------------------


@linux_only
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_tools_are_listed_before_anything_heavy_is_imported(tmp_path, mode):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    hook = GATE.format(heavy=HEAVY, gate=str(gate))
    variables = with_import_hook(tmp_path / "hook", hook, environment(tmp_path, **NO_MODEL))
    project = write(tmp_path / "project", {"a.py": "gated_word = 1\n"})
    async with session(project, variables, mode) as server:
        assert server.client.server_info.name == "vector-index-mcp"
        assert "search_index" in (server.client.instructions or "")
        listed = (await server.client.list_tools()).tools
        assert {tool.name for tool in listed} == TOOLS
        assert libraries_of(server.server) == set()
        await anyio.Path(gate).write_text("open")
        assert [hit.file_path for hit in (await server.search("gated_word")).results] == ["a.py"]
        assert "lancedb" in libraries_of(server.server)


@pytest.mark.long
@needs_model
async def test_a_start_on_an_unchanged_project_reads_and_embeds_nothing(indexed):
    command = indexed.command
    assert command.returncode == 0, command.stderr
    assert command.stdout.startswith("4 files seen; 4 indexed\n")
    assert command.stderr.splitlines()[-1] == "embedding chunks: 4 of 4"
    status = await indexed.session.status_when(lambda status: status.last_run is not None)
    assert (status.last_run.kind, status.last_run.error) == ("start", None)
    assert (status.last_run.files_seen, status.last_run.files_read) == (4, 0)
    assert status.model.chunks_embedded == 0
    assert status.indexed_chunk_count == status.embedded_chunk_count == 4


# -- change ----------------------------------------------------------------------------------


async def test_a_saved_file_is_found_by_its_new_text_and_not_by_its_old(shared):
    write(shared.project, {"saved.py": "def oldsavedword(): pass\n"})
    await shared.converges("oldsavedword", "saved.py")
    write(shared.project, {"saved.py": "def newsavedword(): pass\n"})
    await shared.converges("newsavedword", "saved.py")
    await shared.converges("oldsavedword")


async def test_a_created_file_is_found_until_it_is_deleted(shared):
    write(shared.project, {"new/deep/created.py": "createdword = 1\n"})
    await shared.converges("createdword", "new/deep/created.py")
    count = (await shared.status()).indexed_file_count
    (shared.project / "new/deep/created.py").unlink()
    await shared.converges("createdword")
    # A search leaves out what is gone by itself; the index must have forgotten it as well.
    await shared.status_when(lambda status: status.indexed_file_count < count, CHANGE_SECONDS)


async def test_a_renamed_file_is_found_by_its_new_name_only(shared):
    write(shared.project, {"first_name.py": "renamedword = 1\n"})
    await shared.converges("renamedword", "first_name.py")
    (shared.project / "first_name.py").rename(shared.project / "second_name.py")
    await shared.converges("renamedword", "second_name.py")


async def test_the_files_of_a_renamed_folder_are_found_in_it_only(shared):
    write(shared.project, {"here/a.py": "movedword = 1\n", "here/in/b.py": "movedword = 2\n"})
    await shared.converges("movedword", "here/a.py", "here/in/b.py")
    (shared.project / "here").rename(shared.project / "there")
    await shared.converges("movedword", "there/a.py", "there/in/b.py")
    write(shared.project, {"there/in/b.py": "nothing = 3\n"})
    await shared.converges("movedword", "there/a.py")
    shutil.rmtree(shared.project / "there")
    await shared.converges("movedword")


async def test_an_edit_of_gitignore_takes_effect_at_once(shared):
    write(shared.project, {"draft/one.py": "draftword = 1\n", "kept.py": "draftword = 2\n"})
    await shared.converges("draftword", "draft/one.py", "kept.py")
    write(shared.project, {".gitignore": "draft/\n"})
    await shared.converges("draftword", "kept.py")
    write(shared.project, {"draft/two.py": "draftword = 3\n", ".gitignore": "# nothing\n"})
    await shared.converges("draftword", "draft/one.py", "draft/two.py", "kept.py")


# -- the tools -------------------------------------------------------------------------------


@needs_model
async def test_a_question_in_plain_words_finds_the_file_that_answers_it(shared):
    write(shared.project, {"asked.py": "answer = 42\n"})
    await shared.complete()  # so the model is loaded
    found = await shared.search("how are network retries with exponential delay done", 3)
    assert found.mode == "hybrid"
    assert "exponential" in found.missing
    assert found.results[0].file_path == "net/backoff.py"
    assert (await shared.search("calculate what the customer has to pay")).results[
        0
    ].file_path == "shop/cart.py"


@pytest.mark.long
@needs_model
async def test_the_commands_print_the_structured_results_of_the_tools(indexed):
    shared = indexed.session
    # A file that has no vector yet, so that this waits for the model.
    write(shared.project, {"printed.py": "printed = True\n"})
    await shared.complete()
    await eventually(partial(has_nothing_pending, shared))
    query = "guide to set up the program"
    tool = await shared.call("search_index", query=query, top_k=2, verbose=True)
    printed = await printed_by(indexed, *SEARCH, shared.project, query, "--top-k", "2", "--json")
    answers = json.loads(printed), tool.structured_content
    # Each model is loaded in the precision that was the faster at that moment: bfloat16 or not.
    scores = [[hit.pop("score") for hit in answer["results"]] for answer in answers]
    assert scores[0] == pytest.approx(scores[1], abs=0.02)
    assert answers[0] == answers[1]
    result = SearchResult.model_validate_json(printed)
    assert (result.mode, result.results[0].file_path) == ("hybrid", "docs/install.md")
    tool = await shared.call("get_status")
    printed = await printed_by(indexed, "status", shared.project, "--json")
    wire.IndexStatus.model_validate_json(printed)
    assert list(json.loads(printed)) == list(tool.structured_content)
    same = ("status", "indexed_chunk_count", "embedded_chunk_count", "project_path", "skipped")
    assert [json.loads(printed)[n] for n in same] == [tool.structured_content[n] for n in same]


async def test_the_command_index_leaves_the_index_to_the_server_that_keeps_it(indexed):
    project = indexed.session.project
    ran = await anyio.to_thread.run_sync(
        partial(run, "index", project, cwd=project.parent, variables=indexed.variables)
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("vector-index-mcp: another process keeps this index")
    assert "Traceback" not in ran.stderr


async def has_nothing_pending(session) -> bool:
    return not (await session.call("get_status")).structured_content["pending_path_count"]


async def printed_by(indexed, *command: str | Path) -> str:
    folder = indexed.session.project.parent
    ran = await anyio.to_thread.run_sync(
        partial(run, *command, cwd=folder, variables=indexed.variables)
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@linux_only
@needs_model
async def test_the_model_library_is_loaded_in_another_process(shared):
    await shared.search("anything")
    status = await shared.status_when(lambda status: status.model.state == "ready", MODEL_SECONDS)
    assert status.worker_memory_bytes
    [worker] = workers_below(shared.server)
    assert "torch" in libraries_of(worker)
    assert "torch" not in libraries_of(shared.server)


async def test_force_reindex_reads_every_file_and_reports_progress(shared):
    write(shared.project, {"forced.py": "forcedword = 1\n"})
    await shared.converges("forcedword", "forced.py")
    told = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    answer = await shared.client.call_tool(
        "trigger_index", {"force_reindex": True}, progress_callback=on_progress
    )
    result = wire.TriggerResult.model_validate(answer.structured_content)
    assert (result.complete, result.run.kind, result.run.error) == (True, "rebuild", None)
    assert result.run.files_read == result.run.files_seen >= len(PROJECT) + 1
    assert result.indexed_file_count == result.run.files_indexed
    assert any("files indexed" in message for *_, message in told)
    assert all(total is not None and 0 <= done <= total for done, total, _ in told)
    await shared.converges("forcedword", "forced.py")


async def test_a_cancelled_trigger_leaves_the_run_and_the_server_alone(shared):
    with anyio.CancelScope() as scope:

        async def on_progress(*_: object) -> None:
            scope.cancel()

        await shared.client.call_tool(
            "trigger_index", {"force_reindex": True}, progress_callback=on_progress
        )
    assert scope.cancelled_caught
    status = await shared.status_when(lambda status: status.current_run is None)
    assert (status.status, status.error_message) == ("WATCHING", None)
    assert (status.last_run.kind, status.last_run.error) == ("rebuild", None)
    write(shared.project, {"after.py": "aftercancelword = 1\n"})
    await shared.converges("aftercancelword", "after.py")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"query": " \n"}, "the query is empty"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": 101}, "top_k"),
        ({"query": "x", "top_k": "x"}, "top_k"),
        ({}, "query"),
    ],
)
async def test_a_bad_argument_is_an_error_of_the_tool_that_names_it(shared, arguments, named):
    answer = await shared.call("search_index", **arguments)
    assert answer.is_error
    assert named in answer.content[0].text


# -- the protocol and nothing else -----------------------------------------------------------


@pytest.mark.long
async def test_stdout_carries_messages_only_even_if_a_library_prints(tmp_path):
    variables = environment(tmp_path, **NO_MODEL)
    variables = with_import_hook(tmp_path / "hook", CHATTER, variables)
    project = write(tmp_path / "project", {"a.py": "chattyword = 1\n"})
    async with wired(*foreground(project), cwd=tmp_path, variables=variables) as server:
        await server.initialize()
        found = await server.call("search_index", query="chattyword")
        assert [hit["file_path"] for hit in found["results"]] == ["a.py"]
        await server.process.stdin.aclose()
        lines = await server.rest()
    assert len(lines) == 2
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    chatter = (tmp_path / "stderr.txt").read_text(encoding="utf-8")
    for line in ("printed by", "written by a library", "descriptor 1", "echoed by a child"):
        assert line in chatter


@pytest.mark.long
async def test_what_is_no_request_does_not_end_the_server(tmp_path):
    project = write(tmp_path / "project", {"a.py": "robustword = 1\n"})
    async with wired(
        *foreground(project), cwd=tmp_path, variables=environment(tmp_path, **NO_MODEL)
    ) as server:
        await server.initialize()
        for line in (b"{not json", b"", b"\xff\xfe\x00", b"[]", b'"text"', b'{"jsonrpc": "1.0"}'):
            await server.send(line)
        assert (await server.ask("no/such/method"))["error"]["code"] == -32601
        assert "error" in await server.ask("tools/call", name=7)
        unknown = await server.ask("tools/call", name="no_such_tool", arguments={})
        assert "error" in unknown or unknown["result"]["isError"]
        found = await server.call("search_index", query="robustword")
        assert [hit["file_path"] for hit in found["results"]] == ["a.py"]


# -- end -------------------------------------------------------------------------------------


async def worker_of(server) -> psutil.Process:
    """The embedding worker, once it is there."""
    process = psutil.Process(server.process.pid)
    [worker] = await eventually(lambda: workers_below(process))
    return worker


@pytest.mark.long
@needs_model
@pytest.mark.parametrize(
    "end",
    [pytest.param("SIGTERM", marks=posix_only), pytest.param("SIGINT", marks=posix_only), "EOF"],
)
async def test_the_end_is_clean_and_leaves_no_process(tmp_path, end):
    project = write(tmp_path / "project", {"a.py": "x = 1\n"})
    async with wired(*foreground(project), cwd=tmp_path, variables=environment(tmp_path)) as server:
        await server.initialize()
        worker = await worker_of(server)
        if end == "EOF":
            await server.process.stdin.aclose()
        else:
            server.process.send_signal(getattr(signal, end))
        assert await server.exit_status() == 0
        assert await those_left([worker]) == []
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text(encoding="utf-8")


@needs_model
@posix_only
async def test_the_worker_of_a_killed_server_ends_by_itself(tmp_path):
    project = write(tmp_path / "project", {"a.py": "x = 1\n"})
    async with wired(*foreground(project), cwd=tmp_path, variables=environment(tmp_path)) as server:
        await server.initialize()
        worker = await worker_of(server)
        server.process.kill()
        assert await server.exit_status() == -signal.SIGKILL
        assert await those_left([worker]) == []


async def test_a_server_that_nobody_spoke_to_ends_with_its_input(tmp_path):
    project = write(tmp_path / "project", {"a.py": "x = 1\n"})
    async with wired(*foreground(project), cwd=tmp_path, variables=environment(tmp_path)) as server:
        await server.process.stdin.aclose()
        assert await server.exit_status() == 0
        assert await server.rest() == []
    assert not (project / ".lancedb").exists()
