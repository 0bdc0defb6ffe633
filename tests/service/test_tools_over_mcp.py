"""The three tools as a client sees them."""

import json
import math
import sys
from itertools import pairwise

import anyio
import pytest
from fakes import FakeEmbedder
from mcp import Client, MCPError
from serving import (
    Gate,
    call,
    codebase_of,
    contents,
    converged,
    failing_call,
    found,
    serving,
    settled,
    status_of,
)
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import triggering
from vector_index_mcp.codebase.rendering import search_result
from vector_index_mcp.indexing import service as index_service
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.state import State
from vector_index_mcp.serving import sets
from vector_index_mcp.serving.server import Lazily, build_server

pytestmark = pytest.mark.anyio

FILES = {
    "shop/cart.py": "class ShoppingCart:\n    def addItem(self, car):\n        return car\n",
    "shop/http_client.py": "def fetch_with_retry(url):\n    return url\n",
    "docs/guide.md": "# Guide\n\nHow the warehouse is heated in winter.\n",
}


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_meets_a_server_with_three_tools(project, embedder, mode):
    async with serving(codebase_of(project, embedder), mode) as client:
        assert client.server_info.name == "vector-index-mcp"
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.resources is not None
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"trigger_index", "get_status", "search_index"}
        assert all(name in client.instructions for name in tools)
        assert (await settled(client))["indexed_file_count"] == 3
        assert "shop/cart.py" in await found(client, "shopping cart")


async def test_the_schemas_are_those_of_the_contract(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["get_status"].input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    force = tools["trigger_index"].input_schema["properties"]["force_reindex"]
    assert (force["type"], force["default"]) == ("boolean", False)
    search = tools["search_index"].input_schema
    assert search["required"] == ["query"]
    top_k = search["properties"]["top_k"]
    assert (top_k["type"], top_k["default"]) == ("integer", 5)
    assert (top_k["minimum"], top_k["maximum"]) == (1, 100)
    max_tokens = search["properties"]["max_tokens"]
    assert (max_tokens["type"], max_tokens["default"]) == ("integer", 8_000)
    assert (max_tokens["minimum"], max_tokens["maximum"]) == (500, 100_000)
    assert {"path", "language", "kind", "similar_to", "detail", "offset", "verbose"} < set(
        search["properties"]
    )
    assert tools["search_index"].annotations.read_only_hint
    assert tools["get_status"].annotations.read_only_hint
    assert not tools["trigger_index"].annotations.read_only_hint


async def test_what_every_agent_reads_before_it_begins_is_short(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        listed = (await client.list_tools()).model_dump(mode="json", by_alias=True)["tools"]
    assert [tool["name"] for tool in listed] == ["search_index", "get_status", "trigger_index"]
    assert len(json.dumps(listed)) <= 6_000
    assert not any("  " in tool["description"] or "\n" in tool["description"] for tool in listed)
    said = [p for tool in listed for p in tool["inputSchema"]["properties"].values()]
    assert all(argument["description"] for argument in said)


TAKEN = "query, top_k, path, language, max_tokens, kind, similar_to, regex, detail, offset, verbose"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search_index", {}, "query is missing"),
        (
            "search_index",
            {"query": 5},
            "query must be a text of at most 50,000 characters, in valid Unicode",
        ),
        ("search_index", {"query": "q", "top_k": 0}, "top_k must be a whole number from 1 to 100"),
        (
            "search_index",
            {"query": "q", "topK": 3},
            "there is no argument 'topK' (did you mean top_k?); "
            f"search_index takes {TAKEN}",
        ),
        (
            "search_index",
            {"limit": 3, "top_k": "many"},
            "query is missing; top_k must be a whole number from 1 to 100; there is no argument "
            f"'limit' (did you mean top_k?); search_index takes {TAKEN}",
        ),
        (
            "search_index",
            {"query": "q", "kind": "test", "detail": "all", "offset": -1},
            "kind must be one of code, docs, config, tests (did you mean tests?); detail must be "
            "one of full, snippets, locations; offset must be a whole number from 0 to 400",
        ),
        ("get_status", {"x": 1}, "there is no argument 'x'; get_status takes no arguments"),
        ("trigger_index", {"force_reindex": "perhaps"}, "force_reindex must be true or false"),
    ],
)  # fmt: skip
async def test_wrong_arguments_are_named_in_a_sentence(project, embedder, tool, arguments, words):
    async with serving(codebase_of(project, embedder)) as client:
        result = await client.call_tool(tool, arguments)
        assert (result.is_error, result.content[0].text) == (True, words)


async def test_a_hit_tells_where_its_text_stands(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        answer = await call(client, "search_index", query="ShoppingCart", verbose=True)
        hit = answer["results"][0]
        stored = (await contents(project / ".lancedb"))[0]["shop/cart.py::0"]
    text = FILES["shop/cart.py"]
    assert (answer["mode"], answer["note"]) == ("hybrid", None)
    assert hit["extracted_text_chunk"] == text
    assert (hit["file_path"], hit["start_line"], hit["end_line"]) == ("shop/cart.py", 1, 3)
    assert hit["document_id"] == "shop/cart.py::0"
    assert hit["content_hash"] == stored["content_hash"]
    assert hit["last_modified_timestamp"] == (project / "shop/cart.py").stat().st_mtime_ns / 1e9
    assert (hit["chunk_index"], hit["total_chunks"]) == (0, 1)
    assert hit["metadata"] == {"original_path": "shop/cart.py"}
    assert (hit["language"], hit["is_stale"], hit["is_cut"]) == ("python", False, False)
    assert (hit["scope"], hit["symbols"]) == ("", ["ShoppingCart", "addItem"])
    assert 0 < hit["score"] <= 1
    assert "vector" not in hit


async def test_an_agent_gets_what_it_acts_on_and_nothing_else(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        answer = await client.call_tool("search_index", {"query": "ShoppingCart"})
    structured = answer.structured_content
    assert set(structured) == {"results", "mode", "note"}
    hit = structured["results"][0]
    assert hit == {
        "file_path": "shop/cart.py",
        "start_line": 1,
        "end_line": 3,
        "score": hit["score"],
        "symbols": ["ShoppingCart", "addItem"],
        "extracted_text_chunk": FILES["shop/cart.py"],
    }


@pytest.mark.parametrize(
    "query",
    ["addItem", "add_item", "ADD-ITEM", "AddItem", "add item", "additem"],
)
async def test_an_identifier_is_found_in_any_spelling(project, query):
    embedder = FakeEmbedder()
    embedder.absent = "no model here"  # so that only the words can find it
    async with serving(codebase_of(project, embedder)) as client:
        assert await found(client, query) == ["shop/cart.py"]


async def test_a_text_is_found_by_its_meaning(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        assert (await found(client, "automobile"))[0] == "shop/cart.py"
        assert embedder.queries == ["automobile"]


async def test_without_vectors_the_answer_is_lexical_and_says_so(project, embedder):
    embedder.hold()
    async with serving(codebase_of(project, embedder)) as client:
        answer = await call(client, "search_index", query="retry")
        assert answer["mode"] == "lexical"
        assert [hit["file_path"] for hit in answer["results"]] == ["shop/http_client.py"]
        assert "by words only" in answer["note"]
        embedder.release()
        await settled(client)
        assert (await call(client, "search_index", query="retry"))["mode"] == "hybrid"


async def test_while_the_model_loads_the_answer_is_lexical_and_says_so(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
    again = FakeEmbedder()
    again.keep_loading()
    async with serving(codebase_of(project, again)) as client:
        answer = await call(client, "search_index", query="retry")
        assert answer["mode"] == "lexical"
        assert "still loading" in answer["note"]
        assert (await status_of(client))["model"]["state"] == "loading"
        again.finish_loading()
        assert (await call(client, "search_index", query="retry"))["mode"] == "hybrid"


async def test_a_state_that_no_tool_has_given_out_is_refused(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        with pytest.raises(MCPError, match="requestState"):
            await client.session.call_tool("get_status", {}, request_state="v1.AAAA")
        assert (await status_of(client))["status"] != "ERROR"


async def test_no_more_results_than_asked_for(project, embedder):
    write(project, {f"many/{i}.txt": f"common words number {i}" for i in range(20)})
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        for top_k in (1, 7):
            answer = await call(client, "search_index", query="common words", top_k=top_k)
            assert len(answer["results"]) == top_k
        scores = [hit["score"] for hit in answer["results"]]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("top_k", [0, 101, -1, "x", 2.5])
async def test_a_top_k_out_of_range_is_refused_by_name_and_range(project, embedder, top_k):
    async with serving(codebase_of(project, embedder)) as client:
        message = await failing_call(client, "search_index", query="cart", top_k=top_k)
        assert "top_k" in message
        assert "1 to 100" in message


@pytest.mark.parametrize("max_tokens", [499, 100_001, -1, "x", 2.5])
async def test_a_max_tokens_out_of_range_is_refused_by_name_and_range(
    project, embedder, max_tokens
):
    async with serving(codebase_of(project, embedder)) as client:
        message = await failing_call(client, "search_index", query="cart", max_tokens=max_tokens)
        assert "max_tokens" in message
        assert "500 to 100000" in message


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
async def test_an_empty_query_is_refused_with_the_remedy(project, embedder, query):
    async with serving(codebase_of(project, embedder)) as client:
        message = await failing_call(client, "search_index", query=query)
        assert "the query is empty; say in words or identifiers" in message


async def test_a_query_of_odd_signs_is_answered(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        for query in ("🙂", 'a"b\\c', "NOT ()", "x\x00y"):
            assert "results" in await call(client, "search_index", query=query)


@pytest.mark.parametrize(
    "arguments",
    [{"query": "a " * 25_001}, {"query": "\ud800"}, {"query": 1}, {"path": "a" * 4_097}]
    + [{"language": "a" * 101}],
)
async def test_texts_that_are_too_long_are_refused_in_a_sentence(project, embedder, arguments):
    [name] = arguments
    async with serving(codebase_of(project, embedder)) as client:
        message = await failing_call(client, "search_index", **{"query": "cart"} | arguments)
        assert f"{name} must be a text of at most" in message
        assert len(message) < 500


async def test_a_query_without_a_word_is_refused_with_the_remedy(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        for query in ("()", "'; --", "\x00", "->", "\u200b", "a" * 65, "…", "\u0301"):
            message = await failing_call(client, "search_index", query=query)
            assert "the query has no word that could be looked for" in message
            assert "use grep" in message


async def test_trigger_joins_the_run_under_way_and_reports_its_progress(project, embedder):
    codebase = codebase_of(project, embedder)
    gate = Gate(codebase)
    told, results = [], []

    async def on_progress(progress, total, message):
        told.append((progress, total, message))

    async with serving(codebase) as client:

        async def trigger(**options):
            results.append(await client.call_tool("trigger_index", {}, **options))

        async with anyio.create_task_group() as calls:
            calls.start_soon(lambda: trigger(progress_callback=on_progress))
            calls.start_soon(trigger)
            await gate.wait()
            status = await status_of(client)
            assert status["status"] == "SCANNING"
            assert status["current_run"]["kind"] == "start"
            embedder.hold()
            gate.open()

            async def is_being_embedded():
                return any("chunks embedded" in message for *_, message in told)

            await eventually(is_being_embedded)
            embedder.release()
    for result in results:
        assert not result.is_error
        report = result.structured_content
        assert report["complete"]
        assert report["run"]["kind"] == "start"
        assert report["run"]["files_indexed"] == 3
        assert (report["indexed_file_count"], report["embedded_chunk_count"]) == (3, 3)
    assert all(before[0] < after[0] <= after[1] for before, after in pairwise(told))


async def test_a_trigger_does_not_wait_for_a_model_that_turns_out_to_be_missing(
    project, embedder, monkeypatch
):
    monkeypatch.setattr(index_service, "_PROGRESS_SECONDS", math.inf)
    embedder.keep_loading()
    is_awaited = anyio.Event()

    async def on_progress(_, __, message):
        if "chunks embedded" in message:
            is_awaited.set()

    async with (
        serving(codebase_of(project, embedder)) as client,
        anyio.create_task_group() as calls,
    ):

        async def trigger():
            result = await client.call_tool("trigger_index", {}, progress_callback=on_progress)
            assert "there is no model" in result.structured_content["message"]

        calls.start_soon(trigger)
        await is_awaited.wait()
        embedder.fail_loading("there is no model")


async def test_a_cancelled_trigger_leaves_the_run_going(project, embedder):
    codebase = codebase_of(project, embedder)
    gate = Gate(codebase)
    async with serving(codebase) as client:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "trigger_index", {})
            await gate.wait()
            calls.cancel_scope.cancel()
        assert (await status_of(client))["status"] == "SCANNING"
        gate.open()
        assert (await settled(client))["last_run"]["files_indexed"] == 3


async def test_trigger_finds_what_no_event_told(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        nothing = await call(client, "trigger_index")
        assert (nothing["run"]["kind"], nothing["run"]["files_to_do"]) == ("request", 0)
        assert nothing["run"]["files_seen"] == 3
        assert nothing["complete"]


async def test_trigger_says_in_sentences_what_is_not_found_by_meaning(project, embedder):
    embedder.absent = "the model is not on this machine; connect to the network once"
    async with serving(codebase_of(project, embedder)) as client:
        report = await call(client, "trigger_index")
        assert not report["complete"]
        assert report["message"] == (
            "All text is indexed and can be found by words. Not all of it can be found by "
            "meaning: the model is not on this machine; connect to the network once."
        )


async def test_force_reindex_reads_everything_into_a_new_generation(project, embedder):
    codebase = codebase_of(project, embedder)
    rebuilding = Gate(codebase, lambda store: store.generation == 1)
    async with serving(codebase) as client:
        await settled(client)
        before = await contents(project / ".lancedb")
        embedded = len(embedder.texts)
        results = []

        async def trigger():
            results.append(await call(client, "trigger_index", force_reindex=True))

        async with anyio.create_task_group() as calls:
            calls.start_soon(trigger)
            await rebuilding.wait()
            status = await status_of(client)
            assert (status["status"], status["indexed_file_count"]) == ("SCANNING", 3)
            assert status["current_run"]["kind"] == "rebuild"
            assert (await found(client, "retry"))[0] == "shop/http_client.py"
            assert codebase.index.indexer.live.index.manifest.generation == 0
            rebuilding.open()
        assert results[0]["run"]["kind"] == "rebuild"
        assert (results[0]["run"]["files_read"], results[0]["run"]["files_indexed"]) == (3, 3)
        assert results[0]["complete"]
        assert codebase.index.indexer.live.index.manifest.generation == 1
        assert len(embedder.texts) == embedded
        assert await contents(project / ".lancedb") == before
        assert (await call(client, "search_index", query="retry"))["mode"] == "hybrid"


async def test_what_changes_during_a_rebuild_is_in_the_new_index(project, embedder):
    # More than one batch, so that files read early can change before the last ones are read.
    write(project, {f"many/{i:03}.txt": f"filler number {i}" for i in range(150)})
    codebase = codebase_of(project, embedder, quiet_seconds=0.0)
    rebuilding = Gate(codebase, lambda store: store.generation == 1)
    async with serving(codebase) as client:
        await settled(client)
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, "trigger_index", {"force_reindex": True})
            await rebuilding.wait()
            write(project, {"docs/guide.md": "glacier", "new.txt": "volcano"})
            (project / "shop/cart.py").unlink()

            async def are_noticed():
                return (await status_of(client))["pending_path_count"] >= 3

            await eventually(are_noticed)
            rebuilding.open()
        await settled(client)
        assert codebase.index.indexer.live.index.manifest.generation == 1
        assert (await found(client, "glacier"))[0] == "docs/guide.md"
        assert (await found(client, "volcano"))[0] == "new.txt"
        rows, records = await contents(project / ".lancedb")
        assert not any("warehouse" in row["extracted_text_chunk"] for row in rows.values())
        assert "shop/cart.py" not in records
        assert len(records) == 153


async def test_force_reindex_during_a_run_begins_when_that_one_has_ended(project, embedder):
    codebase = codebase_of(project, embedder)
    gate = Gate(codebase)
    async with serving(codebase) as client:
        results = []

        async def trigger():
            results.append(await call(client, "trigger_index", force_reindex=True))

        async with anyio.create_task_group() as calls:
            calls.start_soon(trigger)
            await gate.wait()
            gate.open()
        assert results[0]["run"]["kind"] == "rebuild"
        assert codebase.index.indexer.live.index.manifest.generation == 1


async def test_who_forces_a_rebuild_during_a_run_waits_no_longer_than_others_do(
    project, embedder, monkeypatch
):
    monkeypatch.setattr(triggering, "PATIENCE_SECONDS", 0.0)
    codebase = codebase_of(project, embedder)
    gate = Gate(codebase)
    async with serving(codebase) as client:
        await gate.wait()
        for _ in range(2):
            result = await call(client, "trigger_index", force_reindex=True)
            assert (result["complete"], result["run"]["kind"]) == (False, "rebuild")
            assert not result["run"]["finished"]
        gate.open()
        await settled(client)
        assert codebase.index.indexer.live.index.manifest.generation == 1
        assert codebase.index.indexer.runs.last.kind == "rebuild"


async def test_a_scan_that_failed_for_a_while_has_one_start_and_an_end(project, embedder):
    codebase = codebase_of(project, embedder)
    gate = Gate(codebase)
    async with serving(codebase) as client:
        await gate.wait()
        started = (await status_of(client))["last_scan_start_time"]
        codebase.index.state.enter(State.ERROR, "the disk is full")
        codebase.index.state.enter(State.SCANNING)
        gate.open()
        status = await settled(client)
        assert status["last_scan_start_time"] == started
        assert status["last_scan_end_time"] >= started


async def test_the_status_tells_what_takes_unusually_long(project, embedder):
    codebase = codebase_of(project, embedder)
    async with serving(codebase) as client:
        await settled(client)
        assert (await status_of(client))["waiting_for"] == []
        codebase.index.activity.long_seconds = 0.0
        embedder.hold()
        write(project, {"stalled.py": "stalledword = 1\n"})

        async def is_told():
            return "the embedding of chunks for 0 s" in (await status_of(client))["waiting_for"]

        await eventually(is_told)
        embedder.release()
        await settled(client)
        assert (await status_of(client))["waiting_for"] == []


async def test_the_status_tells_what_is_not_indexed_and_why(project, embedder):
    (project / "logo.dat").write_bytes(b"\x00\x01\x02" * 100)
    write(project, {".env": "TOKEN=1", "empty.txt": ""})
    async with serving(codebase_of(project, embedder)) as client:
        status = await settled(client)
    assert status["project_path"] == str(project)
    assert status["status"] == "WATCHING"
    assert status["error_message"] is None
    assert status["last_scan_start_time"] <= status["last_scan_end_time"]
    assert (status["indexed_chunk_count"], status["embedded_chunk_count"]) == (3, 3)
    assert status["indexed_file_count"] == 4
    assert status["skipped"] == {"binary": 1, "may hold secrets": 1}
    assert status["failed"] == {}
    watcher = status["watcher"]
    assert (watcher["mode"], watcher["problem"]) == ("events", None)
    assert "within 30 s" in watcher["blind_spot"]
    assert status["is_writer"]
    assert status["model"]["name"] == "fake"
    assert status["model"]["dimension"] == 64
    assert status["model"]["chunks_embedded"] == 3
    assert status["index_location"] == str(project / ".lancedb")
    assert status["index_bytes"] > 0
    assert status["last_run"]["finished"]
    assert status["current_run"] is None


async def test_an_empty_project_is_watched_and_answers_with_nothing(tmp_path, embedder):
    root = tmp_path / "empty"
    root.mkdir()
    async with serving(codebase_of(root, embedder)) as client:
        status = await settled(client)
        assert (status["indexed_file_count"], status["indexed_chunk_count"]) == (0, 0)
        assert await found(client, "anything") == []
        rebuilt = await call(client, "trigger_index", force_reindex=True)
        assert rebuilt["complete"]
        write(root, {"first.txt": "anything at all"})

        async def is_found():
            return await found(client, "anything") == ["first.txt"]

        await eventually(is_found)


async def test_a_changed_file_among_the_hits_is_flagged_until_it_is_indexed(project, embedder):
    codebase = codebase_of(project, embedder)
    async with codebase.running(Role.VISITOR):  # without a watcher, so only the search can notice
        await converged(codebase)
        codebase.index.indexer.live.no_patience_before = float("inf")  # do not wait for changes
        write(project, {"shop/cart.py": "class ShoppingCart:\n    emptied = True\n"})
        (project / "docs/guide.md").unlink()

        async def search():
            answer = await codebase.search("ShoppingCart warehouse", 5)
            return search_result(answer, 8_000).results

        hits = await search()
        assert [hit.file_path for hit in hits if hit.is_stale] == ["shop/cart.py"]
        assert "docs/guide.md" not in {hit.file_path for hit in hits}

        async def is_fresh():
            hit = (await search())[0]
            is_forgotten = codebase.index.ledger.get("docs/guide.md") is None
            return "emptied" in hit.extracted_text_chunk and not hit.is_stale and is_forgotten

        await eventually(is_fresh)


async def test_the_service_is_loaded_after_the_first_answer_and_not_before(project, embedder):
    loaded = []

    async def load():
        loaded.append(True)
        return codebase_of(project, embedder)

    service = Lazily(load)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        server = build_server(sets.named(sets.CODEBASE), service)
        await anyio.wait_all_tasks_blocked()
        assert loaded == []
        async with Client(server, mode="legacy"):

            async def is_loaded():
                return loaded

            await eventually(is_loaded)  # although no tool was called
        tasks.cancel_scope.cancel()
    assert loaded == [True]


async def test_a_service_ends_whose_memory_does_not_even_hold_a_message():
    async def exhaust_memory(_ctx, _call_next):
        return bytearray(sys.maxsize)

    service = Lazily(codebase_of)  # would fail, if it was called
    server = build_server(sets.named(sets.CODEBASE), service)
    server.middleware.append(exhaust_memory)
    told = pytest.RaisesExc(MCPError, match="not enough memory.*raise the limit")
    with pytest.RaisesGroup(told, flatten_subgroups=True):
        async with Client(server, mode="legacy"):
            pass
    with pytest.raises(MemoryError):
        await service.run()


async def test_the_status_tells_the_last_changes_newest_first(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        write(project, {"new.py": "def new():\n    pass\n"})
        await eventually(lambda: _last_change(client, "new.py", "indexed"))
        (project / "new.py").write_bytes(bytes(range(256)))
        await eventually(lambda: _last_change(client, "new.py", "skipped"))
        (project / "new.py").unlink()
        await eventually(lambda: _last_change(client, "new.py", "removed"))
        changes = (await status_of(client))["last_changes"]
        assert [c["change"] for c in changes[:3]] == ["removed", "skipped", "indexed"]
        assert [c["time"] for c in changes] == sorted((c["time"] for c in changes), reverse=True)


async def _last_change(client, path, change):
    changes = (await status_of(client))["last_changes"]
    return changes and (changes[0]["file_path"], changes[0]["change"]) == (path, change)


async def test_the_status_tells_no_more_than_the_last_ten_changes(tmp_path, embedder):
    root = tmp_path / "many"
    write(root, {f"f{number}.py": f"x = {number}\n" for number in range(15)})
    async with serving(codebase_of(root, embedder)) as client:
        await settled(client)
        assert len((await status_of(client))["last_changes"]) == 10


async def test_the_status_counts_the_queries_that_were_answered(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        assert (await status_of(client))["queries"] == {
            "answered": 0,
            "last_time": None,
            "last_seconds": None,
        }
        await call(client, "search_index", query="parse")
        await failing_call(client, "search_index", query=" ")
        queries = (await status_of(client))["queries"]
        assert queries["answered"] == 1
        assert queries["last_time"]
        assert queries["last_seconds"] > 0
