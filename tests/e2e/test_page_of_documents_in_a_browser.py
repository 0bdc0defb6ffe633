"""The page of documents in a real Chromium: searching, reading, and that nothing in a text runs."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import pytest
from chromium import Browser, Tab, browser, needs_chromium
from commanding import Qmd
from processes import FAKE_WORKER, place_of, with_import_hook
from writing import write

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    needs_chromium,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and modes"),
]

HOSTILE = (
    "# <script>hacked = 1</script>\n\n<img src=x onerror=hacked=1> [run](javascript:hacked=1)\n\n"
    "![pixel](http://127.0.0.1:9/pixel.png) \x1b]0;title\x07 \u202egnp.exe zebra\n\n"
    "```html\n<script>hacked = 1</script>\n```\n"
)
FILES = {
    "docs/guide.md": "---\ntags: [rail]\n---\n# Travel guide\n\n"
    "See [the plan](../notes/plan.md).\n\n"
    "Read [[plan]] as well.\n\n## Timetable\n\n| from | to |\n|---|--:|\n| Bern | 9 |\n\n"
    + "filler\n\n" * 60
    + "## Luggage\n\nCarry the umbrella in hand.\n",
    "docs/hostile.md": HOSTILE,
    "docs/meetings/monday.md": "# Monday\n\nWe spoke of walruses.\n",
    "notes/plan.md": "# Plan\n\nBuy tickets. Back to the [luggage](../docs/guide.md#luggage).\n",
}


@pytest.fixture(scope="module")
def qmd() -> Iterator[Qmd]:
    """Documents with a service whose vectors cost nothing."""
    with place_of(FILES) as place:
        place.variables = with_import_hook(place.folder / "hook", FAKE_WORKER, place.variables)
        yield Qmd(place)


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as one:
        yield one


@pytest.fixture
async def tab(qmd, chromium) -> AsyncIterator[Tab]:
    """The page of the documents, indexed; in the end it has asked nobody else."""
    link = qmd("ui", "--no-open").stdout.strip()
    tab = await chromium.tab()
    await tab.resize(1600)
    await tab.open(link)
    await tab.until(f"{text_of('#state-words')} === 'up to date'")
    yield tab
    assert await tab.value("typeof hacked") == "undefined"
    assert tab.complaints == []
    hosts = {urlsplit(url).netloc for url in tab.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(link).netloc}
    await tab.close()


def text_of(selector: str) -> str:
    return f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"


async def click(tab: Tab, selector: str) -> None:
    await tab.value(f"document.querySelector({json.dumps(selector)}).click()")


async def search(tab: Tab, query: str) -> None:
    await tab.value("document.querySelector('#query').focus()")
    await tab.type(query)
    await tab.until(f"{text_of('#summary')}.includes('document')")


async def test_each_context_is_a_paragraph(tab):
    await search(tab, "walruses")
    await tab.until(f"{text_of('#results .title')} === 'Monday'")
    said = "[...document.querySelectorAll('{} .said')].map((each) => each.innerText)"
    contexts = ["Global ctx", "Meeting notes and transcripts"]
    assert await tab.value(said.format("#results li:first-child")) == contexts
    await click(tab, "#results .title a")
    await tab.until(f"{text_of('#document h2')} === 'Monday'")
    assert await tab.value(said.format("#document")) == contexts


async def test_a_question_leads_to_the_place_in_the_document(tab):
    await search(tab, "umbrella")
    assert await tab.value(text_of("#results .title")) == "Travel guide"
    assert await tab.value(text_of("#results mark")) == "umbrella"
    assert "rail" in await tab.value(text_of("#results .tags"))
    await click(tab, "#results .title a")
    await tab.until(f"{text_of('#document .meant')}.includes('umbrella')")
    shown = "document.querySelector('.meant').getBoundingClientRect()"
    assert await tab.value(f"{shown}.top > 0 && {shown}.bottom < innerHeight")
    assert await tab.value(text_of("#document h2")) == "Travel guide"
    assert await tab.value("document.querySelectorAll('#document td').length") == 2
    assert await tab.value("document.title") == "Travel guide – documents"
    assert "null" not in await tab.value(text_of("#document"))


async def test_links_lead_both_ways_and_back(tab):
    await search(tab, "timetable")
    await click(tab, "#results .title a")
    await tab.until(f"{text_of('#links')}.includes('Links to')")
    assert "Linked from" in await tab.value(text_of("#links"))
    await click(tab, "#document .body a")
    await tab.until(f"{text_of('#document h2')} === 'Plan'")
    await click(tab, "#document .body a")  # to a heading
    await tab.until(f"{text_of('#document .meant')} === 'Luggage'")
    await tab.value("history.back()")
    await tab.until(f"{text_of('#document h2')} === 'Plan'")


async def test_nothing_in_a_document_runs_or_is_loaded(tab):
    await tab.value("location.hash = '#/document/docs/hostile.md'")
    await tab.until(f"{text_of('#document')}.includes('zebra')")
    shown = await tab.value(text_of("#document"))
    assert "<img src=x onerror=hacked=1>" in shown
    assert "\\x1b]0;title\\x07 \\u202egnp.exe" in shown
    assert (
        await tab.value("document.querySelectorAll('#document img, #document script').length") == 0
    )
    links = "[...document.querySelectorAll('#document a')].map((a) => a.protocol)"
    assert "javascript:" not in await tab.value(links)
    await search(tab, "zebra")
    assert "\\x1b" in await tab.value(text_of("#results"))


async def test_what_is_saved_is_shown_while_somebody_reads(tab, qmd):
    await tab.value("location.hash = '#/document/notes/plan.md'")
    await tab.until(f"{text_of('#document')}.includes('Buy tickets')")
    write(qmd.place.project, {"notes/plan.md": FILES["notes/plan.md"] + "\nAnd a map.\n"})
    await tab.until(f"{text_of('#document')}.includes('And a map.')")


async def test_collections_are_listed_and_chosen(tab):
    await tab.until(f"{text_of('#collections')}.includes('notes')")
    await click(tab, "#collections a")
    await tab.until(f"{text_of('#results')}.includes('docs/guide.md')")
    choose = (
        "document.querySelector('#collection').value = 'notes';"
        "document.querySelector('#collection').dispatchEvent(new Event('input'))"
    )
    await search(tab, "travel plan")
    await tab.value(choose)
    await tab.until(f"{text_of('#summary')}.startsWith('1 document,')")
    assert (await tab.value(text_of("#results .key"))).startswith("notes/plan.md")
    assert "collection=notes" in await tab.value("location.hash")


async def test_nothing_is_wider_than_the_window(tab):
    for address in ("#/", "#/document/docs/guide.md", "#/document/docs/hostile.md"):
        await tab.value(f"location.hash = {json.dumps(address)}")
        await tab.until("!document.querySelector('#results').hasAttribute('aria-busy')")
        for width in (360, 800, 1600):
            await tab.resize(width)
            fits = await tab.value("document.documentElement.scrollWidth <= innerWidth")
            assert fits, (address, width)
