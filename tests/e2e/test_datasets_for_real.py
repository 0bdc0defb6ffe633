"""A dataset that is dropped into a folder is found over the real program, with the real model."""

import json

import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import COMMAND, MODEL_SECONDS, NO_MODEL, needs_model, place_of, run
from shelves import manifest, write, write_flat
from waiting import eventually

from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.engine.models.model import OFFLINE_MODEL
from vector_index_mcp.processes import children

pytestmark = pytest.mark.anyio

TEXTS = {
    "docs/install.md": "Unpack the archive and run the installer.",
    "docs/fruit.md": "Bananas are yellow and rich in potassium.",
    "docs/errors.md": "Error E1234 means that the disk is full.",
}


async def put(folder):
    """A dataset of the original's making: a bare list of texts, and vectors of the usual model."""
    model = WorkerEmbedder(OFFLINE_MODEL, start_worker=children.start, remedy_of=str)
    async with model.running():
        vectors = await model.embed([*TEXTS.values()])
    write(folder / "manifest.json", manifest("handbook", index="index", metadata="metadata.json"))
    listed = [{"title": "", "path": path, "content": content} for path, content in TEXTS.items()]
    write(folder / "metadata.json", listed)
    (folder / "index").mkdir()
    write_flat(folder / "index/docs.index", vectors)


def client_of(place):
    command, *arguments = [*COMMAND, "datasets", "serve", str(place.folder / "datasets")]
    server = StdioServerParameters(
        command=command, args=arguments, env=place.variables, cwd=place.folder
    )
    return Client(stdio_client(server), read_timeout_seconds=MODEL_SECONDS)


async def answered(client, tool, **given):
    result = await client.call_tool(tool, given)
    [content] = result.content
    assert not result.is_error, content.text
    assert json.loads(content.text) == result.structured_content
    return result.structured_content


@pytest.mark.long
@needs_model
async def test_a_dataset_that_is_dropped_in_is_found_in_other_words():
    with place_of({}) as place:
        async with client_of(place) as client:
            assert (await answered(client, "knowledge.listDatasets"))["datasets"] == []
            await put(place.folder / "datasets/handbook")

            async def is_there():
                return (await answered(client, "knowledge.listDatasets"))["datasets"]

            await eventually(is_there)

            async def best(query):
                asked = {"dataset": "handbook", "query": query, "topK": 1}
                [result] = (await answered(client, "knowledge.search", **asked))["results"]
                return result["path"]

            assert await best("setting up the software") == "docs/install.md"
            assert await best("healthy food") == "docs/fruit.md"
            assert await best("E1234") == "docs/errors.md"


@pytest.mark.long
def test_the_command_lists_what_can_be_served_and_what_cannot():
    with place_of({}, **NO_MODEL) as place:
        root = place.folder / "datasets"

        def listed(*arguments):
            return run("datasets", "list", *arguments, cwd=place.folder, variables=place.variables)

        none = listed()
        told = f"there is no folder {root}; datasets are served as soon as it holds some\n"
        assert (none.returncode, none.stdout) == (0, told)
        assert "`datasets list FOLDER`" in none.stderr
        assert "`datasets index SOURCE --dataset-id ID` makes" in none.stderr
        assert "`datasets add FILE` unpacks" in none.stderr
        write(root / "good/manifest.json", manifest("good"))
        write(root / "good/metadata.json", [{"path": "a.md", "content": "A."}])
        (root / "good/index").mkdir()
        write_flat(root / "good/index/docs.index", np.ones((1, 1)))
        write(root / "bad/manifest.json", b"nope")
        write(root / "odd/manifest.json", manifest("a/../b"))
        found = listed()
        assert found.returncode == 1
        assert found.stdout.startswith("good  1 text  sentence-transformers/all-MiniLM-L6-v2")
        assert f"{root}/bad/manifest.json: the manifest is no JSON" in found.stdout
        assert f"{root}/odd/manifest.json: id: Invalid" in found.stdout
        told = json.loads(listed(str(root), "--json").stdout)
        assert [each["id"] for each in told["datasets"]] == ["good"]
        assert len(told["errors"]) == 2
