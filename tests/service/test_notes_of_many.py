"""Many write the same notes at once: nothing is lost, no number twice, nothing read by half."""

import json
import os
import re
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
import pytest
from mcp import Client
from stores import answered, committed, done, files_of, git, log, notes_of, serving
from waiting import PATIENCE_SECONDS

from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts.reading import revision_of
from vector_index_mcp.serving import sets
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.server import build_server

pytestmark = pytest.mark.anyio

P = {"project_id": "Shared"}
F = {**P, "filename": "shared.md"}
CLIENTS, PROCESSES, ROUNDS = 32, 4, 10

WRITING = """
import json, sys
from pathlib import Path
from stores import writer_of
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.store.disk import Change
from vector_index_mcp.notes.store.writer import Plan

folder, name, rounds = sys.argv[1:]
numbers = []
with writer_of(Path(folder)) as writer:
    disk = writer.disk

    def more():
        text = (disk.read_text("projects/p/main.md") or "") + f"{name} " * 300 + "\\n"
        return Plan(Change({"projects/p/main.md": text.encode()}), f"{name} writes")

    def create():
        number = max(todos.numbers(disk, "projects/p/TODO"), default=0) + 1
        files = todos.new_list("projects/p/TODO", number, name, [(name, name)])
        change = Change(files, folder=f"projects/p/TODO/{number}")
        return Plan(change, f"{name} creates", number)

    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(rounds)):
        asked = [writer.ask(more), writer.ask(create)]
        numbers.append([each.result(60) for each in asked][1])
print(json.dumps(numbers), flush=True)
"""


# -- one service -------------------------------------------------------------------------------


@asynccontextmanager
async def clients_of(notes, count):
    """Several clients of one service."""

    async def load():
        return notes

    service = Lazily(load)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        server = build_server(sets.named(sets.NOTES), service)
        async with AsyncExitStack() as stack:
            yield [
                await stack.enter_async_context(Client(server, mode="legacy")) for _ in range(count)
            ]
        tasks.cancel_scope.cancel()


async def at_once(*calls):
    """What each of several calls gives, all of them begun before one has ended."""
    found = [None] * len(calls)

    async def run(number, call):
        found[number] = await call()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number, call in enumerate(calls):
                tasks.start_soon(run, number, call)
    return found


def is_whole(store):
    """Make sure that the history has what the disk has, and that git finds nothing wrong."""
    for path, data in files_of(store).items():
        if data != "folder":
            assert committed(store, path) == data.decode().rstrip("\n"), path
    git(store, "fsck", "--strict", "--no-dangling")
    assert git(store, "status", "--porcelain") == ""
    return True


async def test_nine_sections_added_at_once_are_all_there(tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", **P, content="# Shared\n")
        add = partial(done, client, "add_project_section", **P)
        await at_once(
            *(partial(add, section_header=f"## S{n}", content=f"of {n}") for n in range(9))
        )
        content = (await done(client, "get_project_main", **P))["content"]
    sections = re.findall(r"^## (S\d)\n\n(of \d)$", content, re.MULTILINE)
    assert sorted(sections) == [(f"S{n}", f"of {n}") for n in range(9)]
    assert content.startswith("# Shared\n\n## S")
    assert len(log(tmp_path / "store")) == 2 + 9
    assert is_whole(tmp_path / "store")


async def test_five_projects_created_at_once_have_a_folder_each(tmp_path):
    names = ["My App", "my app", "MY APP", "my-app", "Other"]
    async with serving(notes_of(tmp_path)) as client:
        update = partial(done, client, "update_project_main")
        await at_once(*(partial(update, project_id=name, content=name) for name in names))
        for name in names:
            assert (await done(client, "get_project_main", project_id=name))["content"] == name
    index = json.loads((tmp_path / "store/index.json").read_text(encoding="utf-8"))
    assert sorted(index["projects"]) == sorted(names)
    folders = {"my-app", "my-app-1", "my-app-2", "my-app-3", "other"}
    assert set(index["projects"].values()) == folders
    assert is_whole(tmp_path / "store")


async def test_the_same_document_is_created_once(tmp_path):
    file = {"title": "t", "introduction": "i", "keywords": ["k"], "chapters": []}
    async with clients_of(notes_of(tmp_path), 8) as clients:
        create = [
            partial(answered, client, "create_knowledge_file", **F, **file) for client in clients
        ]
        answers = await at_once(*create)
    assert sorted(answer.get("code", "") for answer in answers) == [""] + 7 * [
        "FILE_ALREADY_EXISTS"
    ]
    assert is_whole(tmp_path / "store")


async def test_of_changes_from_one_revision_one_is_made(tmp_path):
    async with clients_of(notes_of(tmp_path), 8) as clients:
        revision = (await done(clients[0], "update_project_main", **P, content="old"))["revision"]
        answers = await at_once(
            *(
                partial(
                    answered, client, "update_project_main", **P, content=f"{n}", revision=revision
                )
                for n, client in enumerate(clients)
            )
        )
        [winner] = [n for n, answer in enumerate(answers) if answer["success"]]
        assert {answer.get("code") for answer in answers} == {None, "INVALID_INPUT"}
        assert (await done(clients[0], "get_project_main", **P))["content"] == str(winner)


async def write_all(client, number):
    """What one of many writes, in a row; the numbers it was given."""
    await done(client, "add_chapter", **F, chapter_title=f"C{number}", content=f"{number} " * 3_000)
    await done(
        client, "add_project_section", **P, section_header=f"## S{number}", content=f"{number}"
    )
    todo = await done(client, "create_todo", **P, description=f"{number}", tasks=["a", "b"])
    task = await done(client, "add_todo_task", **P, todo_number=1, title=f"T{number}")
    await done(
        client, "update_chapter", **F, chapter_title=f"C{number}", new_content=f"{number}! " * 5_000
    )
    return todo["todo_number"], task["task_number"]


async def read_all(client, ended):
    """Read until everybody has written; how often."""
    count = 0
    while not ended.is_set():
        found = (await done(client, "get_knowledge_file", **F))["document"]
        assert revision_of(found["full_content"].encode()) == found["revision"]
        for chapter in found["chapters"]:
            number = chapter["title"].removeprefix("C")
            whole = (f"{number} " * 3_000, f"{number}! " * 5_000)
            assert chapter["content"] in {text.strip() for text in whole}
        for todo in (await done(client, "list_todos", **P))["todos"]:
            assert todo["task_count"] >= 2 or todo["number"] == 1
        count += 1
    return count


@pytest.mark.long
async def test_thirty_two_clients_lose_nothing(tmp_path):
    file = {"title": "t", "introduction": "i", "keywords": ["k"], "chapters": []}
    ended = anyio.Event()
    async with clients_of(notes_of(tmp_path), CLIENTS + 1) as (reader, *clients):
        await done(reader, "update_project_main", **P, content="# Shared\n")
        await done(reader, "create_knowledge_file", **F, **file)
        await done(reader, "create_todo", **P, description="first")

        async def write():
            writes = [partial(write_all, client, n) for n, client in enumerate(clients)]
            given = await at_once(*writes)
            ended.set()
            return given

        given, reads = await at_once(write, partial(read_all, reader, ended))
        document = (await done(reader, "get_knowledge_file", **F))["document"]
        tasks = (await done(reader, "get_todo_tasks", **P, todo_number=1))["tasks"]
        todos = (await done(reader, "list_todos", **P))["todos"]
        main = (await done(reader, "get_project_main", **P))["content"]
    everybody = range(CLIENTS)
    assert reads
    assert sorted(todo for todo, _ in given) == [n + 2 for n in everybody]
    assert sorted(task for _, task in given) == [n + 1 for n in everybody]
    titles = [chapter["title"] for chapter in document["chapters"]]
    assert sorted(titles) == sorted(f"C{n}" for n in everybody)
    assert sorted(task["description"] for task in tasks) == sorted(f"T{n}" for n in everybody)
    assert [todo["number"] for todo in todos] == [n + 1 for n in range(CLIENTS + 1)]
    assert sorted(re.findall(r"^## S(\d+)$", main, re.MULTILINE)) == sorted(map(str, everybody))
    subjects = [subject for _, subject in log(tmp_path / "store")]
    assert len(subjects) == len(set(subjects)) == 1 + 3 + 5 * CLIENTS
    assert is_whole(tmp_path / "store")


# -- several processes -------------------------------------------------------------------------


def start(folder, name):
    """A process that writes when it is told to."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", WRITING, str(folder), name, str(ROUNDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )


@pytest.mark.long
def test_four_processes_on_one_store_lose_nothing(tmp_path):
    store, names = tmp_path / "store", [f"writer{n}" for n in range(PROCESSES)]
    processes = [start(tmp_path, name) for name in names]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        seen = 0
        while any(process.poll() is None for process in processes):
            seen = max(seen, len(whole_lines(store)))
        given = [number for process in processes for number in json.loads(process.stdout.read())]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert seen
    assert sorted(given) == [n + 1 for n in range(PROCESSES * ROUNDS)]
    lines = whole_lines(store)
    assert sorted(lines) == sorted(names * ROUNDS)
    history = log(store)
    assert len(history) == 2 * PROCESSES * ROUNDS + 1
    assert sorted(subject for _, subject in history if subject.endswith("writes")) == sorted(
        f"{name} writes" for name in names * ROUNDS
    )
    git(store, "fsck", "--strict", "--no-dangling")
    for path, data in files_of(store).items():
        assert data == "folder" or committed(store, path) == data.decode().rstrip("\n")
    assert git(store, "ls-tree", "--name-only", "HEAD").splitlines() == [
        ".gitignore", "README.md", "projects",
    ]  # fmt: skip


def whole_lines(store):
    """Who has written each line of the text that all have written; every line is whole."""
    text = Disk(store).read_text("projects/p/main.md") or ""
    found = []
    for line in text.splitlines():
        name = line.partition(" ")[0]
        assert line == f"{name} " * 300
        found.append(name)
    return found
