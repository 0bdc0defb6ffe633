"""The places that messages cite."""

import pytest

from vector_index_mcp.codebase.cited import cited, line_meant, places_in, spots_of
from vector_index_mcp.codebase.named import Spot

KEYS = [
    "setup.py",
    "src/app.ts",
    "src/app.py",
    "src/main/java/org/shop/Cart.java",
    "src/test/java/org/other/Cart.java",
    "lib/net/http.c",
    "pages/[id].tsx",
    "Makefile",
    "bin/run.sh",
    "with space/my file.py",
    "lib/index.js",
    "src/shop/till.py",
    "lib/a/b/deep.js",
    "tests/test_cart.py",
]


def spots(text):
    return spots_of(cited(text), KEYS, "shop")


@pytest.mark.parametrize(
    ("message", "file", "line"),
    [
        ("    at org.shop.Cart.total(Cart.java:147)", "src/main/java/org/shop/Cart.java", 147),
        ("at org.other.Cart$1.run(Cart.java:7)", "src/test/java/org/other/Cart.java", 7),
        ('  File "/srv/shop/src/app.py", line 300, in handle', "src/app.py", 300),
        ('File "/x/with space/my file.py", line 2', "with space/my file.py", 2),
        ("    at render (/home/me/shop/src/app.ts:10:5)", "src/app.ts", 10),
        ("    at file:///home/me/shop/src/app.ts:10:5", "src/app.ts", 10),
        ("at http://localhost:3000/src/app.ts:12:5", "src/app.ts", 12),
        ("src/app.ts(12,5): error TS2322: Type", "src/app.ts", 12),
        ("../lib/net/http.c:48:9: error: expected ';'", "lib/net/http.c", 48),
        ("http.c:48: undefined reference to `main'", "lib/net/http.c", 48),
        (" --> lib/net/http.c:5:1", "lib/net/http.c", 5),
        ("\t/go/src/shop/lib/net/http.c:12 +0x1d", "lib/net/http.c", 12),
        (r"   at Shop.Total() in C:\work\shop\lib\net\http.c:line 12", "lib/net/http.c", 12),
        ("in /var/www/shop/lib/net/http.c on line 12", "lib/net/http.c", 12),
        ("#0 /var/www/lib/net/http.c(31): f()", "lib/net/http.c", 31),
        ("died at lib/net/http.c line 12.", "lib/net/http.c", 12),
        ("./bin/run.sh: line 12: foo: command not found", "bin/run.sh", 12),
        ("Makefile:12: *** missing separator", "Makefile", 12),
        ("pages/[id].tsx:3:1 - error", "pages/[id].tsx", 3),
        ("[src/app.py:3] warning", "src/app.py", 3),
        ("why does src/app.py:12 fail?", "src/app.py", 12),
        ("/home/runner/work/shop/setup.py:4: DeprecationWarning", "setup.py", 4),
        ("(http.c.93) [note] sockets disabled", "lib/net/http.c", 93),
        ('File "/x/site-packages/shop/till.py", line 9, in pay', "src/shop/till.py", 9),
        ("at f (/x/node_modules/shop/lib/index.js:3:1)", "lib/index.js", 3),
        ("at f (/x/node_modules/@us/shop/lib/index.js:3:1)", "lib/index.js", 3),
        ("at f (/x/node_modules/renamed/lib/a/b/deep.js:3:1)", "lib/a/b/deep.js", 3),
    ],
)
def test_a_message_cites_a_place(message, file, line):
    assert spots(message) == [Spot(file, line)]


@pytest.mark.parametrize(
    "message",
    [
        "connect to localhost:8080 at 12:30",
        "call app(1) and http.c",
        'File "/usr/lib/python3.11/asyncio/app2.py", line 3',
        "at java.util.Cart.get(Cart.java:427)",
        "/usr/lib/python3/site-packages/x/setup.py:3: in f",
        "/x/node_modules/chalk/lib/index.js:3:1",
        "version 1.2:3 of a:b",
        "src/app.py:0x12",
    ],
)
def test_a_message_without_a_place_of_the_project_cites_none(message):
    assert spots(message) == []


@pytest.mark.parametrize(
    "text",
    [
        "tests/test_cart.py::CartTests::test_total",
        "FAILED tests/test_cart.py::CartTests::test_total - AssertionError",
        "test_cart.py::test_total[a-1]",
    ],
)
def test_a_test_is_cited_by_its_name(text):
    assert spots(text) == [Spot("tests/test_cart.py", 0, "test_total")]


def test_a_trace_of_python_has_its_innermost_call_last():
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/srv/shop/setup.py", line 1, in <module>\n'
        '  File "/srv/shop/src/app.py", line 9, in total\n'
        "ValueError: no"
    )
    assert spots(trace) == [Spot("src/app.py", 9), Spot("setup.py", 1)]


def test_a_trace_of_node_has_its_innermost_call_first():
    trace = "Error\n at a (/x/shop/src/app.ts:9:1)\n at b (/x/shop/lib/index.js:2:1)"
    assert spots(trace) == [Spot("src/app.ts", 9), Spot("lib/index.js", 2)]


def test_the_line_of_a_place_is_found_in_a_chunk():
    places = places_in('  File "/srv/shop/src/app.py", line 30, in handle')
    assert line_meant(places, "src/app.py", 21, 40) == 9
    assert line_meant(places, "src/app.py", 31, 40) is None
    assert line_meant(places, "lib/other.py", 21, 40) is None


@pytest.mark.parametrize(
    "hostile",
    ["a." * 25_000, "a" * 50_000, "(" * 50_000, "a:1 " * 12_500, '"' * 50_000, "a.b(" * 12_500]
    + ["/" * 50_000, ": line " * 7_000, "$" * 50_000, "C:\\" * 16_000, "a.b.c(d.e:" * 5_000],
)
@pytest.mark.timeout(20)
def test_a_long_text_is_read_in_no_time(hostile):
    assert len(cited(hostile)) <= 20
