"""A miss does not look like a hit: what stands nowhere is named, and what a limit may mean."""

import json
import re
from dataclasses import replace
from functools import partial

import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, converged, failing_call, served, serving, settled
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import service, wanted
from vector_index_mcp.errors import StoreError
from vector_index_mcp.files import secrets
from vector_index_mcp.indexing.answering import checking
from vector_index_mcp.indexing.answering.asking import ask

pytestmark = pytest.mark.anyio

FILES = {
    "src/net/http_client.py": "def send_request(url):\n    return retry(url)\n",
    "src/net/notes.txt": "How a request is sent, and what is done when it fails.\n",
    "src/shop/cart.ts": "export function addItem(item) { return charge(item); }\n",
    "tests/test_cart.py": "def test_charge():\n    charge(1)\n",
    "tests/README.md": "# Tests\n\nHow to charge in tests.\n",
    "docs/guide.md": "# Guide\n\nHow to charge a card.\n",
    "settings.toml": "[charge]\nlimit = 3\n",
    "deploy.yaml": "charge: 5\n",
    "app/style.css": ".charge { color: red }\n",
}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


_STANDS = "`send_request` stands in files outside of"


@pytest.mark.parametrize(
    ("limit", "said_of_it"),
    [
        ({"kind": "docs"}, f"{_STANDS} kind 'docs', which were not searched."),
        ({"path": "tests/*"}, f"{_STANDS} path 'tests/*', which were not searched."),
        ({"path": "src"}, None),
        ({"query": "END", "kind": "code"}, None),  # which `send_request` does not contain
        ({}, None),
    ],
)
async def test_a_name_that_a_limit_leaves_out_is_not_said_to_be_nowhere(client, limit, said_of_it):
    text = await said(client, **{"query": "send_request"} | limit)
    assert (said_of_it in text) if said_of_it else ("outside of" not in text)
    assert "outside of" not in await said(client, **limit | {"query": "nonexistent_thing_xyz"})


@pytest.fixture(scope="module")
async def client(tmp_path_factory):
    """A client of a project that the tests leave alone."""
    root = tmp_path_factory.mktemp("shared") / "project"
    root.mkdir()
    async with serving(codebase_of(write(root, FILES), FakeEmbedder())) as client:
        await settled(client)
        yield client


@pytest.fixture
async def own_client(project):
    """A client of a project of one test."""
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        yield client


async def said(client, **arguments):
    return (await client.call_tool("search_index", arguments)).content[0].text


async def test_a_slip_is_corrected_only_if_nothing_else_is_asked(tmp_path):
    files = {"connection.py": "class Connection: ...\n", "storage.py": "class Storage: ...\n"}
    async with served(tmp_path / "project", files) as client:
        assert "results for `Connection`" in await said(client, query="conection")
        for query in ("conection/storge", "conection/storage"):
            text = await said(client, query=query)
            assert "results for" not in text
            assert "storage.py" in text


@pytest.mark.parametrize(
    "query",
    ["nonexistent_thing_xyz", "where is nonexistent_thing_xyz defined", "Foo::zebraCrossing"],
)
async def test_an_identifier_that_stands_nowhere_is_named_before_the_nearest(client, query):
    name = query.split()[2] if " " in query else query
    text = await said(client, query=query)
    assert text.startswith(f"No searched file contains `{name}`; nearest:\n")
    answer = await call(client, "search_index", query=query)
    assert answer["absent"] == [name]
    miss = f"No searched file contains `{name}`; these are the nearest."
    assert answer["note"].startswith(miss)


@pytest.mark.parametrize(
    ("query", "is_absent"),
    [("QUIC", True), ("where is QUIC handled", True), ("API", False), ("quic", False)]
    + [("a QUIC-based server", True), ("QUIC/HTTP3 server", True)],
)
async def test_an_acronym_is_no_part_of_a_word(tmp_path, query, is_absent):
    files = {"fast.py": "def quick_api():\n    return QUICKSORT\n", "slow.py": "x = 1\n"}
    async with served(tmp_path / "project", files) as client:
        note = (await call(client, "search_index", query=query))["note"] or ""
        assert ("No searched file contains" in note) == is_absent


async def test_of_a_sentence_without_spaces_no_fragment_is_said_to_be_missing(tmp_path):
    files = {"db.py": "# 连接数据库\ndef connect(): ...\n", "other.py": "x = 1\n"}
    async with served(tmp_path / "project", files) as client:
        answer = await call(client, "search_index", query="数据库连接怎么做才好")
        assert "No searched file contains" not in (answer["note"] or "")
        assert answer["results"][0]["file_path"] == "db.py"


@pytest.mark.parametrize("query", ["PDF", "where is the PDF made", "URL", "TLS"])
async def test_an_acronym_in_a_name_is_said_to_be_contained(tmp_path, query):
    files = {
        "pages.py": "def mergePDFs(pages):\n    return parseURLs(pages)\n",
        "mail.py": 'MODE = "STARTTLS"\n',
        "other.py": "x = 1\n",
    }
    async with served(tmp_path / "project", files) as client:
        answer = await call(client, "search_index", query=query)
        assert "No searched file contains" not in (answer["note"] or "")
        assert answer["results"][0]["file_path"] != "other.py"


async def test_a_name_is_found_wherever_it_stands_in_a_long_line(tmp_path):
    names = [f"someIdentifierName{number}" for number in range(200)]
    async with served(tmp_path / "project", {"one.json": f"{names}\n"}) as client:
        for name in names[::7]:
            answer = await call(client, "search_index", query=name, detail="snippets")
            assert "absent" not in answer
            assert name in answer["results"][0]["extracted_text_chunk"]


async def test_an_empty_file_that_is_asked_for_by_its_path_is_named(tmp_path):
    files = {f"{folder}/__init__.py": "" for folder in "abcdz"}
    files |= {"a/one.py": "x = 1\n", "b/blank.py": "\n\n"}
    async with served(tmp_path / "project", files) as client:
        answer = await call(client, "search_index", query="z/__init__.py")
        assert answer["note"] == "'z/__init__.py' exists and is empty."
        answer = await call(client, "search_index", query="explain b/blank.py")
        assert answer["note"] == "'b/blank.py' exists and is empty."
        answer = await call(client, "search_index", query="x", path="z/__init__.py")
        assert answer["note"] == "'z/__init__.py' is empty."


async def test_who_skips_all_results_is_told_how_many_there_are(client):
    answer = await call(client, "search_index", query="send_request", offset=90)
    assert answer["results"] == []
    assert re.fullmatch(r"There are only \d+ results, and offset 90 leaves none\.", answer["note"])


async def test_the_pages_of_similar_code_do_not_overlap(tmp_path):
    files = {
        f"part_{n}.py": f"def part_{n}(x):\n    return charge(x, {'card' * (n % 3)})\n"
        for n in range(60)
    }
    async with served(tmp_path / "project", files) as client:
        found = []
        for offset in range(0, 50, 5):
            answer = await call(
                client,
                "search_index",
                query="card",
                similar_to="part_0.py:1",
                offset=offset,
                top_k=5,
            )
            found += [(hit["file_path"], hit["score"]) for hit in answer["results"]]
    assert len({file for file, _ in found}) == len(found) == 50
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


async def test_words_that_say_little_are_not_told_as_missing(tmp_path):
    files = {"retry.py": "def pause(attempt):\n    return 2 ** attempt  # seconds to wait\n"}
    async with served(tmp_path / "project", files) as client:
        note = (await call(client, "search_index", query="how long to wait after a flood"))["note"]
        assert "No searched file contains 'flood'." in note
        assert (await call(client, "search_index", query="after"))["absent"] == ["after"]
        asked = "who was told at pause:412, Line 7, after five"
        note = (await call(client, "search_index", query=asked))["note"]
        assert "No searched file contains" not in (note or "")
        note = (await call(client, "search_index", query="pause for 412 seconds"))["note"]
        assert "No searched file contains '412'." in note


async def test_an_ignore_file_that_is_too_large_to_be_obeyed_is_named(tmp_path):
    rules = "".join(f"/nowhere/{number:030}\n" for number in range(26_000))
    files = {"one.py": "apple = 1\n", "lib/secret.py": "banana = 1\n"}
    async with served(tmp_path / "project", files | {"lib/.gitignore": rules}) as client:
        note = (await call(client, "search_index", query="banana"))["note"]
        assert "1 ignore file is not obeyed (see get_status)." in note
        status = await call(client, "get_status")
        assert status["failed"]["lib/.gitignore"].startswith("not obeyed: what it excludes is")
        write(tmp_path / "project", {"lib/.gitignore": "secret.py\n"})

        async def is_obeyed():
            answer = await call(client, "search_index", query="banana")
            return "lib/secret.py" not in [hit["file_path"] for hit in answer["results"]]

        await eventually(is_obeyed)
        assert not (await call(client, "get_status"))["failed"]


async def test_where_nothing_else_is_indexed_nothing_can_be_similar(tmp_path):
    files = {"one.py": "def pause(attempt):\n    return 2 ** attempt\n"}
    async with served(tmp_path / "project", files) as client:
        answer = await client.call_tool("search_index", {"query": "", "similar_to": "one.py:1"})
        assert "Nothing else is indexed." in answer.content[0].text
        assert "other words" not in answer.content[0].text


async def test_where_something_else_is_indexed_nobody_says_there_is_not(tmp_path):
    """Without vectors, only words tell what is similar, and these two share none."""
    files = {"one.py": "def pause(attempt):\n    return attempt\n", "two.py": "stripes = 7\n"}
    embedder = FakeEmbedder()
    embedder.absent = "no model"
    async with serving(codebase_of(write(tmp_path / "project", files), embedder)) as client:
        await settled(client, with_vectors=False)
        answer = await client.call_tool("search_index", {"query": "", "similar_to": "one.py:1"})
        assert "Nothing else is indexed." not in answer.content[0].text


async def test_a_single_word_that_is_mistyped_shows_what_the_name_finds(client):
    text = await said(client, query="sendRequst")
    assert text.startswith("No searched file contains `sendRequst`; results for `send_request`:\n")
    answer = await call(client, "search_index", query="sendRequst")
    assert answer["absent"] == ["sendRequst"]
    note = "No searched file contains `sendRequst`; these are results for `send_request`."
    assert answer["note"].startswith(note)
    same = await call(client, "search_index", query="send_request")
    assert answer["results"] == same["results"]


@pytest.mark.parametrize(("query", "is_word"), [("chargee", True), ("sendRequst", False)])
async def test_what_may_be_a_word_and_no_slip_is_told_how_to_be_found(client, query, is_word):
    told = await said(client, query=query)
    assert "results for" in told
    assert (f"If '{query}' is meant, ask in more words." in told) == is_word


async def test_a_name_is_guessed_as_soon_as_it_is_saved(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with serving(codebase) as client:
        await settled(client)
        before = await call(client, "search_index", query="walkTheZebraa")
        assert "these are the nearest" in before["note"]
        write(project, {"zoo.py": "def walk_the_zebra():\n    pass\n"})
        await call(client, "trigger_index")
        await converged(codebase)
        after = await call(client, "search_index", query="walkTheZebraa")
        assert "these are results for `walk_the_zebra`" in after["note"]


@pytest.mark.parametrize("query", ["sendRequst", "sendRequest"])
async def test_a_name_that_stands_outside_of_what_is_searched_is_not_guessed(client, query):
    answer = await call(client, "search_index", query=query, path="docs")
    assert answer["note"].startswith(f"No searched file contains `{query}`; these are the nearest.")


async def test_the_lines_that_are_shown_are_those_of_the_name_that_was_searched(client):
    whole = {"detail": "snippets", "path": "src/net"}
    typed = await call(client, "search_index", query="sendRequst", **whole)
    meant = await call(client, "search_index", query="send_request", **whole)
    assert typed["results"] == meant["results"]


async def test_of_a_mistyped_word_among_others_it_is_told_what_is_meant(client):
    query = "how is the requst sent"
    note = "No searched file contains 'requst' (did you mean `request`?)."
    assert note in await said(client, query=query)
    answer = await call(client, "search_index", query=query)
    assert answer["note"].startswith(note)
    names = "send_requst or Foo::zebraCrossing"
    text = await said(client, query=names)
    assert "contains `send_requst` or `Foo::zebraCrossing` (did you mean `send_request`?)" in text


async def test_a_name_that_stands_nowhere_may_be_that_of_an_empty_file(project):
    write(project, {"src/net/marker_file.zz": "", "src/marker_file.zz": "", "src/one_file.zz": ""})
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        told = await said(client, query="one_file.zz")
        assert told.startswith("No searched file contains `one_file.zz`")
        assert told.endswith("Note: 'src/one_file.zz' exists and is empty.")
        told = await said(client, query="marker_file.zz")
        assert told.endswith("'src/marker_file.zz', 'src/net/marker_file.zz' exist and are empty.")
        assert "empty" not in await said(client, query="other_file.zz")


async def test_a_name_that_stands_in_skipped_files_alone_is_told_with_them(project):
    code = "function initQueue(e){return e.pop()};" * 200
    large = "x = startEngine()\n" * 100_000
    secret = "-----BEGIN PRIVATE KEY-----\nsecretEngine = 1\n-----END PRIVATE KEY-----\n"
    write(project, {f"dist/{name}.js": code for name in ("a", "b", "c", "d")})
    write(project, {"gen/tables.py": large, "keys/own.pem": secret, "keys/other.py": secret})
    write(project, {"odd.py": "def initTable():\n    return '\0'\n", "odd.png": "initTable\0"})
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        assert (await settled(client))["skipped_files"] == {
            **{f"dist/{name}.js": "minified" for name in ("a", "b", "c", "d")},
            "gen/tables.py": "too large",
            "keys/own.pem": "may hold secrets",
            "keys/other.py": "may hold secrets",
            "odd.py": "binary",
        }
        for query, note in {
            "initQueue": "'dist/a.js', 'dist/b.js', 'dist/c.js' and 1 more contain "
            "`initQueue` and are not indexed (minified).",
            "Machine::startEngine": "'gen/tables.py' contains `Machine::startEngine` and is not "
            "indexed (too large).",
            "initTable": "'odd.py' contains `initTable` and is not indexed (binary).",
            "a.js": "'dist/a.js' exists and is not indexed (minified).",
            "own.pem": "'keys/own.pem' exists and is not indexed (may hold secrets).",
            "secretEngine": "",
        }.items():
            answer = await call(client, "search_index", query=query)
            miss = f"No searched file contains `{query}`; these are the nearest. {note}"
            assert (answer["absent"], answer["note"]) == ([query], miss.strip())


async def test_skipped_files_are_masked_up_to_a_size_for_one_answer(project, monkeypatch):
    line = '{"tokens": 12, "max_tokens": 4096, "by": "startEngine"}\n'
    write(project, {"logs/a.jsonl": line * 21_000, "logs/b.jsonl": line * 22_000})
    write(project, {"logs/c.jsonl": "startMotor\n" + line * 40_000})
    texts, masked = [], secrets.masked
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        monkeypatch.setattr(secrets, "masked", lambda text: texts.append(text) or masked(text))
        told = (await call(client, "search_index", query="startEngine"))["note"]
        assert "'logs/a.jsonl' contains `startEngine` and is not indexed (too large)" in told
        assert "'logs/b" not in told
        assert [len(text) for text in texts if "tokens" in text] == [21_000 * len(line)]
        told = (await call(client, "search_index", query="startMotor"))["note"]
        assert "jsonl" not in told


async def test_a_value_that_is_masked_is_not_said_to_be_nowhere(project):
    value = "hunter2walrusNINE99xQ"
    write(project, {"conf.py": f'password = "{value}"\n', "other.py": 'password = "sT4ve9pole!"\n'})
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        answer = await call(client, "search_index", query=value)
        assert answer["note"] == (
            f"No searched file contains `{value}`; these are the nearest. 'conf.py' contains "
            f"`{value}` and is indexed with credentials masked."
        )
        assert value not in str(answer["results"])
        for guessed in (value[:12], value[:-1], value[1:]):  # nobody learns it letter by letter
            assert "conf.py" not in (await call(client, "search_index", query=guessed))["note"]


async def test_a_project_without_any_indexed_file_is_no_miss(tmp_path):
    async with serving(codebase_of(tmp_path, FakeEmbedder())) as client:
        await settled(client)
        text = await said(client, query="nonexistent_thing_xyz or more")
        assert "No file of this project is indexed (see get_status)." in text
        assert "nonexistent" not in text
        assert "by meaning" not in text, "vectors are not what is missing"


async def test_of_hits_that_are_worth_nothing_the_first_three_are_shown(client):
    found = await call(client, "search_index", query="zebra_crossing_xyz", top_k=20)
    assert [hit["score"] for hit in found["results"]] == [0.0] * 3
    following = {"query": "zebra_crossing_xyz", "top_k": 20, "offset": 2}
    assert len((await call(client, "search_index", **following))["results"]) == 1


_LONG = "def paint_wall():\n" + "".join(f"    step_{n}()\n" for n in range(40))


@pytest.mark.parametrize(
    ("query", "detail", "is_cut"),
    [
        ("zebra_crossing_xyz", {}, True),
        ("zebra_crossing_xyz", {"detail": "full"}, False),
        ("zebra_crossing_xyz", {"detail": None}, True),
        ("paint_wall", {}, False),
    ],
)
async def test_of_a_miss_few_lines_are_shown_if_nothing_else_is_asked(
    tmp_path, query, detail, is_cut
):
    async with served(tmp_path / "project", {"wall.py": _LONG}) as client:
        [hit] = (await call(client, "search_index", query=query, **detail))["results"]
    assert hit.get("is_cut", False) == is_cut
    assert hit["extracted_text_chunk"].count("\n") == (5 if is_cut else 41)


async def test_of_hits_that_are_unlikely_the_first_is_shown_as_a_whole(tmp_path):
    files = {f"{name}.py": _LONG.replace("wall", name) for name in ("wall", "door", "roof")}
    async with served(tmp_path / "project", files) as client:
        asked = {"query": "how is a zebra painted before it goes to the ballet"}
        found = await call(client, "search_index", **asked)
    assert "No result is likely" in found["note"]
    cut = [hit.get("is_cut", False) for hit in found["results"]]
    assert cut == [False] + [True] * (len(cut) - 1) and len(cut) > 1


async def test_where_no_word_of_a_question_stands_no_result_is_likely(client):
    found = await call(client, "search_index", query="zebra xylophone")
    assert "'zebra' or 'xylophone'. No result is likely" in found["note"]
    assert "No result" not in (await call(client, "search_index", query="zebra card"))["note"]


@pytest.mark.parametrize("word", ["quokka", "card"])
async def test_all_words_of_a_question_count_though_three_are_told(client, monkeypatch, word):
    monkeypatch.setattr(wanted, "UNLIKELY", 0.0)  # by its score, it is likely
    found = await call(client, "search_index", query=f"zebra xylophone kumquat ballet {word}")
    assert "'zebra' or 'xylophone' or 'kumquat'." in found["note"]
    assert "quokka" not in found["note"]
    assert ("No result is likely" in found["note"]) == (word == "quokka")


async def test_behind_a_name_that_stands_nowhere_only_what_has_a_score_is_shown(client):
    asked = {"query": "send_request zebra_crossing_xyz", "top_k": 20}
    found = await call(client, "search_index", **asked)
    assert found["absent"] == ["zebra_crossing_xyz"]
    assert 0 < len(found["results"]) < len(FILES)
    assert min(hit["score"] for hit in found["results"]) >= 0.01


async def test_where_nothing_is_absent_every_hit_is_shown(client):
    found = await call(client, "search_index", query="send_request", top_k=20)
    assert min(hit["score"] for hit in found["results"]) < 0.005


@pytest.mark.parametrize(
    "query",
    [
        "send_request", "sendRequest", "send-request", "SEND_REQUEST",
        "http_client",  # a file's name
        "end_requ",  # a part of a name stands there, too
        "charg",
    ],
)  # fmt: skip
async def test_what_stands_there_in_any_spelling_is_not_missing(client, query):
    answer = await call(client, "search_index", query=query)
    assert "absent" not in answer
    assert answer["note"] is None


async def test_words_of_a_question_that_stand_nowhere_are_told(client):
    answer = await call(client, "search_index", query="how is a zebra charged for its card")
    assert answer["note"] == "No searched file contains 'zebra'."
    assert "absent" not in answer


async def test_of_words_with_a_dash_the_parts_are_told(client):
    answer = await call(client, "search_index", query="the zebra-crossing of a card")
    assert answer["note"].startswith("No searched file contains 'zebra' or 'crossing'.")


async def test_what_stands_outside_of_the_searched_files_alone_is_missing(client):
    assert "absent" not in await call(client, "search_index", query="addItem")
    answer = await call(client, "search_index", query="addItem", path="docs")
    assert answer["absent"] == ["addItem"]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("SRC/**", " Did you mean 'src/**'?"),
        ("scr/net", " Did you mean 'src/net'?"),
        ("src/nett/*.py", " Did you mean 'src/net/*.py'?"),
        ("src/net/http_cleint.py", " Did you mean 'src/net/http_client.py'?"),
        ("!tests/**", " A path cannot exclude; name what to search, or limit it by kind"),
        ("zebra/**", ""),
    ],
)
async def test_a_path_that_matches_nothing_is_told_with_what_may_be_meant(client, path, hint):
    answer = await call(client, "search_index", query="charge", path=path)
    assert answer["results"] == []
    assert answer["note"].startswith(f"No indexed file matches path={path!r}.{hint}")


@pytest.mark.parametrize("path", ["lib", "lib/", "lib/deep/file.py", "lib/**", "./lib/*.py"])
async def test_a_path_that_leads_over_a_link_is_told_where_such_files_are_found(
    own_client, project, path
):
    (project.parent / "elsewhere/deep").mkdir(parents=True)
    (project / "lib").symlink_to(project.parent / "elsewhere")
    told = (await call(own_client, "search_index", query="charge", path=path))["note"]
    assert told.startswith("'lib' is a link, and links are not followed: if its target ")


async def test_an_absolute_glob_inside_of_the_project_is_understood(own_client, project):
    answer = await call(own_client, "search_index", query="charge", path=f"{project}/src/**")
    assert {hit["file_path"] for hit in answer["results"]} <= {
        name for name in FILES if "src" in name
    }
    assert answer["results"]


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("code", {"src/net/http_client.py", "src/shop/cart.ts", "app/style.css"}),
        ("docs", {"docs/guide.md", "src/net/notes.txt"}),
        ("config", {"settings.toml", "deploy.yaml"}),
        ("tests", {"tests/test_cart.py", "tests/README.md"}),
    ],
)
async def test_each_file_is_of_one_kind(client, kind, files):
    answer = await call(client, "search_index", query="charge request", kind=kind, top_k=100)
    assert {hit["file_path"] for hit in answer["results"]} == files


async def test_a_kind_of_which_there_is_nothing_is_told(client):
    answer = await call(client, "search_index", query="charge", path="docs", kind="config")
    assert answer["note"] == ("No indexed files that match path='docs' are of the kind asked for.")


async def test_code_like_a_line_is_found_without_that_line(client):
    answer = await call(client, "search_index", query="", similar_to="src/shop/cart.ts:1", top_k=20)
    assert answer["results"]
    assert "src/shop/cart.ts" not in {hit["file_path"] for hit in answer["results"]}
    assert "tests/test_cart.py" in {hit["file_path"] for hit in answer["results"]}


async def test_the_twins_of_a_function_come_first_also_those_of_its_file(tmp_path):
    body = "\n".join(f"    total += price_{number} * amount" for number in range(30))
    functions = [f"def sum_{name}(amount):\n    total = 0\n{body}\n" for name in "abcd"]
    others = {
        f"{name}.py": f"def sum_{name}(amount):\n    return price_{name} * amount\n"
        for name in "efghij"
    }
    files = {"sums.py": "\n\n".join(functions), **others}
    async with served(tmp_path / "project", files) as client:
        found = await call(
            client, "search_index", query="", similar_to="sums.py:5", top_k=5, verbose=True
        )
        twins = [hit for hit in found["results"] if hit["score"] > 0.9]
        assert [hit["file_path"] for hit in twins] == ["sums.py"] * 3
        assert not any(hit["start_line"] <= 5 <= hit["end_line"] for hit in twins)
        assert {hit["file_path"] for hit in found["results"][3:]} < others.keys()


@pytest.mark.long
async def test_a_secret_in_a_skipped_file_is_not_told_letter_by_letter(tmp_path):
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"
    code = f'var {"a,b=1;" * 1_000}k="{token}",initQueue=2;'
    async with served(tmp_path / "project", {"dist/a.js": code, "one.py": "x = 1\n"}) as client:
        for begun in range(5, len(token)):
            answer = await call(client, "search_index", query=token[:begun])
            assert "contain" not in (answer["note"] or "").replace("No searched file contains", "")
        for whole in (token, "initQueue"):
            answer = await call(client, "search_index", query=whole)
            assert f"'dist/a.js' contains `{whole}` and is not indexed" in answer["note"]


async def test_a_file_with_secrets_is_masked_once_for_many_searches(tmp_path, monkeypatch):
    monkeypatch.setattr(checking._MaskedTexts, "_RACY_NS", 0)
    texts, masked = [], secrets.masked

    def noted(text):
        texts.append(text)
        return masked(text)

    secret = 'quince = 1\npassword = "h7Rt2kLq"\n'
    async with served(tmp_path / "project", {"one.py": secret}) as client:
        monkeypatch.setattr(secrets, "masked", noted)
        for _ in range(3):
            answer = await call(client, "search_index", query="quince")
            assert "h7Rt2kLq" not in json.dumps(answer)
        assert texts == [secret]
        write(tmp_path / "project", {"one.py": secret.replace("quince", "quince = pear")})
        answer = await eventually(partial(_result_with, client, "pear"))
        assert "h7Rt2kLq" not in json.dumps(answer)


async def _result_with(client, word):
    answer = await call(client, "search_index", query=word)
    return answer if word in json.dumps(answer["results"]) else None


async def test_code_without_a_vector_is_compared_by_its_words(project):
    embedder = FakeEmbedder()
    embedder.absent = "there is no model"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=False)
        answer = await call(
            client, "search_index", query="", similar_to="src/shop/cart.ts:1", top_k=3
        )
        assert answer["results"]
        assert "the code in similar_to has no vector yet" in answer["note"]


async def test_of_code_like_a_line_what_a_query_asks_for_comes_first(tmp_path):
    code = "class {0}:\n    def open(self, way):\n        self.{0} = way.take({0}, self.{1})\n"
    rows = {f"{name}.py": code.format(name, "plain") for name in ("one", "two", "three")}
    rows["four.py"] = code.format("four", "streamed")
    files = rows | {"stream.py": "def stream():\n    return streams\n"}
    async with served(tmp_path / "project", files) as client:
        like = {"similar_to": "one.py:2", "top_k": 4, "verbose": True}
        narrowed = await call(client, "search_index", query="streamed", **like)
        assert narrowed["results"][0]["file_path"] == "four.py"
        scores = [hit["score"] for hit in narrowed["results"]]
        assert scores == sorted(scores, reverse=True)
        assert narrowed["results"][1]["file_path"] != "stream.py"


async def test_a_sample_is_compared_as_the_document_that_it_is(project):
    embedder = FakeEmbedder()
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        for query in ("", "charge a card"):
            answer = await call(
                client, "search_index", query=query, similar_to="src/shop/cart.ts:1", top_k=3
            )
            assert answer["mode"] == "hybrid"
        assert embedder.queries == []  # as which models with prompts embed otherwise


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("src/shop/cart.ts", "similar_to names no line: 'src/shop/cart.ts'"),
        ("src/shop/cart.ts:90", "similar_to names a line that no chunk holds"),
        (
            "src/shop/cart.ts:0",
            "similar_to names line 0: 'src/shop/cart.ts:0'; the first is 1",
        ),
        ("src/none.py:3", "similar_to names no indexed file: 'src/none.py:3'; write the path as"),
        ("src/shop/cart.tx:3", "did you mean 'src/shop/cart.ts:3'?"),
        ("cart.ts:3", "did you mean 'src/shop/cart.ts:3'?"),
        ("../../etc/passwd:1", "similar_to names no indexed file"),
        ("src:1", "similar_to names no indexed file"),
    ],
)
async def test_a_line_that_is_not_indexed_is_refused_with_a_sentence(client, place, words):
    assert words in await failing_call(client, "search_index", query="", similar_to=place)


async def test_without_a_sample_an_empty_query_is_refused(client):
    assert "the query is empty" in await failing_call(client, "search_index", query=" ")


async def test_an_offset_goes_on_where_an_answer_ended(client):
    whole = await call(client, "search_index", query="charge", top_k=6)
    rest = await call(client, "search_index", query="charge", top_k=3, offset=3)
    assert rest["results"] == whole["results"][3:]


async def test_locations_are_told_without_text(client):
    answer = await call(client, "search_index", query="charge", detail="locations")
    assert not any("extracted_text_chunk" in hit for hit in answer["results"])
    text = await said(client, query="charge", detail="locations")
    assert len(text.splitlines()) == len(answer["results"])


async def test_the_lines_of_a_snippet_are_those_that_are_named(own_client, project):
    text = "".join(f"x{number} = {number}\n" for number in range(30)) + "charge_twice = 2\n"
    write(project, {"src/long.py": text})
    await call(own_client, "trigger_index")
    answer = await call(own_client, "search_index", query="charge_twice", detail="snippets")
    hit = answer["results"][0]
    lines = text.split("\n")[hit["start_line"] - 1 : hit["end_line"]]
    assert hit["extracted_text_chunk"] == "".join(f"{line}\n" for line in lines)
    assert "charge_twice" in hit["extracted_text_chunk"]
    assert (len(lines), hit["is_cut"]) == (5, True)


async def test_what_is_masked_is_said_where_it_is_shown(own_client, project):
    key = "AKIA" + "Q3EGRTYUIO7ASDF2"
    write(project, {"src/keys.py": f'ACCESS = "{key}"\n', "src/stars.py": "# **** ACCESS ****\n"})
    await call(own_client, "trigger_index")
    hits = (await call(own_client, "search_index", query="ACCESS"))["results"]
    masked = {hit["file_path"]: hit.get("is_masked", False) for hit in hits}
    assert (masked["src/keys.py"], masked["src/stars.py"]) == (True, False)
    assert ", credentials masked)" in await said(own_client, query="ACCESS")


@pytest.mark.parametrize("max_tokens", [500, 2_000])
async def test_what_is_sent_keeps_to_max_tokens_in_both_forms(own_client, project, max_tokens):
    write(project, {f"src/{n}.py": 'banana = "a" + "b"\n' * 50 for n in range(30)})
    await call(own_client, "trigger_index")
    arguments = {"query": "banana", "top_k": 30, "max_tokens": max_tokens}
    answer = await own_client.call_tool("search_index", arguments)
    most = max_tokens * 3
    assert len(answer.content[0].text) <= most
    assert len(json.dumps(answer.structured_content, ensure_ascii=False)) <= most * 1.1


async def test_a_search_that_is_tried_again_asks_what_was_asked_first(project):
    codebase = codebase_of(project, FakeEmbedder())
    embedded = []

    async def find(store, question, most):
        embedded.append((question.text, await question.embed()))
        question.rephrase("send_request")
        embedded.append((question.text, await question.embed()))
        if len(embedded) == 2:
            raise StoreError("the index is busy")
        return []

    async with codebase.running():
        await converged(codebase)
        await ask(codebase.index, "send_requset", find, 5)
    asked, vectors = zip(*embedded, strict=True)
    assert asked == ("send_requset", "send_request") * 2
    first, respelled, again, _ = map(list, vectors)
    assert first == again != respelled


async def test_what_the_shown_text_has_by_now_is_not_called_absent(project, monkeypatch):
    """A file may be saved while it is searched; its text is shown as it is now."""
    codebase = codebase_of(project, FakeEmbedder())

    async def ask_and_save(*arguments, **options):
        answered = await ask(*arguments, **options)
        hits = [
            replace(h, chunk=replace(h.chunk, text=f"{h.chunk.text}\nPossum_1 = 1"))
            for h in answered.hits
        ]
        return replace(answered, hits=hits)

    async with codebase.running():
        await converged(codebase)
        assert (await codebase.search("Possum_1 send_request", 5)).absent == ("Possum_1",)
        monkeypatch.setattr(service, "ask", ask_and_save)
        assert (await codebase.search("Possum_1 send_request", 5)).absent == ()


async def test_null_is_an_argument_that_is_left_out(client):
    names = ["top_k", "path", "language", "max_tokens", "kind", "similar_to", "detail", "offset"]
    nulls = dict.fromkeys([*names, "verbose"])
    answer = await call(client, "search_index", query="charge", **nulls)
    assert answer == await call(client, "search_index", query="charge")
    assert (await call(client, "trigger_index", force_reindex=None))["complete"]
    assert "query must be a text" in await failing_call(client, "search_index", query=None)


async def test_a_sample_needs_no_query(client):
    sample = {"similar_to": "src/shop/cart.ts:1", "top_k": 20}
    answer = await call(client, "search_index", **sample)
    assert answer == await call(client, "search_index", query="", **sample)
    assert await failing_call(client, "search_index", similar_to="") == "query is missing"
