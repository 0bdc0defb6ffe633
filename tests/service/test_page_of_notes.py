"""The page of the notes: what it answers, over a port that is really listened on."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Event
from urllib.parse import quote, urlencode

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from fakes import FakeEmbedder
from machines import Machine, notes_at
from visitor import Visitor
from waiting import PATIENCE_SECONDS

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.notes.merging.chapters import MARK
from vector_index_mcp.notes.remedies import REMEDIES
from vector_index_mcp.page import marking
from vector_index_mcp.page.notes import NotesPage
from vector_index_mcp.serving.listener import Page

pytestmark = pytest.mark.anyio

P = {"project_id": "Shop"}
MAIN = "# Shop\n\nRead [the setup](knowledge/setup.md) and [[cart]], not [this](gone.md).\n"
CHAPTERS = [
    {"title": "Install", "content": "Run the installer, see [the cart](cart.md#totals)."},
    {"title": "Start", "content": "Begin at port 80; <script>hacked = 1</script>"},
]


@dataclass
class Guest:
    """Somebody who looks at the page of a machine's notes."""

    visitor: Visitor
    machine: Machine

    async def ask(self, name, **values):
        got = await self.visitor.see(f"api/{name}?{urlencode(values, quote_via=quote)}")
        assert got.status == 200, got.body
        return got.values

    async def refused(self, name, **values):
        got = await self.visitor.see(f"api/{name}?{urlencode(values, quote_via=quote)}")
        assert got.status in {400, 503}, (got.status, got.body)
        return got.values["error"]

    def write(self, path, data):
        """What a person writes into the store, past the program."""
        file = self.machine.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())

    async def committed(self):
        await self.machine.done("sync_storage")


def index_at(folder):
    """An index whose vectors cost nothing."""

    async def load():
        projects = folder / "store" / "projects"
        place = Place(str(folder / "index"), owner=str(folder))
        options = Options(
            recipe=Recipe(1_200, is_prose=True),
            quiet_seconds=0.01,
            longest_seconds=0.1,
            rescan_seconds=3_600.0,
            state_folder=folder / "state",
            remedies=REMEDIES,
        )
        cache = EmbeddingCache(folder / "cache", 100_000_000)
        return LiveIndex([Folder(projects)], place, options, FakeEmbedder(), cache)

    return load


@asynccontextmanager
async def visiting(tmp_path, load_index=None):
    notes = notes_at(tmp_path / "store", *([load_index] if load_index else []))

    async def get():
        return notes

    page = Page(NotesPage(get))
    async with notes.running(), page.running():
        yield Guest(await Visitor(page).enter(), Machine(notes))


@asynccontextmanager
async def shop(tmp_path, load_index=None):
    """A guest of notes about a shop."""
    async with visiting(tmp_path, load_index) as guest:
        done = guest.machine.done
        await done("update_project_main", **P, content=MAIN)
        for name, chapters in (
            ("setup", CHAPTERS),
            ("cart", [{"title": "Totals", "content": "€"}]),
        ):
            await done(
                "create_knowledge_file",
                **P,
                filename=name,
                title=f"The {name}",
                introduction=f"All about the {name}.",
                keywords=["shop", name],
                chapters=chapters,
            )
        tasks = ["Buy <b>milk</b>", {"title": "Sell", "content": "To *everybody*."}]
        await done("create_todo", **P, description="Groceries", tasks=tasks)
        await done("complete_todo_task", **P, todo_number=1, task_number=1)
        yield guest


def texts_in(nodes):
    for node in nodes:
        if isinstance(node, str):
            yield node
        else:
            yield from texts_in(node.get("children", ()))
            yield from (piece for _, piece, _ in node.get("spans", ()))


def links_in(nodes):
    for node in nodes:
        if isinstance(node, dict):
            if node["tag"] == "a":
                yield node.get("key", ""), node.get("fragment", "")
            yield from links_in(node.get("children", ()))


# -- what there is ---------------------------------------------------------------------------


async def test_an_empty_store_has_nothing_to_show(tmp_path):
    async with visiting(tmp_path) as guest:
        assert await guest.ask("projects") == {"total": 0, "problem": "", "projects": []}
        assert (await guest.ask("search", query="anything"))["results"] == []
        assert (await guest.ask("history"))["total"] == 1  # the store itself
        assert "Project Shop not found" in await guest.refused("project", project="Shop")


async def test_projects_are_told_in_numbers(tmp_path):
    async with shop(tmp_path) as guest:
        [project] = (await guest.ask("projects"))["projects"]
        assert {k: project[k] for k in ("name", "key", "documents", "open")} == {
            "name": "Shop",
            "key": "Shop",
            "documents": 2,
            "open": 1,
        }
        assert project["changed"] > 1_700_000_000


async def test_a_project_shows_its_main_text_documents_and_lists(tmp_path):
    async with shop(tmp_path) as guest:
        found = await guest.ask("project", project="Shop")
        assert found["main"]["exists"]
        assert "Shop" in [*texts_in(found["main"]["nodes"])]
        assert [*links_in(found["main"]["nodes"])] == [
            ("project/Shop/document/setup.md", ""),
            ("project/Shop/document/cart.md", ""),
        ]
        assert [(each["file"], each["title"], each["keywords"]) for each in found["documents"]] == [
            ("cart.md", "The cart", ["shop", "cart"]),
            ("setup.md", "The setup", ["shop", "setup"]),
        ]
        assert all(each["changed"] for each in found["documents"])
        [todo] = found["todos"]
        assert (todo["number"], todo["done"], todo["total"]) == (1, 1, 2)
        assert [(task["title"], task["done"]) for task in todo["tasks"]] == [
            ("Buy <b>milk</b>", True),
            ("Sell", False),
        ]


async def test_a_document_comes_as_elements_with_its_chapters(tmp_path):
    async with shop(tmp_path) as guest:
        found = await guest.ask("document", project="Shop", document="setup.md")
        assert (found["title"], found["keywords"]) == ("The setup", ["shop", "setup"])
        assert len(found["revision"]) == 12
        assert found["created"].endswith("Z")
        assert [chapter["title"] for chapter in found["chapters"]] == ["Install", "Start"]
        lines = {node["line"] for node in found["nodes"] if node["tag"] == "h2"}
        assert {chapter["line"] for chapter in found["chapters"]} == lines
        text = (guest.machine.home / "projects/shop/knowledge/setup.md").read_text("utf-8")
        first = found["chapters"][0]["line"]
        assert text.split("\n")[first - 1] == "## Install"
        assert [*links_in(found["nodes"])] == [("project/Shop/document/cart.md", "totals")]
        assert any("<script>hacked = 1</script>" in each for each in texts_in(found["nodes"]))


async def test_a_list_shows_what_its_tasks_say(tmp_path):
    async with shop(tmp_path) as guest:
        found = await guest.ask("todo", project="Shop", todo="1")
        assert found["description"] == "Groceries"
        assert [*texts_in(found["tasks"][1]["nodes"])] == ["To ", "everybody", "."]


async def test_a_chapter_that_two_machines_have_changed_stands_out(tmp_path):
    async with shop(tmp_path) as guest:
        text = f"# Two\n\n## One\n\nours\n\n## One (origin/main)\n\n{MARK}\n\ntheirs\n"
        guest.write("projects/shop/knowledge/two.md", text)
        found = await guest.ask("document", project="Shop", document="two.md")
        assert [chapter["conflict"] for chapter in found["chapters"]] == [False, True]
        documents = (await guest.ask("project", project="Shop"))["documents"]
        assert [each["file"] for each in documents if each.get("conflict")] == ["two.md"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("project", {"project": "Nowhere"}),
        ("project", {"project": "%ff"}),
        ("project", {}),
        ("document", {"project": "Shop", "document": "gone.md"}),
        ("document", {"project": "Shop", "document": "../main.md"}),
        ("document", {"project": "Shop", "document": "..%2Fmain.md"}),
        ("document", {"project": "Shop", "document": "%00.md"}),
        ("document", {"project": "../../etc", "document": "passwd"}),
        ("todo", {"project": "Shop", "todo": "7"}),
        ("todo", {"project": "Shop", "todo": "../1"}),
        ("todo", {"project": "Shop", "todo": "٣"}),
        ("history", {"project": "Shop", "document": "../x"}),
        ("difference", {"project": "Shop", "commit": "--output=/tmp/x"}),
        ("difference", {"commit": "0" * 40}),
        ("search", {"query": "x", "mode": "magic"}),
        ("search", {"query": " "}),
        ("search", {"query": "x" * 201}),
        ("search", {"query": "x " * 21}),
    ],
)
async def test_what_is_not_there_is_said_in_a_sentence(tmp_path, name, values):
    async with shop(tmp_path) as guest:
        told = await guest.refused(name, **values)
        assert " " in told
        assert "Traceback" not in told


# -- hostile and broken ----------------------------------------------------------------------


async def test_names_that_are_no_text_are_shown_and_lead_somewhere(tmp_path):
    async with visiting(tmp_path) as guest:
        wild = "\udcff<b>\x1b[31m\u202e%2F #?"
        guest.write(f"projects/{wild}/main.md", "# Wild\n")
        guest.write(f"projects/{wild}/knowledge/\udcfe%00 #.md", "# Odd\n\n## Chapter\n\nzebra\n")
        guest.write(
            "index.json", json.dumps({"projects": {"\ud800": "plain", "x" * 9_000: "long"}})
        )
        guest.write("projects/plain/knowledge/a.md", "# A\n\n## B\n\nzebra\n")
        listed = {each["name"]: each for each in (await guest.ask("projects"))["projects"]}
        assert {wild, "\ud800"} <= listed.keys()
        assert max(map(len, listed)) < 400
        for name, file in ((wild, "\udcfe%00 #.md"), ("\ud800", "a.md")):
            found = await guest.ask("project", project=listed[name]["key"])
            assert found["name"] == name
            [document] = found["documents"]
            assert document["file"] == file
            wanted = {"project": found["key"], "document": document["key"]}
            shown = await guest.ask("document", **wanted)
            assert [chapter["title"] for chapter in shown["chapters"]] in (["Chapter"], ["B"])
            addresses = [
                hit["address"] for hit in (await guest.ask("search", query="zebra"))["results"]
            ]
            assert f"project/{found['key']}/document/{document['key']}" in addresses
        await guest.committed()
        history = await guest.ask("history", project=listed[wild]["key"])
        assert history["total"]
        changes = await guest.ask(
            "difference", project=listed[wild]["key"], commit=history["entries"][0]["commit"]
        )
        assert len(changes["files"]) == 2
        assert any(each["path"] == "knowledge/\udcfe%00 #.md" for each in changes["files"])


@pytest.mark.parametrize("name", ["history", "project", "document"])
async def test_a_name_that_no_file_can_have_is_no_internal_error(tmp_path, name):
    async with shop(tmp_path) as guest:
        for values in ("project=%25ED%25A0%2580", "project=Shop&document=%25ED%25A0%2580.md"):
            got = await guest.visitor.see(f"api/{name}?{values}")
            assert got.status in {200, 400}
            assert got.values


async def test_broken_files_are_named(tmp_path):
    async with shop(tmp_path) as guest:
        guest.write("projects/shop/knowledge/broken.md", b"\xff\xfe")
        guest.write("projects/shop/TODO/1/TASK-003-x.json", "{")
        guest.write("projects/shop/TODO/2/index.json", "[]")
        guest.write("projects/shop/main.md", b"\xff")
        found = await guest.ask("project", project="Shop")
        assert "not in UTF-8" in found["main"]["problem"]
        [broken] = [each for each in found["documents"] if each["file"] == "broken.md"]
        assert "not in UTF-8" in broken["problem"]
        first, second = found["todos"]
        assert "TASK-003-x.json cannot be read" in first["tasks"][2]["problem"]
        assert "index.json" in second["problem"]
        told = await guest.refused("document", project="Shop", document="broken.md")
        assert "not in UTF-8" in told
        found = await guest.ask("search", query="installer")
        assert "broken.md" in found["note"]
        guest.write("index.json", "{")
        assert "index.json cannot be read" in (await guest.ask("projects"))["problem"]


async def test_long_texts_are_bounded(tmp_path):
    async with shop(tmp_path) as guest:
        long = "# Long\n\n" + "".join(f"## {n}\n\n*{'word ' * 100}*\n\n" for n in range(6_000))
        guest.write("projects/shop/knowledge/long.md", long)
        guest.write("projects/shop/knowledge/line.md", "## " + "x" * 9_000_000)
        await guest.committed()
        got = await guest.visitor.see("api/document?project=Shop&document=long.md")
        assert got.values["left_out"] > 0
        assert len(got.values["chapters"]) == 1_000
        assert len(got.body) < 3_000_000
        shown = await guest.visitor.see("api/document?project=Shop&document=line.md")
        assert len(shown.body) < 3_000_000
        [entry, *_] = (await guest.ask("history", project="Shop"))["entries"]
        got = await guest.visitor.see(f"api/difference?project=Shop&commit={entry['commit']}")
        assert got.values["left_out"] > 10_000
        assert sum(len(file["lines"]) for file in got.values["files"]) == 2_000
        assert len(got.body) < 3_000_000


# -- search ----------------------------------------------------------------------------------


async def test_words_are_found_with_what_stands_around_them(tmp_path):
    async with shop(tmp_path) as guest:
        [hit] = (await guest.ask("search", query="INSTALL port"))["results"]
        assert (hit["project"], hit["name"]) == ("Shop", "setup.md")
        assert hit["address"] == "project/Shop/document/setup.md"
        assert [match["fragment"] for match in hit["matches"]] == ["install", "start"]
        marked = [piece for match in hit["matches"] for line in match["lines"] for piece in line]
        assert {piece for piece, mark in marked if mark} == {"Install", "install", "port"}
        assert "Run the installer" in "".join(piece for piece, _ in marked)


async def test_a_project_narrows_a_search_down(tmp_path):
    async with shop(tmp_path) as guest:
        await guest.machine.done("update_project_main", project_id="Other", content="# Other\n")
        assert (await guest.ask("search", query="installer", project="Shop"))["total"] == 1
        assert (await guest.ask("search", query="installer", project="Other"))["total"] == 0


async def test_search_by_meaning_finds_main_texts_and_lists_as_well(tmp_path):
    async with shop(tmp_path, index_at(tmp_path)) as guest:
        found = await guest.ask("search", query="selling groceries", mode="both")
        kinds = {hit["kind"]: hit for hit in found["results"]}
        assert kinds["todo"]["address"] == "project/Shop/todo/1"
        marked = [
            piece
            for hit in found["results"]
            for match in hit["matches"]
            for line in match["lines"]
            for piece, mark in line
            if mark
        ]
        assert {"Sell"} & {*marked} or {"Groceries"} & {*marked}
        found = await guest.ask("search", query="shop", mode="both", project="Shop")
        assert "project/Shop" in {hit["address"] for hit in found["results"]}


# -- history ---------------------------------------------------------------------------------


async def test_history_says_when_who_and_what(tmp_path):
    async with shop(tmp_path) as guest:
        found = await guest.ask("history", project="Shop")
        assert found["total"] == len(found["entries"]) == 5
        last = found["entries"][0]
        assert last["what"] == "Marked task #1 as completed in TODO #1"
        assert (last["who"], last["when"] > 1_700_000_000) == ("Knowledge MCP Server", True)
        of_document = await guest.ask("history", project="Shop", document="cart.md")
        assert [entry["what"] for entry in of_document["entries"]] == ["Created cart.md"]
        of_main = await guest.ask("history", project="Shop", part="main")
        assert [entry["what"] for entry in of_main["entries"]] == ["Created main.md"]
        of_todo = await guest.ask("history", project="Shop", todo="1")
        assert of_todo["total"] == 2
        everything = await guest.ask("history")
        assert everything["total"] >= 5
        later = await guest.ask("history", project="Shop", skipped="3")
        assert later["entries"] == found["entries"][3:]


async def test_a_difference_is_told_line_by_line(tmp_path):
    async with shop(tmp_path) as guest:
        await guest.machine.done(
            "update_chapter",
            **P,
            filename="setup.md",
            chapter_title="Start",
            new_content="Begin at port 8080\twith \x1b\u202e.\n-- not a heading\n",
        )
        wanted = {"project": "Shop", "document": "setup.md"}
        [last, _] = (await guest.ask("history", **wanted))["entries"]
        found = await guest.ask("difference", **wanted, commit=last["commit"])
        [file] = found["files"]
        assert (file["path"], file["state"]) == ("knowledge/setup.md", "changed")
        assert ["-", "Begin at port 80; <script>hacked = 1</script>"] in file["lines"]
        assert ["+", "Begin at port 8080\twith \\x1b\\u202e."] in file["lines"]
        assert ["+", "-- not a heading"] in file["lines"]
        assert {kind for kind, _ in file["lines"]} <= {"@", "+", "-", " ", "\\"}
        # The same change tells nothing of another document.
        other = {"project": "Shop", "document": "cart.md"}
        assert (await guest.ask("difference", **other, commit=last["commit"]))["files"] == []


async def test_what_was_deleted_is_in_the_history(tmp_path):
    async with shop(tmp_path) as guest:
        await guest.machine.done("delete_knowledge_file", **P, filename="setup.md")
        [last, *_] = (await guest.ask("history", project="Shop"))["entries"]
        assert last["what"] == "Deleted setup.md"
        found = await guest.ask("difference", project="Shop", commit=last["commit"])
        [file] = found["files"]
        assert (file["path"], file["state"]) == ("knowledge/setup.md", "deleted")
        assert {kind for kind, _ in file["lines"]} <= {"@", "-", "\\"}
        gone = await guest.ask("history", project="Shop", document="setup.md")
        assert gone["total"] == 2
        await guest.machine.done("delete_project", **P)
        assert (await guest.ask("projects"))["total"] == 0
        [last, *_] = (await guest.ask("history", project="Shop"))["entries"]
        found = await guest.ask("difference", project="Shop", commit=last["commit"])
        assert {file["path"] for file in found["files"]} >= {"main.md", "knowledge/cart.md"}
        [last, *_] = (await guest.ask("history"))["entries"]
        found = await guest.ask("difference", commit=last["commit"])
        assert "index.json" in {file["path"] for file in found["files"]}


async def test_the_first_change_of_all_has_a_difference(tmp_path):
    async with shop(tmp_path) as guest:
        first = (await guest.ask("history"))["entries"][-1]
        found = await guest.ask("difference", commit=first["commit"])
        assert {file["state"] for file in found["files"]} == {"new"}


# -- news ------------------------------------------------------------------------------------


async def test_a_commit_is_news(tmp_path):
    async with shop(tmp_path) as guest, guest.visitor.news() as events:
        first = await events.next("status")
        assert first["home"] == str(guest.machine.home)
        assert (first["branch"], first["remote"]) == ("main", "No remote configured")
        assert (first["uncommitted"], first["details"], first["problem"]) == (0, "", "")
        assert first["what"].endswith("Marked task #1 as completed in TODO #1")
        await guest.machine.done("update_project_main", **P, content="# New\n")
        with anyio.fail_after(10):  # it is told now and then anyway
            later = await events.status_when(lambda now: now["commit"] != first["commit"])
        assert later["what"].endswith("Updated main.md")


async def test_what_is_wrong_with_the_store_is_told(tmp_path):
    async with shop(tmp_path) as guest:
        guest.write("projects/shop/knowledge/broken.md", b"\xff\xfe")
        await guest.committed()
        async with guest.visitor.news() as events:
            with anyio.fail_after(PATIENCE_SECONDS):
                told = await events.status_when(lambda now: now["details"])
            assert "broken.md is not in UTF-8" in told["details"]
    async with visiting(tmp_path / "other") as guest:
        assert (await guest.ask("projects"))["total"] == 0  # by now it is there
        (guest.machine.home / ".git" / "MERGE_HEAD").write_text("x", encoding="utf-8")
        async with guest.visitor.news() as events:
            assert "merge or a rebase" in (await events.next("status"))["problem"]


async def test_pages_that_wait_for_the_writer_keep_no_reader_waiting(tmp_path):
    async with shop(tmp_path) as guest:
        notes = guest.machine.notes

        async def get():
            return notes

        [status] = await NotesPage(get).news()
        threads = anyio.to_thread.current_default_thread_limiter().total_tokens
        free = Event()
        notes.writer.alone(lambda: free.wait(PATIENCE_SECONDS))
        try:
            async with anyio.create_task_group() as pages:
                for _ in range(int(threads)):
                    pages.start_soon(status.values)
                await anyio.lowlevel.checkpoint()  # all of them have begun
                with anyio.fail_after(PATIENCE_SECONDS / 4):
                    assert (await guest.machine.done("get_project_main", **P))["exists"]
                    assert (await guest.ask("projects"))["total"] == 1
                pages.cancel_scope.cancel()
        finally:
            free.set()


def test_words_are_marked_in_any_case_and_within_others():
    assert marking.by_letters("Reinstall IN vain", ["install", "in", "stalls"]) == [
        ("Re", 0),
        ("install", 1),
        (" ", 0),
        ("IN", 1),
        (" va", 0),
        ("in", 1),
    ]
    assert marking.by_letters("", ["x"]) == []
    assert marking.by_letters("a.b", [".", ""]) == [("a", 0), (".", 1), ("b", 0)]
    turkish = "İSTANBUL install"  # longer in lower case
    assert "".join(piece for piece, _ in marking.by_letters(turkish, ["install"])) == turkish


async def test_the_page_is_that_of_the_notes(tmp_path):
    async with visiting(tmp_path) as guest:
        shown = await guest.visitor.see("")
        assert b'src="notes.js"' in shown.body
        for name in ("notes.js", "notes_parts.js", "notes.css", "markup.js"):
            assert (await guest.visitor.see(name)).status == 200
        got = await guest.visitor.see("api/map")
        assert got.status == 404
        used = await Visitor(guest.visitor.page, guest.visitor.port).get("/?token=wrong")
        assert b"`vector-index-mcp notes ui`" in used.body
