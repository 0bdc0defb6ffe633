"""The page in a real Chromium: what somebody sees, with which keys, and that nothing leaves."""

import itertools
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
    pytest.mark.long,
    pytest.mark.anyio,
    needs_chromium,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and modes"),
]

HOSTILE_NAME = "<img src=x onerror=hacked=1>.py"
HOSTILE_TEXT = (
    "# </code></script><script>hacked = 1</script><img src=x onerror=hacked=1>\n"
    "zebra = '\x1b]0;title\x07 \u202egnp.exe'\n"
)
ODD_NAME = 'odd/50% "of"\n#1?.py'
PROJECT = {
    "src/load.py": "def parse_config(path):\n    # where it lies\n    return read('x', 1)\n",
    "src/deep/listen.py": "def accept_connections(port):\n    bind(port)\n",
    "README.md": "# Weather\n\nShows whether it rains.\n",
    "long.py": "".join(f"weather_{n} = {n}\n" for n in range(30)),
    "assets/id_rsa": "secret\n",
    "far.py": "".join(f"line_{n} = {n}\n" for n in range(1, 400)) + "def giraffe():\n    pass\n",
    HOSTILE_NAME: HOSTILE_TEXT,
    ODD_NAME: "giraffe = 'in an odd place'\n",
}
INDEXED = len(PROJECT) - 1
WIDTHS = (360, 800, 1400)
WHERE_THE_GIRAFFE_IS = """
(() => {
  const text = document.querySelector("#file .text");
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  while (!walker.currentNode.data?.includes("giraffe")) walker.nextNode();
  const range = document.createRange();
  range.selectNode(walker.currentNode);
  const { top, bottom } = range.getBoundingClientRect();
  return [top, bottom];
})()
"""
VIEWS = {  # by name, what is there once it is shown
    "search": "document.querySelector('.result')",
    "map": "document.querySelector('.tile')",
    "activity": "document.querySelector('#facts dt')",
    "file/far.py?lines=300-310": "document.querySelector('.band')",
}
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
  const band = document.querySelector(".band");
  const ground = (element) => {
    if (band && element.closest("#file .code")) return rgb(getComputedStyle(band).backgroundColor);
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


async def test_a_result_says_why_it_stands_there(tab):
    await search(tab, "where is the weather shown")
    why = "document.querySelector('.result .why')"
    await tab.until(f"Boolean({why})")
    assert not await tab.value(f"{why}.open")
    await tab.value(f"{why}.querySelector('summary').click()")
    assert await tab.value(f"{why}.open")
    titles = f"[...{why}.querySelectorAll('dt')].map((each) => each.textContent)"
    named = ["its file", "in its file", "its score"]
    assert await tab.value(titles) == ["this place", *(f"{name}, in logits" for name in named)]
    assert "words " in await tab.value(f"{why}.querySelector('dd').textContent")


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


async def test_only_what_was_asked_last_is_waited_for(tab):
    """Of the function that all pages with a search share."""
    told = await tab.value(
        """
        Promise.all([import("./typing.js"), import("./dom.js")]).then(async ([typing, dom]) => {
          const told = [];
          const newest = typing.whileTyping([], () => {}, (words) => told.push(words));
          let isBrokenOff = false;
          const slow = newest((signal) => new Promise((_, fail) => {
            signal.addEventListener("abort", () => {
              isBrokenOff = true;
              fail(new dom.Refused("too late"));
            });
          }));
          await newest(() => { throw new dom.Refused("no\\u202ething"); });
          await slow;
          const words = document.querySelector("#summary").textContent;
          await newest(() => { throw new TypeError(); });
          told.push(document.querySelector("#summary").textContent === words);
          return [isBrokenOff, ...told, document.querySelector("#results").ariaBusy];
        })
        """
    )
    assert told == [True, r"no\u202ething", False, None]


async def test_reloading_and_going_back_keep_what_was_asked(tab):
    await search(tab, "accept_connections")
    await tab.send("Page.reload")
    await tab.until("document.querySelector('.result')")
    assert await tab.value("document.querySelector('#query').value") == "accept_connections"


async def test_a_miss_is_told(tab):
    await search(tab, "getUmbrellaColour")
    words = "No searched file contains `getUmbrellaColour`; these are the nearest."
    assert words in await tab.value(text_of("#note"))
    await search(tab, "accept_connections")
    assert await tab.value("document.querySelector('#note').hidden")


async def test_filters_narrow_a_search_and_are_undone(tab):
    await search(tab, "weather")
    await tab.value("document.querySelector('#path').focus()")
    await tab.type("nowhere/**")
    await tab.until(f"{text_of('#empty')}.includes('Nothing found')")
    assert "The note says why" in await tab.value(text_of("#empty"))
    assert "No indexed file matches path='nowhere/**'" in await tab.value(text_of("#note"))
    await tab.value("document.querySelector('#empty button').click()")
    await tab.until("document.querySelector('.result')")
    await tab.value("location.hash = '#/search?query=weather&language=klingon'")
    await tab.until(f"{text_of('#summary')}.includes('language is not known')")
    # The refusal is an answer with status 400, which the console notes.
    tab.complaints.clear()


BEFORE_REPEATED_SECONDS = 10.0
"""The status is sent every 15 s without a sign; what is seen earlier was sent for a reason."""


async def test_the_languages_that_there_are_can_be_chosen(tab, place):
    options = "[...document.querySelectorAll('#language option')].map((each) => each.textContent)"
    await tab.until(f"{options}.join() === 'any,markdown (1),python ({INDEXED - 1})'")
    await search(tab, "weather")
    await tab.value("document.querySelector('#language').focus()")
    await tab.press("m")  # as somebody chooses with keys
    await tab.until("location.hash.includes('language=markdown')")
    await tab.until(f"!{text_of('#results')}.includes('long.py')")
    assert "README.md" in await tab.value(text_of("#results"))
    await tab.value("document.querySelector('#query').focus()")
    new = place.project / "new.rs"
    try:
        write(place.project, {"new.rs": "fn brand_new() {}\n"})
        await tab.until(f"{options}.includes('rust (1)')", BEFORE_REPEATED_SECONDS)
        assert await tab.value("document.querySelector('#language').value") == "markdown"
    finally:
        new.unlink(missing_ok=True)
    await tab.until(f"!{options}.includes('rust (1)')", BEFORE_REPEATED_SECONDS)


# -- a whole file ----------------------------------------------------------------------------


async def test_a_result_leads_to_its_file_with_its_lines_marked_and_back(tab):
    await search(tab, "giraffe")
    far = "[...document.querySelectorAll('.result')].find((r) => r.innerText.startsWith('far.py'))"
    await tab.value(f"{far}.querySelector('.place a').click()")
    await tab.until("document.querySelector('#file .band')")
    assert await tab.value("document.querySelector('#search').hidden")
    text = await tab.value("document.querySelector('#file .text').textContent")
    assert text == PROJECT["far.py"].rstrip("\n")
    assert "lines 400–401 are marked" in (found := await tab.value(text_of("#file"))), found
    top, bottom = await tab.value(
        "(({ top, bottom }) => [top, bottom])"
        "(document.querySelector('#file .band').getBoundingClientRect())"
    )
    assert 100 < top < bottom < 900  # it is seen, and not behind the head
    above, below = await tab.value(WHERE_THE_GIRAFFE_IS)
    assert top <= above < below <= bottom, (top, above, below, bottom)
    assert "null" not in await tab.value(text_of("#file"))
    await tab.press("Escape")
    await tab.until("!document.querySelector('#search').hidden")
    assert await tab.value(f"document.activeElement === {far}")
    assert await tab.value("document.querySelector('#query').value") == "giraffe"


async def test_a_file_of_any_name_is_shown_and_opened(tab, place):
    await search(tab, "giraffe")
    odd = "[...document.querySelectorAll('.result')].find((r) => r.innerText.startsWith('odd/'))"
    await tab.until(odd)
    folder = place.project.as_posix()
    link = f"vscode://file{folder}/odd/50%25%20%22of%22%0A%231%3F.py:1"
    assert await tab.value(f"{odd}.querySelector('.editor').getAttribute('href')") == link
    await tab.value(f"{odd}.querySelector('.place a').click()")
    await tab.until(f"{text_of('#file')}.includes('in an odd place')")
    assert '50% "of"\\n#1?.py' in await tab.value(text_of("#file h2"))
    assert await tab.value("document.querySelector('#file .editor').getAttribute('href')") == link
    before = await tab.value("location.href")
    await tab.value("document.querySelector('#file .editor').click()")
    await eventually(lambda: link in tab.requests)  # it is handed to the system
    tab.requests.remove(link)
    assert await tab.value("location.href") == before
    await tab.send("Page.reload")
    await tab.until(f"{text_of('#file')}.includes('in an odd place')")


async def test_keys_lead_from_a_result_to_its_file(tab):
    await search(tab, "accept_connections")
    await tab.press("ArrowDown")
    await tab.press("f")
    await tab.until(f"{text_of('#file h2')}.includes('src/deep/listen.py')")
    await tab.press("/")
    await tab.until("document.activeElement.id === 'query'")
    assert await tab.value("document.activeElement.value") == "accept_connections"


NOT_HELD = (
    *("assets/id_rsa", "../secret.py", "%2Fetc%2Fpasswd", "src"),
    *("nothing.py?lines=x-y", "%", "", "%00"),
)


async def test_what_the_index_does_not_hold_is_not_shown(tab, place):
    write(place.folder, {"secret.py": "outside = 1\n"})
    for path in NOT_HELD:
        await tab.value("location.hash = '#/file/long.py'")
        await tab.until(f"{text_of('#file')}.includes('weather_1')")
        await tab.value(f"location.hash = '#/file/{path}'")
        await tab.until(f"{text_of('#file')}.includes('The index holds no file')")
        assert await tab.value("document.querySelectorAll('#file .code').length") == 0, path
    tab.complaints.clear()  # an answer with status 400


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
    first = text_of("#recent li")
    await tab.until(f"{first}.startsWith('accept_connections') && {first}.includes('client,')")
    assert "just now" in await tab.value(first)
    await tab.value("document.querySelector('#recent a').click()")
    await tab.until("document.querySelector('.result')")
    assert await tab.value("document.querySelector('#query').value") == "accept_connections"


async def test_a_query_that_is_asked_again_is_one_line(tab, place):
    for query in ["read config", "bind port", "read config"]:
        await place.run("search", place.project, query)
    first = "document.querySelector('#recent li')"
    await tab.until(f"{first}.innerText.includes('client 2 times, last just now')")
    lines = "[...document.querySelectorAll('#recent > li > a')].map((line) => line.textContent)"
    assert (await tab.value(lines))[:2] == ["read config", "bind port"]
    await tab.value(f"{first}.querySelector('summary').click()")
    await place.run("search", place.project, "read config")
    await tab.until(f"{first}.innerText.includes('client 3 times, last just now')")
    assert await tab.value(f"{first}.querySelector('details').open")
    await tab.value(f"{first}.querySelector('.places a').click()")
    await tab.until("document.querySelector('#file .band')")


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
    for view in VIEWS:
        await show(tab, view)
        for width in WIDTHS:
            await tab.resize(width)
            contrast, text = await tab.value(LOWEST_CONTRAST)
            assert contrast >= LEAST_CONTRAST, (view, width, contrast, text)
            jutting = await tab.value("document.documentElement.scrollWidth - innerWidth")
            assert jutting <= 0, (view, width)


async def show(tab: Tab, view: str) -> None:
    """Bring a view of the page about, with something in it."""
    if view == "search":
        await search(tab, "weather zebra parse_config")
        return
    await tab.value(f"location.hash = '#/{view}'")
    await tab.until(VIEWS[view])


async def test_headings_come_in_order_and_what_is_asked_for_has_a_name(tab):
    for view in VIEWS:
        await show(tab, view)
        levels = await tab.value(
            "[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')]"
            ".filter((each) => each.checkVisibility()).map((each) => Number(each.tagName[1]))"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), (view, levels)
        nameless = await tab.value(
            "[...document.querySelectorAll('input, select, button, a')].filter((each) => "
            "!(each.labels?.length || each.ariaLabel || each.textContent.trim())).length"
        )
        assert nameless == 0, view


async def test_links_are_told_apart_by_more_than_colour(tab):
    for view in VIEWS:
        await show(tab, view)
        alike = await tab.value(
            "[...document.querySelectorAll('a')].filter((each) => each.checkVisibility() && "
            "getComputedStyle(each).textDecorationLine !== 'underline' && "
            "parseFloat(getComputedStyle(each).borderBottomWidth) === 0 && "
            "each.ariaCurrent !== 'page').map((each) => each.outerHTML)"
        )
        assert alike == [], view


async def test_the_focus_is_seen_wherever_it_is(tab):
    await tab.resize(1400)
    for view in VIEWS:
        await show(tab, view)
        await tab.value("document.activeElement.blur()")
        on_body = 0
        for _ in range(12):
            await tab.press("Tab")
            on_body += await tab.value("document.activeElement === document.body")
            seen = await tab.value(
                "(({ outlineStyle, outlineWidth }) => document.activeElement === document.body || "
                "(outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2))"
                "(getComputedStyle(document.activeElement))"
            )
            assert seen, await tab.value("document.activeElement.outerHTML")
        assert on_body < 6, view  # past the last one


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


async def test_one_chunk_is_told_as_one(chromium, tmp_path):
    root = write(tmp_path / "project", {"first.py": "first = 1\n"})
    async with (
        shown(codebase_of(root, FakeEmbedder())) as page,
        page.running(),
        opened(chromium, await page.address()) as tab,
    ):
        await tab.until("document.body.innerText.includes('1 chunk, 100 %')")


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
