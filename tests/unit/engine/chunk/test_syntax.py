"""What a text defines, in every language that has a grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semble_grammars import get_language
from snippets import SNIPPETS

from vector_index_mcp.engine.chunk import chunk_text, cut_text, syntax
from vector_index_mcp.engine.chunk.grammars import GRAMMARS


def outlined(parts):
    """The parts as the table writes them."""
    for part in parts:
        label = part.label if part.is_symbol else f"({part.label})"
        yield label
        yield from (f"  {inner}" for inner in outlined(part.parts))


def defined(text, language):
    return list(outlined(syntax.definitions(text, language)))


def flat(parts):
    for part in parts:
        yield part
        yield from flat(part.parts)


@pytest.mark.parametrize("language", GRAMMARS)
def test_the_definitions_of_a_text_are_found(language):
    text, expected = SNIPPETS[language]
    assert list(outlined(syntax.definitions(text, language))) == expected.strip("\n").split("\n")


@pytest.mark.parametrize("language", GRAMMARS)
def test_a_definition_covers_its_name_and_what_lies_inside(language):
    text, _ = SNIPPETS[language]
    lines = text.split("\n")
    for part in flat(syntax.definitions(text, language)):
        assert 0 <= part.start <= part.named_at <= part.end < len(lines)
        for inner in part.parts:
            assert part.start <= inner.start <= inner.end <= part.end
        if part.is_symbol:
            last_word = part.name.replace("::", ".").rsplit(".", 1)[-1]
            assert last_word in lines[part.named_at]


@pytest.mark.parametrize("language", GRAMMARS)
def test_every_named_node_type_exists_in_the_grammar(language):
    grammar = GRAMMARS[language]
    known = get_language(grammar.name)
    unknown = [
        type_
        for type_ in [*grammar.structures, *grammar.values]
        if known.id_for_node_kind(type_, True) is None
    ]
    assert unknown == []


@pytest.mark.parametrize("language", GRAMMARS)
def test_no_definition_is_both_structure_and_value(language):
    assert GRAMMARS[language].structures.keys().isdisjoint(GRAMMARS[language].values)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("javascript", "app.handle = function (req) {};", ["function app.handle"]),
        ("javascript", "const f = () => 1;", ["function f"]),
        ("javascript", "const f = async (a) => { const b = a; };", ["function f"]),
        ("javascript", "module.exports = function () {};", ["function module.exports"]),
        ("javascript", "exports.etag = made({weak: 1})", ["constant exports.etag"]),
        ("javascript", "module.exports.port = 80", ["constant module.exports.port"]),
        ("javascript", "exports.json = parser", ["constant exports.json"]),
        (
            "typescript",
            "module.exports = {port: 80, 'a-b': {c: 1}, run() {}, go: () => 1}",
            ["constant port", "constant a-b", "method run", "function go"],
        ),
        ("javascript", "let K = class { m() {} };", ["class K", "  method m"]),
        (
            "javascript",
            "class K { static [kRetry]() {} get [Symbol.iterator]() {} [a + b]() {} }",
            ["class K", "  method kRetry", "  method Symbol.iterator", "  (method)"],
        ),
        ("typescript", "const f = <T,>(a: T): T => a;", ["function f"]),
        ("lua", "M.foo = function() end", ["function M.foo"]),
        ("lua", "local f = function() end", ["function f"]),
    ],
)
def test_a_function_is_called_what_it_is_assigned_to(language, text, expected):
    assert defined(text, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void Foo::bar(int x) const { }", ["function Foo::bar"]),
        ("Foo& a::Foo::get() { return x; }", ["function a::Foo::get"]),
        ("const Foo* Foo::find(int i) { return 0; }", ["function Foo::find"]),
        ("template <class T> Box<T>::Box() : x(0) { }", ["function Box::Box"]),
        ("Foo::~Foo() { }", ["function Foo::~Foo"]),
        ("Foo& Foo::operator=(const Foo& o) { return *this; }", ["function Foo::operator="]),
        ("int (*pick(int x))(void) { return 0; }", ["function pick"]),
    ],
)
def test_a_cpp_function_keeps_its_qualified_name(text, expected):
    assert defined(text, "cpp") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("func (m *Mux) Handle(p string) { }", "method Mux.Handle"),
        ("func (Mux) Close() error { return nil }", "method Mux.Close"),
        ("func (/* a */ m /* b */ * /* c */ Mux[ /* d */ T]) Handle() { }", "method Mux.Handle"),
        ("func (m *( // c\nMux)) Handle() { }", "method Mux.Handle"),
        ("func (s *Stack[T, U]) Push(x T) { }", "method Stack.Push"),
        ("func (s Stack[K]) Pop() (x K) { return }", "method Stack.Pop"),
        ("func () f() { }", "method f"),
        ("func Handle(m *Mux) { }", "function Handle"),
    ],
)
def test_a_method_of_go_is_named_with_its_type(text, expected):
    assert defined(f"package a\n{text}\n", "go") == [expected]


def test_a_namespace_without_a_name_is_not_called_by_what_it_uses():
    text = "namespace a::b {\nnamespace {\nusing std::string;\nint f() { return 1; }\n}\n}\n"
    assert defined(text, "cpp") == ["namespace a::b", "  (namespace)", "    function f"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("c", "int announced(int a, char *b);"),
        ("c", "static const char **announced(void);"),
        ("c", "struct forward;"),
        ("cpp", "Foo& announced(int);"),
        ("cpp", "class Forward;"),
        ("cpp", "int (*announced(int x))(void);"),
        ("javascript", 'const fs = require("fs");'),
        ("javascript", 'const join = require("path").join;'),
        ("javascript", 'const lazy = await import("./lazy.js");'),
        ("javascript", "exports.query = require('./query')"),
        ("javascript", "module.exports = {x, y: y, 'z': z, all: require('./all')}"),
        ("javascript", "exports.x = x; exports.a = exports.b = void 0"),
        ("javascript", "exports = module.exports = create"),
        ("javascript", "other.x = 1; call({x: 1}); other.exports = {x: 1}"),
        ("javascript", "call(function () { module.exports = {x: 1}; exports.y = 2 })"),
        ("lua", 'local json = require("json")'),
        ("lua", 'local json = require "json"'),
        ("zig", 'const std = @import("std");'),
        ("zig", 'const mem = @import("std").mem;'),
        ("python", 'fs = __import__("fs")'),
        ("ruby", 'fs = require("fs")'),
    ],
)
def test_what_is_defined_elsewhere_is_no_symbol(language, text):
    assert defined(text, language) == []


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("rust", "impl A { fn b() {} }", ["(impl A)", "  function b"]),
        ("rust", "impl<T> Shape for A<T> { }", ["(impl A)"]),
        ("swift", "extension A { func b() {} }", ["(class A)", "  function b"]),
        ("dart", "extension A on B { void c() {} }", ["(class A)", "  function c"]),
        ("haskell", "instance A B where\n  c x = 1", ["(instance A)", "  function c"]),
    ],
)
def test_an_addition_to_a_type_is_no_symbol_but_what_it_adds_is(language, text, expected):
    assert defined(text, language) == expected


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_half_a_statement_between_branches_of_the_preprocessor_is_no_function(language):
    text = (
        "int check(const char *str)\n{\n\twhile(str && str[0]){\n\t\tif(str[0] == '+'){\n"
        "\t\t\treturn 1;\n\t\t}\n#ifdef WITH_BROKER\n\t\telse if(str[0] == '/'){\n\t\t\tcount++;\n"
        "\t\t}\n#endif\n\t\tstr = &str[1];\n\t}\n\treturn 0;\n}\n"
    )
    assert defined(text, language) == ["function check"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("c", "typedef struct { int x; } point;", ["type point", "  (struct)"]),
        ("c", "void (*handler)(int);", ["declaration handler"]),
        ("c", "struct stat *make(void) { return 0; }", ["function make"]),
        ("cpp", "class A { B &ref; };", ["class A", "  field ref"]),
        ("csharp", "class A { B b; List<C> c; }", ["class A", "  field b", "  field c"]),
        ("csharp", "class A { event Action Done; }", ["class A", "  event Done"]),
        ("csharp", "class A { public B this[int i] => x; }", ["class A", "  (property)"]),
        (
            "csharp",
            "class A { public static B operator +(B x, B y) => x; }",
            ["class A", "  (method)"],
        ),
        ("swift", "class A { subscript(i: Int) -> B { return b } }", ["class A", "  (subscript)"]),
        (
            "objc",
            "@interface A : B\n@property (nonatomic, strong) C *name;\n@end",
            ["class A", "  property name"],
        ),
        ("ruby", "class << self\n  def a; end\nend", ["(class)", "  method a"]),
        ("zig", 'test "adds" { const a = 1; }', ["(test)"]),
        ("kotlin", "val A.b: C get() = 1", ["property b"]),
        ("java", "class A { private final List<B> c; }", ["class A", "  field c"]),
    ],
)
def test_a_definition_takes_no_name_from_its_types_and_insides(language, text, expected):
    assert defined(text, language) == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "def f():\n    x = 1\n    def g(): y = 1", ["function f", "  function g"]),
        ("javascript", "function f() { const x = 1; class A { } }", ["function f", "  class A"]),
        ("javascript", 'it("works", () => { const x = 1; function g() {} });', ["function g"]),
        ("typescript", "run(async function () { let x = 1; });", []),
        ("go", "package a\nfunc f() { var x int; const y = 1 }", ["function f"]),
        ("rust", "fn f() { const X: u8 = 1; struct S { } }", ["function f", "  struct S"]),
        ("kotlin", "fun f() { val x = 1 }", ["function f"]),
        ("ocaml", "let f x = let y = x in y", ["value f"]),
        ("bash", "f() { local x=1; y=2; }", ["function f"]),
    ],
)
def test_the_values_inside_a_function_are_its_own(language, text, expected):
    assert defined(text, language) == expected


@pytest.mark.parametrize(
    ("language", "text", "first", "last"),
    [
        ("python", "@one(\n    1,\n)\n@two\ndef f():\n    pass\n", 0, 5),
        ("typescript", "@Component({\n  a: 1,\n})\nexport class A {\n}\n", 0, 4),
        ("typescript", "@Component({\n  a: 1,\n})\nclass A {\n}\n", 0, 4),
        ("java", "@One(\n  a = 1\n)\nclass A {\n}\n", 0, 4),
        ("cpp", "template <\n  typename T\n>\nclass A {\n};\n", 0, 4),
        ("dart", "void f() {\n  g();\n}\n", 0, 2),
        ("haskell", "f x =\n  x\n\ng = 1\n", 0, 1),
    ],
)
def test_a_definition_has_its_decorators_and_its_body(language, text, first, last):
    part = syntax.definitions(text, language)[0]
    assert (part.start, part.end) == (first, last)


@pytest.mark.parametrize(
    ("language", "page"),
    [
        (
            "html",
            "<html>\n<body>\n<p>x</p>\n<script>\nfunction f() {}\n</script>\n</body>\n</html>\n",
        ),
        ("vue", "<template>\n<p>x</p>\n</template>\n\n<script>\nfunction f() {}\n</script>\n"),
        ("svelte", "<p>x</p>\n<script lang='ts'>\nfunction f(a: number) {}\n</script>\n"),
    ],
)
def test_a_script_in_a_page_has_the_lines_of_the_page(language, page):
    (function,) = [part for part in flat(syntax.definitions(page, language)) if part.is_symbol]
    assert (function.name, function.kind) == ("f", "function")
    assert page.split("\n")[function.named_at].startswith("function f(")


def test_every_script_of_a_page_is_read():
    scripts = [f"<script>\nfunction {name}() {{}}\n</script>\n" for name in "ab"]
    page = "<div>\n" + "".join(scripts) + "</div>\n"
    found = [part.name for part in flat(syntax.definitions(page, "html")) if part.is_symbol]
    assert found == ["a", "b"]


def test_a_script_that_cannot_be_parsed_leaves_the_page():
    page = "<p>\nx\n</p>\n<script>\n%%%%\n</script>\n"
    assert defined(page, "html") == ["(element p)", "(element script)"]


@pytest.mark.slow
@pytest.mark.parametrize("opening", ["<div>", "<div>\n"])
def test_a_page_that_is_nested_too_deeply_has_no_outline(opening):
    page = "<script>\nfunction f() {}\n</script>\n"
    assert defined(opening * 3 + page, "html") == ["(element script)", "  function f"]
    assert syntax.definitions(opening * 5_000 + page, "html") == []


def test_definitions_nested_too_deeply_are_not_looked_for():
    text = "".join("  " * depth + f"def f{depth}():\n" for depth in range(300)) + "  " * 300 + "1\n"
    found = [part.name for part in flat(syntax.definitions(text, "python"))]
    assert found[0] == "f0"
    assert 50 < len(found) < 150


TEXT = "def foo():\n    return 1\n"


def test_a_text_that_is_too_large_has_no_outline(monkeypatch):
    assert defined(TEXT, "python") == ["function foo"]
    monkeypatch.setattr(syntax, "_MAX_BYTES", len(TEXT) - 1)
    assert syntax.definitions(TEXT, "python") == []
    monkeypatch.setattr(syntax, "_MAX_BYTES", len(TEXT))
    assert defined(TEXT, "python") == ["function foo"]


def test_the_size_of_a_text_is_counted_in_bytes(monkeypatch):
    text = "# ÄÖÜ\n" + TEXT
    monkeypatch.setattr(syntax, "_MAX_BYTES", len(text))
    assert syntax.definitions(text, "python") == []


def test_a_text_longer_than_one_read_is_parsed_whole(monkeypatch):
    monkeypatch.setattr(syntax, "_READ_BYTES", 7)
    assert defined("# ÄÖÜ\n" + TEXT * 3, "python") == ["function foo"] * 3


@pytest.mark.slow
def test_a_text_that_takes_too_long_has_no_outline_and_leaves_no_trace(monkeypatch):
    long_text = "".join(f"def f{n}():\n    return [{n}, (1, 2)]\n" for n in range(2000))
    with monkeypatch.context() as hurry:
        hurry.setattr(syntax, "_MAX_SECONDS", 0)
        chunks, problem = cut_text(long_text, "python", 1000)
        assert "longer than 0 s" in problem
        assert "".join(chunk.text for chunk in chunks) == long_text
    # Not shorter, and different from the start: what was kept of the first text would show.
    other = "class A:\n    x = 1\n" * 4000
    names = [part.name for part in syntax.definitions(other, "python")]
    assert names == ["A"] * 4000


def test_the_work_grows_with_the_number_of_scripts_and_not_faster(monkeypatch):
    looks = []
    monkeypatch.setattr(
        syntax, "flat", lambda parts: looks.extend(found := list(flat(parts))) or found
    )
    page = "".join(f"<script>\nfunction f{n}() {{}}\n</script>\n" for n in range(300))
    names = [part.name for part in flat(syntax.definitions(page, "html")) if part.is_symbol]
    assert names == [f"f{n}" for n in range(300)]
    assert len(looks) < 3 * 300


@pytest.fixture
def no_grammar(monkeypatch):
    """Grammars cannot be loaded."""

    def refuse(name):
        raise OSError(f"no grammar for {name}")

    monkeypatch.setattr(syntax, "get_language", refuse)
    syntax._parser.cache_clear()
    yield
    syntax._parser.cache_clear()


@pytest.mark.parametrize("language", ["python", "html", "notebook"])
def test_without_its_grammar_a_text_is_cut_by_its_lines(no_grammar, caplog, language):
    text, _ = SNIPPETS[language]
    assert syntax.definitions(text, language) == []
    chunks = chunk_text(text, language, 60)
    assert "".join(chunk.text for chunk in chunks) == text
    assert len(chunks) > 1
    (record,) = caplog.records
    assert f"no grammar for {GRAMMARS[language].name}" in record.getMessage()


@pytest.mark.parametrize("language", GRAMMARS)
def test_what_is_no_program_defines_little_and_breaks_nothing(language):
    for text in ("", "\n", "\x00", "\ufeff", "%$&/(§", "}}}}\n", "\ud800 = 1\n"):
        assert len(syntax.definitions(text, language)) <= 1


@given(st.sampled_from(sorted(GRAMMARS)), st.integers(0, 2000), st.text(max_size=8))
def test_a_damaged_text_never_breaks_the_order_of_its_definitions(language, place, damage):
    text, _ = SNIPPETS[language]
    text = text[:place] + damage + text[place + 3 :]
    parts = syntax.definitions(text, language)
    for part in flat(parts):
        assert 0 <= part.start <= part.end <= text.count("\n")
        assert part.name or not part.is_symbol
        starts = [inner.start for inner in part.parts]
        assert starts == sorted(starts)
