"""Files that no parser survives cost themselves a second, once, and nobody else anything."""

import sys
import time
from functools import partial

import anyio
import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, serving, settled, status_of
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.indexing.looking.outlook import Outlook
from vector_index_mcp.indexing.preparing import child as child_module
from vector_index_mcp.indexing.preparing import crew as crew_module
from vector_index_mcp.indexing.preparing.child import Child

pytestmark = [
    pytest.mark.long,
    pytest.mark.own_children,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="processor time is not limited there"),
]

ENDLESS = "class Oriole\n@Test"  # Kotlin's scanner looks for ever for what follows


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path / "project")


def write_project(folder):
    write(folder, {"Bird.kt": ENDLESS, "plain.py": "def wren():\n    pass\n"})
    return folder


@pytest.fixture
def questions(monkeypatch):
    """What children were asked: a file, and whether to cut it by its lines."""
    asked = []
    ask = Child.ask

    def noting(self, question, patience):
        asked.extend((task.key, bool(question.by_lines)) for task in question.tasks)
        return ask(self, question, patience)

    monkeypatch.setattr(Child, "ask", noting)
    return asked


async def holds(client, path, words):
    """Whether the index's text of a file has these words now."""
    results = (await call(client, "search_index", query=words, path=path))["results"]
    return any(words in hit["extracted_text_chunk"] for hit in results)


async def test_such_a_file_is_found_by_its_words_and_the_status_says_why(project):
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        status = await settled(client)
        assert await holds(client, "Bird.kt", "Oriole")
        assert (status["indexed_file_count"], status["failed"]) == (2, {})
        assert status["cut_by_lines"] == {"Bird.kt": child_module.TOO_SLOW}


async def test_it_is_not_tried_again_until_it_changes(project, questions):
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        assert ("Bird.kt", False) in questions
        questions.clear()
        await call(client, "trigger_index")
        await settled(client)
    async with serving(codebase_of(project, FakeEmbedder(), rescan_seconds=0.2)) as client:
        await settled(client)
        first = (await status_of(client))["last_scan_start_time"]

        async def scanned_again():
            status = await status_of(client)
            return status["last_scan_start_time"] > first and status["status"] == "WATCHING"

        await eventually(scanned_again)
        assert not [key for key, _ in questions if key == "Bird.kt"]

        write(project, {"Bird.kt": ENDLESS + "\nclass Thrush\n"})

        async def is_parsed():
            return not (await status_of(client))["cut_by_lines"]

        await eventually(is_parsed)
        assert await holds(client, "Bird.kt", "Thrush")


# A child that survives one file neither with its syntax nor without.
DEADLY = """
import os, signal, sys
from vector_index_mcp.indexing.preparing import child_main

def prepare(recipe, task, by_lines, sound=child_main.prepare):
    if task.key == "plain.py":
        os.kill(os.getpid(), signal.SIGKILL)
    return sound(recipe, task, by_lines)

child_main.prepare = prepare
child_main.main(*sys.argv[1:])
"""


async def test_one_that_cannot_even_be_cut_by_its_lines_is_not_tried_at_every_request(
    project, monkeypatch, questions
):
    monkeypatch.setattr(child_module, "_COMMAND", [sys.executable, "-c", DEADLY])
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        failed = (await settled(client))["failed"]
        assert failed["plain.py"].startswith("given up: ")
        assert questions
        questions.clear()
        await call(client, "trigger_index")
        await settled(client)
        assert questions == []


async def test_who_saves_it_again_and_again_keeps_no_other_save_waiting(project, monkeypatch):
    monkeypatch.setattr(crew_module, "_SECONDS", 2.0 * PATIENCE_SECONDS)
    write(project, {"Bird.kt": "class Oriole\n"})
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        with anyio.fail_after(PATIENCE_SECONDS):
            for number in range(5):
                write(project, {"Bird.kt": f"class Oriole{number}\n@Test"})
                write(project, {"plain.py": f"def wren{number}():\n    pass\n"})

                await eventually(partial(holds, client, "plain.py", f"wren{number}()"))

        async def only_the_endless_one_waits():
            return (await status_of(client))["pending_path_count"] == 1

        await eventually(only_the_endless_one_waits)
        write(project, {"Bird.kt": "class Thrush\n"})

        await eventually(partial(holds, client, "Bird.kt", "Thrush"))
        assert not (await settled(client))["cut_by_lines"]


@pytest.mark.parametrize("force_reindex", [False, True])
async def test_a_run_does_not_end_before_a_slow_file_that_it_found_is_indexed(
    project, monkeypatch, force_reindex
):
    monkeypatch.setattr(crew_module, "_SECONDS", 1.0)
    codebase = codebase_of(project, FakeEmbedder())
    walk = Outlook.walk

    def is_due():
        due = codebase.index.indexer.queue._debouncer.due
        return due is not None and due <= time.monotonic()

    async def walking_while_it_is_saved(self, **how):
        write(project, {"Bird.kt": "class Thrush {}\n" + ENDLESS})
        tree = await walk(self, **how)
        await eventually(is_due)
        return tree

    async with serving(codebase) as client:
        await settled(client)
        monkeypatch.setattr(Outlook, "walk", walking_while_it_is_saved)
        run = await codebase.index.trigger(force_reindex=force_reindex)
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert (run.error, await codebase.pending()) == (None, 0)
        assert await holds(client, "Bird.kt", "Thrush")
