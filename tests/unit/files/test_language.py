"""The language of a file, by its name or by the program that its first line names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files import language
from vector_index_mcp.files.language import OTHER, is_prose, known_language, language_of


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", "python"),
        ("x/y/a.PY", "python"),
        ("a.test.ts", "typescript"),
        ("a.tsx", "tsx"),
        ("a.h", "c"),
        ("a.c++", "cpp"),
        ("Makefile", "make"),
        ("x/CMakeLists.txt", "cmake"),
        ("notes.txt", "text"),
        ("Dockerfile", "dockerfile"),
        ("Dockerfile.dev", "dockerfile"),
        ("dev.dockerfile", "dockerfile"),
        ("BUILD", "python"),
        (".gitignore", "ini"),
        ("x.py/README", OTHER),
        ("py", OTHER),
        ("a.", OTHER),
        ("a.unheard", OTHER),
        ("", OTHER),
    ],
)
def test_the_name_tells_the_language(path: str, expected: str) -> None:
    assert language_of(path) == expected


@pytest.mark.parametrize(
    ("first_line", "expected"),
    [
        ("#!/bin/sh", "bash"),
        ("#! /bin/sh -e", "bash"),
        ("#!/usr/bin/env bash\r", "bash"),
        ("#!/usr/bin/env python3.11", "python"),
        ("#!/usr/bin/pypy3-7.3", "python"),
        ("#!/usr/bin/env -S uv run --script", "python"),
        ("#!/usr/bin/env -i LC_ALL=C perl -w", "perl"),
        ("#!/opt/node-v20/bin/node", "javascript"),
        ("#!/usr/bin/env -S deno run", "typescript"),
        ("#!Rscript", "r"),
        ("#!/usr/bin/make -f", "make"),
        ("#!/usr/bin/env", OTHER),
        ("#!/usr/bin/env -S", OTHER),
        ("#!", OTHER),
        ("#!/", OTHER),
        ("#!@PYTHON@", OTHER),
        ("#!/usr/bin/unheard sh", OTHER),
        ("# !/bin/sh", OTHER),
        (" #!/bin/sh", OTHER),
        ("#!" + "/" * 300 + "sh", OTHER),
    ],
)
def test_a_script_without_an_ending_is_in_the_language_of_its_program(
    first_line: str, expected: str
) -> None:
    assert language_of("bin/deploy", f"{first_line}\necho python perl") == expected
    assert language_of("deploy.in", first_line) == expected


def test_the_name_goes_before_the_first_line() -> None:
    assert language_of("a.py", "#!/bin/sh") == "python"
    assert language_of("Makefile", "#!/bin/sh") == "make"


def test_every_program_runs_a_language_that_there_is() -> None:
    assert set(language._RUN_BY) <= set(language.LANGUAGES)


@given(st.text(max_size=20))
def test_any_first_line_has_a_known_language(line: str) -> None:
    assert known_language(language_of("deploy", f"#!{line}"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("markdown", True), ("text", True), ("python", False), ("html", False), (OTHER, False)],
)
def test_prose_is_told_from_code(name: str, expected: bool) -> None:
    assert is_prose(name) is expected


def test_no_ending_stands_for_two_languages() -> None:
    endings = [ending for all_of in language._BY_SUFFIX.values() for ending in all_of.split()]
    assert len(endings) == len(set(endings))


def test_what_is_called_prose_is_a_known_language() -> None:
    assert set(language._BY_SUFFIX) >= language._PROSE


@given(st.text(max_size=20))
def test_every_path_has_a_language_in_lower_case(path: str) -> None:
    assert language_of(path) == language_of(path).lower() != ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("python", "python"),
        ("Python", "python"),
        (" py ", "python"),
        (".py", "python"),
        ("ts", "typescript"),
        ("tsx", "tsx"),
        ("c", "c"),
        ("C++", "cpp"),
        ("c#", "csharp"),
        ("cs", "csharp"),
        ("F#", "fsharp"),
        ("golang", "go"),
        ("objective-c", "objc"),
        ("shell", "bash"),
        ("sh", "bash"),
        ("jupyter", "notebook"),
        ("docker", "dockerfile"),
        ("makefile", "make"),
        ("md", "markdown"),
        ("r", "r"),
        ("klingon", None),
        ("", None),
        ("python3.11", None),
    ],
)
def test_a_language_is_known_by_its_name_an_extension_or_a_synonym(
    name: str, expected: str | None
) -> None:
    assert known_language(name) == expected


@pytest.mark.parametrize("path", ["a.py", "Makefile", "a.unheard", "a.h", "x.ipynb", "go.mod"])
def test_the_language_that_a_hit_tells_can_be_asked_for(path: str) -> None:
    assert known_language(language_of(path)) == language_of(path)


def test_synonyms_mean_known_languages_and_hide_none() -> None:
    assert set(language._SYNONYMS.values()) <= set(language._BY_SUFFIX)
    assert not set(language._SYNONYMS) & set(language._BY_SUFFIX)


HEADERS = {
    "#include <stdio.h>\nstruct a { int b; };\nint f(struct a *);\n": "c",
    '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void);\n': "c",
    "/* x\n   using the lock, or private: this\n   class of the device:\n  @class Cart\n*/\n": "c",
    "// x\n//\n // template <T>\nint f(void); // std::string\n": "c",
    '#ifdef __cplusplus\n#include <cstddef>\n#if X\nclass A;\n#endif\nextern "C" {\n#endif\n': "c",
    "#ifdef __cplusplus\nclass A;\n#else\nstruct A;\n#endif\nint f(void);\n": "c",
    "#ifndef __cplusplus\n#error C++ only\n#endif\nclass A;\n": "cpp",
    "#if defined(__cplusplus)\nclass B;\n#endif\nclass A;\n": "cpp",
    "struct template { int private; };\n": "c",
    "/* never ends\nclass A;\n": "c",
    "/*/ a rule\nclass A;\n/*/\nint f(void);\n": "c",
    "/**/class A;\n": "cpp",
    "// all of src/*.h\nclass A;\n/* b */\n": "cpp",
    "/* see // */ class A;\n": "cpp",
    "#define CLASS class\ntypedef int class_t;\nint class_of(int namespace_);\n": "c",
    "": "c",
    "namespace shop {\nstruct A;\n}\n": "cpp",
    "class EXPORT Cart final : public Base {\n": "cpp",
    "class Cart;\n": "cpp",
    "class Cart\n{\n": "cpp",
    "template <class T>\nT f(T);\n": "cpp",
    "#pragma once\n#include <vector>\n": "cpp",
    "inline int f(const std::string& s);\n": "cpp",
    "struct A {\n private:\n  int b;\n};\n": "cpp",
    "using namespace shop;\n": "cpp",
    "using Base::Base;\n": "cpp",
    "using Cart = int;\n": "cpp",
    "#import <Foundation/Foundation.h>\n": "objc",
    "@interface Cart : NSObject\n@end\n": "objc",
    "@class Cart;\nclass Other;\n": "objc",
}


@pytest.mark.parametrize("text", HEADERS)
@pytest.mark.parametrize("path", ["src/cart.h", "CART.H"])
def test_a_header_is_of_the_language_of_its_text(text, path):
    assert language_of(path, text) == HEADERS[text]


def test_only_the_name_tells_other_languages():
    assert language_of("a.c", "class Cart {") == "c"
    assert language_of("a.hpp", "@interface") == "cpp"
