import asyncio
import math
import os
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import psutil
import pytest
from children import children
from other_process import printed_by
from snippets import SNIPPETS
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.language import _BY_SUFFIX
from vector_index_mcp.files.read import stamp_now
from vector_index_mcp.files.scan import UNKNOWN
from vector_index_mcp.indexing.preparing import child as child_module
from vector_index_mcp.indexing.preparing import crew as crew_module
from vector_index_mcp.indexing.preparing import portions
from vector_index_mcp.indexing.preparing.child import Child
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.file import Task, prepare
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.reasons import FAILED, INDEXED, NO_PROCESS, is_given_up, of_giving_up

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.own_children]

RECIPE = Recipe(1_200)
# Kotlin's scanner looks for ever for what follows the annotation.
ENDLESS_KOTLIN = "class A\n@Test"
HUNGRY_C = ("x=>" * 300 + "\n") * 33  # half a gigabyte a second
SAVES = int(os.environ.get("SAVES", "4"))  # of a file of each language; 200 in a long run
# 33 KB of each language that is parsed; grammars of Kotlin, Lua and Scala leak up to 12 MB for it.
TEXTS = {
    f"a.{_BY_SUFFIX[language].split()[0]}": text * (33_000 // len(text) + 1)
    for language, (text, _) in SNIPPETS.items()
}
# A child like the real one, but for files that kill it, stop it for ever or make it talk.
ODD_CHILD = """
import importlib, os, pickle, signal, sys, time
from vector_index_mcp.indexing.preparing import child_main

class Newer:
    "An answer that names what the parent does not know."
    def __init__(self, *named):
        self.named = named

    def __reduce__(self):
        return self.named

newer = {
    "attribute.py": Newer(getattr, (1, "nothing")),
    "module.py": Newer(importlib.import_module, ("no_such_module",)),
    "arguments.py": Newer(divmod, (1, 2, 3)),
    "value.py": Newer(int, ("one",)),
    "end.py": Newer(pickle.loads, (b"",)),
}

def prepare(recipe, task, by_lines, sound=child_main.prepare):
    key = task.key
    if key == "deadly.py" or (key == "deadly_syntax.py" and not by_lines):
        os.kill(os.getpid(), signal.SIGKILL)
    if key == "endless.html":
        with open(__file__ + " asked", "a") as asked:
            asked.write("x")
        signal.pause()
    if key == "unlucky.py" and not os.path.exists(unlucky):
        open(unlucky, "x").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if key == "endless.py":
        signal.pause()
    if key == "patient.py":
        open(__file__ + " begun", "w").close()
        while not os.path.exists(__file__ + " may go on"):
            time.sleep(0.01)
    if key == "loud.py":
        print("chatter on standard output", flush=True)
        os.system("echo and from a program of its own")
    if key == "large.py" and not by_lines:
        held.append(b"x" * 50_000_000)
    if key == "too_large.py" and not by_lines:
        raise MemoryError
    if key == "swollen.py" and not by_lines:
        held.append(b"x" * 200_000_000)
        signal.pause()
    return newer.get(key) or sound(recipe, task, by_lines)

held = []
unlucky = __file__ + " has killed"
child_main.prepare = prepare
child_main.main(*sys.argv[1:])
"""


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    write(folder, {f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(200)})
    return folder


@pytest.fixture
async def crew(root):
    crew = Crew(RECIPE)
    yield crew
    await crew.end()
    assert children() == []


@pytest.fixture
def with_odd_children(tmp_path, monkeypatch):
    script = tmp_path / "odd_child.py"
    script.write_text(ODD_CHILD)
    monkeypatch.setattr(child_module, "_COMMAND", [sys.executable, str(script)])
    monkeypatch.setattr(crew_module, "_PATIENCE_SECONDS", 2.0)
    monkeypatch.setattr(crew_module, "_PROMPT_PATIENCE_SECONDS", 1.0)


def tasks_of(root):
    return [Task(Folder(root), path.name) for path in sorted(root.iterdir())]


def by_key(prepared):
    return {each.key: each for each in prepared}


def prepared_here(root, tasks):
    return [prepare(RECIPE, task) for task in tasks]


@asynccontextmanager
async def finished_late(crew):
    """The time in which `crew` prepares what is set aside, with a stream of what is done."""
    tell, told = anyio.create_memory_object_stream(math.inf)
    async with tell, told, anyio.create_task_group() as group:
        group.start_soon(crew.finish_late_forever, tell.send_nowait)
        with anyio.fail_after(PATIENCE_SECONDS):
            yield told
        group.cancel_scope.cancel()


async def test_children_prepare_what_we_would(root, crew):
    tasks = tasks_of(root)
    expected = by_key(prepared_here(root, tasks))

    assert by_key(await crew.prepare(tasks)) == expected
    assert by_key(await crew.prepare(tasks[:10])) == by_key(prepared_here(root, tasks[:10]))
    assert by_key(await crew.prepare_promptly(tasks)) == expected


async def test_many_files_are_prepared_in_as_many_children_as_there_are_processors(root, crew):
    await crew.prepare(tasks_of(root))

    assert 1 <= len(children()) <= crew_module._processors()
    await crew.rest()
    assert children() == []


async def test_of_two_children_that_are_started_at_once_to_be_warm_one_ends(crew):
    async with anyio.create_task_group() as group:
        group.start_soon(crew.warm_up)
        group.start_soon(crew.warm_up)
    assert len(children()) == 1


async def test_a_few_files_are_prepared_in_one_child_that_stays_warm(root, crew):
    await crew.warm_up()
    [child] = children()
    for _ in range(3):
        await crew.prepare_promptly(tasks_of(root)[:10])
        await crew.rest()

    assert children() == [child]


@pytest.mark.usefixtures("with_odd_children")
@pytest.mark.parametrize(
    ("name", "reason"),
    [("deadly_syntax.py", child_module.CRASHED), ("too_large.py", child_module.TOO_LARGE)],
)
async def test_a_file_whose_syntax_takes_a_child_along_is_cut_by_its_lines(
    root, crew, name, reason
):
    (root / name).write_text("x = 1\n")

    found = by_key(await crew.prepare(tasks_of(root)))[name]

    state = (found.record.state, found.record.chunk_count, found.record.reason)
    assert state == (INDEXED, 1, reason)
    unchanged = await crew.prepare([Task(Folder(root), name, found.record)])
    assert [(each.document, each.record) for each in unchanged] == [(None, found.record)]


@pytest.mark.usefixtures("with_odd_children")
@pytest.mark.parametrize("name", ["deadly.py", "endless.py"])
async def test_a_file_that_takes_its_child_along_is_the_only_one_that_fails(root, crew, name):
    (root / name).write_text("x = 1\n")

    found = by_key(await crew.prepare(tasks_of(root)))

    failed = [key for key, each in found.items() if each.record.state == FAILED]
    assert failed == [name]
    assert len(found) == 201
    assert is_given_up(found[name].record)


@pytest.mark.usefixtures("with_odd_children")
async def test_a_document_that_takes_too_long_to_convert_is_not_converted_once_more(
    root, crew, tmp_path
):
    (root / "endless.html").write_text("<p>x")
    folder = Folder(root, reading=Reading(converts=True))
    [found] = await crew.prepare([Task(folder, "endless.html")])
    assert found.record.reason == of_giving_up(child_module.HUNG)
    assert (tmp_path / "odd_child.py asked").read_text() == "x"


@pytest.mark.parametrize("small", [10, 110])
async def test_small_files_do_not_wait_for_a_large_one(root, crew, small, monkeypatch):
    monkeypatch.setattr(portions, "_LARGE_BYTES", 1_000)
    write(root, {f"large{n}.py": f"# {'x' * 90}\n" * 12 for n in range(9)})
    large = [Task(Folder(root), f"large{n}.py") for n in range(9)]
    tasks = [*large[:4], *tasks_of(root)[:small], *large[4:]]
    first = by_key(await crew.prepare(tasks, seconds=60))
    assert set(first) == {task.key for task in tasks} - {task.key for task in large}
    left = [task for task in tasks if task.key not in first]
    while left:
        done = by_key(await crew.prepare(left, seconds=60))
        assert done
        left = [task for task in left if task.key not in done]
    assert len(await crew.prepare(tasks)) == len(tasks)  # without a limit


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("how", ["prepare", "prepare_promptly"])
@pytest.mark.usefixtures("with_odd_children")
async def test_a_file_whose_child_is_killed_by_somebody_else_is_prepared_like_any_other(
    root, crew, how
):
    write(root, {"unlucky.py": "def luckless():\n    return 13\n"})
    tasks = tasks_of(root)
    [task] = [task for task in tasks if task.key == "unlucky.py"]
    wanted = [*tasks[:5], task, *tasks[5:10]]

    assert by_key(await getattr(crew, how)(wanted)) == by_key(prepared_here(root, wanted))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
async def test_a_child_that_was_killed_while_it_waited_costs_the_next_file_nothing(root, crew):
    await crew.prepare_promptly(tasks_of(root)[:1])
    [child] = children()
    child.kill()
    tasks = tasks_of(root)[:3]

    assert by_key(await crew.prepare_promptly(tasks)) == by_key(prepared_here(root, tasks))


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there")
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.kt", ENDLESS_KOTLIN, "too long"),
        pytest.param(
            *("a.c", HUNGRY_C, "memory"),
            marks=pytest.mark.skipif(sys.platform != "linux", reason="memory is not limited there"),
        ),
    ],
)
async def test_a_text_that_no_parser_survives_is_cut_by_its_lines(
    root, crew, monkeypatch, name, text, reason
):
    monkeypatch.setattr(child_module, "_MOST_BYTES", math.inf)  # the system has to see to it
    (root / name).write_text(text)

    [found] = await crew.prepare([Task(Folder(root), name)])

    assert found.record.state == INDEXED
    assert reason in found.record.reason
    assert "".join(entry.chunk.text for entry in found.document.entries) == text


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there")
async def test_a_save_that_takes_long_keeps_no_other_waiting(root, crew):
    tasks = [Task(Folder(root), "a.kt"), *tasks_of(root)[:10]]
    (root / "a.kt").write_text(ENDLESS_KOTLIN)
    async with finished_late(crew) as finished:
        found = by_key(await crew.prepare_promptly(tasks))
        assert "a.kt" not in found
        assert len(found) == 10
        assert crew.late_count == 1
        # It is not begun anew as long as it does not change, and others are prepared.
        assert len(await crew.prepare_promptly(tasks)) == 10
        await finished.receive()

    late = by_key(await crew.prepare_promptly(tasks))["a.kt"]
    assert "too long" in late.record.reason
    assert crew.late_count == 0

    # What was found out beside its record says nothing to an index that does not have it.
    assert await crew.prepare_promptly([Task(Folder(root), "a.kt", late.record)]) == []
    async with finished_late(crew) as finished:
        await finished.receive()
    [anew] = await crew.prepare([Task(Folder(root), "a.kt")])
    assert anew.document.entries == late.document.entries
    [kept] = await crew.prepare_promptly([Task(Folder(root), "a.kt", late.record)])
    assert (kept.record, kept.document) == (late.record, None)

    # Whoever knows that it took long sets it aside at once; what has changed is tried again.
    assert await crew.prepare_promptly([Task(Folder(root), "a.kt", late.record)]) == []
    (root / "a.kt").write_text(ENDLESS_KOTLIN + "\nclass B {}\n")
    async with finished_late(crew) as finished:
        while not (found := await crew.prepare_promptly([Task(Folder(root), "a.kt", late.record)])):
            await finished.receive()  # first, perhaps, of what it was before
    assert found[0].record.reason == ""
    assert [entry.chunk.symbols for entry in found[0].document.entries] == [("A", "B")]


@pytest.mark.parametrize("name", ["slow.py", "slow.html"])
async def test_a_slow_file_that_nothing_can_prepare_now_is_tried_once_and_then_by_the_next_scan(
    root, crew, monkeypatch, name
):
    (root / name).write_text("x = 1\n")
    folder = Folder(root, reading=Reading(converts=True))
    [sound] = await crew.prepare([Task(folder, name)])
    known = replace(sound.record, reason=child_module.TOO_SLOW)
    await crew.end()
    monkeypatch.setattr(child_module, "_COMMAND", ["no-such-program"])
    (root / name).write_text("y = 2\n")
    async with finished_late(crew) as finished:
        assert await crew.prepare_promptly([Task(folder, name, known)]) == []
        await finished.receive()
        [found] = await crew.prepare_promptly([Task(folder, name, known)])
    assert (found.key, crew.late_count) == (name, 0)
    assert found.record.stamp != stamp_now(folder, name)


@pytest.mark.usefixtures("with_odd_children")
async def test_a_child_that_has_grown_is_replaced(root, crew, monkeypatch):
    monkeypatch.setattr(child_module, "_GROWN_BYTES", 100_000_000)
    (root / "large.py").write_text("x = 1\n")
    seen = set()
    for _ in range(4):  # 50 MB each time
        await crew.prepare_promptly([Task(Folder(root), "large.py")])
        [child] = children()
        seen.add(child.pid)
        assert child.memory_info().rss < 100_000_000

    assert len(seen) >= 2


@pytest.mark.usefixtures("with_odd_children")
async def test_a_child_that_takes_too_much_while_it_works_is_ended(root, crew, monkeypatch):
    (root / "swollen.py").write_text("x = 1\n")
    monkeypatch.setattr(crew_module, "_PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(child_module, "_MOST_BYTES", 100_000_000)
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.1)

    [found] = await crew.prepare([Task(Folder(root), "swollen.py")])

    assert "memory" in found.record.reason


@pytest.mark.usefixtures("with_odd_children")
async def test_no_file_is_blamed_for_the_time_in_which_the_service_did_not_run(
    root, crew, tmp_path, monkeypatch
):
    """As after Ctrl-Z, or the pause of a container: the answer is there, but nobody has read it."""
    (root / "patient.py").write_text("x = 1\n")
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.3)
    patience = 0.6
    monkeypatch.setattr(crew_module, "_PATIENCE_SECONDS", patience)

    def stopping_once(_):
        go_on = tmp_path / "odd_child.py may go on"
        if (tmp_path / "odd_child.py begun").exists() and not go_on.exists():
            go_on.touch()
            time.sleep(1.5 * patience)
        return 0

    monkeypatch.setattr(child_module.memory, "held_by", stopping_once)
    [found] = await crew.prepare([Task(Folder(root), "patient.py")])
    assert (found.record.state, found.record.reason) == (INDEXED, "")


@pytest.mark.usefixtures("with_odd_children")
async def test_files_are_left_when_time_is_up(root, crew):
    tasks = tasks_of(root)

    first = await crew.prepare(tasks, seconds=0)

    assert 1 <= len(first) < len(tasks)
    left = [task for task in tasks if task.key not in by_key(first)]
    assert by_key(first + await crew.prepare(left)) == by_key(prepared_here(root, tasks))


async def test_few_files_that_take_long_are_left_when_time_is_up(root, crew, monkeypatch):
    monkeypatch.setattr(portions, "_BYTES_PER_PORTION", 1_000)
    few = tasks_of(root)[:9]
    assert len(await crew.prepare(few, seconds=0)) == 9  # small ones are one portion
    write(root, {f"long{n}.py": f"# {'x' * 90}\n" * 8 for n in range(9)})
    long = [Task(Folder(root), f"long{n}.py") for n in range(9)]
    assert [each.key for each in await crew.prepare(long, seconds=0)] == ["long0.py"]
    write(root, {f"page{n}.html": "<p>text" * 20 for n in range(9)})
    folder = Folder(root, reading=Reading(converts=True))
    pages = [Task(folder, f"page{n}.html") for n in range(9)]
    assert len(await crew.prepare(pages, seconds=0)) == 1


@pytest.mark.usefixtures("with_odd_children")
async def test_what_a_parser_prints_does_not_get_between_the_answers(root, crew):
    (root / "loud.py").write_text("x = 1\n")

    found = await crew.prepare(tasks_of(root))

    assert all(each.record.state == "indexed" for each in found)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["no-such-program"], id="none"),
        pytest.param([sys.executable, "-c", "pass"], id="ends at once"),
        pytest.param([sys.executable, "-c", "import time; time.sleep(3600)"], id="says nothing"),
    ],
)
async def test_without_a_process_to_be_had_files_are_cut_by_lines_for_now(
    root, crew, monkeypatch, command
):
    """As where memory is short, or after an update of the package under a service."""
    sound = child_module._COMMAND
    monkeypatch.setattr(child_module, "_COMMAND", command)
    monkeypatch.setattr(child_module, "_START_SECONDS", 0.5)

    found = await crew.prepare(tasks_of(root))

    assert all(each.record.state == INDEXED for each in found)
    assert {each.record.reason for each in found} == {NO_PROCESS}
    assert children() == []
    monkeypatch.setattr(child_module, "_COMMAND", sound)
    monkeypatch.setattr(child_module, "_START_SECONDS", 30.0)
    again = await crew.prepare([Task(Folder(root), each.key, each.record) for each in found])
    assert by_key(again) == by_key(prepared_here(root, tasks_of(root)))


@pytest.mark.usefixtures("with_odd_children")
@pytest.mark.parametrize("how", ["prepare", "prepare_promptly"])
@pytest.mark.parametrize(
    "name", ["attribute.py", "module.py", "arguments.py", "value.py", "end.py"]
)
async def test_an_answer_of_another_version_of_the_package_is_no_fault_of_its_file(
    root, crew, name, how
):
    """As after an update under a service: the file is cut by its lines for now."""
    write(root, {name: "def late():\n    return 13\n"})

    [found] = await getattr(crew, how)([Task(Folder(root), name)])

    assert (found.record.state, found.record.reason) == (INDEXED, NO_PROCESS)
    tasks = tasks_of(root)[10:20]
    assert by_key(await getattr(crew, how)(tasks)) == by_key(prepared_here(root, tasks))


UPDATED_CHILDREN = {
    "a class is called otherwise": "from vector_index_mcp.indexing.preparing import file; "
    "from vector_index_mcp.indexing.preparing import child_main; del file.Task; ",
    "it has another version": "from vector_index_mcp.indexing.preparing import child_main; "
    "child_main.__version__ = 'another'; ",
}


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), 9)", "os._exit(child_main.OUT_OF_MEMORY)", "os._exit(1)"]
)
@pytest.mark.parametrize("how", ["prepare", "prepare_promptly"])
async def test_a_child_that_ends_after_its_last_answer_blames_no_file(
    root, crew, how, end, monkeypatch
):
    change = (
        "import os; from vector_index_mcp.indexing.preparing import child_main; "
        f"child_main.confined.resident_bytes = lambda: {end}; "
    )
    command = [sys.executable, "-c", f"{change}child_main.main()"]
    monkeypatch.setattr(child_module, "_COMMAND", command)
    tasks = tasks_of(root)[10:20]
    for _ in range(2):
        found = await getattr(crew, how)(tasks)
        assert {each.record.state for each in found} == {INDEXED}
        assert [each.record.reason for each in found] == [""] * len(tasks)


@pytest.mark.parametrize("change", UPDATED_CHILDREN.values(), ids=UPDATED_CHILDREN)
@pytest.mark.parametrize("how", ["prepare", "prepare_promptly"])
async def test_no_file_is_given_up_because_the_program_was_updated_under_its_service(
    root, crew, how, change, monkeypatch
):
    command = [sys.executable, "-c", f"{change}child_main.main()"]
    monkeypatch.setattr(child_module, "_COMMAND", command)
    [found] = await getattr(crew, how)([Task(Folder(root), "m1.py")])
    assert (found.record.state, found.record.reason) == (INDEXED, NO_PROCESS)


async def test_without_children_no_document_is_converted_here(root, crew, monkeypatch):
    (root / "page.html").write_text("<p>x")
    task = Task(Folder(root, reading=Reading(converts=True)), "page.html")
    [indexed] = await crew.prepare([task])
    await crew.end()
    command = [
        sys.executable,
        "-c",
        UPDATED_CHILDREN["it has another version"] + "child_main.main()",
    ]
    monkeypatch.setattr(child_module, "_COMMAND", command)
    (root / "page.html").write_text("<p>y")
    [found] = await crew.prepare([replace(task, known=indexed.record)])
    assert (found.record, found.document) == (indexed.record, None)  # with its old stamp
    [found] = await crew.prepare([task])
    assert (found.record.state, found.record.reason) == (FAILED, NO_PROCESS)
    assert found.record.stamp == UNKNOWN  # so that the next scan has it tried again


async def test_without_children_and_memory_files_are_tried_again_by_the_next_scan(
    root, crew, monkeypatch
):
    [indexed] = await crew.prepare(tasks_of(root)[:1])
    await crew.end()
    monkeypatch.setattr(child_module, "_COMMAND", ["no-such-program"])

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(crew_module, "prepare", fails)
    (root / indexed.key).write_text("def other():\n    return 7\n")
    known, new = tasks_of(root)[:2]
    [kept, found] = await crew.prepare([replace(known, known=indexed.record), new])
    assert (kept.record, kept.document) == (indexed.record, None)  # with its old stamp
    assert (found.record.state, found.record.stamp) == (FAILED, UNKNOWN)
    assert not is_given_up(found.record)


def test_nothing_is_parsed_in_this_process(root):
    code = (
        "import sys, anyio\n"
        "from pathlib import Path\n"
        "from vector_index_mcp.codebase import service\n"
        "from vector_index_mcp.indexing.preparing import child\n"
        "from vector_index_mcp.indexing.preparing.file import Task\n"
        "from vector_index_mcp.indexing.preparing.recipe import Recipe\n"
        "from vector_index_mcp.files.folder import Folder\n"
        "from vector_index_mcp.indexing.preparing.crew import Crew\n"
        "crew = Crew(Recipe(1_200))\n"
        "task = Task(Folder(Path(sys.argv[1])), 'm1.py')\n"
        "async def main():\n"
        "    await crew.prepare([task])\n"
        "    await crew.prepare_promptly([task])\n"
        "    await crew.end()\n"
        "    child._COMMAND[:] = ['no-such-program']\n"
        "    await crew.prepare([task])\n"
        "anyio.run(main)\n"
        "print(*({'tree_sitter', 'semble_grammars'} & set(sys.modules)))\n"
    )
    assert printed_by(code, str(root)) == []


@pytest.mark.usefixtures("with_odd_children")
async def test_a_child_whose_answer_nobody_waits_for_is_ended(root, crew, monkeypatch):
    monkeypatch.setattr(crew_module, "_PATIENCE_SECONDS", 60.0)
    (root / "endless.py").write_text("x = 1\n")

    async with anyio.create_task_group() as group:
        group.start_soon(crew.prepare, tasks_of(root))
        await eventually(children)
        group.cancel_scope.cancel()


# A parent that tells why a file was cut by its lines.
PREPARING_ONE = """
import anyio
from pathlib import Path
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.preparing.file import Task
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.preparing.crew import Crew

async def main(root):
    crew = Crew(Recipe(1_200))
    [found] = await crew.prepare([Task(Folder(Path(root)), "a.kt")])
    await crew.end()
    print(found.record.reason)

anyio.run(main, *sys.argv[1:])
"""
# A parent whose child is in the middle of a file; it tells its number, to be killed then.
PARENT = """
import sys, anyio, psutil
from pathlib import Path
from vector_index_mcp.indexing.preparing import crew as crew_module
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.preparing.file import Task
from vector_index_mcp.indexing.preparing.recipe import Recipe

async def main(root):
    crew_module._SECONDS = 3600.0
    async with anyio.create_task_group() as group:
        crew = crew_module.Crew(Recipe(1_200))
        group.start_soon(crew.prepare, [Task(Folder(Path(root)), "a.kt")])
        while not (children := psutil.Process().children()):
            await anyio.sleep(0.01)
        while children[0].cpu_times().user < 1:
            await anyio.sleep(0.01)
        print(children[0].pid, flush=True)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere its processor time runs out")
def test_a_child_ends_with_a_parent_that_is_killed_even_deep_inside_a_parser(tmp_path):
    (tmp_path / "a.kt").write_text(ENDLESS_KOTLIN)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    child = psutil.Process(int(parent.stdout.readline()))

    parent.kill()
    parent.wait()

    _, alive = psutil.wait_procs([child], timeout=30)
    for process in alive:
        process.kill()
    assert not alive
    parent.stdout.close()


@pytest.mark.skipif(sys.platform != "linux", reason="psutil tells limits of others there alone")
async def test_a_child_that_crashes_leaves_no_image_of_its_memory(root, crew):
    await crew.prepare_promptly([Task(Folder(root), "m1.py")])

    [child] = children()

    assert child.rlimit(psutil.RLIMIT_CORE)[0] == 0


@pytest.mark.timeout(300 + 20 * SAVES)  # each saves a file of every language
async def test_saves_in_no_language_let_memory_grow(root, crew):
    """Neither ours nor a child's, whatever a grammar leaks."""
    process, before = psutil.Process(), 0
    for name, text in TEXTS.items():
        for number in range(SAVES):
            (root / name).write_text(f"{text}{' ' * number}\n")
            [found] = await crew.prepare_promptly([Task(Folder(root), name)])
            assert (found.record.state, found.record.reason) == (INDEXED, "")
            [child] = children()
            assert child.memory_info().rss < child_module._GROWN_BYTES
        before = before or process.memory_info().rss
    assert process.memory_info().rss - before < 20_000_000


async def test_a_child_that_ended_while_the_service_did_not_run_has_ended(monkeypatch, caplog):
    monkeypatch.setattr(child_module, "_END_SECONDS", 0.4)
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.2)
    child = await Child.start(polite=False)
    asyncio.get_running_loop().call_soon(time.sleep, 0.8)

    await child.end()

    assert child.process.returncode is not None
    assert caplog.messages == []


@pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there")
def test_processor_time_is_limited_whatever_the_parent_has_ignored(tmp_path):
    (tmp_path / "a.kt").write_text(ENDLESS_KOTLIN)
    code = (
        "import signal; signal.signal(signal.SIGPROF, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})\n"
        f"import sys; sys.argv[1:] = [{str(tmp_path)!r}]\n" + PREPARING_ONE
    )
    assert " ".join(printed_by(code)) == child_module.TOO_SLOW
