"""The page in a real Chromium: what somebody sees, with which keys, and that nothing leaves."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import Browser, Tab, browser, needs_chromium
from fakes import FakeEmbedder
from processes import FAKE_WORKER, NO_MODEL, Place, place_of, with_import_hook
from serving import codebase_of, converged
from waiting import eventually
from writing import write

from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.foreign import OBEYED, visible
from vector_index_mcp.page.project import ProjectPage
from vector_index_mcp.serving.listener import Page

pytestmark = [
    pytest.mark.anyio,
    needs_chromium,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and modes"),
]

HOSTILE_NAME = "<img src=x onerror=hacked=1>.py"
HOSTILE_TEXT = (
    "# </code></script><script>hacked = 1</script><img src=x onerror=hacked=1>\n"
    "zebra = '\x1b]0;title\x07 \u202egnp.exe'\n"
)
PROJECT = {
    "src/load.py": "def parse_config(path):\n    # where it lies\n    return read('x', 1)\n",
    "src/deep/listen.py": "def accept_connections(port):\n    bind(port)\n",
    "README.md": "# Weather\n\nShows whether it rains.\n",
    "long.py": "".join(f"weather_{n} = {n}\n" for n in range(30)),
    "assets/id_rsa": "secret\n",
    HOSTILE_NAME: HOSTILE_TEXT,
}
INDEXED = len(PROJECT) - 1
WIDTHS = (360, 800, 1600)
LEAST_CONTRAST = 4.5  # WCAG 2.2, level AA
# The lowest contrast of any text that is seen, with the text. Backgrounds are looked for upwards.
LOWEST_CONTRAST = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => c / 255).map(
      (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  let lowest = [21, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.closest("noscript")) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color).slice(0, 3)),
                    light(ground(element).slice(0, 3))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < lowest[0]) lowest = [contrast, `${text} (${element.className})`];
  }
  return lowest;
})()
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A project with a service whose vectors cost nothing."""
    with place_of(PROJECT) as place:
        place.variables = with_import_hook(place.folder / "hook", FAKE_WORKER, place.variables)
        yield place


@pytest.fixture(scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with browser() as one:
        yield one


@pytest.fixture
async def tab(place, chromium) -> AsyncIterator[Tab]:
    """The page of the project, indexed; at the end it has asked nobody else and complained not."""
    ran = await place.run("ui", place.project, "--no-open")
    async with opened(chromium, ran.stdout.strip()) as tab:
        await tab.until(f"{fact('Files')} === '{INDEXED}'")
        await tab.until("document.querySelector('#state-words').textContent === 'up to date'")
        yield tab
        assert tab.complaints == []


@asynccontextmanager
async def opened(chromium: Browser, link: str) -> AsyncIterator[Tab]:
    async with AsyncExitStack() as stack:
        tab = await chromium.tab()
        stack.push_async_callback(tab.close)
        await tab.resize(1600)
        await tab.open(link)
        await tab.until(fact("Files"))  # it is connected
        yield tab
        hosts = {urlsplit(url).netloc for url in tab.requests if not url.startswith("data:")}
        assert hosts == {urlsplit(link).netloc}


def fact(name: str) -> str:
    """What the page says of the index, as JavaScript."""
    return (
        "[...document.querySelectorAll('#facts dt')]"
        f".find((dt) => dt.textContent === {json.dumps(name)})?.nextElementSibling.textContent"
    )


def text_of(selector: str) -> str:
    return f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"


async def search(tab: Tab, query: str) -> None:
    """Type `query` and wait for its results."""
    await tab.value("location.hash = '#/search'")
    await tab.value("document.querySelector('#query').select()")
    await tab.type(query)
    address = (
        f"decodeURIComponent(location.hash.replaceAll('+', ' ')).includes({json.dumps(query)})"
    )
    await tab.until(f"{address} && {text_of('#summary')}.includes(' ms')")
    await tab.until("!document.querySelector('#results[aria-busy]')")


# -- how one comes in ------------------------------------------------------------------------


async def test_the_file_that_a_browser_is_given_opens_the_page_and_goes(place, chromium):
    browser, seen = place.folder / "browser", place.folder / "seen"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part\nmv {seen}.part {seen}\n', "utf-8")
    browser.chmod(0o700)
    ran = await place.run("ui", place.project, BROWSER=f"{browser} %s")
    token = ran.stdout.strip().partition("token=")[2]
    await eventually(seen.exists)
    tab = await chromium.tab()
    await tab.open(url := seen.read_text("utf-8"))
    await tab.until(fact("Files"))
    history = await tab.send("Page.getNavigationHistory")
    addresses = [entry["url"] for entry in history["entries"]]
    assert not [address for address in [*tab.requests, *addresses] if token in address]
    await eventually(lambda: not Path(url.removeprefix("file://")).exists())
    await tab.send("Page.reload")
    await tab.until(fact("Files"))
    # Before the page comes, a browser may ask for an icon that nobody has a right to yet.
    assert [words for words in tab.complaints if "favicon.ico" not in words] == []
    await tab.close()


# -- search ----------------------------------------------------------------------------------


async def test_typing_finds_and_highlights(tab):
    assert await tab.value("document.activeElement.id") == "query"
    await search(tab, "parse_config")
    await tab.until(f"{text_of('.result .place')}.startsWith('src/load.py')")
    assert "by words and by meaning" in await tab.value(text_of("#summary"))
    first = "document.querySelector('.result')."
    assert await tab.value(f"{first}querySelector('.text mark').textContent") == "parse_config"
    assert await tab.value(f"{first}querySelector('.t-k').textContent") == "def"
    assert await tab.value(f"{first}querySelector('.t-c').textContent") == "# where it lies"
    code = await tab.value(f"{first}querySelector('.text').textContent")
    assert code == PROJECT["src/load.py"].rstrip()
    assert await tab.value(f"{first}querySelector('.numbers').textContent") == "1\n2\n3"
    colours = [
        await tab.value(f"getComputedStyle({first}querySelector('.t-{kind}')).color")
        for kind in "kcsnf"
    ]
    assert len(set(colours)) == len(colours)


async def test_keys_walk_through_the_results(tab):
    await search(tab, "weather")
    focused = "document.activeElement"
    places = "[...document.querySelectorAll('.result')].indexOf(document.activeElement)"
    for key, place in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", -1)]:
        await tab.press(key)
        assert await tab.value(places) == place
    assert await tab.value(f"{focused}.id") == "query"
    await tab.value("document.querySelector('.result:has(.unfold)').focus()")
    assert await tab.value(f"Boolean({focused}.querySelector('.folded'))")
    await tab.press("Enter")
    assert not await tab.value(f"Boolean({focused}.querySelector('.folded'))")
    await tab.press("/")
    assert await tab.value(f"{focused}.id") == "query"
    assert await tab.value(f"{focused}.value") == "weather"


async def test_reloading_and_going_back_keep_what_was_asked(tab):
    await search(tab, "accept_connections")
    await tab.send("Page.reload")
    await tab.until("document.querySelector('.result')")
    assert await tab.value("document.querySelector('#query').value") == "accept_connections"


async def test_filters_narrow_a_search_and_are_undone(tab):
    await search(tab, "weather")
    await tab.value("document.querySelector('#path').focus()")
    await tab.type("nowhere/**")
    await tab.until(f"{text_of('#empty')}.includes('Nothing found')")
    await tab.value("document.querySelector('#empty button').click()")
    await tab.until("document.querySelector('.result')")
    await tab.value("document.querySelector('#language').focus()")
    await tab.type("klingon")
    await tab.until(f"{text_of('#summary')}.includes('language is not known')")
    # The refusal is an answer with status 400, which the console notes.
    tab.complaints.clear()


# -- what is new -----------------------------------------------------------------------------


async def test_a_saved_file_is_counted_at_once_and_without_reloading(tab, place):
    new = place.project / "new.py"
    try:
        write(place.project, {"new.py": "def brand_new():\n    pass\n"})
        await tab.until(f"{fact('Files')} === '{INDEXED + 1}'")
        await tab.value("location.hash = '#/map'")
        await tab.until(f"{text_of('#parts')}.includes('new.py')")
    finally:
        new.unlink(missing_ok=True)
    await tab.until(f"{fact('Files')} === '{INDEXED}'")
    await tab.until(f"!{text_of('#parts')}.includes('new.py')")


async def test_what_clients_ask_is_seen(tab, place):
    await place.run("search", place.project, "accept_connections")
    await tab.until(f"{text_of('#recent')}.includes('client, just now')")
    await tab.value("document.querySelector('#recent a').click()")
    await tab.until("document.querySelector('.result')")
    assert await tab.value("document.querySelector('#query').value") == "accept_connections"


async def test_the_map_is_walked_into_and_back(tab):
    await tab.value("location.hash = '#/map'")
    await tab.until("document.querySelector('.tile')")
    assert "may hold secrets" in await tab.value(text_of("#parts"))
    deep = "[...document.querySelectorAll('.tile-enter')].find((t) => t.innerText === 'deep')"
    await tab.until(deep)
    x, y = await tab.value(f"(({{x, y}}) => [x + 9, y + 9])({deep}.getBoundingClientRect())")
    await tab.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    await tab.until(f"{text_of('#tip')}.includes('1 file, 1 chunk')")
    await tab.click(x, y)
    await tab.until(f"{text_of('#parts')}.includes('listen.py')")
    assert "src\n/\ndeep" in (await tab.value(text_of("#crumbs"))).replace(" ", "\n")
    await tab.value("history.back()")
    await tab.until(f"{text_of('#parts')}.includes('README.md')")


async def test_nothing_of_the_project_becomes_markup(tab):
    await search(tab, "zebra <img src=x onerror=hacked=1>")
    await tab.until(f"{text_of('#results')}.includes({json.dumps(HOSTILE_NAME)})")
    texts = "[...document.querySelectorAll('.text')].map((text) => text.innerText)"
    code = await tab.value(f"{texts}.find((text) => text.includes('zebra'))")
    assert "<script>hacked = 1</script>" in code
    assert r"\x1b]0;title\x07 \u202egnp.exe" in code
    await tab.until(f"{text_of('#recent')}.includes('onerror=hacked')")
    await tab.value("location.hash = '#/map'")
    await tab.until(f"{text_of('#parts')}.includes({json.dumps(HOSTILE_NAME)})")
    assert await tab.value("document.querySelectorAll('img').length") == 1  # our own
    assert await tab.value("document.querySelectorAll('script').length") == 1
    assert await tab.value("typeof hacked") == "undefined"
    with pytest.raises(AssertionError, match="TrustedHTML"):  # even if we forgot ourselves
        await tab.value("document.body.innerHTML = '<b>'")
    tab.complaints.clear()  # of the violation just tried


async def test_names_are_shown_as_a_terminal_shows_them(tab):
    edges = {end + step for each in OBEYED for end in each for step in (-1, 0, 1)}
    texts = [f"a{chr(edge)}b" for edge in sorted(edges) if edge >= 0] + ["\r\n\t", "\ud83d"]
    shown = await tab.value(
        f"import('./dom.js').then(({{ visible }}) => {json.dumps(texts)}.map(visible))"
    )
    assert shown == [*map(visible, texts)]


# -- how it looks ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_and_nothing_juts_out(tab, scheme):
    await tab.use_scheme(scheme)
    for view in ("search", "map", "activity"):
        if view == "search":
            await search(tab, "weather zebra parse_config")
        await tab.value(f"location.hash = '#/{view}'")
        if view == "map":
            await tab.until("document.querySelector('.tile')")
        for width in WIDTHS:
            await tab.resize(width)
            contrast, text = await tab.value(LOWEST_CONTRAST)
            assert contrast >= LEAST_CONTRAST, (view, width, contrast, text)
            jutting = await tab.value("document.documentElement.scrollWidth - innerWidth")
            assert jutting <= 0, (view, width)


async def test_light_and_dark_differ(tab):
    grounds = []
    for scheme in ("light", "dark"):
        await tab.use_scheme(scheme)
        grounds.append(await tab.value("getComputedStyle(document.body).backgroundColor"))
    assert len(set(grounds)) == 2


# -- when something is missing ---------------------------------------------------------------


async def test_an_empty_project_says_why_nothing_is_found(chromium):
    with place_of({"blob.dat": "\0"}, **NO_MODEL) as place:
        ran = await place.run("ui", place.project, "--no-open")
        async with opened(chromium, ran.stdout.strip()) as tab:
            await tab.until(f"{text_of('#empty')}.includes('Nothing is indexed yet')")
            await tab.until(f"{text_of('#empty')}.includes('1 binary')")
            write(place.project, {"first.py": "first = 1\n"})
            await tab.until(f"{text_of('#empty')}.includes('Search by meaning')")


@asynccontextmanager
async def shown(codebase: Codebase) -> AsyncIterator[Page]:
    """The page of a codebase that runs here."""

    async def get() -> Codebase:
        return codebase

    async with codebase.running():
        yield Page(ProjectPage(get))


async def test_an_answer_by_words_is_asked_again_once_the_model_is_ready(chromium, tmp_path):
    root = write(tmp_path / "project", PROJECT)
    async with shown(codebase := codebase_of(root, FakeEmbedder())):
        await converged(codebase)
    embedder = FakeEmbedder()
    embedder.keep_loading()
    async with (
        shown(codebase_of(root, embedder)) as page,
        page.running(),
        opened(chromium, await page.address()) as tab,
    ):
        await search(tab, "parse_config")
        assert "model is still loading" in await tab.value(text_of("#note"))
        embedder.finish_loading()
        await tab.until(f"{text_of('#summary')}.includes('by meaning')")
        assert await tab.value("document.querySelector('#note').hidden")


async def test_a_service_that_is_gone_is_told_until_it_is_back(chromium, tmp_path):
    root = write(tmp_path / "project", PROJECT)
    tab = await chromium.tab()
    banner = "document.querySelector('#gone')"
    async with shown(codebase_of(root, FakeEmbedder())) as page:
        async with page.running():
            await tab.open(await page.address())
            await tab.until(fact("Files"))
            assert await tab.value(f"{banner}.hidden")
        # The listener is closed, the tab is not.
        await tab.until(f"!{banner}.hidden")
        assert f"vector-index-mcp ui {root}" in await tab.value(f"{banner}.innerText")
        async with page.running():
            await page.address()
            await tab.until(f"{banner}.hidden")
            await search(tab, "parse_config")
            await tab.close()
