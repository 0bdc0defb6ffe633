"""One byte of an index at rest is flipped: the next start is right, whatever byte it was."""

import os
import random

import anyio
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, contents, converged, fresh_contents, without_time
from writing import write

from vector_index_mcp.indexing.role import Role

FLIPS = int(os.environ.get("FLIPS", "8"))
FILES = {f"m{i}.py": f"def number_{i}(value):\n    return value + {i}\n" for i in range(30)}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    write(root, FILES)
    return root


async def started(root, role=Role.KEEPER):
    """Start a service and end it when all is done: what it finds for a word."""
    codebase = codebase_of(root, FakeEmbedder())
    async with codebase.running(role):
        await converged(codebase)
        assert codebase.index.state.error is None
        return codebase.index.uri, (await codebase.search("number_7", 1)).hits[0].chunk.text


def files_by_kind(*folders):
    """The files below `folders` by what they are for: data, versions, indexes, marks, records."""
    kinds = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size:
                below = path.relative_to(folder).parts
                kind = (folder.name, *(part for part in below if part.startswith("_")), path.suffix)
                kinds.setdefault((*kind, below[0]), []).append(path)
    return kinds


def flip(path, randomly):
    content = bytearray(path.read_bytes())
    place = randomly.randrange(len(content))
    content[place] ^= 1 << randomly.randrange(8)
    path.write_bytes(content)
    return place


async def heals(root, seed):
    randomly = random.Random(seed)
    await started(root)
    expected = without_time(await fresh_contents(root, FakeEmbedder(), root.parent / "fresh"))
    for _ in range(FLIPS):
        kinds = files_by_kind(root / ".lancedb", root.parent / "state" / "indexes")
        path = randomly.choice(kinds[randomly.choice(sorted(kinds))])
        place = flip(path, randomly)
        uri, text = await started(root)
        assert text == FILES["m7.py"], (path, place)
        assert without_time(await contents(uri)) == expected, (path, place)


@pytest.mark.timeout(3_600)
def test_a_flipped_byte_anywhere_costs_time_and_nothing_else(project):
    anyio.run(heals, project, int(os.environ.get("SEED", "1")))
