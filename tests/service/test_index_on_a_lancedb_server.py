"""An index at db://: LanceDB's own server, of which a fake knows the paths."""

from datetime import timedelta

import pytest
from fakes import FakeEmbedder
from lancedb_server import KEY, lancedb_server
from machine import hurry
from serving import call, codebase_of, failing_call, found, in_error, serving, settled
from waiting import eventually
from writing import write

from vector_index_mcp.engine.store import tables
from vector_index_mcp.engine.table_server import Server
from vector_index_mcp.indexing.place import Remote

pytestmark = pytest.mark.anyio


@pytest.fixture
def server():
    with lancedb_server() as server:
        yield server


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    hurry(monkeypatch.setattr)


@pytest.fixture
def project(tmp_path):
    return write(tmp_path / "one" / "project", {"a.py": "apple = 1\n", "b.py": "banana = 2\n"})


def codebase_at(host, project, key=KEY, owner=""):
    remote = Remote(owner, Server(key, "us-east-1", host))
    return codebase_of(project, FakeEmbedder(), uri="db://team", remote=remote)


async def test_a_project_is_indexed_found_and_known_to_the_next_start(server, project):
    served, host = server
    async with serving(codebase_at(host, project)) as client:
        status = await settled(client, with_vectors=False)
        assert status["indexed_file_count"] == 2
        assert (await found(client, "apple"))[0] == "a.py"
        assert "nothing keeps other machines" in status["index_writer"]
    assert set(served.tables) == {"chunks", "files", "manifest"}
    async with serving(codebase_at(host, project)) as client:
        assert (await settled(client, with_vectors=False))["last_run"]["files_read"] == 0
    assert not any("optimize" in path for path in served.asked)


async def test_nothing_is_written_before_the_server_has_made_its_indices(server, project):
    served, host = server
    served.looks_until_indexed = 2
    async with serving(codebase_at(host, project)) as client:
        await settled(client, with_vectors=False)
    looks = [n for n, path in enumerate(served.asked) if path.endswith("chunks/index/list/")]
    writes = [n for n, path in enumerate(served.asked) if "chunks" in path and "insert" in path]
    assert looks[2] < writes[0]


async def test_a_server_that_is_late_with_its_indices_is_not_waited_for_for_ever(
    server, project, monkeypatch, caplog
):
    monkeypatch.setattr(tables, "_BUILT_WITHIN", timedelta(seconds=1))
    served, host = server
    served.looks_until_indexed = 1_000
    async with serving(codebase_at(host, project)) as client:
        assert (await settled(client, with_vectors=False))["indexed_file_count"] == 2
    assert "has not made the indices of chunks yet" in caplog.text


async def test_another_project_is_refused(server, project, tmp_path):
    served, host = server
    async with serving(codebase_at(host, project)) as client:
        await settled(client, with_vectors=False)
    other = write(tmp_path / "two" / "project", {"c.py": "cherry = 1\n"})
    async with serving(codebase_at(host, other)) as client:
        status = await in_error(client)
        assert "belongs to the owner" in status["error_message"]
    assert set(served.tables["files"].column("file_path").to_pylist()) == {"a.py", "b.py"}


@pytest.mark.parametrize(
    ("key", "status", "words", "setting"),
    [
        ("", 0, "key", "VECTOR_INDEX_LANCEDB_KEY"),
        ("sk-wrong", 0, "refuses the key", "VECTOR_INDEX_LANCEDB_KEY"),
        (KEY, 503, "does not answer", "VECTOR_INDEX_LANCEDB_HOST"),
        (KEY, 400, "HTTP 400", "force_reindex"),
    ],
)
async def test_what_is_wrong_is_said_without_the_key(
    server, project, caplog, key, status, words, setting
):
    served, host = server
    served.status = status
    async with serving(codebase_at(host, project, key)) as client:
        said = (await in_error(client))["error_message"]
        assert words in said
        assert setting in said
        texts = said, await failing_call(client, "search_index", query="x"), caplog.text
    assert not any(secret in text for text in texts for secret in (KEY, "sk-wrong"))


async def test_a_change_is_followed(server, project):
    _, host = server
    async with serving(codebase_at(host, project)) as client:
        await settled(client, with_vectors=False)
        write(project, {"c.py": "cherry = 1\n"})

        async def is_found():
            results = (await call(client, "search_index", query="cherry"))["results"]
            return "c.py" in {hit["file_path"] for hit in results}

        await eventually(is_found)


async def test_rows_are_not_counted_for_a_filter(server, project):
    served, host = server
    async with serving(codebase_at(host, project)) as client:
        await settled(client, with_vectors=False)
        asked = len(served.asked)
        await call(client, "search_index", query="apple", language="python")
        asked = served.asked[asked:]
    assert any("query" in path for path in asked)
    assert not any("count_rows" in path for path in asked)
