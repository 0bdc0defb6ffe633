"""Vectors are those of the model that the index names, whenever that model changes."""

from functools import partial

import anyio
import lancedb
import pytest
from fakes import FakeEmbedder
from serving import Gate, codebase_of, contents, converged, fresh_contents
from waiting import eventually
from writing import write

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest, discard
from vector_index_mcp.engine.types import UnembeddedChunk
from vector_index_mcp.errors import ModelNotFoundError, StorageError, WorkerDiedError
from vector_index_mcp.files.scan import Changes
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.vectors import task as vectors
from vector_index_mcp.indexing.writing import indexer, scanned

pytestmark = pytest.mark.anyio

FILES = 450  # three batches


class LateEmbedder(FakeEmbedder):
    """It takes until `known` is set to tell which model it is."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.is_asked, self.known = anyio.Event(), anyio.Event()

    async def identity(self):
        self.is_asked.set()
        await self.known.wait()
        return await super().identity()


@pytest.fixture
async def project(tmp_path):
    """A project whose index holds the vectors of the model `first`."""
    root = tmp_path / "project"
    write(root, {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(FILES)})
    async with (codebase := codebase_of(root, FakeEmbedder("first"))).running(Role.VISITOR):
        await converged(codebase)
    return root


@pytest.mark.long
@pytest.mark.parametrize("dimension", [64, 32])
async def test_a_rebuild_ends_with_the_model_it_began_with(project, dimension):
    second = FakeEmbedder("second", dimension)
    fresh = await fresh_contents(project, second, project.parent / "fresh")  # and fills the cache
    embedder = LateEmbedder("second", dimension)
    codebase = codebase_of(project, embedder)
    rebuilding = Gate(codebase, lambda store: store.generation == 1)
    async with codebase.running(Role.VISITOR):
        await (await codebase.index.catching_up()).finished.wait()
        await codebase.search("name_1", 1)
        await embedder.is_asked.wait()
        run = await codebase.index.trigger(force_reindex=True)
        await rebuilding.wait()
        embedder.known.set()

        async def is_about_to_change_the_model():
            return codebase.index.indexer.live.lock.statistics().tasks_waiting

        await eventually(is_about_to_change_the_model)
        rebuilding.open()
        await run.finished.wait()
        assert run.error is None
        await converged(codebase)
        assert codebase.index.indexer.live.index.manifest.model.name == "second"
    assert await contents(project / ".lancedb") == fresh


@pytest.mark.parametrize(
    ("owner", "step"), [(lancedb.AsyncTable, "add_columns"), (Index, "_write_manifest")]
)
async def test_files_are_indexed_while_the_model_cannot_be_changed(
    project, monkeypatch, owner, step
):
    second = FakeEmbedder("second", dimension=32)
    codebase = codebase_of(project, second)
    failed = anyio.Event()

    async def failing(*_):
        failed.set()
        raise StorageError("the disk is full")

    monkeypatch.setattr(vectors, "_RETRY_SECONDS", 0.01)
    async with codebase.running():
        await (await codebase.index.catching_up()).finished.wait()
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, failing)
            await codebase.search("name_1", 1)
            await failed.wait()
            write(project, {"copy/m1.py": "def name_1(): pass\n"})  # the first model's is cached

            async def is_indexed():
                return codebase.index.ledger.get("copy/m1.py")

            await eventually(is_indexed)
        await converged(codebase)
    fresh = await fresh_contents(project, second, project.parent / "fresh")
    assert await contents(project / ".lancedb") == fresh


async def test_what_was_computed_for_an_index_that_was_replaced_is_not_written(tmp_path):
    write(tmp_path, {"project/a.py": "apple = 1\n"})
    embedder = FakeEmbedder()
    model = await embedder.identity()
    codebase, uri = codebase_of(tmp_path / "project", embedder), str(tmp_path / "index")
    opened = await with_one_file(uri, model, codebase.index.pipeline)
    live = Live(*opened, Activity(), lambda: None, lambda: None, REMEDIES)
    embedder.hold()

    async def is_embedding():
        return embedder.calls

    async with anyio.create_task_group() as tasks:
        writer = vectors.Vectors(live, codebase.index.cached_embedder, lambda: False)
        tasks.start_soon(writer.embed_batch, model)
        await eventually(is_embedding)
        async with live.writing():
            await discard(uri)
            live.index, live.ledger = await with_one_file(uri, model, codebase.index.pipeline)
        embedder.release()

    assert len(await live.index.store.unembedded(["a.py"])) == 1
    assert live.ledger.waiting_of("a.py") == 1


async def test_a_row_that_a_damaged_page_gives_for_another_file_is_passed_over(tmp_path):
    """An index over `file_path` may say what the page of that column does not say any more."""
    write(tmp_path, {"project/a.py": "apple = 1\n"})
    embedder = FakeEmbedder()
    model = await embedder.identity()
    codebase, uri = codebase_of(tmp_path / "project", embedder), str(tmp_path / "index")
    index, ledger = await with_one_file(uri, model, codebase.index.pipeline)
    live = Live(index, ledger, Activity(), lambda: None, lambda: None, REMEDIES)
    unembedded = index.store.unembedded

    async def with_another(keys):
        return [UnembeddedChunk("b\x00py", "hash", "", "pear"), *await unembedded(keys)]

    index.store.unembedded = with_another
    await vectors.Vectors(live, codebase.index.cached_embedder, lambda: False).embed_batch(model)
    assert not ledger.is_waiting
    [text] = embedder.texts
    assert "apple" in text


async def with_one_file(uri, model, pipeline):
    """A new index at `uri` that lacks the vector of its only file, and its ledger."""
    index, ledger = await Index.create(uri, Manifest("", "", model=model)), Ledger()
    batch = await pipeline.prepare(index.store, ledger, Changes(["a.py"]))
    await pipeline.commit(index.store, ledger, model, batch)
    await pipeline.crew.end()
    return index, ledger


async def test_a_walk_does_not_take_a_commit_under_way_for_that_of_another_program(
    tmp_path, caplog
):
    root = tmp_path / "project"
    write(root, {"a.py": "def one(): pass\n"})
    codebase = codebase_of(root, FakeEmbedder())
    async with codebase.running(Role.VISITOR):
        await converged(codebase)
        live = codebase.index.indexer.live
        async with live.writing():
            store = live.index.store
            await store._tables.chunks.delete("document_id = 'none'")  # seen before it is noted
            run = await codebase.index.trigger(force_reindex=False)
            await eventually(lambda: run.files_seen or run.error)
            await store._newest.note()
        await run.finished.wait()
        assert run.error is None
        assert codebase.index.indexer.live is live
        assert live.index.store is store
    assert "damaged" not in caplog.text


class Swapping(FakeEmbedder):
    """It turns into another model before it answers: a server may."""

    async def embed(self, texts, *, are_queries=False):
        self._identity = await FakeEmbedder("second").identity()
        return await super().embed(texts, are_queries=are_queries)


@pytest.mark.parametrize("fails", [set(), {1}])
async def test_vectors_of_another_model_are_not_kept_as_those_of_the_first(tmp_path, fails):
    embedder = Swapping("first")
    embedder.failing_calls = fails
    cache = EmbeddingCache(tmp_path, 1_000_000)
    cached = vectors.CachedEmbedder(embedder, cache, Activity())
    first = await embedder.identity()
    with pytest.raises(ModelNotFoundError, match="the embedding model has changed"):
        await cached.vectors_of(first, {"ab": "a text"}, lambda: True)
    assert cached.hopeless == set()
    assert cache.get(first, ["ab"]) == {}
    second = await embedder.identity()
    assert (await cached.vectors_of(second, {"ab": "a text"}, lambda: True)).keys() == {"ab"}
    cache.close()


class Mortal(FakeEmbedder):
    """Its worker dies in the calls of these numbers, and of every text that is deadly."""

    def __init__(self, calls=(), deadly=()):
        super().__init__()
        self.deaths_left, self.deadly = set(calls), set(deadly)

    async def embed(self, texts, *, are_queries=False):
        self.calls += 1
        if self.calls in self.deaths_left or self.deadly & set(texts):
            raise WorkerDiedError("the embedding worker died (status -9)")
        return await super().embed(texts, are_queries=are_queries)


async def test_a_text_is_not_given_up_because_workers_were_killed(tmp_path):
    """Of a batch, and of the first text of it that was tried alone."""
    embedder = Mortal(calls={1, 2})
    cache = EmbeddingCache(tmp_path, 1_000_000)
    cached = vectors.CachedEmbedder(embedder, cache, Activity())
    model, texts = await embedder.identity(), {"ab": "a text", "cd": "another"}
    assert (await cached.vectors_of(model, texts, lambda: True)).keys() == {"cd"}
    assert cached.hopeless == set()
    assert (await cached.vectors_of(model, texts, lambda: True)).keys() == {"ab", "cd"}
    cache.close()


async def test_a_text_that_kills_every_worker_is_given_up(tmp_path):
    embedder = Mortal(deadly={"a text"})
    cache = EmbeddingCache(tmp_path, 1_000_000)
    cached = vectors.CachedEmbedder(embedder, cache, Activity())
    model, texts = await embedder.identity(), {"ab": "a text", "cd": "another"}
    for deaths in (1, 2, 3):
        assert cached.hopeless == set()
        assert (await cached.vectors_of(model, texts, lambda: True)).keys() == {"cd"}
        assert cached._deaths["ab"] == deaths
    assert cached.hopeless == {"ab"}
    calls = embedder.calls
    assert (await cached.vectors_of(model, texts, lambda: True)).keys() == {"cd"}
    assert embedder.calls == calls
    cache.close()


async def test_another_model_gets_the_texts_on_which_one_has_failed(tmp_path):
    embedder, cache = FakeEmbedder("first"), EmbeddingCache(tmp_path, 1_000_000)
    embedder.poison = "text"
    cached = vectors.CachedEmbedder(embedder, cache, Activity())
    first = await embedder.identity()
    assert await cached.vectors_of(first, {"ab": "a text"}, lambda: True) == {}
    assert await cached.vectors_of(first, {"ab": "a text"}, lambda: True) == {}
    assert (cached.hopeless, embedder.calls) == ({"ab"}, 2)  # in a batch, and alone
    embedder.poison, embedder._identity = None, await FakeEmbedder("second").identity()
    second = await embedder.identity()
    assert (await cached.vectors_of(second, {"ab": "a text"}, lambda: True)).keys() == {"ab"}
    assert cached.hopeless == set()
    cache.close()


@pytest.mark.parametrize("force", [False, True])
async def test_a_request_tries_again_what_the_model_failed_on(tmp_path, force):
    # The tests share a cache of vectors.
    root = write(tmp_path, {"a.py": f"poison_{force} = 1\n", "b.py": "banana = 1\n"})
    embedder = FakeEmbedder()
    embedder.poison = "poison"
    codebase = codebase_of(root, embedder)
    async with codebase.running():
        await eventually(lambda: codebase.index.ledger.given_up_count == 1)
        calls = embedder.calls
        run = await codebase.index.trigger(force_reindex=force)
        await run.finished.wait()
        await eventually(lambda: embedder.calls > calls and not codebase.index.ledger.is_waiting)
        assert codebase.index.ledger.given_up_count == 1
        embedder.poison = None
        run = await codebase.index.trigger(force_reindex=force)
        await run.finished.wait()
        await converged(codebase)
        assert codebase.index.ledger.unembedded_count == 0


async def test_what_kills_every_worker_is_tried_again_if_all_is_made_anew(tmp_path):
    embedder = Mortal(deadly={"a text"})
    cache = EmbeddingCache(tmp_path, 1_000_000)
    cached = vectors.CachedEmbedder(embedder, cache, Activity())
    model, texts = await embedder.identity(), {"ab": "a text"}
    for _ in range(3):
        assert await cached.vectors_of(model, texts, lambda: True) == {}
    embedder.deadly = set()
    cached.try_again()
    assert await cached.vectors_of(model, texts, lambda: True) == {}
    cached.try_again(deadly=True)
    assert (await cached.vectors_of(model, texts, lambda: True)).keys() == {"ab"}
    cache.close()


async def test_vectors_are_made_although_the_text_they_waited_for_is_gone(tmp_path, monkeypatch):
    for module in (indexer, scanned):
        monkeypatch.setattr(module, "FILES_PER_BATCH", 2)
    root, outside = write(tmp_path / "project", {"one.py": "apple = 1\n"}), tmp_path / "outside"
    write(outside, {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(3)})
    codebase = codebase_of(root, FakeEmbedder(), quiet_seconds=0.0, longest_seconds=0.0)
    async with codebase.running():
        await converged(codebase)
        commit = codebase.index.pipeline.commit

        async def commit_and_lose_the_rest(store, ledger, model, batch):
            outcome = await commit(store, ledger, model, batch)
            if "new/m0.py" in batch.known:
                (root / "new/m2.py").unlink()
                codebase.index.indexer.queue.touch(["new/m2.py"])
            return outcome

        codebase.index.pipeline.commit = commit_and_lose_the_rest
        outside.rename(root / "new")
        await eventually(lambda: codebase.index.ledger.get("new/m0.py"))
        await converged(codebase)
        assert codebase.index.ledger.get("new/m2.py") is None


async def test_all_vectors_are_made_anew_whatever_is_cached(tmp_path):
    root = write(tmp_path / "project", {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(9)})
    embedder = FakeEmbedder()
    async with (codebase := codebase_of(root, embedder)).running():
        await converged(codebase)
        before = sorted(embedder.texts)
        embedder.texts.clear()
        await codebase.index.embed(anew=True)
        assert codebase.index.ledger.unembedded_count == 0
    assert sorted(embedder.texts) == before


async def test_a_rebuild_does_not_bring_back_vectors_that_are_to_be_made_anew(tmp_path):
    root = write(tmp_path / "project", {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(9)})
    embedder = FakeEmbedder()
    codebase = codebase_of(root, embedder)
    rebuilding = Gate(codebase, lambda store: store.generation == 1)
    async with codebase.running(), anyio.create_task_group() as tasks:
        await converged(codebase)
        before = sorted(embedder.texts)
        embedder.texts.clear()
        run = await codebase.index.trigger(force_reindex=True)
        await rebuilding.wait()
        tasks.start_soon(partial(codebase.index.embed, anew=True))
        await eventually(lambda: codebase.index.vectors.are_lacking)
        rebuilding.open()
        await run.finished.wait()
        await eventually(lambda: not codebase.index.progress.is_embedding)
    assert sorted(embedder.texts) == before


async def test_without_a_model_no_vector_is_dropped_to_be_made_anew(tmp_path):
    root, embedder = write(tmp_path / "project", {"one.py": "apple = 1\n"}), FakeEmbedder()
    async with (codebase := codebase_of(root, embedder)).running():
        await converged(codebase)
        embedder.fail_loading("it is missing")
        with pytest.raises(ModelNotFoundError, match="it is missing"):
            await codebase.index.embed(anew=True)
        assert codebase.index.ledger.unembedded_count == 0
