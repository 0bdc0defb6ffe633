"""A drive that does not answer holds one thread, and nobody waits for it for long."""

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from waiting import eventually

from vector_index_mcp.errors import ProjectError, StorageError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.processes import detached

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
    monkeypatch.setattr(detached, "DRIVE_SECONDS", 0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
async def test_a_place_that_does_not_answer_is_looked_at_by_one_thread_until_it_does(stuck):
    looks = Looks()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await looks.at(PLACE, stuck)
        assert await looks.at(OTHER, lambda: "there") == "there"
    assert stuck.count == 1
    stuck.may_end.set()
    await eventually(lambda: not looks.is_waiting([Folder(PLACE)]))
    assert await looks.at(PLACE, stuck) == 2


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


@pytest.mark.slow
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


async def test_if_the_system_starts_no_thread_that_is_said_and_no_drive_is_blamed(
    monkeypatch, tmp_path
):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    looks = Looks()
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(TimeoutError):
            await looks.at(PLACE, partial(str, "there"))
        assert "ulimit -u" in str(await looks.problem_of(Folder(tmp_path)))
        for ask in (looks.at_index, looks.work_at_index):
            with pytest.raises(StorageError, match="ulimit -u"):
                await ask(str(tmp_path), str)
        with pytest.raises(ProjectError, match="ulimit -u"):
            await looks.work_in(Folder(tmp_path), str)
        assert await looks.answers(tmp_path)  # as far as anybody knows
    assert await looks.at(PLACE, partial(str, "there")) == "there"


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
async def test_work_in_a_folder_goes_on_as_long_as_the_drive_answers(stuck, tmp_path):
    looks, folder = Looks(), Folder(tmp_path)
    found, seen = [], []

    async def work():
        found.append(await looks.work_in(folder, stuck))

    async def answers(place):
        seen.append(place)
        if len(seen) == 3:
            stuck.may_end.set()
        return True

    looks.answers = answers
    await work()
    assert (found, seen[:3]) == ([1], [tmp_path] * 3)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
async def test_work_in_a_folder_whose_drive_hangs_is_given_up_and_not_begun_twice(stuck, tmp_path):
    looks, folder = Looks(), Folder(tmp_path, "far")
    hang = Stuck()
    with pytest.raises(TimeoutError):
        await looks.at(folder.path, hang)
    for _ in range(2):
        with pytest.raises(ProjectError, match="does not answer"):
            await looks.work_in(folder, stuck)
    assert stuck.count == 1
    assert await looks.hung([folder, Folder(tmp_path / "other")]) == {folder}
    hang.may_end.set()
    stuck.may_end.set()

    async def is_done() -> bool:
        with suppress(ProjectError):  # the threads may need a moment to end
            return await looks.work_in(folder, stuck) > 1
        return False

    await eventually(is_done)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
async def test_what_uses_the_index_is_awaited_as_long_as_its_drive_answers(stuck, tmp_path):
    looks, gate, ended = Looks(), anyio.Event(), []

    async def search():
        try:
            await gate.wait()
        finally:
            ended.append("search")
        return "found"

    async def answers(place):
        gate.set()
        return True

    with pytest.raises(TimeoutError):
        await looks.at(tmp_path, stuck)
    with pytest.raises(StorageError, match="the drive of the index .* does not answer"):
        await looks.while_it_answers(str(tmp_path), search())
    await eventually(lambda: ended == ["search"])
    with pytest.raises(StorageError, match="the drive of the index .* does not answer"):
        await looks.at_index(str(tmp_path), stuck)
    looks.answers = answers
    assert await looks.while_it_answers(str(tmp_path), search()) == "found"


async def test_what_is_cancelled_has_ended_before_anybody_goes_on(tmp_path):
    looks, begun, ended = Looks(), anyio.Event(), []

    async def search():
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("search")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(looks.while_it_answers, str(tmp_path), search())
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert ended == ["search"]
