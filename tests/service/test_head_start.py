"""What is prepared before anybody asks is what would be prepared then."""

import pickle
import select
import subprocess
import sys

import psutil
import pytest
from children import children
from writing import write

from vector_index_mcp.files.folder import Folder, Selection
from vector_index_mcp.indexing.preparing import crew as crew_module
from vector_index_mcp.indexing.preparing import head_start, head_start_main
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.file import Task, prepare
from vector_index_mcp.indexing.preparing.head_start import HeadStart
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.serving.loading import head_start_of, open_codebase
from vector_index_mcp.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.own_children]

RECIPE = Recipe(1_200)
NEWER = """
import importlib
from vector_index_mcp.indexing.preparing import head_start_main as main

class Newer:
    def __init__(self, *named):
        self.named = named

    def __reduce__(self):
        return self.named

{}
main.main()
"""
HANGS = [sys.executable, "-c", "import time; time.sleep(3600)"]


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    write(folder, {f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(50)})
    (folder / "ignored.log").write_text("noise\n")
    (folder / "binary.py").write_bytes(b"\x89\0\0")
    return folder


def begun(root, *patterns):
    selection = Selection(("*.log", *patterns))
    return HeadStart(Folder(root, selection=selection), RECIPE.chunk_max_chars)


def finished(root):
    """A head start that has nothing more to do."""
    begins = begun(root)
    select.select([begins._process.stdout], [], [])
    assert begins.is_enough
    select.select([begins._process.stdout], [], [])
    return begins


def tasks_of(root):
    return [Task(Folder(root), path.name) for path in sorted(root.glob("*.p*"))]


def prepared_here(root, tasks):
    return [prepare(RECIPE, task) for task in tasks]


def by_key(prepared):
    return {each.key: each for each in prepared}


async def prepared_after(begins, root, tasks):
    crew = Crew(RECIPE, begins)
    try:
        return by_key(await crew.prepare(tasks))
    finally:
        await crew.end()
        assert children() == []


async def test_what_was_prepared_early_is_not_prepared_again(root, monkeypatch):
    tasks = tasks_of(root)
    expected = by_key(prepared_here(root, tasks))
    begins = finished(root)
    monkeypatch.setattr(crew_module.Child, "start", lambda **_: pytest.fail("prepared again"))
    assert await prepared_after(begins, root, tasks) == expected
    assert len(expected) == 51


async def test_what_has_changed_since_is_prepared_again(root):
    begins = finished(root)
    (root / "m1.py").write_text("def saved_again():\n    pass\n")
    (root / "m2.py").unlink()
    (root / "m3.py").unlink()
    (root / "m3.py").write_text("def f9():\n    return 3\n")  # as long as it was
    (root / "new.py").write_text("x = 1\n")
    tasks = [*tasks_of(root), Task(Folder(root), "m2.py")]
    assert await prepared_after(begins, root, tasks) == by_key(prepared_here(root, tasks))


async def test_a_file_that_the_index_knows_is_compared_with_it(root):
    known = prepare(RECIPE, Task(Folder(root), "m1.py")).record
    found = await prepared_after(finished(root), root, [Task(Folder(root), "m1.py", known)])
    assert found["m1.py"].document is None  # it has the bytes it had


async def test_it_can_be_asked_at_any_moment(root):
    tasks = tasks_of(root)
    begins = begun(root)
    assert await prepared_after(begins, root, tasks) == by_key(prepared_here(root, tasks))
    assert begins.take() == []  # it holds nothing any more


def test_the_last_few_files_are_prepared_before_it_answers(monkeypatch):
    now = 0.0
    monkeypatch.setattr(head_start_main.time, "monotonic", lambda: now)
    working = head_start_main._Working()
    assert not working.ends_before(10_000)
    working.ask()
    assert working.ends_before(10_000)
    assert not working.ends_before(50)
    now = 0.6
    assert working.ends_before(1)


def test_it_ends_if_nobody_asks(monkeypatch):
    now = 0.0
    monkeypatch.setattr(head_start_main.time, "monotonic", lambda: now)
    working = head_start_main._Working()
    now = 5.1
    assert working.ends_before(1)


async def test_a_crew_starts_for_what_is_too_much_for_one(root, monkeypatch):
    started = []

    async def start(crew):
        started.append(crew)

    monkeypatch.setattr(Crew, "start", start)
    settings = Settings(lancedb_uri=".lancedb", log_level="INFO")
    codebase = await open_codebase(root, settings, finished(root))
    await codebase.index.pipeline.crew.end()
    assert started == []

    monkeypatch.setattr(head_start, "_FILES_FOR_ONE", 50)
    begins = begun(root)
    select.select([begins._process.stdout], [], [])
    codebase = await open_codebase(root, settings, begins)
    await codebase.index.pipeline.crew.end()
    assert len(started) == 1


async def test_without_it_everything_is_prepared_as_ever(root, monkeypatch):
    tasks = tasks_of(root)
    expected = by_key(prepared_here(root, tasks))
    killed = finished(root)
    killed._process.kill()
    assert await prepared_after(killed, root, tasks) == expected

    monkeypatch.setattr(head_start, "_COMMAND", HANGS)
    monkeypatch.setattr(head_start, "_PATIENCE_SECONDS", 0.2)
    assert await prepared_after(begun(root), root, tasks) == expected

    gone = root.parent / "gone"
    assert begun(gone).take() == []


@pytest.mark.parametrize(
    "change",
    [
        'main.__version__ = "0.0.0"',
        "main.prepare = lambda *_: Newer(divmod, (1, 2, 3))",
        "main.prepare = lambda *_: Newer(getattr, (1, 'nothing'))",
        "main.prepare = lambda *_: Newer(importlib.import_module, ('no_such_module',))",
    ],
)
async def test_of_one_of_another_version_nothing_is_taken(root, monkeypatch, change):
    """As after an update of the package while a service starts."""
    monkeypatch.setattr(head_start, "_COMMAND", [sys.executable, "-c", NEWER.format(change)])
    tasks = tasks_of(root)
    assert finished(root).take() == []
    assert await prepared_after(finished(root), root, tasks) == by_key(prepared_here(root, tasks))


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there")
async def test_a_text_that_its_parser_never_finishes_costs_the_head_start_alone(root):
    (root / "a.kt").write_text("class A\n@Test")
    begins = begun(root)
    process = begins._process
    found = await prepared_after(
        begins, root, [Task(Folder(root), "a.kt"), Task(Folder(root), "m1.py")]
    )
    assert process.returncode is not None
    assert found["m1.py"].record.state == found["a.kt"].record.state == "indexed"
    assert "too long" in found["a.kt"].record.reason


async def test_one_that_nobody_asks_ends_with_the_others(root):
    crew = Crew(RECIPE, begun(root))
    await crew.rest()
    assert children() == []


def test_one_that_ends_before_it_has_read_its_orders_is_left_alone(root, monkeypatch):
    monkeypatch.setattr(head_start, "_COMMAND", [sys.executable, "-c", ""])
    more_than_a_pipe_holds = "x" * 1_000_000
    with pytest.raises(BrokenPipeError):
        begun(root, more_than_a_pipe_holds)
    assert children() == []


def test_only_a_first_index_is_worth_it(root, monkeypatch):
    settings = Settings(lancedb_uri=".lancedb")
    begins = head_start_of(root, settings)
    assert begins is not None
    begins.end()
    (root / ".lancedb").mkdir()
    assert head_start_of(root, settings) is None
    (root / ".lancedb").rmdir()
    assert head_start_of(root, Settings(lancedb_uri="s3://bucket/index")) is None
    monkeypatch.setattr(head_start, "_COMMAND", [str(root / "no-such-program")])
    assert head_start_of(root, settings) is None


# A parent that tells of its child, which is killed with it.
PARENT = """
import sys, time
from pathlib import Path
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.preparing import head_start, head_start_main

begins = head_start.HeadStart(Folder(Path(sys.argv[1])), 1_200)
print(begins._process.pid, flush=True)
time.sleep(3600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_it_ends_with_a_parent_that_is_killed(root):
    command = [sys.executable, "-c", PARENT, str(root)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs([child], timeout=30)
    assert not alive
    parent.stdout.close()


def test_it_ends_without_a_word_if_nobody_is_there_to_listen(root):
    """As when the service ends while it starts; what it writes would stand in the service's log."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(head_start._COMMAND, **pipes) as process:
        process.stdout.close()
        process.stdin.write(pickle.dumps((Folder(root), RECIPE.chunk_max_chars)))
        process.stdin.flush()
        assert process.stderr.read() == b""
        assert process.wait() == 0
