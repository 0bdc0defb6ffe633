"""The REST interface of the documents: every endpoint, and every error."""

import os
import sys

import anyio
import anyio.to_thread
import pytest
from fakes import FakeEmbedder
from over_http import client_of, detail, post, read
from qmd import FILES, documents_of, settled, written
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.documents.service import Documents

pytestmark = pytest.mark.anyio

TREES = (
    "alder birch cedar durian elm fir ginkgo hazel juniper larch maple oak pine rowan spruce yew"
).split()
NO_VECTORS = "Vector index not found. Run 'qmd embed' first to create embeddings."


@pytest.fixture
def home(tmp_path):
    return written(tmp_path)


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
async def documents(home, embedder):
    return documents_of(home, embedder)


@pytest.fixture
async def client(documents):
    async with client_of(documents) as client:
        await read(client, "/status")
        await settled(documents)
        yield client


@pytest.fixture(scope="module")
async def reader(tmp_path_factory):
    """A client of documents that its tests leave as they are."""
    documents = documents_of(written(tmp_path_factory.mktemp("reader")), FakeEmbedder())
    async with client_of(documents) as client:
        await read(client, "/status")
        await settled(documents)
        await embedded(documents)  # until then, answers without results say what is lacking
        yield client


async def embedded(documents):
    with anyio.fail_after(PATIENCE_SECONDS):
        await documents.embed()


# -- documents -------------------------------------------------------------------------------


async def test_search_finds_by_words(reader):
    answer = await post(reader, "/search", query="interview", limit=1)
    [item] = answer["results"]
    assert item.keys() == {"docid", "file", "title", "score", "context", "snippet"}
    assert item["file"] == "docs/external-podcast/2023-april-interview.md"
    percent = round(item["score"] * 100)
    assert answer["content"] == (
        f'Found 1 result for "interview"\n\n{item["docid"]} {percent}% {item["file"]} - '
        f"{item['title']}"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="a name may be any bytes")
async def test_a_name_that_is_no_utf_8_is_replaced_in_answers(home, tmp_path):
    named = tmp_path / os.fsdecode(b"caf\xe9")
    (tmp_path / "notes").rename(named)
    (tmp_path / "notes").symlink_to(named)
    async with client_of(documents_of(home, FakeEmbedder())) as client:
        await read(client, "/status")
        named.rename(tmp_path / "away")
        answer = await post(client, "/search", query="budget", detailed=True)
    assert f"The folder 'notes' at {tmp_path}/caf? is gone" in answer["note"]
    assert answer["note"] in answer["content"]
    assert len(answer["hits"]) == len(answer["results"])


async def test_results_are_a_blank_line_apart(reader):
    answer = await post(reader, "/search", query="budget")
    head, *lines = answer["content"].split("\n\n")
    assert head == f'Found {len(lines)} results for "budget"'
    assert len(lines) == len(answer["results"]) > 1


@pytest.mark.parametrize("path", ["/search", "/query"])
async def test_nothing_found_is_no_error(reader, path):
    nothing = {"results": [], "content": 'No results found for "zzz"'}
    assert await post(reader, path, query="zzz", min_score=0.99) == nothing


@pytest.mark.parametrize("path", ["/search", "/query"])
async def test_a_collection_narrows(reader, path):
    answer = await post(reader, path, query="budget", collection="notes")
    assert [item["file"] for item in answer["results"]] == ["notes/plan.md"]
    assert (await post(reader, path, query="budget", collection="none"))["results"] == []


async def test_vsearch_needs_vectors(home):
    embedder = FakeEmbedder()
    embedder.absent = "there is none"
    documents = documents_of(home, embedder)
    async with client_of(documents) as client:
        await read(client, "/status")
        await settled(documents)
        assert detail(await client.post("/vsearch", json={"query": "x"}), 503) == NO_VECTORS
        assert (await post(client, "/query", query="budget"))["results"]
        status = await read(client, "/status")
        assert not status["has_vector_index"]
        assert status["needs_embedding"] == len(FILES)
        refused = await client.post("/embed", json={"texts": ["x"]})
        assert detail(refused, 503) == "Model not loaded"
        assert await read(client, "/health") == {"status": "healthy", "model_loaded": False}


async def test_vsearch_and_query_find_by_meaning(client, documents):
    await embedded(documents)
    for path in ("/vsearch", "/query"):
        answer = await post(client, path, query="Interview content here.")
        assert answer["results"][0]["file"].endswith("interview.md")
    assert (await read(client, "/status"))["has_vector_index"]


async def test_there_may_be_no_collections_yet(tmp_path, embedder):
    home = written(tmp_path)
    home.configuration.write_text("", encoding="utf-8")
    async with client_of(documents_of(home, embedder)) as client:
        answer = await post(client, "/search", query="x")
        assert answer["results"] == []
        assert "There are no collections yet; add one with" in answer["content"]
        assert (await client.post("/vsearch", json={"query": "x"})).status_code == 503
        assert await read(client, "/collections") == {
            "collections": [],
            "content": "Collections: 0",
        }


async def test_get_reads_a_part(reader):
    answer = await post(
        reader, "/get", file="docs/api.md", from_line=3, max_lines=1, line_numbers=True
    )
    assert answer == {
        "document": {
            "uri": "qmd://docs/api.md",
            "name": "docs/api.md",
            "title": "API Documentation",
            "mimeType": "text/markdown",
            "text": "<!-- Context: Global ctx -->\n\n"
            "3: This document describes the REST API endpoints.",
        },
        "content": None,
    }


async def test_get_names_what_is_like_it(reader):
    refused = detail(await reader.post("/get", json={"file": "apy.md"}), 404)
    *words, first, _, _ = refused.splitlines()
    assert words == ["Document not found: apy.md", "", "Did you mean one of these?"]
    assert first == "  - api.md"


async def test_the_names_of_the_tools_arguments_are_understood_as_well(reader):
    own = await post(reader, "/get", file="docs/api.md", from_line=3, max_lines=1)
    assert own == await post(reader, "/get", file="docs/api.md", fromLine=3, maxLines=1)
    both = await post(reader, "/get", file="docs/api.md", from_line=3, max_lines=1, maxLines=2)
    assert both == own


async def test_multi_get_says_what_it_left_out(reader):
    answer = await post(reader, "/multi_get", pattern="docs/*.md", max_lines=1)
    assert answer["content"] is None
    texts = {each.get("name", ""): each["text"] for each in answer["results"]}
    assert texts[""] == (
        "[SKIPPED: docs/large-file.md - File too large (23KB). "
        "Use 'qmd get' with file=\"docs/large-file.md\" to retrieve.]"
    )
    assert texts["docs/readme.md"].endswith("\n\n[...truncated 4 more lines]")


async def test_multi_get_names_what_it_does_not_find(reader):
    answer = await post(reader, "/multi_get", pattern="docs/api.md, docs/none.md")
    problem, document = answer["results"]
    assert problem["type"] == "text"
    assert problem["text"].startswith("File not found: docs/none.md")
    assert document["name"] == "docs/api.md"


# -- vectors ---------------------------------------------------------------------------------


async def test_embed_makes_a_vector_for_each_text(client, embedder):
    texts = [f"text {number}" for number in range(100)]
    answer = await post(client, "/embed", texts=texts)
    assert answer["embeddings"] == (await embedder.embed(texts)).tolist()


@pytest.mark.parametrize(
    ("texts", "status", "words"),
    [([], 400, "Empty texts list"), (["x"] * 1_001, 413, "Too many texts (1001 > 1000)")],
    ids=["none", "too many"],
)
async def test_embed_counts_before_it_looks_for_a_model(client, embedder, texts, status, words):
    embedder.absent = "there is none"
    assert detail(await client.post("/embed", json={"texts": texts}), status) == words


# -- collections -----------------------------------------------------------------------------


async def test_the_life_of_a_collection(client, tmp_path, documents):
    folder = tmp_path / "more"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"paragraph {number}", encoding="utf-8")
    added = await post(
        client, "/collections/add", name="more", path=str(folder), glob_pattern="*.txt"
    )
    assert added == {
        "status": "added",
        "name": "more",
        "path": str(folder),
        "documents": 3,
        "content": "Added collection 'more' with 3 documents",
    }
    known = await read(client, "/collections")
    assert known["collections"][-1] == {
        "name": "more",
        "path": str(folder),
        "pattern": "*.txt",
        "documents": 3,
    }
    assert known["content"] == "Collections: 3\n- docs (6 docs)\n- notes (1 docs)\n- more (3 docs)"
    shown = await read(client, "/collections/more")
    assert shown.pop("last_indexed").endswith("Z")
    assert shown == known["collections"][-1]

    renamed = await client.put("/collections/more", json={"new_name": "less"})
    assert renamed.json() == {
        "status": "renamed",
        "old_name": "more",
        "new_name": "less",
        "content": "Renamed 'more' to 'less'",
    }
    assert (await post(client, "/get", file="less/1.txt"))["document"]["text"].endswith("1")
    removed = await client.delete("/collections/less")
    assert removed.json() == {
        "status": "removed",
        "name": "less",
        "content": "Removed collection 'less'",
    }
    assert (await client.get("/collections/less")).status_code == 404
    assert (folder / "1.txt").exists()


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
@pytest.mark.parametrize("name", ["none", "..%2F..%2Fetc", "%00", "a%0Ab", "%F0%9F%98%80", "%FF"])
async def test_an_unknown_collection_is_not_found(reader, method, name):
    body = {"json": {"new_name": "x"}} if method == "PUT" else {}
    detail(await reader.request(method, f"/collections/{name}", **body), 404)


@pytest.mark.parametrize("name", ["docs", "", "a/b", "..", "x" * 201, "a\0b", "a\nb"])
async def test_a_name_that_cannot_be_used(reader, name, tmp_path):
    values = {"name": name, "path": str(tmp_path)}
    detail(await reader.post("/collections/add", json=values), 400)
    detail(await reader.put("/collections/notes", json={"new_name": name}), 400)
    assert len((await read(reader, "/collections"))["collections"]) == 2


@pytest.mark.parametrize(
    "path", ["", "docs", "~nobody-has-this-name", "/no/such/folder", "/dev/null", "/\0", "//\n"]
)
async def test_a_path_that_is_no_folder(reader, path):
    detail(await reader.post("/collections/add", json={"name": "x", "path": path}), 400)


async def test_home_is_understood_in_a_path(client, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    added = await post(client, "/collections/add", name="x", path="~/docs/../docs/meetings")
    assert added["path"] == str(tmp_path / "docs/meetings")


async def test_index_and_update_wait_until_it_is_done(client, tmp_path):
    (tmp_path / "notes/new.md").write_text("# Brand new", encoding="utf-8")
    assert await post(client, "/index") == {
        "status": "indexed",
        "collections": 2,
        "total_documents": 8,
        "content": "Indexed 2 collections: 8 documents",
    }
    assert (await post(client, "/search", query="brand"))["results"]
    updated = {"status": "updated", "collections": 2, "content": "Updated 2 collections"}
    assert await post(client, "/update") == updated
    assert await post(client, "/update", pull=True) == updated
    assert (await client.post("/update")).json() == updated
    assert (await client.post("/index")).status_code == 200


async def test_an_update_says_what_git_pull_said(client, tmp_path):
    folder = tmp_path / "notes"
    await anyio.run_process(["git", "init", "-q", folder])
    found = await post(client, "/update", pull=True)
    done, _, said = found["content"].partition("\n\ngit pull for notes:\n")
    assert done == "Updated 2 collections"
    assert said
    assert (await post(client, "/update"))["content"] == "Updated 2 collections"


async def test_index_and_update_name_a_folder_that_is_gone(client, tmp_path):
    (tmp_path / "notes").rename(tmp_path / "away")
    for path in ("/index", "/update"):
        content = (await post(client, path))["content"]
        assert content.split("\n\n")[1].startswith(
            f"The folder 'notes' at {tmp_path}/notes is gone"
        )


# -- contexts --------------------------------------------------------------------------------


async def test_the_life_of_a_context(client, tmp_path):
    known = await read(client, "/contexts")
    assert known == {
        "contexts": [
            {"path": "/", "text": "Global ctx"},
            {"path": f"{tmp_path}/docs/meetings", "text": "Meeting notes and transcripts"},
        ]
    }
    path = f"{tmp_path}/notes"
    added = {"status": "added", "path": path, "content": f"Added context for {path}"}
    assert await post(client, "/contexts/add", path=path, text="Plans") == added
    assert {"path": path, "text": "Plans"} in (await read(client, "/contexts"))["contexts"]
    document = (await post(client, "/get", file="notes/plan.md"))["document"]
    assert document["text"].startswith("<!-- Context: Global ctx\n\nPlans -->")
    removed = await client.delete(f"/contexts/{path}")
    assert removed.json() == {"status": "removed", "path": path}
    assert await read(client, "/contexts") == known


@pytest.mark.parametrize("written_as", ["/{0}", "{0}", "qmd://docs/meetings", "docs/meetings"])
async def test_a_context_is_removed_by_any_of_its_paths(client, tmp_path, written_as):
    path = written_as.format(str(tmp_path / "docs/meetings").strip("/"))
    assert (await client.delete(f"/contexts/{path}")).status_code == 200
    assert len((await read(client, "/contexts"))["contexts"]) == 1


async def test_every_listed_context_can_be_removed_by_its_path(client, tmp_path):
    await post(client, "/collections/add", name="in", path=f"{tmp_path}/docs/meetings")
    await post(client, "/contexts/add", path="qmd://in", text="inner")
    for context in (await read(client, "/contexts"))["contexts"]:
        removed = await client.delete(f"/contexts/{context['path']}")
        assert removed.status_code == 200, context
    assert await read(client, "/contexts") == {"contexts": []}


@pytest.mark.parametrize(
    "path", ["", "/etc", "etc", "qmd://none/x", "notes", "docs/../../etc", "%00", "%2E%2E/x"]
)
async def test_an_unknown_context_is_not_found(reader, path):
    before = await read(reader, "/contexts")
    detail(await reader.delete(f"/contexts/{path}"), 404)
    assert await read(reader, "/contexts") == before


async def test_a_context_belongs_to_a_collection(reader):
    values = {"text": "x", "path": "/etc"}
    detail(await reader.post("/contexts/add", json=values), 400)
    detail(await reader.post("/contexts/add", json=values | {"path": "qmd://none/x"}), 404)
    detail(await reader.post("/contexts/add", json={"text": "", "path": "/"}), 400)


async def test_global_context_is_removed_once(client):
    assert (await client.delete("/contexts/%2F")).status_code == 200
    detail(await client.delete("/contexts/%2F"), 404)


# -- state and errors ------------------------------------------------------------------------


async def test_status_is_that_of_the_contract(client, tmp_path):
    status = await read(client, "/status")
    [docs, notes] = status["collections"]
    assert docs.pop("last_updated").endswith("Z")
    assert docs == {
        "name": "docs",
        "path": f"{tmp_path}/docs",
        "pattern": "**/*.md",
        "documents": 6,
    }
    assert (status["total_documents"], status["operations"]) == (7, [])
    assert status["content"].splitlines()[:2] == ["QMD Index Status:", "  Total documents: 7"]
    assert status["content"].endswith(f"    - {notes['path']} (1 docs)")


async def test_operations_are_seen_and_stop_nobody(client, documents, embedder):
    embedder.hold()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(lambda: post(client, "/embed", texts=["x"]))
        tasks.start_soon(lambda: post(client, "/update"))
        await eventually(lambda: len(documents.operations.listed) == 3)
        status = await read(client, "/status")
        assert sorted(each["name"] for each in status["operations"]) == [
            "embed texts",
            "embed texts",
            "update",
        ]
        assert all(each["seconds"] >= 0 for each in status["operations"])
        assert (await post(client, "/search", query="budget"))["results"]
        embedder.release()
    assert (await read(client, "/status"))["operations"] == []


async def test_not_everything_waits(client, documents, embedder, monkeypatch):
    embedder.hold()
    monkeypatch.setattr("vector_index_mcp.documents.rest._MOST_OPERATIONS", 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: post(client, "/embed", texts=["x"]))
        await eventually(lambda: documents.operations.listed)
        for path in ("/update", "/index"):
            assert "operations wait already" in detail(await client.post(path), 503)
        embedder.release()


async def test_a_client_that_leaves_stops_nothing(client, documents, tmp_path):
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "one.md").write_text("# One", encoding="utf-8")
    values = {"name": "more", "path": str(folder)}
    async with documents.operations.doing("something else"), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: post(client, "/collections/add", **values))
        await eventually(lambda: len(documents.operations.listed) == 2)
        tasks.cancel_scope.cancel()
    await eventually(lambda: not documents.operations.listed)
    assert (await read(client, "/collections/more"))["documents"] == 1


async def test_health_does_not_wait_for_what_starts(home, embedder, monkeypatch):
    started = anyio.Event()
    real = Documents.running

    async def wait(self):
        await started.wait()

    def running(self, *arguments):
        return _after(wait(self), real(self, *arguments))

    monkeypatch.setattr(Documents, "running", running)
    async with client_of(documents_of(home, embedder)) as client:
        assert await read(client, "/health") == {"status": "unhealthy", "model_loaded": False}
        started.set()
        assert (await read(client, "/status"))["total_documents"] == 7
        assert (await read(client, "/health"))["status"] == "healthy"


class _after:
    def __init__(self, first, context):
        self.first, self.context = first, context

    async def __aenter__(self):
        await self.first
        return await self.context.__aenter__()

    async def __aexit__(self, *error):
        return await self.context.__aexit__(*error)


async def test_a_configuration_that_cannot_be_read_is_unhealthy(client, documents, home):
    home.configuration.write_text("collections: [", encoding="utf-8")
    await eventually(lambda: documents.problem)
    assert (await read(client, "/health"))["status"] == "unhealthy"
    assert (await post(client, "/search", query="budget"))["results"]


@pytest.mark.parametrize("path", ["/", "/docs", "/redoc", "/search/", "/collections/a/b", "/../x"])
async def test_there_is_nothing_else(reader, path):
    detail(await reader.get(path), 404)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/search"), ("POST", "/status"), ("PATCH", "/index")]
)
async def test_other_methods_are_not_understood(reader, method, path):
    detail(await reader.request(method, path), 405)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff",
        b"[" * 90_000,
        b'{"query": ' + b"[" * 40_000 + b"]" * 40_000 + b"}",
        b'{"query": 1}',
        b'{"query": null}',
        b'{"limit": 1}',
        b'{"query": "x", "limit": "5"}',
        b'{"query": "x", "limit": -1}',
        b'{"query": "x", "limit": true}',
        b'{"query": "x", "limit": NaN}',
        b'{"query": "x", "limit": 1e999}',
        b'{"query": "x", "limit": ' + b"9" * 5_000 + b"}",
        b'{"query": "x", "min_score": Infinity}',
        b'{"query": "x", "collection": []}',
        b'{"query": "\\ud800"}',
        b'{"query": "' + b"x" * 10_001 + b'"}',
    ],
    ids=lambda body: repr(body[:30]),
)
async def test_what_makes_no_sense_is_refused(reader, body):
    headers = {"content-type": "application/json"}
    assert detail(await reader.post("/search", content=body, headers=headers), 400)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/search", b"", "the body is missing; send a JSON object"),
        ("/search", b"[]", "the body must be a JSON object"),
        ("/search", b"nonsense", "the body is not valid JSON"),
        ("/search", b"\xff", "the body is not valid JSON"),
        ("/search", b"[" * 100_000, "the body is not valid JSON"),
        ("/search", b"{}", "query is missing"),
        ("/search", b'{"query": 5}', "query must be a text"),
        ("/search", b'{"query": "\\ud800"}', "query must be a text in valid Unicode"),
        (
            "/search",
            b'{"query": "' + b"x" * 10_001 + b'"}',
            "query must be a text of at most 10,000 characters",
        ),
        (
            "/search",
            b'{"query": "x", "limit": -1, "min_score": null, "detailed": 1}',
            "limit must be a number of at least 0; min_score must be a number; "
            "detailed must be true or false",
        ),
        (
            "/search",
            b'{"query": "x", "limit": 1e999}',
            "limit must be a number that is not infinite",
        ),
        ("/embed", b'{"texts": "x"}', "texts must be a list"),
        ("/embed", b'{"texts": ["x", 5]}', "texts.1 must be a text"),
        (
            "/collections/add",
            b'{"name": "", "path": "x"}',
            "name must be a text that is not empty",
        ),
    ],
    ids=lambda given: repr(given[:30]),
)
async def test_what_is_wrong_is_told_in_plain_words(reader, path, body, words):
    headers = {"content-type": "application/json"}
    assert detail(await reader.post(path, content=body, headers=headers), 400) == words


@pytest.mark.parametrize("query", ["a\0b", '"', "NEAR(", "* OR *", "😀", "\u202e", "%", "'--"])
@pytest.mark.parametrize("path", ["/search", "/query", "/multi_get", "/get"])
async def test_odd_texts_break_nothing(reader, path, query):
    name = {"/multi_get": "pattern", "/get": "file"}.get(path, "query")
    response = await reader.post(path, json={name: query})
    assert response.status_code in {200, 404}
    assert "Traceback" not in response.text


@pytest.mark.parametrize("pattern", ["*" * 50_000, "{a,b}" * 10_000, "**/" * 16_000 + "x", "[" * 9])
async def test_patterns_are_bounded(reader, pattern):
    with anyio.fail_after(PATIENCE_SECONDS):
        response = await reader.post("/multi_get", json={"pattern": pattern})
    assert response.status_code in {200, 400}


async def test_an_error_of_ours_says_nothing_of_itself(client, documents, monkeypatch):
    async def fail():
        raise RuntimeError("with a secret")

    monkeypatch.setattr(documents, "look", fail)
    assert "secret" not in detail(await client.get("/status"), 500)


@pytest.mark.long
async def test_sixteen_clients_at_once_lose_nothing(client, documents, tmp_path):
    folders = [tmp_path / "many" / str(number) for number in range(16)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "one.md").write_text(f"# {TREES[number]}", encoding="utf-8")
    found = []

    async def work(number):
        name = f"c{number}"
        added = await post(client, "/collections/add", name=name, path=str(folders[number]))
        assert added["documents"] == 1
        await post(client, "/contexts/add", path=f"qmd://{name}", text=f"context {number}")
        answer = await post(client, "/search", query=TREES[number])
        assert [(i["file"], i["context"]) for i in answer["results"]] == [
            (f"{name}/one.md", f"Global ctx\n\ncontext {number}")
        ]
        assert len((await post(client, "/embed", texts=[name]))["embeddings"]) == 1
        renamed = await client.put(f"/collections/{name}", json={"new_name": f"d{number}"})
        assert renamed.status_code == 200, renamed.text
        await post(client, "/get", file=f"d{number}/one.md")
        found.append(number)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(work, number)
    assert len(found) == 16
    names = {each["name"] for each in (await read(client, "/collections"))["collections"]}
    assert names == {"docs", "notes", *(f"d{number}" for number in range(16))}
    assert len((await read(client, "/contexts"))["contexts"]) == 18


async def test_of_those_who_want_one_name_one_gets_it(client, tmp_path):
    statuses = []

    async def add(number):
        folder = tmp_path / f"same{number}"
        await anyio.to_thread.run_sync(folder.mkdir)
        values = {"name": "same", "path": str(folder)}
        statuses.append((await client.post("/collections/add", json=values)).status_code)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(add, number)
    assert sorted(statuses) == [200] + [400] * 7


async def test_of_those_who_remove_one_collection_one_does(client):
    statuses = []

    async def remove():
        statuses.append((await client.delete("/collections/notes")).status_code)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(remove)
    assert sorted(statuses) == [200] + [404] * 7


async def test_the_description_says_what_is_answered(reader):
    described = await read(reader, "/openapi.json")
    endpoints = [e for path in described["paths"].values() for e in path.values()]
    assert len(endpoints) == 18
    assert "422" not in str(described)
    assert "HTTPValidationError" not in str(described)
    assert all({"200", "400", "403", "500", "503"} <= e["responses"].keys() for e in endpoints)
    assert "security" not in described
