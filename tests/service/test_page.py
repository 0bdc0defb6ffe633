"""The page over real HTTP: who may see it, what it tells, and when it ends."""

import re
import socket
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import anyio
import anyio.to_thread
import psutil
import pytest
from fakes import FakeEmbedder
from hypothesis import given
from hypothesis import strategies as st
from over_http import trickled
from serving import codebase_of, converged
from visitor import Visitor
from waiting import PATIENCE_SECONDS, eventually
from writing import replace_at_once, write

from vector_index_mcp.codebase.rendering import search_result
from vector_index_mcp.editors import DEFAULT, KNOWN
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.foreign import OBEYED
from vector_index_mcp.page import whole
from vector_index_mcp.page.handover import Handover
from vector_index_mcp.page.project import ProjectPage
from vector_index_mcp.serving import guest
from vector_index_mcp.serving.listener import Page

pytestmark = pytest.mark.anyio

FILES = {
    "src/jar.py": "class CookieJar:\n    def parse_cookie(self, header):\n        return header\n",
    "docs/<b>bold</b>.md": "# Markup\n\n<script>alert('cookie')</script>\n",
    "id_rsa": "cookie",
}
PATHS = [
    *("", "page.js", "api/search?query=cookie", "api/map", "api/news"),
    *("api/file?path=src/jar.py", "api/languages"),
]
SECRET = "q7Rz9tWm4Kx2Lp8Vd5Bn3Hs6"


def refuses(port, start):
    """Whether a request that begins so is answered with an error, or cut off."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        try:
            connection.sendall(start)
            return b" 400 " in connection.recv(1_000)
        except (ConnectionResetError, BrokenPipeError):
            return True


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


@asynccontextmanager
async def shown(codebase, template=KNOWN[DEFAULT], **options):
    """The page of a running codebase."""

    async def get():
        return codebase

    page = Page(ProjectPage(get, template), **options)
    async with codebase.running(), page.running():
        yield page


@asynccontextmanager
async def visiting(project):
    """A visitor of the page of `project`, which is indexed."""
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase) as page:
        await converged(codebase)
        yield await Visitor(page).enter()


@pytest.fixture(scope="module")
async def visitor(tmp_path_factory):
    """One for the tests that change nothing."""
    project = tmp_path_factory.mktemp("shared") / "project"
    write(project, FILES)
    async with visiting(project) as visitor:
        yield visitor


# -- who may come in -------------------------------------------------------------------------


async def test_a_link_leads_to_the_page_once(visitor):
    link = await visitor.link()
    assert (await visitor.get(link)).status == 303
    again = await visitor.get(link)
    assert again.status == 403
    assert b"vector-index-mcp ui" in again.body


async def test_a_session_is_a_cookie_for_one_path_that_scripts_cannot_read(visitor):
    got = await visitor.get(await visitor.link())
    attributes = set(got.headers["set-cookie"].lower().split("; ")[1:])
    assert attributes == {
        "httponly",
        "samesite=strict",
        f"path={got.headers['location'].lower()}",
    }
    assert len(got.headers["location"]) > 10


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_room_s_cookie_nothing_is_shown(visitor, path):
    other = await Visitor(visitor.page).enter()
    name = visitor.headers["Cookie"].partition("=")[0]
    key = other.headers["Cookie"].partition("=")[2]
    for cookie in ("", other.headers["Cookie"], f"{name}={key}", f"{name}=", "x=\xff"):
        assert (await visitor.see(path, Cookie=cookie)).status == 403
    if path != "api/news":  # which has no end
        assert (await visitor.see(path)).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "same-site"},  # as from another port of this machine
    ],
    ids=str,
)
async def test_other_hosts_and_sites_are_refused(visitor, path, headers):
    got = await visitor.see(path, **headers)
    assert got.status == 403
    assert b"cookie" not in got.body


async def test_a_link_from_another_site_does_not_open_it_and_stays_good(visitor):
    link = await visitor.link()
    assert (await visitor.get(link, **{"Sec-Fetch-Site": "cross-site"})).status == 403
    assert (await visitor.get(link, "HEAD")).status == 405
    assert (await visitor.get(link)).status == 303


async def test_a_token_sent_from_a_file_leads_to_the_page_once(visitor):
    link = await visitor.link()
    form = link.partition("?")[2]
    from_a_file = {"Origin": "null", "Sec-Fetch-Site": "cross-site"}
    for other in ("", "token=", form[:-1], "x=1&" * 300 + form, "token=\xff", "&".join(50 * "ab")):
        assert (await visitor.get("/", "POST", other, **from_a_file)).status == 403
    foreign = {"Origin": "http://evil.example"}
    assert (await visitor.get("/", "POST", form, **foreign)).status == 403
    got = await visitor.get("/", "POST", form, **from_a_file)
    assert got.status == 200
    room = got.headers["refresh"].removeprefix("0; url=")
    assert f"path={room}; samesite=strict" in got.headers["set-cookie"].lower().replace(
        room.lower(), room
    )
    cookie = {"Cookie": got.headers["set-cookie"].partition(";")[0]}
    assert b"<!doctype html>" in (await visitor.get(room, **cookie)).body
    assert (await visitor.get("/", "POST", form, **from_a_file)).status == 403
    assert (await visitor.get(link)).status == 403


async def test_a_file_is_there_until_its_token_is_used_or_the_service_ends(project, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase, handover=Handover("abc", [folder])) as page:
        links = [await page.handed_over() for _ in range(2)]
        assert {path for _, path in links} == set(folder.iterdir())
        visitor = Visitor(page)
        visitor.port = int(links[0][0].split(":")[2].partition("/")[0])
        assert (await visitor.get("/?" + links[0][0].partition("?")[2])).status == 303

        async def is_gone():
            return [*folder.iterdir()] == [links[1][1]]

        await eventually(is_gone)
    assert [*folder.iterdir()] == []


async def test_a_link_that_no_file_can_hold_is_a_link_still(project, tmp_path):
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase, handover=Handover("abc", [tmp_path / "nowhere"])) as page:
        link, path = await page.handed_over()
        assert path is None
        assert link.startswith("http://127.0.0.1:")


async def test_nothing_can_be_done_on_a_page_that_only_shows(visitor):
    path, own = f"{visitor.room}api/search?query=cookie", f"http://127.0.0.1:{visitor.port}"
    got = await visitor.get(path, "POST", "{}", Origin=own)
    assert (got.status, b"results" in got.body) == (404, False)
    assert (await visitor.get(path, "POST", "{}")).status == 403


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS"])
async def test_only_reading_is_possible(visitor, method):
    got = await visitor.get(f"{visitor.room}api/search?query=cookie", method, "body")
    assert (got.status, b"results" in got.body) == (405, False)


async def test_every_answer_keeps_others_out(visitor):
    answers = [
        await visitor.see(""),
        await visitor.see("page.js"),
        await visitor.see("nothing"),
        await visitor.see("api/map"),
        await visitor.see("api/search?query="),
        await visitor.see("", Host="evil.example"),
        await visitor.get(await visitor.link()),
    ]
    assert [got.status for got in answers] == [200, 200, 404, 200, 400, 403, 303]
    for got in answers:
        policy = got.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["referrer-policy"] == "no-referrer"
        assert got.headers["cache-control"] == "no-store"
        assert not [name for name in got.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    [
        "../door.py",
        "..%2fdoor.py",
        "%2e%2e/door.py",
        "static/page.js",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "page.js%00",
        "page.js/",
        "..",
        "__init__.py",
    ],
)
async def test_no_other_file_is_shown(visitor, path):
    got = await visitor.see(path)
    assert got.status in {403, 404, 307}
    assert len(got.body) < 100


async def test_it_is_listened_for_on_the_loopback_interface_only(visitor):
    listening = {
        connection.laddr.ip
        for connection in psutil.Process().net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == visitor.port
    }
    assert listening == {"127.0.0.1"}


async def test_requests_without_measure_are_refused_and_the_page_goes_on(visitor):
    long = await visitor.see(f"api/search?query={'x' * 3_000}")
    assert (long.status, "longer than 2,000" in long.values["error"]) == (400, True)
    endless = b"x" * 5_000_000
    for start in (b"GET /" + endless, b"GET / HTTP/1.1\r\nX: " + endless, b"\0\xff\r\n\r\n"):
        assert await anyio.to_thread.run_sync(refuses, visitor.port, start)
    assert (await visitor.see("")).status == 200


# -- what it tells ---------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["POST / HTTP/1.1", "GET / HTTP/1.1", "GET /x HTTP/1.1"])
async def test_a_body_that_does_not_arrive_keeps_no_connection(visitor, monkeypatch, start):
    monkeypatch.setattr(guest, "_HEADER_SECONDS", 0.1)
    monkeypatch.setattr(guest, "_BODY_SECONDS", 0.1)
    port = visitor.port
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        head = f"{start}\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 999999\r\n\r\n"
        await stream.send(head.encode())
        await trickled(stream)


async def test_the_browser_goes_by_the_table_of_foreign_texts(visitor):
    script = (await visitor.see("obeyed.js")).body.decode()
    ranges = re.findall(r"\\u\{(\w+)\}-\\u\{(\w+)\}", script)
    assert tuple((int(first, 16), int(last, 16)) for first, last in ranges) == OBEYED


async def test_code_is_shown_as_a_terminal_shows_it(project):
    write(project, {"evil.py": "evil = '\x1b[2J\u202e'\r\n\tend = 1\r\n"})
    async with visiting(project) as visitor:
        [hit, *_] = (await visitor.see("api/search?query=evil")).values["results"]
    text = "".join(piece for _, piece, _ in hit["spans"])
    assert text == "evil = '\\x1b[2J\\u202e'\n\tend = 1"


async def test_a_search_gives_what_the_tool_gives(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase) as page:
        await converged(codebase)
        visitor = await Visitor(page).enter()
        answer = (await visitor.see("api/search?query=cookie+header")).values
        expected_answer = search_result(
            await codebase.search("cookie header", 20), 100_000, explain=True
        )
    assert answer["mode"] == "hybrid"
    assert answer["words"] == ["cookie", "header"]
    assert len(answer["results"]) == 2
    found = expected_answer.model_dump(mode="json")["results"]
    for hit, expected in zip(answer["results"], found, strict=True):
        spans = hit.pop("spans")
        assert hit.pop("editor").startswith("vscode://file/")
        assert hit.pop("matched") == [w for w in answer["words"] if w in str(expected).lower()]
        text = expected.pop("extracted_text_chunk")
        assert "".join(piece for _, piece, _ in spans) == text.rstrip()
        assert any(is_marked for *_, is_marked in spans)
        assert hit["why"]["file"]
        assert hit == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("query=%20", "query is empty"),
        ("", "query is empty"),
        ("query=x&language=klingon", "language is not known"),
    ],
)
async def test_what_cannot_be_asked_is_told(visitor, values, words):
    got = await visitor.see(f"api/search?{values}")
    assert got.status == 400
    assert words in got.values["error"]


async def test_the_map_tells_what_is_indexed_and_what_is_not(visitor):
    told = (await visitor.see("api/map")).values
    assert (told["files"], told["chunks"], told["vectors"]) == (2, 2, 2)
    assert [*told["missing"].values()] == [1]
    names = {part["name"]: part["kind"] for part in told["parts"]}
    assert names == {"docs": "folder", "src": "folder", "id_rsa": "file"}
    inside = (await visitor.see("api/map?folder=docs")).values
    assert [part["name"] for part in inside["parts"]] == ["<b>bold<"]


async def test_the_last_queries_of_all_are_told(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase) as page:
        await converged(codebase)
        visitor = await Visitor(page).enter()
        await codebase.search("parse_cookie", 5, path="src", language="py")
        async with visitor.news() as events:
            [asked] = await events.next("recent")
            assert (asked["query"], asked["asker"]) == ("parse_cookie", "client")
            assert (asked["path"], asked["language"]) == ("src", "py")
            assert (asked["mode"], asked["best"][0]["path"]) == ("hybrid", "src/jar.py")
            await visitor.see("api/search?query=markup")
            newest, oldest = await events.next("recent")
            assert (newest["query"], newest["asker"]) == ("markup", "page")
            assert oldest == asked


async def test_a_saved_file_is_news(project):
    async with visiting(project) as visitor, visitor.news() as events:
        before = await events.next("status")
        write(project, {"new.py": "def brand_new():\n    pass\n"})
        more = before["indexed_file_count"] + 1
        await events.status_when(lambda status: status["indexed_file_count"] == more)
        replace_at_once(project / "new.py", "")
        await events.status_when(lambda status: status["indexed_chunk_count"] == 2)


# -- when it ends ----------------------------------------------------------------------------


async def test_the_news_end_with_the_service(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with anyio.create_task_group() as tasks:
        ended, has_news = anyio.Event(), anyio.Event()

        async def listen(visitor):
            async with visitor.news() as events:
                await events.next("status")
                has_news.set()
                with pytest.raises(anyio.IncompleteRead):
                    await events.next("never")
                ended.set()

        async with shown(codebase) as page:
            tasks.start_soon(listen, await Visitor(page).enter())
            await has_news.wait()
            assert page.viewers == 1
        with anyio.fail_after(PATIENCE_SECONDS):
            await ended.wait()
        assert page.viewers == 0


async def test_an_unused_page_closes_and_opens_again_where_it_was(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase, unused_seconds=0.5) as page:
        visitor = Visitor(page)

        async def enters():
            try:
                return await visitor.enter()
            except OSError:  # it has just closed
                return None

        async def is_closed():
            try:
                await (await anyio.connect_tcp("127.0.0.1", visitor.port)).aclose()
            except OSError:
                return True
            return False

        await eventually(enters)
        port, room, headers = visitor.port, visitor.room, visitor.headers
        await eventually(is_closed)

        async def is_shown_as_before():
            await page.address()
            try:
                return (await Visitor(page, port, room, headers).see("")).status == 200
            except OSError:
                return False

        await eventually(is_shown_as_before)


async def test_a_page_that_is_looked_at_stays_open(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase, unused_seconds=0.5) as page:
        visitor = await Visitor(page).enter()
        async with visitor.news() as events:
            for number in range(6):  # each takes a look, which is a third of a second
                write(project, {f"{number}.py": f"number = {number}\n"})
                await events.status_when(lambda s, n=number: s["indexed_file_count"] == 3 + n)
            assert (await visitor.see("")).status == 200


# -- a whole file ----------------------------------------------------------------------------


def text_of(found):
    return "".join(piece for _, piece, _ in found["spans"])


async def file_of(visitor, path, line=""):
    got = await visitor.see(f"api/file?{urlencode({'path': path, 'line': line})}")
    return got.status, got.values


async def test_a_file_is_shown_as_it_is_now(project):
    async with visiting(project) as visitor:
        status, found = await file_of(visitor, "src/jar.py", 2)
        assert status == 200
        assert text_of(found) + "\n" == FILES["src/jar.py"]
        assert (found["lines"], found["first_line"], found["last_line"]) == (3, 1, 3)
        assert (found["language"], found["is_cut"], found["is_stale"]) == ("python", False, False)
        assert found["editor"] == f"vscode://file{project.as_posix()}/src/jar.py:2"
        replace_at_once(project / "src/jar.py", "changed = 1\r\n\x1b[2J = 2\n")
        _, found = await file_of(visitor, "src/jar.py", 99)
        assert text_of(found) == "changed = 1\n\\x1b[2J = 2"
        assert found["editor"].endswith("/src/jar.py:2")


async def test_a_file_that_the_index_knows_otherwise_says_so(project):
    folder = Folder(project)
    record = FileRecord("src/jar.py", (1, 1, 1), "another hash", 1, "indexed", "")
    assert whole.shown(folder, record, 1)["is_stale"]


async def test_credentials_in_a_file_stay_masked(project):
    write(project, {"conf.py": f'one = 1\napi_key = "{SECRET}"\n'})
    async with visiting(project) as visitor:
        _, found = await file_of(visitor, "conf.py")
    assert found["masked"] == 1
    assert "api_key" in text_of(found)
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    "path",
    [
        "id_rsa",
        "ignored.py",
        "link.py",
        "folder/inside.py",
        "../outside.py",
        "src/../../outside.py",
        "/etc/passwd",
        "src",
        "",
        ".",
        "src/jar.py/",
        "src/jar.py\0",
        "SRC/jar.py",
        "x" * 10_000,
        ".git/config",
        ".lancedb/manifest.json",
    ],
)
async def test_no_file_is_shown_that_is_not_indexed(barred, path):
    status, found = await file_of(barred, path)
    assert (status, found.keys()) == (400, {"error"})
    assert "no file" in found["error"]


@pytest.fixture(scope="module")
async def barred(tmp_path_factory):
    """A visitor of a project with files that nobody is to see."""
    folder = tmp_path_factory.mktemp("barred")
    project = folder / "project"
    write(folder, {"outside.py": "outside = 1\n", "elsewhere/inside.py": "inside = 1\n"})
    write(project, {**FILES, ".gitignore": "ignored.py\n", "ignored.py": "ignored = 1\n"})
    write(project, {".git/config": "[core]\n"})
    (project / "link.py").symlink_to(folder / "outside.py")
    (project / "folder").symlink_to(folder / "elsewhere")
    async with visiting(project) as visitor:
        yield visitor


async def test_what_has_become_a_link_or_ignored_is_not_shown(project):
    write(project.parent, {"outside/jar.py": "outside = 1\n"})
    async with visiting(project) as visitor:
        (project / "src").rename(project / "was")
        (project / "src").symlink_to(project.parent / "outside")
        status, found = await file_of(visitor, "src/jar.py")
        assert (status, found.keys()) == (400, {"error"})
        write(project, {".gitignore": "/was\n/docs\n"})

        async def is_refused():
            return (await file_of(visitor, "docs/<b>bold</b>.md"))[0] == 400

        await eventually(is_refused)


@pytest.mark.parametrize("line", ["x", "-1", "1.5", "1e9", "٣", "9" * 5_000])
async def test_a_line_is_a_number(visitor, line):
    status, found = await file_of(visitor, "src/jar.py", line)
    assert (status, found["error"]) == (400, "the line must be a number")


@pytest.mark.long
async def test_a_long_file_is_shown_around_its_line(project):
    many = "".join(f"line_{n} = {n}\n" for n in range(1, 40_001))
    broad = "# a sentence of many words, and so on\n" * 10 + "word " * 100_000 + "\n" + "end\n"
    write(project, {"many.py": many, "broad.md": broad})
    async with visiting(project) as visitor:
        _, found = await file_of(visitor, "many.py", 20_000)
        assert (found["lines"], found["is_cut"]) == (40_000, True)
        shown_lines = text_of(found).split("\n")
        assert len(shown_lines) == whole.MOST_LINES
        assert shown_lines[20_000 - found["first_line"]] == "line_20000 = 20000"
        assert found["last_line"] == found["first_line"] + whole.MOST_LINES - 1
        for line, first in [(1, 1), (40_000, 40_000 - whole.MOST_LINES + 1)]:
            assert (await file_of(visitor, "many.py", line))[1]["first_line"] == first
        _, found = await file_of(visitor, "broad.md", 11)
        assert (len(text_of(found)), found["first_line"]) == (whole.MOST_CHARS, 11)
        assert (found["last_line"], found["is_cut"]) == (11, True)


@given(lengths=st.lists(st.integers(0, 400), min_size=1, max_size=30), line=st.integers(-5, 40))
def test_what_is_shown_are_lines_in_a_row_with_the_one_that_is_meant(lengths, line):
    lines = ["x" * length for length in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "MOST_LINES", 12)
        patch.setattr(whole, "MOST_CHARS", 1_000)
        part = whole.around(lines, line)
    assert part.lines == lines[part.first - 1 : part.first - 1 + len(part.lines)]
    meant = min(max(line, 1), len(lines))
    assert part.first <= meant < part.first + len(part.lines)
    assert len(part.lines) <= 12
    assert len("\n".join(part.lines)) <= 1_000
    if len(lines) <= 12 and len("\n".join(lines)) < 1_000 - 1:
        assert part.lines == lines


@pytest.mark.parametrize(
    ("template", "expected"),
    [("", ""), ("x://{path}#{line}", "x://{project}/src/jar.py#1")],
)
async def test_the_editor_is_the_user_s(project, template, expected):
    codebase = codebase_of(project, FakeEmbedder())
    async with shown(codebase, template=template) as page:
        await converged(codebase)
        visitor = await Visitor(page).enter()
        [hit, *_] = (await visitor.see("api/search?query=cookie+header")).values["results"]
        assert hit["editor"] == expected.replace("{project}", project.as_posix())
        assert (await file_of(visitor, "src/jar.py"))[1]["editor"] == hit["editor"]


async def test_the_languages_that_there_are_are_told(project):
    more = {"a.ts": "let a = 1\n", "b.tsx": "let b = 1\n", "empty.rs": "", "blob.go": "\0"}
    more["bin/deploy"] = "#!/usr/bin/env bash\nset -e\n"
    write(project, more)
    async with visiting(project) as visitor:
        told = (await visitor.see("api/languages")).values
        asked = ("python", "bash", "markdown", "typescript", "tsx")
        assert {name: told[name] for name in asked} == {
            "python": 1,
            "bash": 1,
            "markdown": 1,
            "typescript": 2,
            "tsx": 1,
        }
        assert not {"go", "rust"} & set(told)
        for language in told:
            assert (await visitor.see(f"api/search?query=x&language={language}")).status == 200
        assert (await file_of(visitor, "bin/deploy"))[1]["language"] == "bash"
