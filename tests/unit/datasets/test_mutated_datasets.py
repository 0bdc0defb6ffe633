"""Whatever is changed in the files of a dataset, it is read or refused: nothing else happens."""

import os
from random import Random

import anyio
import pytest
from shelves import put

from vector_index_mcp.datasets import flat, manifest, metadata
from vector_index_mcp.datasets.refusal import BadDatasetError

pytestmark = pytest.mark.slow  # hundreds of damaged files

ROUNDS = int(os.environ.get("MUTATIONS", "1000"))
FILES = ["manifest.json", "metadata.json", "index/docs.index"]
ABSURD = [
    b"\0" * 8,
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
    b'"',
    b"{",
    b"[[[[",
    b"1e999",
    b"-1",
    b"\\ud800",
]


def mutated(data, chance):
    """`data` with a few bytes changed, cut, doubled, or replaced by something absurd."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at:]
            case 2:
                del data[at : at + chance.randint(1, 50)]
            case 3:
                data[at:at] = data[at : at + chance.randint(1, 200)]
            case _:
                data[at : at + chance.randint(0, 8)] = chance.choice(ABSURD)
    return bytes(data)


def read_all(root):
    found = manifest.read(root / "sample/manifest.json", root, root.parent)
    vectors = flat.read(found.index).vectors
    texts = metadata.read(found.metadata).texts
    assert all(text.title and text.path for text in texts)
    assert vectors.nbytes <= 1_000_000
    for path in (found.index, found.metadata):
        assert path.is_relative_to(root)


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_file_is_read_or_refused(tmp_path, name):
    root = tmp_path / "datasets"
    anyio.run(put, root)
    read_all(root)
    file, chance, refused = root / "sample" / name, Random(name), 0
    whole = file.read_bytes()
    for _ in range(ROUNDS):
        file.write_bytes(mutated(whole, chance))
        try:
            read_all(root)
        except BadDatasetError as error:
            refused += 1
            assert str(error)
    assert refused > ROUNDS / 10
