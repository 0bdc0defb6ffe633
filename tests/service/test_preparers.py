import subprocess
import sys
import threading

import anyio
import psutil
import pytest
from serving import write

from vector_index_mcp.codebase import preparers
from vector_index_mcp.codebase.ledger import FAILED
from vector_index_mcp.codebase.prepare import Recipe, prepare
from vector_index_mcp.codebase.preparers import Preparers

pytestmark = pytest.mark.anyio

RECIPE = Recipe(1_000_000, 1_200)
# A child like the real one, but for files that kill it, stop it for ever or make it talk.
ODD_CHILD = """
import os, signal, sys
from vector_index_mcp.codebase import preparer

def prepare(root, recipe, tasks, sound=preparer.prepare):
    for key, _ in tasks:
        if key == "deadly.py":
            os.kill(os.getpid(), signal.SIGKILL)
        if key == "endless.py":
            signal.pause()
        if key == "loud.py":
            print("chatter on standard output", flush=True)
            os.system("echo and from a program of its own")
    return sound(root, recipe, tasks)

preparer.prepare = prepare
preparer.main()
"""


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    write(folder, {f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(200)})
    return folder


@pytest.fixture
def with_odd_children(tmp_path, monkeypatch):
    script = tmp_path / "odd_child.py"
    script.write_text(ODD_CHILD)
    monkeypatch.setattr(preparers, "_COMMAND", [sys.executable, str(script)])
    monkeypatch.setattr(preparers, "_PATIENCE_SECONDS", 2.0)


def tasks_of(root):
    return [(path.name, None) for path in sorted(root.iterdir())]


def by_key(prepared):
    return {each.key: each for each in prepared}


def children():
    return psutil.Process().children()


async def prepared_by(root, tasks):
    crew = Preparers(root, RECIPE)
    try:
        return await crew.prepare(tasks)
    finally:
        await crew.rest()


async def test_children_prepare_what_a_thread_would(root):
    tasks = tasks_of(root)

    assert by_key(await prepared_by(root, tasks)) == by_key(prepare(root, RECIPE, tasks))


async def test_many_files_are_prepared_in_as_many_children_as_there_are_processors(root):
    crew = Preparers(root, RECIPE)

    await crew.prepare(tasks_of(root))

    assert 1 <= len(children()) <= preparers._processors()
    await crew.rest()
    assert children() == []


async def test_a_few_files_need_no_child(root):
    crew = Preparers(root, RECIPE)

    await crew.prepare(tasks_of(root)[:10])

    assert children() == []


@pytest.mark.usefixtures("with_odd_children")
@pytest.mark.parametrize("name", ["deadly.py", "endless.py"])
async def test_a_file_that_takes_its_child_along_is_the_only_one_that_fails(root, name):
    (root / name).write_text("x = 1\n")

    found = by_key(await prepared_by(root, tasks_of(root)))

    failed = [key for key, each in found.items() if each.record.state == FAILED]
    assert failed == [name]
    assert len(found) == 201
    assert "crashed or hung" in found[name].record.reason
    assert children() == []


@pytest.mark.usefixtures("with_odd_children")
async def test_what_a_parser_prints_does_not_get_between_the_answers(root):
    (root / "loud.py").write_text("x = 1\n")

    found = await prepared_by(root, tasks_of(root))

    assert all(each.record.state == "indexed" for each in found)


async def test_without_a_process_to_be_had_a_thread_does_it(root, monkeypatch):
    monkeypatch.setattr(preparers, "_COMMAND", [str(root / "no-such-program")])

    found = await prepared_by(root, tasks_of(root))

    assert all(each.record.state == "indexed" for each in found)


async def test_files_on_which_the_thread_hangs_are_left_to_a_child(root, monkeypatch):
    over = threading.Event()
    monkeypatch.setattr(preparers, "_PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(preparers, "prepare", lambda *_: over.wait())
    tasks = tasks_of(root)[:10]
    try:
        found = await prepared_by(root, tasks)
    finally:
        over.set()

    assert by_key(found) == by_key(prepare(root, RECIPE, tasks))


@pytest.mark.usefixtures("with_odd_children")
async def test_a_child_whose_answer_nobody_waits_for_is_ended(root, monkeypatch):
    monkeypatch.setattr(preparers, "_PATIENCE_SECONDS", 60.0)
    (root / "endless.py").write_text("x = 1\n")
    crew = Preparers(root, RECIPE)

    async with anyio.create_task_group() as group:
        group.start_soon(crew.prepare, tasks_of(root))
        while not children():  # noqa: ASYNC110 - another process sets no events
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    await crew.rest()

    assert children() == []


# A parent whose children all hang; it tells their numbers, to be killed then.
PARENT = """
import sys, anyio, psutil
from pathlib import Path
from vector_index_mcp.codebase import preparers
from vector_index_mcp.codebase.prepare import Recipe

async def main(root, child):
    preparers._COMMAND = [sys.executable, child]
    async with anyio.create_task_group() as group:
        tasks = [("endless.py", None)] * 200
        group.start_soon(preparers.Preparers(Path(root), Recipe(9, 9)).prepare, tasks)
        while not (children := psutil.Process().children()):
            await anyio.sleep(0.01)
        print(*(child.pid for child in children), flush=True)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_children_end_with_a_parent_that_is_killed_even_in_the_middle_of_a_file(tmp_path):
    odd = tmp_path / "odd_child.py"
    odd.write_text(ODD_CHILD)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), str(odd)], stdout=subprocess.PIPE, text=True
    )
    children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert children

    parent.kill()
    parent.wait()

    gone, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
    parent.stdout.close()
