"""A pattern means the documents that it seems to, and no pattern keeps us busy."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.matching import Matched, matching
from vector_index_mcp.documents.places import Places
from vector_index_mcp.errors import QueryError

KEYS = [
    "docs/readme.md",
    "docs/api.md",
    "docs/large-file.md",
    "docs/external-podcast/2023-april-interview.md",
    "docs/meetings/meeting-2024-01.md",
    "docs/meetings/meeting-2024-02.md",
    "docs/meetings/old/meeting-2023-12.md",
    "notes/plan.md",
    "notes/a, b.md",
    "notes/[slug]/page.md",
    "notes/[slug]/*.md",
    "notes/{x,y}.md",
    "notes/é.md",
    "notes/Cafe\u0301.md",
    "notes/日本.md",
    "notes/a\nb.md",
]
MEETINGS = KEYS[4:6]
TOP = ["docs/readme.md", "docs/api.md", "docs/large-file.md"]
PLACES = Places({"docs": Path("/data/docs"), "notes": Path("/data/notes")})


def matched(pattern):
    return list(matching(KEYS, pattern, PLACES).keys)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("meetings/*.md", MEETINGS),
        ("docs/meetings/*.md", MEETINGS),
        ("qmd://docs/meetings/*.md", MEETINGS),
        ("./meetings/*.md", MEETINGS),
        ("/docs/meetings/*.md", MEETINGS),
        ("/data/docs/meetings/*.md", MEETINGS),
        ("docs\\meetings\\*.md", MEETINGS),
        ('"meetings/*.md"', MEETINGS),
        ("meetings/meeting-2024-0[13].md", MEETINGS[:1]),
        ("meetings/meeting-2024-0[!1].md", MEETINGS[1:]),
        ("meetings/meeting-2024-0?.md", MEETINGS),
        ("meetings/meeting-{2023,2024}-*.md", MEETINGS),
        ("meetings/**/*2023*", ["docs/meetings/old/meeting-2023-12.md"]),
        ("docs/meetings/", KEYS[4:7]),
        ("docs/*.md", TOP),
        ("**/*", KEYS),
        ("**/*.md", KEYS),
        ("**/old/**", ["docs/meetings/old/meeting-2023-12.md"]),
        ("none/*.md", []),
        ("docs/notes/*.md", []),
        ("../docs/*.md", []),
        ("docs/[", []),
        ("readme.md", ["docs/readme.md"]),
        ("large-file.md", ["docs/large-file.md"]),
        ("qmd://notes/plan.md", ["notes/plan.md"]),
        ("notes/a, b.md", ["notes/a, b.md"]),
        ("a, b.md", ["notes/a, b.md"]),
        ("[slug]/page.md", ["notes/[slug]/page.md"]),
        ("notes/[slug]/*.md", ["notes/[slug]/*.md"]),
        ("[slug]/p*.md", ["notes/[slug]/page.md"]),
        ("{x,y}.md", ["notes/{x,y}.md"]),
        ("notes/?.md", ["notes/é.md"]),
        ("notes/[à-ê].md", ["notes/é.md"]),
        ("notes/[!a-zé]*.md", ["notes/{x,y}.md", "notes/Cafe\u0301.md", "notes/日本.md"]),
        ("notes/??.md", ["notes/日本.md"]),
        ("notes/日*.md", ["notes/日本.md"]),
        ("notes/Caf\u00e9*", ["notes/Cafe\u0301.md"]),
        ("notes/a?b.md", ["notes/a\nb.md"]),
    ],
)
def test_a_pattern_alone(pattern, expected):
    assert matched(pattern) == expected


def test_what_matches_nothing_is_told():
    assert matching(KEYS, "none/*.md") == Matched((), ("none/*.md",))
    assert matching(KEYS, "nope.md") == Matched((), ("nope.md",))
    assert matching([], "**/*.md") == Matched((), ("**/*.md",))
    assert matching(KEYS, "") == Matched((), ("",))


@pytest.mark.parametrize(
    ("pattern", "keys", "missing"),
    [
        ("readme.md, api.md, nope.md", ["docs/readme.md", "docs/api.md"], ["nope.md"]),
        ("api.md,readme.md", ["docs/api.md", "docs/readme.md"], []),
        ("api.md,api.md,docs/api.md", ["docs/api.md"], []),
        ("plan.md, meetings/*.md", ["notes/plan.md", *MEETINGS], []),
        ("plan.md, a, b.md, api.md", ["notes/plan.md", "notes/a, b.md", "docs/api.md"], []),
        ("{x,y}.md, api.md", ["notes/{x,y}.md", "docs/api.md"], []),
        ("{api,readme}.md, plan.md", ["docs/readme.md", "docs/api.md", "notes/plan.md"], []),
        ("{api.md, plan.md", ["notes/plan.md"], ["{api.md"]),
        ("readme.md:3, ", ["docs/readme.md"], []),
        (",", [], []),
        ("../x, /etc/passwd", [], ["../x", "/etc/passwd"]),
    ],
)
def test_a_list_of_names(pattern, keys, missing):
    assert matching(KEYS, pattern) == Matched(tuple(keys), tuple(missing), is_list=True)


def test_who_asks_may_know_other_names():
    def by_docid(name):
        return "docs/api.md" if name == "#abc123" else None

    assert matching(KEYS, "#abc123", find_one=by_docid).keys == ("docs/api.md",)
    found = matching(KEYS, "#abc123, plan.md, readme", find_one=by_docid)
    assert found == Matched(("docs/api.md", "notes/plan.md"), ("readme",), is_list=True)


@pytest.mark.parametrize(
    "pattern",
    ["x" * 50_001, "*" * 1_001, "*x" * 101, "{a,b}" * 7, "{" + "a," * 65 + "}", "a," * 200]
    + [
        "".join(map(chr, range(0x4E00, 0x4E40))) + "*",
        "{a,b,c,d,e,f}{a,b,c,d,e,f}*,{a,b}{c,d}" * 2,
    ],
)
def test_a_pattern_that_means_too_much_is_refused(pattern):
    with pytest.raises(QueryError, match="; ask for less at once") as refused:
        matching(KEYS, pattern)
    assert len(str(refused.value)) < 500


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    ["*a*a*a*a*a*a*a*a*b", "**/*Notes*/**/*x*/**", "{a,b,c,d}/{a,b,c,d}/{a,b,c,*}"]
    + ["**/" * 33 + "x", "?*" * 50, "[!a]*ü*", "[a-z]" * 90, "*" * 100, "[" * 99]
    + ["*o*o*o*o*o*o*o*o*o*/" * 5, "[[:alpha:]]*" * 30, "é*" * 60, "," * 150]
    + ["{" * 100, "\\" * 999, "{,}" * 6, "x," * 99, "a,b," * 40],
)  # fmt: skip
def test_ten_thousand_documents_keep_nobody_waiting(pattern):
    keys = [f"docs/area-{n % 50}/topic {n % 500}/Meeting Notes-{n:05}.md" for n in range(10_000)]
    start = time.thread_time()
    matching(keys, pattern)
    assert time.thread_time() - start < 3  # a glob takes 0.02, a hundred unknown names 0.7


def test_a_long_name_keeps_nobody_waiting():
    keys = ["docs/" + "ab" * 2_000 + f"/{n}" for n in range(200)]
    start = time.thread_time()
    matching(keys, "**/" + "*a*b" * 24 + "x")
    assert time.thread_time() - start < 3


@given(st.text("ab*?[]!-^{},/\\.é \n\0:", max_size=25))
def test_any_pattern_matches_or_is_refused(pattern):
    try:
        found = matching(KEYS, pattern, PLACES)
    except QueryError:
        return
    assert set(found.keys) <= set(KEYS)
    assert len(set(found.keys)) == len(found.keys)
    assert found.is_list or bool(found.keys) != bool(found.missing)


@given(st.sampled_from(KEYS))
def test_every_document_is_matched_by_its_name(key):
    assert matched(key) == [key]
    assert matched(key.partition("/")[2]) == [key]
