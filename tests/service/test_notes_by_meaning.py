"""Notes found by meaning: over an index that is loaded when somebody first asks for it."""

import anyio
import pytest
from fakes import FakeEmbedder
from machines import Machine, notes_at
from waiting import PATIENCE_SECONDS
from writing import put

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.errors import StoreError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.notes.remedies import REMEDIES
from vector_index_mcp.notes.search import index

pytestmark = pytest.mark.anyio

KEY = "AKIAIOSFODNN7EXAMPLQ"


@pytest.fixture
def loaded():
    """The indexes that were loaded."""
    return []


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
async def machine(tmp_path, loaded, embedder):
    home = tmp_path / "store"

    async def load():
        options = Options(
            recipe=Recipe(1_200, is_prose=True),
            quiet_seconds=60.0,  # no event is acted upon in this time
            longest_seconds=60.0,
            rescan_seconds=3_600.0,
            state_folder=tmp_path / "state",
            remedies=REMEDIES,
        )
        cache = EmbeddingCache(tmp_path / "cache", 100_000_000)
        place = Place(str(tmp_path / "index"), owner=str(home))
        loaded.append(LiveIndex([Folder(home / "projects")], place, options, embedder, cache))
        return loaded[-1]

    notes = notes_at(home, load)
    async with notes.running():
        yield Machine(notes)


async def begin(machine):
    await machine.done("update_project_main", project_id="My App", content="## Build\n\nmake it.\n")
    await machine.done(
        "create_knowledge_file",
        project_id="My App",
        filename="auth",
        title="Authentication",
        introduction="How users log in.",
        keywords=["auth"],
        chapters=[{"title": "Tokens", "content": f"Refresh tokens, {KEY}, are kept."}],
    )
    await machine.done(
        "create_todo", project_id="My App", description="Release", tasks=["Write the changelog"]
    )
    await machine.done("update_project_main", project_id="other", content="Tokens elsewhere.\n")


async def found(machine, query, mode="both", **given):
    answer = await machine.done("search_knowledge", query=query, mode=mode, **given)
    return answer["results"]


async def test_words_alone_load_no_index(machine, loaded):
    await begin(machine)
    await found(machine, "tokens", "keywords", project_id="My App")
    assert loaded == []


@pytest.mark.parametrize("mode", ["meaning", "both"])
async def test_documents_main_texts_and_tasks_are_found(machine, mode):
    await begin(machine)
    for query, kind, name in (
        ("refresh tokens", "knowledge", "auth.md"),
        ("make it build", "main", "main.md"),
        ("write the changelog", "todo", "TODO #1"),
    ):
        best = (await found(machine, query, mode, project_id="My App"))[0]
        assert (best["kind"], best["document"]) == (kind, name)


@pytest.mark.parametrize("mode", ["keywords", "meaning", "both"])
async def test_matches_are_counted_alike_in_every_mode(machine, mode):
    await begin(machine)
    await machine.done(
        "create_todo", project_id="My App", description="Tokens", tasks=["Hide tokens", "Use them"]
    )
    given = {"project_id": "My App", "query": "tokens", "mode": mode}
    answer = await machine.done("search_knowledge", **given)
    counts = [each["match_count"] for each in answer["results"]]
    assert (answer["total_documents"], answer["total_matches"]) == (len(counts), sum(counts))
    assert mode == "keywords" or max(counts) > 1  # of a list with two tasks


@pytest.mark.parametrize("query", ["money returns", "what a chargeback is"])
async def test_short_chapters_of_one_chunk_are_told_apart(machine, query):
    # A separator of lines that is no line end for an index.
    refunds = "They take\u2028a week\u2028or\u2028two\u2028."
    chapters = {"Refunds": refunds, "Chargebacks": "A bank asks.", "Retries": "Thrice."}
    await machine.done(
        "create_knowledge_file",
        project_id="My App",
        filename="payments",
        title="Payments",
        introduction="How money moves.",
        keywords=["payments"],
        chapters=[{"title": title, "content": text} for title, text in chapters.items()],
    )
    best = (await found(machine, query, "meaning", project_id="My App"))[0]
    contents = {each["chapter"]: each["content"] for each in best["matching_chapters"]}
    assert contents.keys() == {"(Document Introduction)", *chapters}
    for title, text in chapters.items():
        assert contents[title] == f"## {title}\n\n{text}"
    assert "How money moves." in contents["(Document Introduction)"]
    assert [each["title"] for each in best["chapters"]] == list(contents)
    first = next(iter(contents))
    assert first == ("Chargebacks" if "chargeback" in query else "(Document Introduction)")


async def test_files_of_one_name_are_results_of_their_own(machine):
    main = await machine.done("update_project_main", project_id="p", content="Tokens at noon.\n")
    put(machine.home, "projects/p/setup.md", "Tokens of a file that no tool reads.\n")
    made = {}
    for name in ("main", "setup"):
        made[name] = await machine.done(
            "create_knowledge_file",
            project_id="p",
            filename=name,
            title=name,
            introduction="About it.",
            keywords=["word"],
            chapters=[{"title": "Tokens", "content": f"of {name}"}],
        )
    results = await found(machine, "tokens", project_id="p")
    assert {(each["kind"], each["file"]): each["revision"] for each in results} == {
        ("main", "main.md"): main["revision"],
        ("knowledge", "main.md"): made["main"]["revision"],
        ("knowledge", "setup.md"): made["setup"]["revision"],
    }


async def test_only_the_project_that_is_meant_is_searched_unless_all_are(machine):
    await begin(machine)
    ours = await found(machine, "tokens", project_id="My App")
    assert {each.get("project_id") for each in ours} == {None}
    assert "Tokens elsewhere." not in str(ours)
    everywhere = await found(machine, "tokens", project_id="My App", all_projects=True)
    assert {each["project_id"] for each in everywhere} == {"My App", "other"}
    assert await found(machine, "tokens", project_id="nobody") == []


async def test_credentials_are_masked_in_the_index_and_nowhere_else(machine, loaded):
    await begin(machine)
    best = (await found(machine, "refresh tokens", project_id="My App"))[0]
    assert KEY in best["matching_chapters"][0]["content"]
    assert KEY in str(await machine.chapters("My App", "auth.md"))
    async with loaded[0].reading() as (index, _):
        rows = await index.store.rows(["my-app/knowledge/auth.md"])
    assert KEY not in str(rows)


async def test_what_has_just_been_written_is_found(machine):
    await begin(machine)
    await found(machine, "tokens", project_id="My App")
    await machine.done(
        "add_chapter",
        project_id="My App",
        filename="auth.md",
        chapter_title="Passkeys",
        content="Passkeys are preferred.",
    )

    results = await found(machine, "passkeys preferred", project_id="My App")
    assert "Passkeys are preferred." in str(results[0])  # the first time already


async def test_notes_that_have_no_word_of_the_query_are_said_to_be_the_nearest(machine):
    await begin(machine)
    near = await machine.done("search_knowledge", project_id="My App", query="zzzzqq", mode="both")
    assert near["results"]
    doubt = "No word of the query stands in these notes; they are the nearest by meaning"
    assert near["note"].startswith(doubt)
    right = await machine.done(
        "search_knowledge", project_id="My App", query="zzzzqq changelog", mode="both"
    )
    assert "No word" not in right.get("note", "")


async def test_a_blank_query_is_refused_in_every_mode(machine):
    for mode in ("keywords", "meaning", "both"):
        answer = await machine.call("search_knowledge", project_id="p", query="  ", mode=mode)
        assert answer["code"] == "INVALID_SEARCH_QUERY"


async def test_a_project_that_is_not_there_is_told(machine):
    nobody = {"query": "tokens", "project_id": "my app"}
    none = await machine.done("search_knowledge", **nobody, all_projects=True)
    assert "note" not in none
    await begin(machine)
    for mode in ("keywords", "meaning", "both"):
        answer = await machine.done("search_knowledge", **nobody, mode=mode)
        assert (answer["total_documents"], answer["results"]) == (0, [])
        assert (
            answer["note"] == "There are no notes about a project 'my app'; did you mean 'My App'?"
        )


async def test_without_a_model_words_count_and_meaning_alone_is_refused(machine, embedder):
    embedder.absent = "there is no model"
    await begin(machine)
    answer = await machine.done(
        "search_knowledge", project_id="My App", query="changelog", mode="both"
    )
    assert answer["note"] == "Searched by words only, not by meaning: there is no model"
    assert answer["results"][0]["document"] == "TODO #1"
    refused = await machine.call(
        "search_knowledge", project_id="My App", query="changelog", mode="meaning"
    )
    assert refused["code"] == "SEARCH_ERROR"


async def create(machine, project, name, *contents):
    await machine.done(
        "create_knowledge_file",
        project_id=project,
        filename=name,
        title=name,
        introduction="What happened.",
        keywords=["k"],
        chapters=[{"title": f"Part {n}", "content": text} for n, text in enumerate(contents)],
    )


@pytest.mark.parametrize("mode", ["meaning", "both"])
async def test_a_long_document_does_not_take_the_places_of_others(machine, mode):
    for n in range(6):
        await create(machine, "shop", f"incident {n}", "A night on call. The gateway timed out.")
    about = "The payment gateway timeout, and the gateway of payment: timeout. " * 120
    await create(machine, "shop", "manual", *(f"{about}{n}" for n in range(50)))  # 400 chunks
    results = await found(machine, "payment gateway timeout", mode, project_id="shop")
    assert [each["document"] for each in results][0] == "manual.md"
    assert {f"incident-{n}.md" for n in range(6)} < {each["document"] for each in results}


async def test_a_project_in_which_nothing_is_left_gives_nothing(machine):
    await begin(machine)
    await machine.done("create_todo", project_id="brief", description="A list", tasks=["a task"])
    await machine.done("delete_todo", project_id="brief", todo_number=1)
    for mode in ("meaning", "both"):
        assert await found(machine, "a task", mode, project_id="brief") == []


async def test_a_search_that_failed_has_not_brought_the_index_up_to_date(machine, monkeypatch):
    """Events would do so later; where none come, the next search has to."""
    nearest, asked = index.nearest, []

    async def fail_at_first(*given, is_behind, **named):
        asked.append(is_behind)
        if len(asked) == 1:
            raise StoreError("the disk is away")
        return await nearest(*given, is_behind=is_behind, **named)

    await begin(machine)
    monkeypatch.setattr(index, "nearest", fail_at_first)
    wanted = {"project_id": "My App", "query": "tokens", "mode": "meaning"}
    assert not (await machine.call("search_knowledge", **wanted))["success"]
    for _ in range(2):
        await machine.done("search_knowledge", **wanted)
    assert asked == [True, True, False]


async def test_what_somebody_else_writes_holds_up_no_question(machine, embedder):
    await begin(machine)
    await found(machine, "tokens", project_id="My App")  # the model works
    embedder.hold(queries=False)
    await create(machine, "other", "long", "Words of somebody else.")
    with anyio.fail_after(PATIENCE_SECONDS):
        answer = await machine.done(
            "search_knowledge", project_id="My App", query="refresh tokens", mode="meaning"
        )
    assert answer["results"][0]["document"] == "auth.md"
    assert "cannot be found by meaning yet: embedding goes on" in answer["note"]
    embedder.release()
