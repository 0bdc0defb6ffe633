"""What documents are missed for is named: a folder that is gone, files that are skipped."""

import anyio
import pytest
from fakes import FakeEmbedder
from qmd import documents_of, serving, settled, written
from waiting import eventually
from writing import write

from vector_index_mcp.documents import calls
from vector_index_mcp.documents.reach import out_of_reach
from vector_index_mcp.indexing.role import Role

pytestmark = pytest.mark.anyio


@pytest.fixture
async def unmounted(tmp_path):
    """Documents whose collection `notes` has lost its folder, and their client."""
    documents = documents_of(written(tmp_path), FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        await documents.embed()
        (tmp_path / "notes").rename(tmp_path / "away")
        yield documents, client, tmp_path


def gone(folder):
    return (
        f"The folder 'notes' at {folder}/notes is gone; the index is kept and goes on when the "
        "folder is back"
    )


async def texts_of(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    return [part.text for part in result.content if part.type == "text"], result


@pytest.mark.parametrize("tool", ["search", "vsearch", "query"])
@pytest.mark.parametrize("collection", ["notes", None])
async def test_a_search_names_the_folder_that_is_gone(unmounted, tool, collection):
    _, client, folder = unmounted
    only = {} if collection is None else {"collection": collection}
    texts, result = await texts_of(client, tool, query="plan", minScore=0, **only)
    assert gone(folder) in texts[1]
    assert gone(folder) in result.structured_content["note"]
    assert not any(r["file"].startswith("notes/") for r in result.structured_content["results"])


async def test_a_search_elsewhere_has_no_note_of_it(unmounted):
    _, client, _ = unmounted
    texts, result = await texts_of(client, "search", query="budget", collection="docs")
    assert len(texts) == 1
    assert "note" not in result.structured_content


async def test_a_query_that_searches_for_nothing_names_it_as_well(unmounted):
    _, client, folder = unmounted
    texts, _ = await texts_of(client, "search", query="", collection="notes")
    assert gone(folder) in texts[1]


async def test_a_link_to_a_place_that_cannot_be_looked_at_ends_nothing(tmp_path):
    home = written(tmp_path)
    (tmp_path / "notes").rename(tmp_path / "real")
    (tmp_path / "notes").symlink_to("real")
    documents = documents_of(home, FakeEmbedder(dimension=64))
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        (tmp_path / "notes").unlink()
        (tmp_path / "notes").symlink_to("n" * 300)  # `stat` fails, but not since nothing is there
        await documents.follow()
        write(tmp_path, {"new/budget.md": "# Elsewhere\n\nThe budget.\n"})
        configuration = home.configuration.read_text(encoding="utf-8")
        more = f"  new:\n    path: {tmp_path}/new\n"
        home.configuration.write_text(configuration + more, encoding="utf-8")

        async def found():
            answer = await client.call_tool("search", {"query": "budget", "collection": "new"})
            return [each["file"] for each in answer.structured_content["results"]]

        assert await eventually(found) == ["new/budget.md"]


async def test_an_error_of_the_configuration_that_nobody_foresaw_ends_nothing(
    tmp_path, monkeypatch
):
    documents = documents_of(written(tmp_path), FakeEmbedder(dimension=64))
    has_failed = anyio.Event()

    def fail():
        monkeypatch.undo()
        has_failed.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(documents, "_read", fail)
    async with serving(documents) as client:
        await has_failed.wait()
        await settled(documents)
        texts, _ = await texts_of(client, "search", query="plan")
        assert "notes/plan.md" in texts[0]


async def test_reading_names_it(unmounted):
    documents, client, folder = unmounted
    for asked in ("notes/plan.md", "plan.md", "notes/other.md"):
        [text], result = await texts_of(client, "get", file=asked)
        assert result.is_error
        assert text.startswith(f"Document not found: {asked}")
        assert f"\n\n{gone(folder)}." in text
    for pattern in ("notes/*.md", "notes/plan.md, docs/readme.md", "nothing*"):
        texts, _ = await texts_of(client, "multi_get", pattern=pattern)
        assert gone(folder) in texts[0]
    answer = await calls.answer(documents, "get", {"file": "notes/plan.md"}, None)
    assert answer["reason"] == gone(folder)


async def test_the_status_names_it(unmounted):
    _, client, folder = unmounted
    texts, result = await texts_of(client, "status")

    async def is_named():
        nonlocal texts, result
        texts, result = await texts_of(client, "status")
        return "problems" in result.structured_content

    await eventually(is_named)
    [problem] = result.structured_content["problems"]
    assert problem == gone(folder).replace("The", "the", 1)
    assert texts[0].endswith(f"\n  Problem: {problem}")


async def test_it_is_named_no_more_once_it_is_back(unmounted):
    _, client, folder = unmounted
    await client.call_tool("search", {"query": "plan"})
    (folder / "away").rename(folder / "notes")
    texts, result = await texts_of(client, "search", query="plan")
    assert len(texts) == 1
    assert [r["file"] for r in result.structured_content["results"]] == ["notes/plan.md"]
    read = await client.call_tool("get", {"file": "notes/plan.md"})
    assert not read.is_error


async def test_of_many_folders_three_are_named(tmp_path):
    home = written(tmp_path)
    lines = "".join(
        f"  c{n}:\n    path: {tmp_path}/none{n}\n    pattern: '*.md'\n" for n in range(5)
    )
    configuration = home.configuration.read_text(encoding="utf-8") + lines
    home.configuration.write_text(configuration, encoding="utf-8")
    async with serving(documents_of(home, FakeEmbedder())) as client:
        await client.call_tool("status", {})
        texts, _ = await texts_of(client, "search", query="plan")
        assert texts[1].count(" is gone; ") == 3
        assert "2 more folders cannot be read" in texts[1]


async def test_the_status_names_files_that_are_skipped(tmp_path):
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq98xyz\n-----END RSA PRIVATE KEY-----\n"
    )
    home = written(tmp_path)
    write(tmp_path, {f"notes/key{number:02}.md": key for number in range(12)})
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        status = await calls.answer(documents, "status", {}, None)
    assert status["skipped"] == {"may hold secrets": 12}
    named = [f"notes/key{number:02}.md: may hold secrets" for number in range(10)]
    assert sorted(status["skipped_files"]) == named


async def test_who_asks_for_a_skipped_file_is_told_why_it_is_no_document(tmp_path):
    home = written(tmp_path)
    write(tmp_path, {"notes/photo.md": "\0\1\2" * 99})
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        for name in ("photo.md", "notes/photo.md", "qmd://notes/photo.md"):
            texts, _ = await texts_of(client, "get", file=name)
            why = "notes/photo.md is not indexed: binary."
            assert texts == [f"Document not found: {name}\n\n{why}"]
        texts, _ = await texts_of(client, "multi_get", pattern="notes/plan.md, notes/photo.md")
        said = "File not found: notes/photo.md (notes/photo.md is not indexed: binary)"
        assert said in "\n".join(texts)


async def test_the_status_names_an_ignore_file_that_is_too_large_to_be_obeyed(tmp_path):
    home = written(tmp_path)
    rules = "".join(f"/nowhere/{number:030}\n" for number in range(26_000))
    write(tmp_path, {"notes/.gitignore": rules})
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        texts, _ = await texts_of(client, "status")
        status = await calls.answer(documents, "status", {}, None)
    assert "notes/.gitignore: not obeyed: what it excludes is indexed" in "\n".join(texts)
    [named] = status["failed"]
    assert named.startswith("notes/.gitignore: not obeyed")


async def test_a_configuration_that_cannot_be_read_is_named_by_searches(tmp_path):
    home = written(tmp_path)
    documents = documents_of(home, FakeEmbedder())
    async with serving(documents) as client:
        await client.call_tool("status", {})
        await settled(documents)
        home.configuration.write_text("collections: [", encoding="utf-8")
        await eventually(lambda: documents.problem)
        texts, result = await texts_of(client, "search", query="plan")
        assert result.structured_content["results"]
        assert str(home.configuration) in texts[1]
        assert str(home.configuration) in result.structured_content["note"]
        [text], _ = await texts_of(client, "get", file="new/a.md")
        assert str(home.configuration) in text


@pytest.mark.parametrize("role", [Role.VISITOR, Role.READER])
async def test_a_service_that_does_not_answer_is_named(unmounted, role):
    documents, _, _ = unmounted
    silent = documents_of(
        documents.home, FakeEmbedder(dimension=64), silence_of_service=lambda: "its service hangs"
    )
    async with silent.running(role):
        await eventually(lambda: silent.index.progress.error)
        assert (await out_of_reach(silent, "docs")) == "Its service hangs"
