"""The page of the datasets in a real Chromium: a question, a new dataset, and hostile texts."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import Browser, Tab, browser, needs_chromium
from fakes import FakeEmbedder
from shelves import DIMENSION, MODEL, index_of, put, running, write

from vector_index_mcp.page.datasets import DatasetsPage
from vector_index_mcp.serving.listener import Page

pytestmark = [pytest.mark.long, pytest.mark.anyio, needs_chromium]

TEXTS = {
    "docs/ships.md": "A ship sails.\n<script>hacked = 1</script> \x1b]0;title\x07 \u202egnp.exe",
    "<img src=x onerror=hacked=1>.md": "<img src=x onerror=hacked=1> about trees " + "long" * 200,
}
HOSTILE = {"name": "<b onclick=hacked=1>bold</b>", "description": "\u202egnp " + "w" * 300}
WIDTHS = (360, 800, 1600)


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as one:
        yield one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "datasets"
    root.mkdir()
    return root


@asynccontextmanager
async def opened(root: Path, chromium: Browser, embedder: FakeEmbedder) -> AsyncIterator[Tab]:
    """The page; in the end it has asked nobody else, and complained about nothing."""
    make = index_of(root.parent / "beside", embedder)
    async with running(root, embedder, index_of=make) as service:

        async def get() -> object:
            return service

        page = Page(DatasetsPage(get))
        async with page.running():
            link = await page.address()
            tab = await chromium.tab()
            await tab.resize(1600)
            await tab.open(link)
            await tab.until(f"['ready', 'needs attention'].includes({text_of('#state-words')})")
            yield tab
            assert await tab.value("typeof hacked") == "undefined"
            assert [each for each in tab.complaints if "400 (Bad Request)" not in each] == []
            hosts = {urlsplit(url).netloc for url in tab.requests if not url.startswith("data:")}
            assert hosts == {urlsplit(link).netloc}
            await tab.close()


def text_of(selector: str) -> str:
    return f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"


async def fill(tab: Tab, **fields: str) -> None:
    for name, value in fields.items():
        await tab.value(
            f"document.querySelector('#make [name={name}]').value = {json.dumps(value)}"
        )
    await tab.value("document.querySelector('#make').requestSubmit()")


async def test_a_question_is_tried_and_hostile_texts_stay_texts(root, chromium):
    await put(root, texts=TEXTS, **HOSTILE)
    write(root / "bad/manifest.json", b"{")
    async with opened(root, chromium, FakeEmbedder(MODEL, DIMENSION)) as tab:
        shown = await tab.value(text_of("#datasets"))
        assert "<b onclick=hacked=1>bold</b>" in shown
        assert "\\u202egnp" in shown
        assert "no JSON" in shown
        assert await tab.value(text_of("#state-words")) == "needs attention"
        await tab.press("/")
        await tab.type("ship sails")
        await tab.until(f"{text_of('#summary')}.includes('2 texts')")
        first = await tab.value(text_of(".result"))
        assert "docs/ships.md" in first
        assert "<script>hacked = 1</script>" in first
        assert "\\x1b" in first
        assert (await tab.value(text_of(".result mark"))).lower() == "ship"
        for width in WIDTHS:
            await tab.resize(width)
            assert await tab.value("document.documentElement.scrollWidth") <= width
        await tab.value("location.reload()")
        await tab.until(f"{text_of('#summary')}.includes('2 texts')")


async def test_a_dataset_is_made_of_a_folder_and_answers(root, chromium, tmp_path):
    source = tmp_path / "texts"
    source.mkdir()
    (source / "ships.md").write_text("# Ships\n\nA ship sails.\n")
    embedder = FakeEmbedder(MODEL, DIMENSION)
    embedder.hold()
    async with opened(root, chromium, embedder) as tab:
        await tab.until(f"{text_of('#empty')}.includes('There are no datasets yet')")
        await fill(tab, sourcePath="/no/such/folder", datasetId="ships", name="The ships")
        await tab.until(f"{text_of('#make-error')}.includes('is no folder')")
        await fill(tab, sourcePath=str(source))
        await tab.until(f"{text_of('#jobs')}.includes('embedding chunks: 0 of 1')")
        assert await tab.value(text_of("#state-words")) == "making"
        assert await tab.value("document.querySelector('#make-error').hidden")
        embedder.release()
        await tab.until(f"{text_of('#jobs')}.includes('made of 1 document, 1 text')")
        await tab.until(f"{text_of('#datasets')}.includes('The ships')")
        await tab.press("/")
        await tab.type("sails")
        await tab.until(f"{text_of('#results')}.includes('ships.md')")


async def test_what_is_being_made_is_cancelled_with_a_click(root, chromium, tmp_path):
    source = tmp_path / "texts"
    source.mkdir()
    (source / "ships.md").write_text("# Ships\n\nA ship sails.\n")
    embedder = FakeEmbedder(MODEL, DIMENSION)
    embedder.hold()
    async with opened(root, chromium, embedder) as tab:
        await fill(tab, sourcePath=str(source), datasetId="ships", name="The ships")
        await tab.until("document.querySelector('#jobs button')")
        await tab.value("document.querySelector('#jobs button').click()")
        await tab.until(f"{text_of('#jobs')}.includes('cancelled')")
