"""Datasets come, change and go while they are searched; each answer is of one of them, whole."""

import shutil

import anyio
import numpy as np
import pytest
from fakes import FakeEmbedder
from shelves import DIMENSION, MODEL, TEXTS, manifest, put, running, write
from waiting import eventually

from vector_index_mcp.datasets.arguments import asked
from vector_index_mcp.datasets.conversion import prepare
from vector_index_mcp.datasets.refusal import Code, Refusal

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "datasets"
    root.mkdir()
    return root


def query(words="disk", dataset="sample", top_k=5):
    return asked({"dataset": dataset, "query": words, "topK": top_k})


async def paths(service, *arguments):
    return [result.path for result in (await service.search(query(*arguments))).results]


async def ids(service):
    return [dataset.manifest.id for dataset in (await service.listed())[0]]


async def errors(service):
    return [each.error for each in (await service.listed())[1]]


async def test_a_folder_that_is_not_there_holds_no_dataset(root):
    root.rmdir()
    async with running(root) as service:
        assert await service.listed() == ([], [])
        await put(root)
        await eventually(lambda: ids(service))
        assert (await paths(service))[0] == "docs/errors.md"


async def test_a_dataset_that_is_added_replaced_and_removed_is_noticed(root):
    async with running(root) as service:
        folder = await put(root)
        await eventually(lambda: ids(service))
        await put(root, texts={"new.md": "The disk is new."})

        async def is_new():
            return await paths(service) == ["new.md"]

        await eventually(is_new)
        shutil.rmtree(folder)

        async def is_gone():
            return not await ids(service)

        await eventually(is_gone)
        with pytest.raises(Refusal) as caught:
            await service.search(query())
        assert caught.value.code is Code.DATASET_NOT_FOUND


async def test_a_search_that_has_begun_ends_on_the_old_one(root):
    await put(root)
    embedder = FakeEmbedder(MODEL, DIMENSION)
    async with running(root, embedder) as service:
        assert await paths(service)
        embedder.hold()
        found = []

        async def search():
            found.extend(await paths(service))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search)
            await eventually(lambda: service._under_way)
            shutil.rmtree(root / "sample")

            async def is_gone():
                return not await ids(service)

            await eventually(is_gone)
            embedder.release()
        assert found[0] == "docs/errors.md"


async def test_a_bad_dataset_is_told_and_mended(root):
    await put(root)
    write(root / "sample/metadata.json", {"documents": [{"path": "only-one.md"}], "model": MODEL})
    async with running(root) as service:
        assert await errors(service) == ["the index has 3 vectors, and the metadata 1 documents"]
        await put(root)

        async def is_well():
            return not await errors(service)

        await eventually(is_well)
        assert await ids(service) == ["sample"]


async def test_two_datasets_of_one_id_are_not_both_served(root):
    await put(root, "first")
    await put(root, "second")
    write(root / "second/manifest.json", manifest("first"))
    async with running(root) as service:
        assert await ids(service) == ["first"]
        [error] = await errors(service)
        assert "'first' is that of" in error


async def test_numbers_and_names_are_found(root):
    await put(root)
    async with running(root) as service:
        assert (await paths(service, "E1234"))[0] == "docs/errors.md"


@pytest.mark.parametrize("metric", ["product", "distance"])
async def test_vectors_of_any_length_are_compared_as_their_index_says(root, metric):
    """The neighbours are those that FAISS finds: the largest product, or the least distance."""
    vectors = np.random.default_rng(1).normal(size=(200, DIMENSION)).astype("<f4") * 0.2
    texts = {f"{n}.md": f"text {n}" for n in range(200)}
    await put(root, texts=texts, vectors=vectors, metric=metric)
    embedder = FakeEmbedder(MODEL, DIMENSION)
    async with running(root, embedder) as service:
        found = await paths(service, "banana")
        [vector] = await embedder.embed(["banana"], urgent=True)
    scores = vectors @ vector if metric == "product" else -np.square(vectors - vector).sum(axis=1)
    assert found == [f"{n}.md" for n in np.argsort(-scores)[:5]]


async def test_an_empty_dataset_finds_nothing(root):
    await put(root, texts={})
    async with running(root) as service:
        assert await paths(service) == []


async def test_a_dataset_of_another_model_says_how_it_is_searched(root):
    await put(root, model="other/model")
    async with running(root) as service:
        with pytest.raises(Refusal, match="VECTOR_INDEX_EMBEDDING_MODEL=other/model"):
            await service.search(query())


async def test_a_dataset_of_another_size_is_told(root):
    await put(root, vectors=np.eye(3, 7, dtype="<f4"))
    async with running(root) as service:
        with pytest.raises(Refusal, match="vectors of 7 dimensions, and fake makes 64"):
            await service.search(query())


async def test_without_a_model_it_is_said_what_to_install(root):
    await put(root)
    embedder = FakeEmbedder(MODEL, DIMENSION)
    embedder.absent = "there is no model"
    async with running(root, embedder) as service:
        with pytest.raises(Refusal, match="Failed to execute search: there is no model"):
            await service.search(query())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
async def test_what_is_no_number_is_no_vector(root, value):
    vectors = np.eye(3, DIMENSION, dtype="<f4")
    vectors[1, 5] = value
    await put(root, vectors=vectors)
    async with running(root) as service:
        assert await errors(service) == ["vector 1 of the index is not finite"]


async def test_a_process_that_dies_costs_its_dataset_alone(root):
    await put(root)
    await put(root, "deadly")
    # Ten million levels: whoever parses that, its stack or its memory ends.
    write(root / "deadly/metadata.json", b'{"documents": ' + b'{"a":' * 10_000_000)
    async with running(root) as service:
        assert await ids(service) == ["sample"]
        assert len(await errors(service)) == 1
        assert (await paths(service))[0] == "docs/errors.md"


async def test_what_was_converted_once_is_not_converted_again(root):
    await put(root)
    async with running(root) as service:
        assert await ids(service) == ["sample"]

    [made] = (root.parent / "tables").iterdir()
    before = [(path, path.stat().st_mtime_ns) for path in sorted(made.rglob("*"))]
    async with running(root) as service:
        assert (await paths(service))[0] == "docs/errors.md"
    assert [(path, path.stat().st_mtime_ns) for path in sorted(made.rglob("*"))] == before


async def test_what_was_converted_and_is_damaged_is_converted_again(root):
    await put(root)
    async with running(root) as service:
        assert await ids(service) == ["sample"]
    [made] = (root.parent / "tables").iterdir()
    for file in made.rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"garbage")
    for file in made.rglob("*.manifest"):
        file.write_bytes(b"garbage")
    async with running(root) as service:
        assert (await paths(service))[0] == "docs/errors.md"


async def test_tables_that_nobody_needs_are_removed(root):
    folder = await put(root)
    async with running(root) as service:
        await service.listed()
        [before] = (root.parent / "tables").iterdir()
        await put(root, texts={**TEXTS, "new.md": "New."})

        async def is_new():
            tables = list((root.parent / "tables").iterdir())
            return len(tables) == 1 and tables != [before]

        await eventually(is_new)
        shutil.rmtree(folder)
        await eventually(lambda: not list((root.parent / "tables").iterdir()))


async def test_a_dataset_that_takes_long_holds_up_no_other(root, monkeypatch):
    monkeypatch.setattr("vector_index_mcp.datasets.registry._FIRST_SECONDS", 0.1)
    await put(root)
    await put(root, "slow")
    is_wanted = anyio.Event()

    async def make(manifest, folder):
        if manifest.id == "slow":
            await is_wanted.wait()
        return await prepare(manifest, folder)

    async with running(root, make=make) as service:
        await eventually(lambda: ids(service))
        assert await ids(service) == ["sample"]
        assert service.is_busy
        assert (await paths(service))[0] == "docs/errors.md"
        await put(root, "third")

        async def is_there():
            return "third" in await ids(service)

        await eventually(is_there)
        is_wanted.set()

        async def is_whole():
            return await ids(service) == ["sample", "slow", "third"]

        await eventually(is_whole)
