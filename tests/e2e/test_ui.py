"""The command `ui`: a link to the page of the background service."""

import http.client
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

import anyio
import pytest
from processes import ANSWER_SECONDS, NO_MODEL, Place, place_of, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and modes"),
]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
SHORT_MINUTES = 0.02
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
    await until(lambda: time.monotonic() - start > 2 * 60 * SHORT_MINUTES)


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


async def test_it_opens_the_link_in_the_user_s_browser(place):
    seen, browser = place.folder / "seen", place.folder / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n', encoding="utf-8")
    browser.chmod(0o700)
    place.variables["BROWSER"] = f"{browser} %s"
    link = await link_of(place)
    await until(lambda: seen.exists() and seen.read_text("utf-8") == link)
    seen.unlink()
    await link_of(place, "--no-open")
    assert not seen.exists()


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
    await until(lambda: not place.processes())


async def test_an_open_page_is_a_client_until_it_is_closed(place):
    place.variables["VECTOR_INDEX_SERVICE_IDLE_MINUTES"] = str(SHORT_MINUTES)
    async with AsyncExitStack() as page:
        async with place.relayed() as client:  # until the page has come, however long it takes
            await client.initialize()
            await page.enter_async_context(news_of(await link_of(place)))
            await until(lambda: place.report()["clients"] == 2)
        await until(lambda: place.report()["clients"] == 1)
        service = place.service()
        await longer_than_idle()
        assert place.service() == service
    await until(lambda: not place.processes())


async def test_the_news_end_when_the_service_is_stopped(place):
    async with news_of(await link_of(place)) as news:
        assert b"retry" in await anyio.to_thread.run_sync(news.readline)
        await place.run("stop", place.project)
        assert b"event: status" in await anyio.to_thread.run_sync(news.read)  # to the very end
    assert not place.processes()


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
