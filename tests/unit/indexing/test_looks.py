"""A drive that does not answer holds one thread, and nobody waits for it for long."""

import threading
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from waiting import eventually

from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.indexing import looks
from vector_index_mcp.indexing.looks import Looks

pytestmark = pytest.mark.anyio

PLACE, OTHER = Path("/a"), Path("/b")


class Stuck:
    """A look that ends when it may."""

    def __init__(self):
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.count = 0

    def __call__(self):
        self.count += 1
        self.begun.set()
        self.may_end.wait()
        return self.count


@pytest.fixture
def stuck():
    stuck = Stuck()
    yield stuck
    stuck.may_end.set()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(looks, "_PATIENCE_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
async def test_a_place_that_does_not_answer_is_looked_at_by_one_thread_until_it_does(stuck):
    looks = Looks()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await looks.at(PLACE, stuck)
        with pytest.raises(TimeoutError):
            looks.at_once(PLACE, stuck)
        assert await looks.at(OTHER, lambda: "there") == "there"
        assert looks.at_once(OTHER, lambda: "there") == "there"
    assert stuck.count == 1
    stuck.may_end.set()
    await eventually(lambda: not looks.is_waiting([Folder(PLACE)]))
    assert await looks.at(PLACE, stuck) == 2
    assert looks.at_once(PLACE, stuck) == 3


async def test_an_answer_is_never_older_than_its_question(stuck):
    looks, answers = Looks(), []

    async def ask():
        answers.append(await looks.at(PLACE, stuck))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.to_thread.run_sync(stuck.begun.wait)
        for _ in range(2):
            tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        stuck.may_end.set()
    assert answers == [1, 2, 3]


@pytest.mark.usefixtures("impatient")
async def test_a_folder_whose_drive_does_not_answer_is_out_of_reach(stuck, tmp_path):
    looks, here = Looks(), Folder(tmp_path, "here")
    far, gone = Folder(tmp_path / "far", "far"), Folder(tmp_path / "gone", "gone")
    with pytest.raises(TimeoutError):
        await looks.at(far.path, stuck)
    assert [await looks.is_there(each) for each in (here, far, gone)] == [True, None, False]
    assert [await looks.answers(each.path) for each in (here, far, gone)] == [True, False, True]
    assert await looks.absence(Folders([far, here])) is None
    assert await looks.absence(Folders([])) is None
    assert "does not answer" in str(await looks.absence(Folders([far])))
    assert "is gone" in str(await looks.absence(Folders([far, gone])))
    absent = await looks.absent(Folders([far, here, gone]))
    assert list(absent) == ["far", "gone"]


async def test_if_the_system_starts_no_thread_there_is_no_answer(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    looks = Looks()
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        for look in (looks.at, looks.at_once):
            with pytest.raises(TimeoutError):
                result = look(PLACE, partial(str, "there"))
                await result
    assert await looks.at(PLACE, partial(str, "there")) == "there"
