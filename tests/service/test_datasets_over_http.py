"""The three endpoints of the original's console, over real HTTP."""

import shutil

import pytest
from fakes import FakeEmbedder
from over_http import client_of, detail
from shelves import DIMENSION, MODEL, datasets_of, index_of, put, write
from waiting import eventually

from vector_index_mcp.datasets import listing
from vector_index_mcp.serving.names import DATASETS

pytestmark = pytest.mark.anyio

PATH = "/api/datasets"


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "datasets"
    root.mkdir()
    return root


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "ships.md").write_text("# Ships\n\nA ship sails.\n")
    return folder


@pytest.fixture
async def client(root, tmp_path):
    embedder = FakeEmbedder(MODEL, DIMENSION)
    service = datasets_of(root, embedder, index_of=index_of(tmp_path / "beside", embedder))
    async with client_of(service, tool_set=DATASETS) as client:
        yield client


async def listed(client):
    response = await client.get(PATH)
    assert response.status_code == 200
    return response.json()["datasets"]


async def test_a_dataset_is_made_listed_and_deleted(client, root, source):
    assert await listed(client) == []
    wanted = {"sourcePath": str(source), "datasetId": "ships", "name": "The ships"}
    response = await client.post(PATH, json=wanted | {"description": "What sails"})
    assert response.status_code == 201, response.text
    made = response.json()
    assert made.pop("durationMs") >= 0
    assert made == {
        "datasetId": "ships",
        "documents": 1,
        "chunks": 1,
        "model": MODEL,
        "embeddingDimensions": DIMENSION,
        "indexPath": str(root / "ships/index"),
        "metadataPath": str(root / "ships/metadata.json"),
    }
    [one] = await listed(client)
    assert one.pop("updatedAt").endswith("Z")
    assert one == {
        "id": "ships",
        "name": "The ships",
        "description": "What sails",
        "status": "ready",
        "defaultTopK": 5,
        "metadataPath": str(root / "ships/metadata.json"),
        "indexPath": str(root / "ships/index"),
        "documentCount": 1,
        "chunkCount": 1,
        "model": MODEL,
        "source": "texts",
    }
    response = await client.delete(f"{PATH}/ships")
    assert (response.status_code, response.content) == (204, b"")
    assert await listed(client) == []
    assert [*root.iterdir()] == []


async def test_what_cannot_be_served_is_listed_with_the_reason(client, root):
    await put(root)
    write(root / "bad/manifest.json", b"{")
    bad, good = await listed(client)
    assert (good["id"], good["status"], good["chunkCount"]) == ("sample", "ready", 3)
    assert (bad["id"], bad["status"]) == ("bad", "error")
    assert "no JSON" in bad["error"]


GIVEN = {"sourcePath": "/no/such/folder", "datasetId": "one", "name": "One"}
REQUIRED = "sourcePath, datasetId, and name are required"


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"sourcePath": ""}, 400, REQUIRED),
        ({"datasetId": " "}, 400, REQUIRED),
        ({"name": None}, 400, REQUIRED),
        ({"name": 5}, 400, REQUIRED),
        ({"chunkSize": 63}, 400, "chunkSize is a number of words from 64 to 4096"),
        ({"chunkSize": True}, 400, "chunkSize is a number of words from 64 to 4096"),
        ({"chunkOverlap": 5_000}, 400, "chunkOverlap is a number of words from 0 to 1024"),
        ({"model": "../../etc"}, 400, "a model is named as on the hub: name or owner/name"),
        ({"model": "a\0b"}, 400, "a model is named as on the hub: name or owner/name"),
        ({"model": ["x"]}, 400, "description, model and license are texts"),
        ({}, 400, "is no folder; give the absolute path"),
        ({"sourcePath": "relative"}, 400, "is no folder; give the absolute path"),
        ({"sourcePath": "/"}, 400, "far more than the texts of a dataset"),
        (
            {"datasetId": "../one"},
            400,
            "Dataset ID must be lowercase alphanumeric with hyphens only",
        ),
    ],
)
async def test_an_order_that_makes_no_sense_says_why(client, root, changed, status, words):
    response = await client.post(PATH, json=GIVEN | changed)
    assert response.status_code == status
    assert words in response.json()["error"]
    assert [*root.iterdir()] == []


@pytest.mark.parametrize("body", [b"{", b"[]", b"[" * 5_000])
async def test_a_body_that_is_no_object_says_so(client, body):
    json = {"content-type": "application/json"}
    response = await client.post(PATH, content=body, headers=json)
    assert response.status_code == 400
    assert "JSON" in response.json()["error"]
    assert "recursion" not in response.text


async def test_a_dataset_that_is_there_is_not_made_again(client, root, source):
    wanted = {"sourcePath": str(source), "datasetId": "sample", "name": "Again"}
    await put(root)
    response = await client.post(PATH, json=wanted)
    assert (response.status_code, response.json()) == (
        400, {"error": "Dataset 'sample' already exists"},
    )  # fmt: skip


async def test_of_two_datasets_with_one_id_none_is_deleted(client, root):
    await put(root)
    [before] = await listed(client)
    shutil.copytree(root / "sample", root / "a-backup")
    response = await client.delete(f"{PATH}/sample")
    assert response.status_code == 400
    folders = f"{root / 'a-backup'} and {root / 'sample'}"
    assert f"several folders have a dataset 'sample': {folders}; " in response.json()["error"]
    assert (root / "a-backup/manifest.json").exists()

    async def both():
        found = await listed(client)
        return found if len(found) == 2 else None

    [served, rival] = sorted(await eventually(both), key=lambda each: each["status"], reverse=True)
    assert served == before
    assert rival["status"] == "error"
    shutil.rmtree(root / "a-backup")
    assert (await client.delete(f"{PATH}/sample")).status_code == 204
    assert not (root / "sample").exists()


@pytest.mark.parametrize("id_", ["ghost", "..%2F..%2Fetc", "%00", "a" * 3_000])
async def test_what_is_not_there_is_not_deleted(client, root, id_):
    await put(root)
    response = await client.delete(f"{PATH}/{id_}")
    assert response.status_code in {400, 404}
    if response.status_code == 400:
        assert response.json()["error"].endswith("does not exist")
    assert len(await listed(client)) == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("DELETE", f"{PATH}/..%2F..%2Fetc", 404),
        ("PUT", PATH, 405),
        ("GET", f"{PATH}/ships", 405),
    ],
)
async def test_every_error_has_the_same_form(client, method, path, status):
    response = await client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]
    assert (status == 405) == ("allow" in response.headers)


async def test_an_error_that_nobody_foresaw_has_that_form_too(client, monkeypatch):
    async def fail(_):
        raise KeyError("a secret of the program")

    monkeypatch.setattr(listing, "listed", fail)
    response = await client.get(PATH)
    assert response.status_code == 500
    assert response.json() == {"error": "this is an error of the server; its log says more"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"host": "evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
    ],
)
async def test_no_web_page_reaches_it(client, root, source, headers, status):
    wanted = {"sourcePath": str(source), "datasetId": "ships", "name": "The ships"}
    response = await client.post(PATH, json=wanted, headers=headers)
    assert detail(response, status)
    assert [*root.iterdir()] == []


async def test_who_comes_with_a_browser_is_told_where_the_page_is(client):
    response = await client.get("/")
    assert "vector-index-mcp datasets ui" in response.text
    assert response.headers["content-type"].startswith("text/plain")
