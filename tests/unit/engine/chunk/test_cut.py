"""Chunks, joined, are the text; they hold whole definitions and know what they lie in."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine.chunk import chunk_text
from vector_index_mcp.engine.chunk.grammars import GRAMMARS
from vector_index_mcp.engine.chunk.headings import STYLES
from vector_index_mcp.engine.types import SCOPE_SEPARATOR

LANGUAGES = [*GRAMMARS, *STYLES, "other"]
every_language = pytest.mark.parametrize("language", LANGUAGES)

_LINES = st.one_of(
    st.text(max_size=30),
    st.text(st.characters(), max_size=10),  # lone surrogates, too
    st.sampled_from(
        [
            *("", "    ", "\t", "}", "});", "end", "{", "*/", "/* open", "# A", "=====", "```"),
            *("def f():", "    return 1", "class A:", "class A {", "@decorated", "// comment"),
            *("function f() {", "fn f() {", "func f() {", "void A::f() {", "  f(x);", "<div>"),
            *("<script>", "</script>", "[table]", "key:", '"a": {', "CREATE TABLE a (b INT);"),
            *("module A", "defmodule A do", "impl A {", "const f = () => {", "\x00", "\ufeff"),
        ]
    ),
    st.integers(0, 600).map(lambda size: "x" * size),
    st.integers(0, 100).map(lambda size: "{[(" * size),
)
_BREAKS = st.sampled_from(["\n"] * 6 + ["\r\n", "\r", "\x0c", "\u2028", "\x85", "\n\n\n\n", ""])
texts = st.lists(st.tuples(_LINES, _BREAKS), max_size=40).map(
    lambda pairs: "".join(line + end for line, end in pairs)
)


def check(text, language, max_chars):
    """What holds for the chunks of every text."""
    chunks = chunk_text(text, language, max_chars)
    assert "".join(chunk.text for chunk in chunks) == (text if text.strip() else "")
    position = 0
    for chunk in chunks:
        assert 1 <= len(chunk.text) <= max_chars
        end = position + len(chunk.text)
        assert chunk.start_line == 1 + text.count("\n", 0, position)
        assert chunk.end_line == 1 + text.count("\n", 0, end - 1)
        position = end
    return chunks


@pytest.mark.slow
@given(texts, st.sampled_from(LANGUAGES), st.integers(1, 400))
@example("", "python", 100)
@example("\n", "python", 100)
@example("x", "python", 1)
@example("a\r\nb", "javascript", 2)
@example("class A:\n" + "    def f(self): pass\n" * 50, "python", 1)
@example("\n\n\n\nA\nA\n", "c", 1)  # blank lines longer than a chunk
@example("class A:\n    x = '" + "y" * 500 + "'\n" * 30, "python", 100)
def test_joined_chunks_are_the_text_and_name_its_lines(text, language, max_chars):
    check(text, language, max_chars)


@pytest.mark.parametrize(
    "text",
    [
        "{[(" * 1000,
        "{[(\n" * 1000,
        "x" * 5000 + "\n" + "y" * 5000,
        "class A {\r\n  void f() {\r\n    g();\r\n  }\r\n}\r\n" * 30,
        "def f():\n    return '\x00\x0c\ud800'\n" * 30,
        "class Broken(:\n  def (((:\n}}}} end\n" * 30,
        "\n" * 1000 + "x" + "\n" * 1000,
        "<a>" * 2000,
        "# A\n" * 400,
    ],
    ids=["deep", "deep-lines", "long", "crlf", "odd", "broken", "blank", "elements", "hashes"],
)
@every_language
def test_nasty_texts_are_cut_like_any_other(language, text):
    check(text, language, 300)


@every_language
def test_white_space_alone_has_no_chunks(language):
    for text in ("", " ", "\n\n", "\r\n\t\u2028\x0c "):
        assert chunk_text(text, language, 100) == []


@every_language
def test_the_same_text_is_always_cut_the_same_way(language):
    text = "class A {\n  f() {\n    g();\n  }\n}\n\n# B\n\ndef f():\n    pass\n" * 10
    assert chunk_text(text, language, 120) == chunk_text(text, language, 120)


# Definitions: `count` of them, each of about `size` characters.


def python(count, size=100):
    body = "    value = 12345\n" * (size // 18)
    return "\n".join(f"def f{n}():\n{body}" for n in range(count))


def braces(count, size=100):
    body = "  use(12345678);\n" * (size // 17)
    return "\n".join(f"function f{n}() {{\n{body}}}\n" for n in range(count))


def dart(count, size=100):
    body = "  use(12345678);\n" * (size // 17)
    return "\n".join(f"void f{n}() {{\n{body}}}\n" for n in range(count))


def elixir(count, size=100):
    body = "    use(12345678)\n" * (size // 18)
    return "\n".join(f"defmodule F{n} do\n{body}end\n" for n in range(count))


def markdown(count, size=100):
    body = "words of a paragraph\n" * (size // 21)
    return "\n".join(f"# f{n}\n{body}" for n in range(count))


DEFINITIONS = [
    ("python", python, "def "),
    ("javascript", braces, "function "),
    ("php", lambda *a: "<?php\n" + braces(*a), ("<?php", "function ")),
    ("dart", dart, "void "),
    ("elixir", elixir, "defmodule "),
    ("markdown", markdown, "# "),
]
every_definition = pytest.mark.parametrize(
    ("language", "write", "beginning"), DEFINITIONS, ids=[name for name, *_ in DEFINITIONS]
)


@every_definition
@pytest.mark.parametrize("max_chars", [160, 220, 300, 500, 1000])
def test_a_definition_that_fits_stays_whole(language, write, beginning, max_chars):
    chunks = check(write(20, 120), language, max_chars)
    assert len(chunks) > 1
    for chunk in chunks:
        assert chunk.text.startswith(beginning)


@every_definition
def test_small_neighbours_share_a_chunk(language, write, beginning):
    chunks = check(write(20, 60), language, 1000)
    assert len(chunks) < 5
    for chunk in chunks[:-1]:
        assert len(chunk.text) >= 600


@every_definition
def test_what_fills_a_chunk_is_not_filled_up_with_neighbours(language, write, beginning):
    for chunk in check(write(10, 750), language, 1000):
        assert sum(f"f{n}" in chunk.text.lower() for n in range(10)) == 1


def test_a_text_that_fits_is_one_chunk():
    (chunk,) = chunk_text(python(3), "python", 1000)
    assert (chunk.start_line, chunk.scope) == (1, "")
    assert chunk.symbols == ("f0", "f1", "f2")


PYTHON_CLASS = '''\
"""What this is for."""
import os


class Foo(Base):
    """A class with a docstring
    of two lines.
    """
    size = 1

    def one(self):
        """One."""
        first = self.size
        return first + 11111

    # About two.
    # More about two.
    @property
    @cached(
        size=2,
    )
    def two(self):
        """Two."""
        return 222222222222

    def three(self):
        """Three."""
        def inner():
            return 3333333333
        return inner()


def after():
    return 4444444444444444444
'''


@pytest.mark.parametrize("max_chars", [200, 230, 260, 300])
def test_a_class_too_large_is_cut_at_its_methods(max_chars):
    chunks = check(PYTHON_CLASS, "python", max_chars)
    for method in ("one", "two", "three"):
        (chunk,) = [chunk for chunk in chunks if f"def {method}(" in chunk.text]
        assert method in chunk.symbols
        assert f'"""{method.capitalize()}."""' in chunk.text
        lines = [line for line in chunk.text.split("\n") if line.strip()]
        assert lines[0].startswith((" " * 4, '"""', "class")) and lines[0][4] != " "


def test_a_chunk_knows_what_it_lies_in():
    scopes = {chunk.scope for chunk in check(PYTHON_CLASS, "python", 200)}
    assert "class Foo" in scopes
    deep = "class A:\n" + "    def f(self):\n" + "        call(12345678)\n" * 50
    assert {chunk.scope for chunk in check(deep, "python", 200)} >= {"class A › function f"}


@pytest.mark.parametrize(
    ("language", "text", "scope"),
    [
        ("java", "class A {\n  void f() {\n@  }\n}\n", "class A › method f"),
        ("rust", "impl A {\n    fn f() {\n@    }\n}\n", "impl A › function f"),
        ("cpp", "namespace a {\nvoid B::f() {\n@}\n}\n", "namespace a › function B::f"),
        ("go", "package a\nfunc (b *B) f() {\n@}\n", "method B.f"),
        ("ruby", "module A\n  def f\n@  end\nend\n", "module A › method f"),
        ("dart", "class A {\n  void f() {\n@  }\n}\n", "class A › function f"),
        ("lua", "local f = function()\n@end\n", "function f"),
        ("html", "<body>\n<script>\nfunction f() {\n@}\n</script>\n</body>\n", "function f"),
        ("terraform", 'resource "a" "b" {\n  c {\n@  }\n}\n', 'block resource "a" "b" › block c'),
        ("json", '{\n  "a": {\n    "b": [\n@      0\n    ]\n  }\n}\n', "key a › key b"),
        ("yaml", "a:\n  b:\n    - c\n@", "key a › key b"),
        ("markdown", "# A\n## B\n@", "section A › section B"),
        ("rst", "A\n===\n\nB\n---\n\n@", "section A › section B"),
    ],
)
def test_the_scope_is_every_definition_around_the_outermost_first(language, text, scope):
    filler = {"go": "\tg()\n", "json": "      12345,\n", "yaml": "    - ddddd\n"}
    filler |= {"ruby": "    g\n", "terraform": "    d = 1\n", "lua": "  g()\n"}
    text = text.replace("@", filler.get(language, "    g();\n") * 60)
    chunks = check(text, language, 200)
    inside = chunks[len(chunks) // 2].scope
    assert inside == scope or inside.endswith(SCOPE_SEPARATOR + scope)


def test_a_definition_of_its_own_lies_in_nothing():
    for chunk in check(python(10, 150), "python", 200):
        assert chunk.scope == ""


def test_a_chunk_of_two_definitions_lies_in_what_holds_both():
    methods = "".join(f"    def m{n}(self):\n        return {n}\n\n" for n in range(20))
    text = f"class A:\n{methods}\ndef after():\n    return 1\n"
    *inside, last = check(text, "python", 200)
    assert {chunk.scope for chunk in inside} == {"class A"}
    assert "after" in last.symbols
    assert last.scope == ""


COMMENTED = [
    ("python", "# about it\n# and more\n@one\n@two(3)\n", "def f{n}():\n    return 12345678\n"),
    ("python", "@one(\n    first=1,\n    second=2,\n)\n", "def f{n}():\n    return 12345678\n"),
    ("javascript", "/**\n * About it.\n */\n", "function f{n}() {{\n  return 12345678;\n}}\n"),
    ("rust", "/// About it.\n#[derive(A)]\n", "fn f{n}() {{\n    call(12345678)\n}}\n"),
    ("lua", "-- about it\n-- and more\n", "function f{n}()\n  return 12345678\nend\n"),
    ("csharp", "// about it\n[Marked]\n", "class F{n} {{\n  int x = 12345678;\n}}\n"),
    ("typescript", "@Part({{\n  a: 1,\n}})\n", "export class F{n} {{\n  x = 12345678;\n}}\n"),
    ("cpp", "// about it\ntemplate <class T>\n", "void f{n}() {{\n  call(12345678);\n}}\n"),
    ("html", "<!-- about it -->\n", "<p>\n  paragraph {n} 12345678\n</p>\n"),
]


@pytest.mark.parametrize(("language", "above", "definition"), COMMENTED)
def test_comments_and_decorators_stay_with_the_definition_below(language, above, definition):
    block = above + definition
    text = "".join(block.format(n=n) for n in range(30))
    for max_chars in range(len(block) + 5, 4 * len(block), 17):
        chunks = check(text, language, max_chars)
        assert len(chunks) > 1
        for chunk in chunks:
            assert chunk.text.startswith(above.format().partition("\n")[0])


def test_a_comment_above_a_blank_line_belongs_to_nothing_below():
    text = "# a license\n" * 8 + "\n" + "def f():\n    return 12345\n" * 2
    first, second = check(text, "python", 110)
    assert first.text == "# a license\n" * 8 + "\n"
    assert second.text.startswith("def f():")


@pytest.mark.slow
def test_a_docstring_is_not_torn_from_its_class():
    methods = "".join(f"    def m{n}(self):\n        return {n}\n" for n in range(20))
    text = f'class A:\n    """About it,\n    in two lines.\n    """\n{methods}'
    for max_chars in range(80, 300):
        for chunk in check(text, "python", max_chars):
            assert chunk.text.count('"""') % 2 == 0


def nested(count):
    methods = "".join(
        f"    void m{n}() {{\n        call({n}, 12345678901234567890);\n    }}\n\n"
        for n in range(count)
    )
    return f"class A {{\n  class B {{\n{methods}  }}\n}}\n"


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4, 9])
def test_no_chunk_holds_only_what_closes_others(count):
    large = "class A {\n  void f() {\n" + f"    call({count});\n" * 40 + "  }\n}\n"
    for text in (nested(count), nested(count) * 2, nested(count) + "class C {\n}\n", large):
        for max_chars in range(100, 500, 7):
            before = None
            for chunk in check(text, "java", max_chars):
                if not chunk.text.strip("{}() ;\n"):
                    assert len(before.text) + len(chunk.text) > max_chars
                before = chunk


@pytest.mark.parametrize(
    ("start", "end", "language"),
    [
        ("namespace a {\n\n", "} // namespace a\n", "cpp"),
        ("#ifndef A_H\n#define A_H\n\n", "#endif /* A_H */\n", "c"),
        ("class A {\n", "}  // class A\n", "java"),
    ],
)
def test_a_comment_behind_what_is_closed_makes_it_no_chunk(start, end, language):
    for count in range(15, 40):
        body = "  void f() {\n" + f"    call({count});\n" * count + "  }\n\n"
        *_, before, last = check(start + body + end, language, 200)
        assert last.text.strip() != end.strip() or len(before.text) + len(last.text) > 200


@pytest.mark.slow
def test_no_chunk_of_definitions_is_blank():
    text = "\n\n".join(f"def f{n}():\n    call({n}, 12345678901234567890)\n" for n in range(9))
    for max_chars in range(55, 200):
        for chunk in check(text, "python", max_chars):
            assert chunk.text.strip()


def test_a_symbol_belongs_to_the_chunk_in_which_its_name_stands():
    chunks = check(PYTHON_CLASS, "python", 150)
    for chunk in chunks:
        for name in chunk.symbols:
            assert f"def {name}(" in chunk.text or f"class {name}" in chunk.text or name == "size"
    listed = [name for chunk in chunks for name in chunk.symbols]
    assert listed == ["Foo", "size", "one", "two", "three", "inner", "after"]


def test_a_symbol_is_listed_once_per_chunk_in_the_order_of_the_lines():
    text = "def b(): pass\ndef a(): pass\ndef b(): pass\n"
    (chunk,) = chunk_text(text, "python", 1000)
    assert chunk.symbols == ("b", "a")


def test_the_first_and_the_last_line_of_a_chunk_count():
    text = python(10, 100)
    chunks = check(text, "python", 130)
    assert [chunk.symbols for chunk in chunks] == [(f"f{n}",) for n in range(10)]
    assert chunk_text("x = 1\ny = 2\nz = 3", "python", 6)[1].symbols == ("y",)


def test_headings_and_keys_are_no_symbols():
    assert {c.symbols for c in check(markdown(10), "markdown", 300)} == {()}
    assert {c.symbols for c in check("[a]\nb = 1\n" * 20, "toml", 60)} == {()}


def test_a_definition_too_large_is_cut_like_text():
    text = "def f():\n" + "".join(f"    call({n:05})\n" for n in range(100)) + "\n\ndef g(): pass\n"
    chunks = check(text, "python", 300)
    assert {chunk.scope for chunk in chunks[1:-1]} == {"function f"}
    for chunk in chunks[:-1]:
        assert len(chunk.text) > 100


@pytest.mark.parametrize(
    ("language", "start", "end"),
    [
        ("ruby", "module A\n  class B\n", "  end\nend\n"),
        ("java", "package a;\nclass A {\n  class B {\n", "  }\n}\n"),
        ("csharp", "namespace A {\n  class B {\n", "  }\n};\n"),
    ],
)
def test_the_end_of_a_class_stays_with_its_last_method(language, start, end):
    line = "      call_the_other();\n" * 10
    opened, closed = {"ruby": ("    def f{}\n", "    end\n")}.get(
        language, ("    void f{}() {{\n", "    }\n")
    )
    text = start + "".join(opened.format(n) + line + closed for n in range(4)) + end
    *_, last = check(text, language, 400)
    assert last.end_line == text.count("\n")
    assert last.scope.endswith("class B")


def test_definitions_may_be_nested_more_deeply_than_scopes_go():
    depth = 30
    text = "".join("  " * n + f"class A{n}:\n" for n in range(depth)) + "  " * depth + "pass\n"
    chunks = check(text * 3, "python", 80)
    assert max(chunk.scope.count(SCOPE_SEPARATOR) for chunk in chunks) < 12


# Notebooks


def notebook(cells, indent=1):
    described = [
        {
            "cell_type": "code",
            "metadata": {"tags": ["a"]},
            "outputs": [{"data": {"text/plain": ["1"]}, "metadata": {"b": {"c": n}}}],
            "source": [f"value_{n} = {n}\n"] * lines,
        }
        for n, lines in enumerate(cells)
    ]
    return json.dumps({"cells": described, "metadata": {"k": {"name": "p"}}}, indent=indent)


def test_a_notebook_is_cut_at_its_cells():
    text = notebook([6] * 8)
    for max_chars in (500, 600, 1000):
        chunks = check(text, "notebook", max_chars)
        assert len(chunks) > 2
        for chunk in chunks[1:]:
            assert chunk.text.startswith('  {\n   "cell_type"') or '"cell_type"' not in chunk.text
        assert {chunk.scope for chunk in chunks} == {""}


def test_a_cell_too_large_is_cut_inside():
    chunks = check(notebook([3, 100, 3]), "notebook", 500)
    assert {chunk.scope for chunk in chunks} == {"", "cell"}


@pytest.mark.parametrize("indent", [None, 0, 4])
def test_a_notebook_may_be_written_in_any_way(indent):
    check(notebook([3, 20, 3], indent), "notebook", 300)
