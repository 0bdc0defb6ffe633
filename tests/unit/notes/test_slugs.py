"""Names of files: those of the original program, and never a way to somewhere else."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.notes.texts.slugs import filename, slug

NAMES = st.one_of(st.text(), st.text(alphabet="aZ9 ._-/\\&$'…é\u0300\u2028\0ß你"))

SLUGS = {
    "My Project": "my-project",
    "  My   Project  ": "my-project",
    "a-b--c": "a-b-c",
    "-a-": "a",
    "User's Guide & FAQ": "users-guide-and-faq",
    "Special File Name & Symbols!@#$": "special-file-name-and-symbolsdollar",
    "100% <b>": "100percent-lessbgreater",
    "a|b": "aorb",
    "Café Über Ñandú": "cafe-uber-nandu",
    "Straße æ ø Ł þ": "strasse-ae-o-l-th",
    "5 € or £": "5-euro-or-pound",
    "v1.2.3": "v123",
    "a_b": "ab",
    "a/b\\c": "abc",
    "../../etc/passwd": "etcpasswd",
    "..": "untitled",
    ".": "untitled",
    "": "untitled",
    "   ": "untitled",
    "!!!": "untitled",
    "-": "untitled",
    "你好": "untitled",
    "你好 world": "world",
    "tab\tand\nline": "tab-and-line",
    "x" * 300: "x" * 200,
    "x" * 199 + " y": "x" * 199,
}  # fmt: skip
FILENAMES = {
    "api-guide.md": "api-guide.md",
    "api-guide": "api-guide.md",
    "API Guide.MD": "api-guide.md",
    "a.md.md": "amd.md",
    "notes.txt": "notestxt.md",
    ".md": "untitled.md",
    "": "untitled.md",
}


@pytest.mark.parametrize("name", SLUGS)
def test_a_slug_is_that_of_the_original_program(name):
    assert slug(name) == SLUGS[name]


@pytest.mark.parametrize("name", FILENAMES)
def test_a_file_has_its_ending_once(name):
    assert filename(name) == FILENAMES[name]


@given(NAMES)
@example("\u212a")  # the sign for kelvin
@example("İ")
@example("ǆ")
def test_a_slug_is_a_plain_name(name):
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", slug(name))
    assert len(slug(name)) <= 200
    assert re.fullmatch(r"[a-z0-9-]+\.md", filename(name))


@given(NAMES)
@example("ﬁ")
def test_a_slug_is_its_own_slug(name):
    assert slug(slug(name)) == slug(name)
    assert filename(filename(name)) == filename(name)
