"""The command `ui`: a link to the page of the background service."""

import http.client
import os
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
import pytest
from chromium import browser, needs_chromium
from processes import ANSWER_SECONDS, NO_MODEL, Place, place_of
from waiting import eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and modes"),
]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
SHORT_MINUTES = 0.02
NOBODY = 65_534
NO_SCREEN = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}


@pytest.fixture
def place() -> Iterator[Place]:
    """A project without a service."""
    with place_of(PROJECT, **NO_MODEL, **NO_SCREEN) as place:
        yield place


async def link_of(place: Place, *options: str) -> str:
    """A new link, as the command prints it."""
    ran = await place.run("ui", place.project, *options)
    assert ran.returncode == 0, ran.stderr
    [link] = ran.stdout.splitlines()
    assert link.startswith("http://127.0.0.1:")
    return link


def visit(link: str) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """A connection to the page, the path of its room, and the cookie for it."""
    host, _, path = link.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=ANSWER_SECONDS)
    connection.request("GET", f"/{path}")
    response = connection.getresponse()
    response.read()
    assert response.status == 303
    cookie = {"Cookie": response.headers["set-cookie"].partition(";")[0]}
    return connection, response.headers["location"], cookie


@asynccontextmanager
async def news_of(link: str) -> AsyncIterator[http.client.HTTPResponse]:
    """The news of the page that `link` leads to."""
    connection, room, cookie = await anyio.to_thread.run_sync(visit, link)
    with closing(connection):
        connection.request("GET", f"{room}api/news", headers=cookie)
        response = await anyio.to_thread.run_sync(connection.getresponse)
        with response:
            yield response


async def longer_than_idle() -> None:
    """Let more time pass than an idle service stays."""
    start = time.monotonic()
    await eventually(lambda: time.monotonic() - start > 2 * 60 * SHORT_MINUTES)


async def test_it_starts_a_service_and_prints_a_link_to_its_page(place):
    link = await link_of(place)
    connection, room, cookie = await anyio.to_thread.run_sync(visit, link)
    connection.request("GET", room, headers=cookie)
    assert b"<!doctype html>" in connection.getresponse().read()
    connection.close()
    service = place.service()
    another = await link_of(place, "--no-open")
    assert another != link
    assert place.service() == service


# Stands in for a browser: notes what it is started with, and the arguments of every process.
BROWSER = """#!/bin/sh
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' > "{folder}/seen.all"
printf %s "$1" > "{folder}/seen.part"
mv "{folder}/seen.part" "{folder}/seen"
"""


def with_browser(place: Place) -> Path:
    """Let the user have a browser; returns where it notes what it is to show."""
    browser = place.folder / "browser"
    browser.write_text(BROWSER.format(folder=place.folder), encoding="utf-8")
    browser.chmod(0o700)
    place.variables["BROWSER"] = f"{browser} %s"
    return place.folder / "seen"


async def file_shown(seen: Path) -> Path:
    """The file that the browser has been started with."""
    url = urlsplit(await eventually(partial(taken, seen)))
    assert (url.scheme, url.netloc) == ("file", "")
    return Path(unquote(url.path))


def taken(file: Path) -> str:
    """What a file says, which goes; empty if there is none."""
    if not file.exists():
        return ""
    text = file.read_text("utf-8")
    file.unlink()
    return text


async def test_it_hands_the_link_to_the_browser_in_a_file_of_the_user_s(place):
    seen = with_browser(place)
    link = await link_of(place)
    file = await file_shown(seen)
    token = link.partition("token=")[2]
    assert token in file.read_text("utf-8")
    assert token not in (place.folder / "seen.all").read_text("utf-8", "replace")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    connection, _, _ = await anyio.to_thread.run_sync(visit, link)
    connection.close()
    await eventually(lambda: not file.exists())
    await link_of(place, "--no-open")
    assert not seen.exists()


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="becomes another user")
async def test_another_user_who_knows_the_file_cannot_read_it(place):
    seen = with_browser(place)
    await link_of(place)
    file = await file_shown(seen)
    readable = file.with_name("readable")
    readable.write_text("yes", encoding="utf-8")
    for path in (readable, *file.parents):
        if path.is_relative_to(place.folder):
            path.chmod(0o755)  # even so
    assert reads(readable)
    assert not reads(file)


def reads(path: Path) -> bool:
    """Whether somebody else can read a file."""
    command = ["cat", str(path)]
    return not subprocess.run(
        command, user=NOBODY, cwd="/", capture_output=True, check=False
    ).returncode


async def test_no_file_stays_when_its_service_ends_or_is_killed(place):
    seen = with_browser(place)
    await link_of(place)
    file = await file_shown(seen)
    place.service().kill()
    await eventually(lambda: not place.processes())
    assert file.exists()
    await link_of(place)
    another = await file_shown(seen)
    assert not file.exists()
    await place.run("stop", place.project)
    assert not another.exists()


@pytest.mark.parametrize("variable", ["VSCODE_IPC_HOOK_CLI"])
async def test_a_browser_on_another_machine_is_left_to_the_printed_link(place, variable):
    seen = with_browser(place)
    ran = await place.run("ui", place.project, **{variable: "/tmp/x.sock"})
    assert "open this link in a browser" in ran.stderr
    assert not seen.exists()
    assert not [*place.runtime.glob("*.html")]


async def test_without_a_screen_it_says_what_to_do(place):
    ran = await place.run("ui", place.project)
    assert "open this link in a browser" in ran.stderr


async def test_a_path_that_is_no_project_is_refused(place):
    ran = await place.run("ui", place.project / "load.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "is a file" in ran.stderr


async def test_an_idle_service_waits_for_who_has_a_link(place):
    place.variables["VECTOR_INDEX_SERVICE_IDLE_MINUTES"] = str(SHORT_MINUTES)
    link = await link_of(place)
    await longer_than_idle()
    connection, _, _ = await anyio.to_thread.run_sync(visit, link)
    connection.close()
    await eventually(lambda: not place.processes())


async def test_an_open_page_is_a_client_until_it_is_closed(place):
    place.variables["VECTOR_INDEX_SERVICE_IDLE_MINUTES"] = str(SHORT_MINUTES)
    async with AsyncExitStack() as page:
        async with place.relayed() as client:  # until the page has come, however long it takes
            await client.initialize()
            await page.enter_async_context(news_of(await link_of(place)))
            await eventually(lambda: place.report()["clients"] == 2)
        await eventually(lambda: place.report()["clients"] == 1)
        service = place.service()
        await longer_than_idle()
        assert place.service() == service
    await eventually(lambda: not place.processes())


async def test_the_news_end_when_the_service_is_stopped(place):
    async with news_of(await link_of(place)) as news:
        assert b"retry" in await anyio.to_thread.run_sync(news.readline)
        # The first status of a service that has just started.
        while b"event: status" not in (line := await anyio.to_thread.run_sync(news.readline)):
            assert line, "the news ended before there was a status"
        await place.run("stop", place.project)
        await anyio.to_thread.run_sync(news.read)  # raises if it breaks off
    await eventually(lambda: not place.processes())


async def test_the_log_holds_neither_links_nor_queries(place):
    link = await link_of(place)
    connection, room, cookie = await anyio.to_thread.run_sync(visit, link)
    connection.request("GET", f"{room}api/search?query=parse_config", headers=cookie)
    assert b"load.py" in await anyio.to_thread.run_sync(connection.getresponse().read)
    connection.close()
    log = place.endpoint.log.read_text("utf-8")
    assert "listens" in log
    for secret in (
        link.partition("=")[2],
        room,
        cookie["Cookie"].partition("=")[2],
        "parse_config",
    ):
        assert secret not in log


# -- the editor ------------------------------------------------------------------------------


@needs_chromium
@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("zed", ["zed://file{project}/load.py:1"]),
        ("mine://at?{line}&{path}", ["mine://at?1&{project}/load.py"]),
        ("none", []),
    ],
)
async def test_results_are_opened_by_the_editor_of_the_setting(setting, expected):
    with place_of(PROJECT, **NO_MODEL, **NO_SCREEN, VECTOR_INDEX_EDITOR=setting) as place:
        link = await link_of(place, "--no-open")
        async with browser() as chromium:
            tab = await chromium.tab()
            await tab.open(link)
            await tab.until("document.querySelector('#facts dt')")
            await tab.value("location.hash = '#/search?query=parse_config'")
            await tab.until("document.querySelector('.result')")
            links = "[...document.querySelectorAll('.editor')].map((a) => a.getAttribute('href'))"
            project = place.project.as_posix()
            assert await tab.value(links) == [each.format(project=project) for each in expected]


@pytest.mark.parametrize("setting", ["javascript://%0aalert(1)//{path}{line}", "vim"])
async def test_an_editor_that_is_none_is_refused(place, setting):
    place.variables = {**place.variables, "VECTOR_INDEX_EDITOR": setting}
    ran = await place.run("ui", place.project, "--no-open")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"VECTOR_INDEX_EDITOR={setting!r}: " in ran.stderr
    assert "Traceback" not in ran.stderr
