import anyio
import pytest
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Index, Store
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import StoreError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.scan import Changes
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.vectors.team import TeamVectors
from vector_index_mcp.indexing.writing.passage import Passage
from vector_index_mcp.indexing.writing.pipeline import Pipeline

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.py").write_text(f"def {name}_first(): pass\n")
    return folder


@pytest.fixture
async def pipeline(root, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache", 0)
    crew = Crew(Recipe(1_200))
    team = TeamVectors(None, cache)
    yield Pipeline(Folders([Folder(root)]), crew, cache, Activity(), team, Looks())
    await crew.end()


@pytest.fixture
async def store(tmp_path):
    store = await Store.create(Reach(str(tmp_path / "index")), 1, None)
    yield store
    store.close()


def passage_of(pipeline, store, *batches):
    waiting = [Changes(list(names)) for names in batches]
    take = lambda: waiting.pop(0) if waiting else Changes()  # noqa: E731
    return Passage(pipeline, store, Ledger(), take)


async def is_awaited(lock):
    return lock.statistics().tasks_waiting


def live_of(passage):
    index = Index(Reach(""), Manifest("", ""), passage.store)
    return Live(index, passage.ledger, Activity(), lambda: None, lambda: None, REMEDIES)


async def step(passage):
    files, _ = await passage.step(live_of(passage))
    return list(files)


async def texts(store):
    chunks = await store.unembedded(["a.py", "b.py", "c.py", "d.py"])
    return {chunk.key: chunk.text for chunk in chunks}


async def test_every_step_commits_one_batch_until_nothing_is_left(pipeline, store):
    passage = passage_of(pipeline, store, ["a.py", "b.py"], ["c.py"])

    assert await step(passage) == ["a.py", "b.py"]
    assert set(await texts(store)) == {"a.py", "b.py"}
    assert await step(passage) == ["c.py"]
    assert await step(passage) == []
    assert set(await texts(store)) == {"a.py", "b.py", "c.py"}


async def test_the_next_batch_is_prepared_while_one_is_committed(pipeline, store, monkeypatch):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py"])
    prepare, commit = pipeline.prepare, pipeline.commit
    second_is_prepared = anyio.Event()

    async def preparing(store, ledger, changes):
        batch = await prepare(store, ledger, changes)
        if changes.dirty == ["b.py"]:
            second_is_prepared.set()
        return batch

    async def committing(*arguments):
        with anyio.fail_after(PATIENCE_SECONDS):
            await second_is_prepared.wait()
        return await commit(*arguments)

    monkeypatch.setattr(pipeline, "prepare", preparing)
    monkeypatch.setattr(pipeline, "commit", committing)

    assert await step(passage) == ["a.py"]


async def test_a_batch_whose_commit_fails_is_the_next_steps_again(pipeline, store, monkeypatch):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py"])

    async def failing(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "put_records", failing)
        with pytest.raises(StoreError, match="full"):
            await step(passage)

    assert len(passage) == 2
    assert await step(passage) == ["a.py"]
    assert await step(passage) == ["b.py"]
    assert set(await texts(store)) == {"a.py", "b.py"}


async def test_what_was_saved_and_committed_since_is_not_overwritten(pipeline, store, root):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py", "c.py"])
    await step(passage)  # prepares b and c as well
    (root / "b.py").write_text("def b_second(): pass\n")
    saved = await pipeline.prepare(passage.store, passage.ledger, Changes(["b.py"]))
    await pipeline.commit(store, passage.ledger, None, saved)

    await step(passage)

    found = await texts(store)
    assert found["b.py"] == "def b_second(): pass\n"
    assert found["c.py"] == "def c_first(): pass\n"


async def test_a_file_that_came_back_since_is_not_forgotten(pipeline, store, root):
    passage = passage_of(pipeline, store, ["a.py", "b.py"])
    await step(passage)
    (root / "b.py").unlink()
    gone = await pipeline.prepare(passage.store, passage.ledger, Changes(gone=["b.py"]))
    (root / "b.py").write_text("def b_again(): pass\n")
    saved = await pipeline.prepare(passage.store, passage.ledger, Changes(["b.py"]))
    await pipeline.commit(store, passage.ledger, None, saved)

    await pipeline.commit(store, passage.ledger, None, gone)

    assert (await texts(store))["b.py"] == "def b_again(): pass\n"


async def test_what_is_given_back_is_all_that_was_not_committed(pipeline, store):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py", "c.py"], ["d.py"])
    await step(passage)

    changes = passage.give_back()

    assert (changes.dirty, changes.gone) == (["b.py", "c.py"], [])
    assert len(passage) == 0


async def test_what_was_looked_at_since_is_not_committed(pipeline, store):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py", "c.py"])
    await step(passage)  # prepares b and c as well

    passage.settle(Changes(["b.py"]))

    assert passage.files == ["c.py"]
    assert await step(passage) == ["c.py"]
    assert set(await texts(store)) == {"a.py", "c.py"}


async def test_a_batch_of_which_nothing_is_left_is_none(pipeline, store):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py"], ["c.py"])
    await step(passage)

    passage.settle(Changes(gone=["b.py"]))

    assert len(passage) == 0
    assert await step(passage) == ["c.py"]


async def test_files_for_which_there_was_no_time_are_the_next_ones(pipeline, store, monkeypatch):
    passage = passage_of(pipeline, store, ["a.py", "b.py", "c.py"], ["d.py"])
    prepare = pipeline.crew.prepare

    async def prepare_one(tasks, seconds):
        return await prepare(tasks[:1])

    monkeypatch.setattr(pipeline.crew, "prepare", prepare_one)

    assert await step(passage) == ["a.py"]  # prepares b as well
    assert set(passage.files) == {"b.py", "c.py"}
    passage.settle(Changes(["c.py"]))
    assert await step(passage) == ["b.py"]
    assert await step(passage) == ["d.py"]
    assert await step(passage) == []


async def test_what_is_given_back_includes_files_for_which_there_was_no_time(
    pipeline, store, monkeypatch
):
    passage = passage_of(pipeline, store, ["a.py"], ["b.py", "c.py"])
    prepare = pipeline.crew.prepare

    async def prepare_one(tasks, seconds):
        return await prepare(tasks[:1])

    monkeypatch.setattr(pipeline.crew, "prepare", prepare_one)
    await step(passage)

    assert set(passage.give_back().dirty) == {"b.py", "c.py"}
    assert len(passage) == 0


async def test_files_count_as_waiting_from_when_they_are_taken(pipeline, store, monkeypatch):
    passage = passage_of(pipeline, store, ["a.py", "b.py"])
    prepare = pipeline.prepare
    seen = []

    async def preparing(store, ledger, changes):
        seen.append(len(passage))
        return await prepare(store, ledger, changes)

    monkeypatch.setattr(pipeline, "prepare", preparing)

    await step(passage)

    assert (seen, len(passage)) == ([2], 0)


async def test_a_batch_gets_vectors_of_the_model_at_its_commit(pipeline, store, monkeypatch):
    await store.set_dimension(4)
    passage = passage_of(pipeline, store, ["a.py"])
    live = live_of(passage)
    model = ModelIdentity("second", "ab" * 32, 4)
    asked_of = []
    monkeypatch.setattr(pipeline._cache, "get", lambda of, _: asked_of.append(of) or {})

    async with anyio.create_task_group() as tasks, live.writing():
        tasks.start_soon(passage.step, live)
        await eventually(lambda: is_awaited(live.lock))
        live.index.manifest = Manifest("", "", model=model)

    assert asked_of == [model]
