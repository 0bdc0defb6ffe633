"""The page of the notes in a real Chromium: searching, reading, and what was changed."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import Browser, Tab, browser, needs_chromium
from machines import Machine, notes_at

from vector_index_mcp.notes.merging.chapters import MARK
from vector_index_mcp.page.notes import NotesPage
from vector_index_mcp.serving.listener import Page

pytestmark = [pytest.mark.long, pytest.mark.anyio, needs_chromium]

P = {"project_id": "Shop"}
HOSTILE = (
    "# <script>hacked = 1</script>\n\n<img src=x onerror=hacked=1> [run](javascript:hacked=1)\n\n"
    "![pixel](http://127.0.0.1:9/pixel.png) \x1b]0;title\x07 \u202egnp.exe zebra\n\n"
    "## <b>bold</b>\n\n```html\n<script>hacked = 1</script> \u202egnp\n```\n\n"
    f"{'long' * 200}\n\n| {' | '.join('abcdefghijklmnop')} |\n|{'--|' * 16}\n"
)
TWICE = f"# Ports\n\n## Web\n\n80\n\n## Web (origin/main, 2026-03-01)\n\n{MARK}\n\n8080\n"
CHAPTERS = [
    {
        "title": "Install",
        "content": "Run the installer. Then read [[cart]].\n\n" + "Filler.\n\n" * 60,
    },
    {"title": "Umbrella", "content": "Carry the umbrella in hand, not the parasol."},
]
WIDTHS = (360, 800, 1600)


def address_of(path: str) -> str:
    return f"#/project/{path}"


async def filled(machine: Machine) -> None:
    """Notes that have something of everything."""
    await machine.done(
        "update_project_main",
        **P,
        content="# Shop\n\nSell **things**; see [the setup](knowledge/setup.md).\n\n"
        "## Commands\n\n```sh\nmake check  # before each commit\n```\n\n## Style\n\nShort words.\n",
    )
    for name, chapters in (("setup", CHAPTERS), ("cart", [])):
        await machine.done(
            "create_knowledge_file",
            **P,
            filename=name,
            title=f"The {name}",
            introduction=f"All about the {name}.",
            keywords=["shop", name],
            chapters=chapters,
        )
    await machine.done(
        "create_todo",
        **P,
        description="Before the opening",
        tasks=["Buy <b>milk</b>", {"title": "Sell", "content": "To *everybody*."}],
    )
    await machine.done("complete_todo_task", **P, todo_number=1, task_number=1)
    await machine.done(
        "update_project_main", project_id="Warehouse", content="# Warehouse\n\nShelves.\n"
    )
    knowledge = machine.home / "projects" / "shop" / "knowledge"
    (knowledge / "hostile.md").write_text(HOSTILE, encoding="utf-8")
    (knowledge / "ports.md").write_text(TWICE, encoding="utf-8")
    odd = machine.home / "projects" / os.fsdecode(b"\xff<b>%2F")
    odd.mkdir()
    (odd / "main.md").write_text("# Odd\n", encoding="utf-8")
    await machine.done("sync_storage")


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[tuple[Machine, Page]]:
    notes = notes_at(home)

    async def get() -> object:
        return notes

    page = Page(NotesPage(get))
    async with notes.running(), page.running():
        yield Machine(notes), page


@pytest.fixture(scope="module")
async def shop(tmp_path_factory) -> AsyncIterator[tuple[Machine, Page]]:
    async with served(tmp_path_factory.mktemp("notes") / "store") as both:
        await filled(both[0])
        yield both


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as one:
        yield one


def is_of_what_is_gone(complaint: str) -> bool:
    """Whether it is the browser's line about a document that was deleted."""
    return "400 (Bad Request)" in complaint and "document=gone.md" in complaint


@asynccontextmanager
async def opened(page: Page, chromium: Browser) -> AsyncIterator[Tab]:
    """The page; in the end it has asked nobody else, and complained about nothing."""
    link = await page.address()
    tab = await chromium.tab()
    await tab.resize(1600)
    await tab.open(link)
    await tab.until(f"['up to date', 'needs attention'].includes({text_of('#state-words')})")
    yield tab
    assert await tab.value("typeof hacked") == "undefined"
    assert [each for each in tab.complaints if not is_of_what_is_gone(each)] == []
    hosts = {urlsplit(url).netloc for url in tab.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(link).netloc}
    await tab.close()


@pytest.fixture
async def tab(shop, chromium) -> AsyncIterator[Tab]:
    async with opened(shop[1], chromium) as one:
        yield one


def text_of(selector: str) -> str:
    return f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"


async def click(tab: Tab, selector: str) -> None:
    await tab.value(f"document.querySelector({json.dumps(selector)}).click()")


async def go(tab: Tab, address: str, words: str) -> None:
    await tab.value(f"location.hash = {json.dumps(address)}")
    await tab.until(f"{text_of('#shown')}.includes({json.dumps(words)})")


async def search(tab: Tab, query: str) -> None:
    await tab.press("/")
    await tab.until("document.activeElement.id === 'query'")
    await tab.type(query)
    await tab.until(f"{text_of('#summary')}.includes('document')")


async def test_a_search_leads_to_the_chapter_in_the_document(tab):
    await search(tab, "umbrella")
    assert await tab.value(text_of(".result .title")) == "The setup"
    assert (await tab.value(text_of(".result mark"))).lower() == "umbrella"
    await click(tab, ".result .chapter a")
    await tab.until(f"{text_of('#shown .meant')} === 'Umbrella'")
    shown = "document.querySelector('.meant').getBoundingClientRect()"
    assert await tab.value(f"{shown}.top > 0 && {shown}.bottom < innerHeight")
    assert await tab.value("document.title") == "The setup – notes"
    await tab.value("history.back()")
    await tab.until("document.querySelector('.result')")
    assert await tab.value("document.querySelector('#query').value") == "umbrella"


async def test_a_project_narrows_a_search_down(tab):
    await search(tab, "about")
    await tab.until(f"{text_of('#summary')} === '2 documents'")
    await tab.value(
        "document.querySelector('#project').value = 'Warehouse';"
        "document.querySelector('#project').dispatchEvent(new Event('input'))"
    )
    await tab.until(f"{text_of('#summary')} === '0 documents'")
    assert "Nothing found" in await tab.value(text_of("#shown"))


async def test_a_project_leads_to_its_documents_and_lists(tab):
    await tab.until(f"{text_of('#projects')}.includes('Shop')")
    assert "4 documents, 1 open" in await tab.value(text_of("#projects"))
    await click(tab, "#projects a[href='#/project/Shop']")
    await tab.until(f"{text_of('#shown')}.includes('Documents (4)')")
    assert await tab.value(text_of("#projects [aria-current]")) == "Shop"
    assert "1 of 2 done" in await tab.value(text_of(".todo"))
    boxes = "[...document.querySelectorAll('.box')].map((box) => box.getAttribute('aria-label'))"
    assert await tab.value(boxes) == ["done", "open"]
    assert "changed on two machines" in await tab.value(text_of("#shown"))
    await click(tab, ".todo h4 a")
    await tab.until(f"{text_of('#shown')}.includes('To everybody.')")
    await tab.value("history.back()")
    await tab.until("document.querySelector('.part .body a')")
    await click(tab, ".part .body a")
    await tab.until(f"{text_of('#shown h2')} === 'The setup'")
    assert await tab.value("document.activeElement.tagName") == "H2"
    await click(tab, ".chapters li:last-child a")
    await tab.until(f"{text_of('#shown .meant')} === 'Umbrella'")


async def test_conflicts_stand_out(tab):
    await go(tab, address_of("Shop/document/ports.md"), "8080")
    assert "changed on two machines" in await tab.value(text_of("#shown > .note"))
    assert "origin/main" in await tab.value(text_of(".body .conflict"))


async def test_a_name_that_is_no_text_leads_to_its_project(tab):
    await tab.until(f"{text_of('#projects')}.includes('<b>%2F')")
    await tab.value(
        "[...document.querySelectorAll('#projects a')]"
        ".find((link) => link.innerText.includes('<b>')).click()"
    )
    await tab.until(f"{text_of('#shown')}.includes('Odd')")
    assert "\\udcff<b>%2F" in await tab.value(text_of("#shown h2"))


async def test_nothing_in_a_document_runs_or_is_loaded(tab):
    await go(tab, address_of("Shop/document/hostile.md"), "zebra")
    shown = await tab.value(text_of("#shown"))
    assert "<img src=x onerror=hacked=1>" in shown
    assert "\\x1b]0;title\\x07 \\u202egnp.exe" in shown
    assert "\\u202egnp" in await tab.value(text_of("#shown pre"))
    assert await tab.value("document.querySelectorAll('#shown img, #shown script').length") == 0
    await search(tab, "zebra")
    assert "\\x1b" in await tab.value(text_of(".result"))


async def test_history_shows_what_a_change_has_changed(tab, shop):
    machine, _ = shop
    await machine.done(
        "add_chapter", **P, filename="cart.md", chapter_title="Totals", content="One.\n"
    )
    await go(tab, address_of("Shop/document/cart.md"), "Totals")
    await click(tab, "#shown a[href$='/history']")
    await tab.until(f"{text_of('.entry')}.includes(\"chapter 'Totals'\")")
    await click(tab, ".entry a")
    await tab.until(f"{text_of('.diff .added')}.includes('updated')")
    assert "knowledge/cart.md" in await tab.value(text_of(".difference h4"))
    assert await tab.value("document.querySelector('.entry a').ariaExpanded") == "true"
    await click(tab, ".entry a")
    await tab.until("!document.querySelector('.diff')")
    await tab.value("history.back()")
    await tab.until("document.querySelector('.diff')")


async def test_a_deleted_document_is_in_the_history(tab, shop):
    machine, _ = shop
    wanted = {"filename": "gone", "title": "Gone", "introduction": "Soon", "keywords": ["x"]}
    await machine.done("create_knowledge_file", **P, **wanted, chapters=[])
    await go(tab, address_of("Shop/document/gone.md"), "Soon")
    await machine.done("delete_knowledge_file", **P, filename="gone.md")
    await tab.until(f"{text_of('#shown')}.includes('not found')")
    await click(tab, "#shown a[href$='/history']")
    await tab.until(f"{text_of('.entry')}.includes('Deleted gone.md')")
    await click(tab, ".entry a")
    await tab.until(f"{text_of('.diff .removed')}.includes('---')")
    assert "deleted" in await tab.value(text_of(".difference .badge"))


async def test_what_is_committed_is_shown_while_somebody_reads(tab, shop):
    machine, _ = shop
    await go(tab, address_of("Shop/document/setup.md"), "installer")
    await tab.value("scrollTo(0, 600)")
    await machine.done(
        "add_chapter", **P, filename="setup.md", chapter_title="New", content="Just written.\n"
    )
    await tab.until(f"{text_of('#shown')}.includes('Just written.')")
    assert await tab.value("scrollY") > 300
    await tab.until(f"{text_of('#store')}.includes(\"chapter 'New'\")")
    await machine.done("update_project_main", project_id="Brand new", content="# New\n")
    await tab.until(f"{text_of('#projects')}.includes('Brand new')")
    await machine.done("delete_project", project_id="Brand new")
    await machine.done("remove_chapter", **P, filename="setup.md", chapter_title="New")


async def test_the_keyboard_is_enough(tab):
    await search(tab, "about")
    await tab.press("ArrowDown")
    await tab.until("document.activeElement.matches('.result:first-child')")
    await tab.press("ArrowDown")
    await tab.until("document.activeElement.matches('.result:nth-child(2)')")
    await tab.press("Enter")
    await tab.until("document.querySelector('#shown .body')")
    assert await tab.value("document.activeElement.tagName") == "H2"


async def test_nothing_is_wider_than_the_window(tab, shop):
    commit = shop[0].git("rev-parse", "HEAD")
    views = {
        "start": ("#/", "Latest changes"),
        "project": (address_of("Shop"), "Documents"),
        "document": (address_of("Shop/document/setup.md"), "Umbrella"),
        "hostile": (address_of("Shop/document/hostile.md"), "zebra"),
        "conflict": (address_of("Shop/document/ports.md"), "8080"),
        "todo": (address_of("Shop/todo/1"), "Sell"),
        "history": (f"#/history?commit={commit}", "changes"),
        "search": ("#/search?query=the+umbrella", "umbrella"),
    }
    for name, (address, words) in views.items():
        await go(tab, address, words)
        for width in WIDTHS:
            await tab.resize(width)
            fits = await tab.value("document.documentElement.scrollWidth <= innerWidth")
            assert fits, (name, width)


async def test_an_empty_store_says_how_to_begin(chromium, tmp_path):
    async with served(tmp_path / "store") as (machine, page), opened(page, chromium) as tab:
        await tab.until(f"{text_of('#shown')}.includes('There are no notes yet')")
        await machine.done("update_project_main", **P, content="# Shop\n")
        await tab.until(f"{text_of('#shown')}.includes('Latest changes')")
        await tab.until(f"{text_of('#projects')}.includes('Shop')")
