"""From an index of one user to an answer for another: export, pack, add, search, for real."""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import COMMAND, MODEL_SECONDS, NO_MODEL, needs_model, place_of, run
from writing import write

pytestmark = [pytest.mark.long, pytest.mark.anyio]

PROJECT = {
    "net/backoff.py": (
        "def attempt_again(call, tries):\n"
        '    """Wait twice as long after every failed request before the next one."""\n'
        "    for number in range(tries):\n        pause(2**number)\n        call()\n"
    ),
    "shop/cart.py": "class Cart:\n    def total_price(self):\n        return sum(self.prices)\n",
}
GUIDE = {
    "guide/install.md": "# Installation\n\nUnpack the archive and run the installer.\n",
    "guide/fruit.md": "# Fruit\n\nBananas are yellow and rich in potassium." + " Peel them." * 40,
    "guide/picture.svg": "<svg/>\n",
}


def ran(place, *arguments, status=0):
    done = run("datasets", *arguments, cwd=place.folder, variables=place.variables)
    assert done.returncode == status, done
    return done


def commit(place):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=place.project, env=place.variables, check=True)


async def paths(place, root, dataset, query):
    command, *arguments = [*COMMAND, "datasets", "serve", str(root)]
    server = StdioServerParameters(
        command=command, args=arguments, env=place.variables, cwd=place.folder
    )
    async with Client(stdio_client(server), read_timeout_seconds=MODEL_SECONDS) as client:
        asked = {"dataset": dataset, "query": query}
        result = await client.call_tool("knowledge.search", asked)
        assert not result.is_error, result.content
        return [each["path"] for each in result.structured_content["results"]]


@needs_model
async def test_what_one_user_has_indexed_another_one_finds():
    with place_of(PROJECT) as mine, place_of({}) as theirs:
        commit(mine)
        ran(
            mine, "export", "codebase", str(mine.project), "--dataset-id", "shop-code",
            "--name", "The shop", "--license", "MIT",
        )  # fmt: skip
        said = json.loads((mine.folder / "datasets/shop-code/manifest.json").read_text("utf-8"))
        facts = ("id", "name", "license", "source", "model", "documentCount", "chunkCount")
        assert [said[name] for name in facts] == [
            "shop-code", "The shop", "MIT", "project", "all-MiniLM-L6-v2", 2, 2,
        ]  # fmt: skip
        assert len(said["sourceRevision"]) == 40
        assert str(mine.folder) not in str(said)
        file = mine.folder / "shop.tar.zst"
        ran(mine, "pack", "datasets/shop-code", str(file))
        told = ran(theirs, "add", str(file)).stdout
        assert "Added shop-code (The shop)" in told
        root = theirs.folder / "datasets"
        found = await paths(theirs, root, "shop-code", "retry with growing pauses")
        assert found[0] == "net/backoff.py"
        assert (await paths(theirs, root, "*", "Cart"))[0] == "shop/cart.py"
        told = ran(theirs, "delete", "shop-code", "--yes").stdout
        assert told == "Deleted shop-code\n"
        assert list(root.iterdir()) == []


@needs_model
async def test_a_folder_of_texts_becomes_a_dataset():
    with place_of(GUIDE) as place:
        arguments = ("index", str(place.project), "--dataset-id", "guide")
        made = json.loads(ran(place, *arguments).stdout)
        root = place.folder / "datasets"
        assert made.pop("durationMs") > 0
        assert made == {
            "datasetId": "guide",
            "documents": 2,
            "chunks": 2,
            "model": "all-MiniLM-L6-v2",
            "embeddingDimensions": 384,
            "indexPath": str(root / "guide/index"),
            "metadataPath": str(root / "guide/metadata.json"),
        }
        assert (await paths(place, root, "guide", "setting up"))[0] == "guide/install.md"
        again = ran(place, *arguments, status=1)
        assert json.loads(again.stderr) == {"error": "Dataset 'guide' already exists"}


@needs_model
def test_a_search_may_name_several_datasets_or_all():
    with place_of(GUIDE) as place:
        for name, folder in (("guide", "guide"), ("fruit", "guide/fruits")):
            write(place.project, {f"{folder}/{name}.md": f"# {name}\n\nOf bananas, for {name}."})
            ran(place, "index", str(place.project / folder), "--dataset-id", name)
        (place.folder / "datasets/broken").mkdir()
        (place.folder / "datasets/broken/manifest.json").write_text("{")
        both = {"guide", "fruit"}
        for ids, named in (("*", both), ("guide,fruit", both), ("guide,", {"guide"})):
            done = ran(place, "search", ids, "bananas for fruit")
            places = [line.rpartition("  ")[2] for line in done.stdout.splitlines()[::2]]
            assert {each.partition(": ")[0] for each in places} == named
            assert done.stderr == ""
        done = ran(place, "search", "guide,ghost", "bananas", status=2)
        assert "Dataset 'ghost' not found. Available datasets: fruit, guide" in done.stderr
    with place_of({}) as place:
        done = ran(place, "search", "*", "bananas", status=1)
        assert "there is no folder" in done.stderr


@needs_model
def test_a_dataset_is_added_to_looked_at_and_examined():
    with place_of(GUIDE) as place:
        ran(place, "index", str(place.project), "--dataset-id", "guide", "--license", "MIT")
        write(place.folder, {"more/ships.md": "# Ships\n\nA ship sails on the sea.\n"})
        more = ("index", str(place.folder / "more"), "--dataset-id", "guide", "--append")
        made = json.loads(ran(place, *more).stdout)
        assert (made["documents"], made["chunks"]) == (3, 3)
        assert Path(made["indexPath"]).is_dir()
        told = ran(place, "info", "guide").stdout
        assert [line.split() for line in told.splitlines() if line.startswith(("Doc", "Lic"))] == [
            ["Documents", "3"], ["License", "MIT"],
        ]  # fmt: skip
        assert json.loads(ran(place, "info", "guide", "--json").stdout)["chunkCount"] == 3
        told = ran(place, "validate", "guide").stdout
        assert told == "guide: can be served (3 texts, 384 dimensions, all-MiniLM-L6-v2)\n"
        metadata = place.folder / "datasets/guide/metadata.json"
        whole = metadata.read_bytes()
        metadata.write_bytes(whole[:50])
        told = ran(place, "validate", "guide", status=1).stdout
        assert "metadata.json cannot be read" in told
        metadata.write_bytes(whole)
        manifest = place.folder / "datasets/guide/manifest.json"
        manifest.write_text(manifest.read_text().replace('"chunkCount": 3', '"chunkCount": 4'))
        told = json.loads(ran(place, "validate", "guide", "--json", status=1).stdout)
        assert told["errors"] == ["the manifest says chunkCount 4, and the table has 3"]
        shutil.rmtree(place.folder / "datasets/guide/index-2/chunks.lance")
        assert "guide: " in ran(place, "validate", "guide", status=1).stdout


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ('{"id": ', "the manifest is no JSON"),
        ("[]", "the manifest: Expected object"),
        ('{"name": "x"}', "id: "),
    ],
)
def test_what_is_wrong_with_a_manifest_is_told_whose_folder_is_named(manifest, words):
    with place_of({}, **NO_MODEL) as place:
        write(place.folder, {"datasets/bad/manifest.json": manifest})
        done = ran(place, "validate", "bad", status=2)
        path = place.folder / "datasets/bad/manifest.json"
        assert f"{path}: " in done.stderr
        assert words in done.stderr
        assert "does not exist" not in done.stderr
        assert "does not exist" in ran(place, "validate", "good", status=2).stderr


async def test_an_mcp_client_of_the_original_needs_no_other_arguments():
    with place_of({}, **NO_MODEL) as place:
        write(place.folder, {"elsewhere/broken/manifest.json": "{ nope"})
        arguments = ["datasets", "--stdio", "--datasets", "elsewhere", "--log-level", "debug"]
        command, *before = COMMAND
        server = StdioServerParameters(
            command=command, args=[*before, *arguments], env=place.variables, cwd=place.folder
        )
        async with Client(stdio_client(server), read_timeout_seconds=MODEL_SECONDS) as client:
            listed = await client.call_tool("knowledge.listDatasets", {"includeErrors": True})
            [failed] = listed.structured_content["datasets"]
            assert failed["id"] == "broken"
            path = place.folder / "elsewhere"
            assert ran(place, "stop", "elsewhere").stdout == f"ended the service of {path}\n"


def test_the_console_of_the_original_answers_over_http():
    with place_of({}) as place:
        (place.folder / "elsewhere").mkdir()
        command = [*COMMAND, "datasets", "console"]
        variables = place.variables | {"MCPOWER_WEB_PORT": "0", "MCPOWER_DATASETS": "elsewhere"}
        with subprocess.Popen(
            command, env=variables, cwd=place.folder, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                [address] = re.findall("listening on (http://[0-9.:]+)", process.stderr.readline())
                told = httpx.get(f"{address}/api/datasets", timeout=60)
                assert told.json() == {"datasets": []}
            finally:
                process.terminate()
        assert process.returncode == 0


def test_what_is_wrong_with_its_address_is_told_of_the_variable_that_gave_it():
    with place_of({}) as place, socket.create_server(("127.0.0.1", 0)) as taken:
        (place.folder / "elsewhere").mkdir()
        port = str(taken.getsockname()[1])

        def told(*options, **variables):
            given = {f"MCPOWER_WEB_{name}": value for name, value in variables.items()}
            command = ["datasets", "console", "elsewhere", *options]
            done = run(*command, cwd=place.folder, variables=place.variables | given)
            assert done.returncode != 0
            return done.stderr

        assert "or choose another port with MCPOWER_WEB_PORT\n" in told(PORT=port)
        assert "or choose another port with --port\n" in told("--port", port, PORT="0")
        local = "or listen on this machine alone, with"
        assert f"{local} MCPOWER_WEB_HOST=127.0.0.1\n" in told(HOST="0.0.0.0")
        assert f"{local} --host 127.0.0.1\n" in told("--host", "0.0.0.0", HOST="::1")
        place.variables["VECTOR_INDEX_HTTP_TOKEN"] = "x" * 32
        assert "choose another one with MCPOWER_WEB_HOST\n" in told(HOST="no..name", PORT="0")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dataset-id", "Bad_ID"], "Dataset ID must be lowercase alphanumeric with hyphens only"),
        (["--dataset-id", "none", "--file-types", "xyz"], "No supported files found to index"),
    ],
)
def test_what_cannot_be_made_is_told_as_json(arguments, words):
    with place_of(GUIDE, **NO_MODEL) as place:
        done = ran(place, "index", str(place.project), *arguments, status=1)
        assert json.loads(done.stderr.splitlines()[-1]) == {"error": words}
        assert not (place.folder / "datasets").exists() or not any(
            (place.folder / "datasets").iterdir()
        )


def test_a_folder_that_is_not_there_is_told():
    with place_of({}) as place:
        done = ran(place, "serve", "gone")
        assert done.stderr.startswith(
            f"vector-index-mcp: there is no folder {place.folder / 'gone'}; "
        )
        assert ran(place, "serve", str(place.folder)).stderr == ""


def test_what_is_not_there_is_not_deleted():
    with place_of({}) as place:
        done = ran(place, "delete", "ghost", "--yes", status=2)
        assert "Dataset 'ghost' does not exist" in done.stderr


# -- for scripts that called the original's bridge ---------------------------------------------


@needs_model
def test_a_script_gets_json_from_the_commands_of_the_bridge():
    with place_of(GUIDE) as place:
        ran(place, "index", str(place.project), "--dataset-id", "guide")
        index = place.folder / "datasets/guide/index"
        found = json.loads(ran(place, "search", "--index", str(index), "--query", "bananas").stdout)
        assert found["results"][0]["path"] == "guide/fruit.md"
        assert set(found["results"][0]) == {"score", "title", "path", "snippet"}
        assert found["dataset_size"] == 2
        assert found["duration_ms"] >= 0
        told = json.loads(ran(place, "validate-index", "--index", str(index)).stdout)
        assert told["status"] == "ok"
        assert told["properties"] == {"is_trained": True, "ntotal": 2, "d": 384}
        assert json.loads(ran(place, "health-check").stdout)["status"] == "ok"
        shown = ran(place, "search", "guide", "yellow", "fruit").stdout.splitlines()
        assert shown[0].startswith("1. ")
        assert shown[0].endswith("guide/fruit.md")
        assert shown[1].endswith("…")
        assert len(shown[1]) <= 304
        done = ran(place, "search", "guid", "fruit", status=2)
        assert "Dataset 'guid' does not exist" in done.stderr
        done = ran(place, "search", "guide", "x" * 2_000, status=2)
        assert "at most 1024 character(s)" in done.stderr
        assert "Traceback" not in done.stderr
        for wrong in (["guide"], ["guide", "fruit", "--index", str(index)], ["--query", "fruit"]):
            ran(place, "search", *wrong, status=2)
        [data] = (index / "chunks.lance/data").iterdir()
        data.write_bytes(data.read_bytes()[:-50])
        done = ran(place, "list", status=1)
        assert "guide/manifest.json: its table is damaged" in done.stdout
        assert done.stderr == "", "what the library said is for a log"


def test_a_script_is_told_what_is_wrong_as_json():
    with place_of({"docs.index": "no index"}, **NO_MODEL) as place:
        index = str(place.project / "docs.index")
        told = json.loads(ran(place, "validate-index", "--index", index, status=1).stdout)
        assert told == {"status": "error", "error": "the index is no flat index of FAISS"}
        done = ran(place, "search", "--index", index, "--query", "q", status=1)
        assert set(json.loads(done.stderr.splitlines()[-1])) == {"error", "error_type"}
        done = ran(place, "search", "--index", index, "--query", " ", status=1)
        assert json.loads(done.stderr.splitlines()[-1])["error_type"] == "WrongArguments"
