"""The places that messages cite."""

from pathlib import Path

import pytest

from vector_index_mcp.codebase.cited import cited, line_meant, places_in, spots_of
from vector_index_mcp.codebase.places import Spot

KEYS = [
    "setup.py",
    "src/app.ts",
    "lib/src/cart.dart",
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
    "src/lib.rs",
    "src/error.rs",
    "http/server.go",
    "json/decoder.py",
    "java/com/shop/Server.java",
    "java/com/shop/Basket.java",
    "web/app/page.tsx",
    "web/app/(shop)/page.tsx",
    "src/my file.py",
    "src/file.py",
    "scripts/run",
    "main.py",
]


def spots(text):
    return spots_of(cited(text), KEYS, Path("/work/vendor/shop"))


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
        ("##[error]src/app.ts(12,5): error TS2322: Type", "src/app.ts", 12),
        ("SyntaxError: /srv/shop/src/app.ts: Unexpected token (12:5)", "src/app.ts", 12),
        ("Error: Cannot find module './x'\nRequire stack:\n- /srv/src/app.ts", "src/app.ts", 0),
        ("Cannot find module '/s/x.js' imported from /srv/shop/src/app.ts", "src/app.ts", 0),
        ("#1      Cart.total (package:shop/src/cart.dart:14:9)", "lib/src/cart.dart", 14),
        ("package:shop/src/cart.dart 14:9  Cart.total", "lib/src/cart.dart", 14),
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
        ("/root/go/pkg/mod/github.com/us/shop@v1.8.1/http/server.go:9", "http/server.go", 9),
        ("/root/.cargo/registry/src/index.io-6f/shop-4.4.0/src/lib.rs:4:9", "src/lib.rs", 4),
        ("    at Cart16 (web/app/(shop)/page.tsx:50:5)", "web/app/(shop)/page.tsx", 50),
        ("./web/app/(shop)/page.tsx(50,5): error TS2", "web/app/(shop)/page.tsx", 50),
        ("src/my file.py:12: error: foo", "src/my file.py", 12),
        (r"C:\Users\me\shop\src\my file.py(12): error", "src/my file.py", 12),
        ("error in src/file.py:12", "src/file.py", 12),
        ("at org.shop.Cart.total(Cart.java:14)", "src/main/java/org/shop/Cart.java", 14),
        ("at h (http://localhost:5173/src/app.ts?t=1712345678901:17:11)", "src/app.ts", 17),
        (
            "[ERROR] /home/u/java/com/shop/Basket.java:[80,5] cannot",
            "java/com/shop/Basket.java",
            80,
        ),
        ("lib/net/http.c:(12,1)-(13,20): Non-exhaustive", "lib/net/http.c", 12),
        ('File "lib/net/http.c", lines 12-14', "lib/net/http.c", 12),
        ("src/app.py lines 10-30", "src/app.py", 10),
        ("src/app.py at line 10", "src/app.py", 10),
        ("app.py: 12: foo: not found", "src/app.py", 12),
        ("src/app.py|12 col 5| error", "src/app.py", 12),
        ("see src/app.py#L12 there", "src/app.py", 12),
        ("in `src/app.py`:12 it says", "src/app.py", 12),
        ('{file,"src/app.py"},{line,12}', "src/app.py", 12),
        ('File "/app/main.py", line 30, in f', "main.py", 30),
        ("src/./app.py:4: x", "src/app.py", 4),
        ("at f (/x/node_modules/@us/shop/lib/index.js:3:1)", "lib/index.js", 3),
        ("at f (/work/vendor/shop/lib/index.js:3:1)", "lib/index.js", 3),
        ("/x/src/app.ts\n  794:5  error  'x' is not defined", "src/app.ts", 794),
        ("ERROR in ./src/app.ts 794:4-9", "src/app.ts", 794),
        ("src/app.ts (12:3)", "src/app.ts", 12),
        ("level=error caller=src/app.ts:794 msg=no", "src/app.ts", 794),
        ("\x1b[96msrc/app.ts\x1b[0m:\x1b[93m794\x1b[0m:5 - error", "src/app.ts", 794),
        ("e: /x/src/app.ts: (14, 5): Unresolved", "src/app.ts", 14),
        ("::error file=src/app.py,line=12::no", "src/app.py", 12),
        ("at A.b() in /x/src/app.ts:Zeile 31", "src/app.ts", 31),
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
        "- src/app.ts",
        "what is imported from src",
        "panicked at /root/.cargo/registry/src/index.io-6f/clap-4.4.0/src/error.rs:40:9:",
        "/rustc/90c5/library/core/src/lib.rs:50:5",
        "/usr/local/go/src/net/http/server.go:50",
        'File "/usr/lib/python3.11/json/decoder.py", line 37',
        "at org.eclipse.jetty.http.Server.handle(Server.java:100)",
        "where is run(5) called",
        "node_modules/@babel:12",
        "at /app/node_modules/express/lib/a/b/deep.js:3:15",
        "/opt/hostedtoolcache/go/1.21.5/x64/src/net/http/server.go:4 +0x5f4",
        r"File 'C:\Python39\lib\json\decoder.py', line 3",
        "at org.springframework.shop.Cart.x(Cart.java:3)",
        "set timeout=30 run:12 retries",
        '{"job": "x", run:2}',
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


def test_a_trace_of_pytest_has_its_innermost_call_last():
    trace = "src/app.py:100: in test_x\n    f()\nsetup.py:33: KeyError"
    assert spots(trace) == [Spot("setup.py", 33), Spot("src/app.py", 100)]


def test_a_trace_of_lua_has_its_innermost_call_first():
    trace = "lua: src/app.py:3: no\n\tsrc/app.py:3: in function 'f'\n\tsetup.py:9: in main chunk"
    assert spots(trace) == [Spot("src/app.py", 3), Spot("setup.py", 9)]


def test_many_calls_of_libraries_hide_none_of_the_project():
    trace = '  File "/srv/shop/src/app.py", line 20, in a\n'
    trace += "".join(f'  File "/x/site-packages/django/b{n}.py", line 1, in b\n' for n in range(50))
    assert spots(f"Traceback (most recent call last):\n{trace}") == [Spot("src/app.py", 20)]


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
    ["(a)/" * 12_500, "f(x)/" * 10_000, "[a](b)/" * 7_000, "(see)/(or)/" * 4_500, "a=" * 25_000]
    + ["a." * 25_000, "a" * 50_000, "(" * 50_000, "a:1 " * 12_500, '"' * 50_000, "a.b(" * 12_500]
    + [
        "/" * 50_000,
        "a: b c " * 8_000,
        "- a\n" * 12_500,
        ": line " * 7_000,
        "$" * 50_000,
        "C:\\" * 16_000,
        "a.b.c(d.e:" * 5_000,
    ],
)
@pytest.mark.timeout(4)
def test_a_long_text_is_read_in_no_time(hostile):
    assert cited(hostile) == []
