"""Functions that macros define have the names that a reader sees."""

import pytest

from vector_index_mcp.engine.chunk.macros import expanded
from vector_index_mcp.engine.chunk.outline import outline
from vector_index_mcp.engine.chunk.parts import flat

BODY = " {\n  call(1);\n}\n"


def functions(text, language):
    parts, problem = outline(text, language)
    assert not problem
    return [(part.name, part.start + 1, part.end + 1) for part in flat(parts) if part.is_symbol]


@pytest.mark.parametrize("language", ["c", "cpp"])
@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("TEST(Parser, ReadsNumbers)", "Parser::ReadsNumbers"),
        ("TYPED_TEST_P(Parser, Reads)", "Parser::Reads"),
        ("BENCHMARK_DEFINE_F(Fixture, Sort)(benchmark::State& state)", "Fixture::Sort"),
        ("static PHP_METHOD(Exception, getCode)", "Exception::getCode"),
        ("PHP_FUNCTION(strlen)", "strlen"),
        ("SYSCALL_DEFINE3(read, unsigned int, fd, char __user *, buf, size_t, count)", "read"),
        ("PYBIND11_MODULE(_core, m, py::mod_gil_not_used())", "_core"),
        ('MATCHER_P(IsBelow, n, "is below")', "IsBelow"),
    ],
)
def test_a_function_of_a_macro_is_called_by_its_arguments(head, name, language):
    text = f"int before;\n\n// what it does\n{head}{BODY}\nint after(void) {{ return 1; }}\n"
    assert (name, 4, 6) in functions(text, language)
    assert ("after", 8, 8) in functions(text, language)


def test_methods_of_react_native_are_called_as_in_javascript():
    head = "RCT_EXPORT_METHOD(readDir:(NSString *)path\n    resolver:(Resolve)resolve)\n"
    remapped = "RCT_REMAP_METHOD(exists, existsPath:(NSString *)path)\n"
    text = f"@implementation Files\n\n{head}{{\n  stop();\n}}\n{remapped}{{\n  stop();\n}}\n@end\n"
    assert functions(text, "objc") == [("Files", 1, 12), ("readDir", 3, 7), ("exists", 8, 11)]


@pytest.mark.parametrize(
    "text",
    [
        "static int\nMAX(a, b)\n{\n}\n",  # the type stands before
        "#define LOOP \\\nFOR_EACH(a, b) { \\\n}\n",
        "void run() {\n  LIST_FOREACH(each, list) {\n  }\n}\n",
        "DECLARE(a, b);\nstruct c {\n};\n",
        "DECLARE(a, b)\nDECLARE(c, d)\nint run() {\n}\n",
        "PACKED(struct, Int96) {\n};\n",
        "NS_ENUM(NSInteger) {\n};\n",
        "INSTANTIATE(std::vector) {\n}\n",
        'TEST_CASE("reads numbers", "[parser]") {\n}\n',
        "max(a, b) {\n}\n",
        "// TEST(A, B) {\n",
        "EMPTY() {\n}\n",
        'TEST_CASE_METHOD(Fixture, "reads numbers") {\n}\n',
        "SHOP_ENUM(Cart, int) {\n  kEmpty,\n};\n",
        "void run(int a)\nREQUIRES_LOCK(mutex_)\n{\n}\n",
    ],
)
def test_what_defines_nothing_by_its_arguments_stays(text):
    assert expanded(text) == (text, {})


def test_lines_stay_where_they_are():
    text = "TEST(A,\n     B)\n\n{\n}\nTEST_F(C, D) {\n}\n"
    changed, names = expanded(text)
    assert changed.count("\n") == text.count("\n")
    assert changed.split("\n")[3].startswith("{")
    assert list(names.values()) == ["A::B", "C::D"]


@pytest.mark.parametrize("before", ["int x = 1;  // the value\n", "}  // namespace a\n", "// x\n"])
def test_a_comment_before_it_is_no_type(before):
    assert list(expanded(f"{before}TEST(A, B) {{\n}}\n")[1].values()) == ["A::B"]


def test_other_languages_have_no_macros():
    text = "class Cart { };\n\nTEST(A, B) {\n}\n"
    assert list(expanded(text)[1].values()) == ["A::B"]
    assert ("A::B", 3, 4) in functions(text, "cpp")
    assert functions(text, "java") == [("Cart", 1, 1)]
