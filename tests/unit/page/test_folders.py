"""The map tells of every file, two levels at a time."""

import pytest

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.reasons import FAILED, INDEXED, SKIPPED
from vector_index_mcp.page.folders import look_into


def record(key, chunks=0, *, state=INDEXED, reason="", unembedded=0):
    return FileRecord(key, (1, 1, 1), "", chunks, state, reason), unembedded


RECORDS = [
    record("README.md", 2),
    record("src/a.py", 5, unembedded=5),
    record("src/deep/b.py", 3, unembedded=1),
    record("src/deep/deeper/c.py", 4),
    record("src/deep/logo.png", state=SKIPPED, reason="binary"),
    record("src/deep/odd.py", state=FAILED, reason="cannot be read"),
    record("srcs.py", 1),
]


def parts(told):
    return {part["name"]: part for part in told["parts"]}


def test_the_project_is_told_with_two_levels():
    told = look_into("", RECORDS).values()
    assert (told["chunks"], told["vectors"], told["files"]) == (15, 9, 5)
    assert told["missing"] == {"binary": 1, "cannot be read": 1}
    assert [part["name"] for part in told["parts"]] == ["src", "README.md", "srcs.py"]
    src = parts(told)["src"]
    assert (src["kind"], src["chunks"], src["vectors"]) == ("folder", 12, 6)
    assert set(parts(src)) == {"a.py", "deep"}
    assert parts(src)["deep"]["parts"] == []
    assert parts(src)["a.py"]["kind"] == "file"


def test_a_folder_is_told_without_its_neighbours():
    told = look_into("src/deep", RECORDS).values()
    assert told["name"] == "deep"
    assert set(parts(told)) == {"b.py", "deeper", "logo.png", "odd.py"}
    assert parts(told)["logo.png"]["missing"] == {"binary": 1}
    assert parts(parts(told)["deeper"]).keys() == {"c.py"}


@pytest.mark.parametrize("folder", ["sr", "src/", "nowhere", "../etc", "src/a.py"])
def test_what_is_no_folder_is_empty(folder):
    told = look_into(folder, RECORDS).values()
    assert (told["chunks"], told["parts"]) == (0, [])


def test_the_small_ones_of_many_are_told_as_one():
    many = [record(f"{number}.py", number + 1, unembedded=1) for number in range(1_000)]
    told = look_into("", many).values()
    rest = told["parts"][-1]
    assert rest["kind"] == "rest"
    assert rest["name"] == f"{1_001 - len(told['parts'])} more"
    for what in ("chunks", "vectors", "files"):
        assert sum(part[what] for part in told["parts"]) == told[what]
