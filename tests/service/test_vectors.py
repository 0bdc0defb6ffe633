"""Vectors are those of the model that the index names, whenever that model changes."""

import anyio
import pytest
from fakes import FakeEmbedder
from serving import Gate, codebase_of, contents, converged, eventually, fresh_contents, write

from vector_index_mcp.codebase.service import Role

pytestmark = pytest.mark.anyio

FILES = 450  # three batches


class LateEmbedder(FakeEmbedder):
    """It takes until `known` is set to tell which model it is."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.asked, self.known = anyio.Event(), anyio.Event()

    async def identity(self):
        self.asked.set()
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


@pytest.mark.parametrize("dimension", [64, 32])
async def test_a_rebuild_ends_with_the_model_it_began_with(project, dimension):
    second = FakeEmbedder("second", dimension)
    fresh = await fresh_contents(project, second, project.parent / "fresh")  # and fills the cache
    embedder = LateEmbedder("second", dimension)
    codebase = codebase_of(project, embedder)
    rebuilding = Gate(codebase, lambda store: store.generation == 1)
    async with codebase.running(Role.VISITOR):
        await (await codebase.catching_up()).finished.wait()
        await codebase.search("name_1", 1)
        await embedder.asked.wait()
        run = await codebase.trigger(force_reindex=True)
        await rebuilding.wait()
        embedder.known.set()

        async def is_about_to_change_the_model():
            return codebase.indexer.live.writing.statistics().tasks_waiting

        await eventually(is_about_to_change_the_model)
        rebuilding.open()
        await run.finished.wait()
        assert run.error is None
        await converged(codebase)
        assert codebase.indexer.live.index.manifest.model.name == "second"
    assert await contents(project / ".lancedb") == fresh
