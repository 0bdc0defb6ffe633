"""A document is found by what somebody calls it, and what is like it is told."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.names import Found, find, similar, slug_of
from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.uris import uri_of

KEYS = [
    "docs/readme.md",
    "docs/api.md",
    "docs/large-file.md",
    "docs/external-podcast/2023-april-interview.md",
    "docs/meetings/meeting-2024-01.md",
    "docs/meetings/meeting-2024-02.md",
    "notes/plan.md",
]
MEETINGS = ["meetings/meeting-2024-01.md", "meetings/meeting-2024-02.md"]
ODD = [
    "docs/Meeting Notes/Q1 (2024).md",
    "docs/a:12.md",
    "docs/a",
    "docs/a:12",
    "docs/Cafe\u0301.md",
    "docs/100%25.md",
    "docs/'quoted'.md",
    "docs/\udcff.md",
    "notes/docs/readme.md",
    "notes/readme.md",
    "docs/readme.md",
]
PLACES = Places({"docs": Path("/data/docs"), "notes": Path("/data/notes")}, Path("/data/docs"))


@pytest.mark.parametrize(
    ("asked", "key", "line"),
    [
        ("docs/readme.md", "docs/readme.md", None),
        ("readme.md", "docs/readme.md", None),
        ("qmd://docs/readme.md", "docs/readme.md", None),
        ("qmd://docs%2Fmeetings%2Fmeeting-2024-01.md", "docs/meetings/meeting-2024-01.md", None),
        ("docs/readme.md:3", "docs/readme.md", 3),
        ("qmd://docs/readme.md:3", "docs/readme.md", 3),
        ("meetings/meeting-2024-01.md", "docs/meetings/meeting-2024-01.md", None),
        ("meeting-2024-02.md", "docs/meetings/meeting-2024-02.md", None),
        ("qmd://meeting-2024-02.md", "docs/meetings/meeting-2024-02.md", None),
        ("qmd://other/meeting-2024-02.md:7", "docs/meetings/meeting-2024-02.md", 7),
        ("qmd://docs/meeting-2024-02.md", "docs/meetings/meeting-2024-02.md", None),
        ("2024-02.md", "docs/meetings/meeting-2024-02.md", None),
        ("./readme.md", "docs/readme.md", None),
        ("/docs/readme.md", "docs/readme.md", None),
        ("docs//x/../readme.md", "docs/readme.md", None),
        ("docs\\meetings\\meeting-2024-01.md", "docs/meetings/meeting-2024-01.md", None),
        (' "docs/readme.md"\n', "docs/readme.md", None),
        ("`readme.md:5`", "docs/readme.md", 5),
        ("/data/notes/plan.md", "notes/plan.md", None),
        ("/data/docs/../notes/plan.md:2", "notes/plan.md", 2),
        ("../notes/plan.md", "notes/plan.md", None),
        ("Meetings/Meeting 2024_01.md", "docs/meetings/meeting-2024-01.md", None),
    ],
)
def test_a_document_is_found(asked, key, line):
    assert find(KEYS, asked, PLACES) == Found(key, line)


@pytest.mark.parametrize(
    "asked",
    ["nope.md", "readm.md", "docs/readm.md", "qmd://docs/nope.md", "qmd://", "", ".", "/", ".."]
    + ["docs", "../readme.md", "docs/../../readme.md", "../../data/docs/readme.md"]
    + ["qmd://../docs/readme.md", ".md", "md", "md:3", ":3", "#000000", "\0", "readme.md\0"]
    + ["/etc/passwd", "~nobody/x", "~\0/x", "---.md"]
    + ["eadme", "x" * 10_000, "../" * 2_000, "readme.md" + ":1" * 4_000, "\udcff", "%" * 4_000],
)  # fmt: skip
def test_what_means_no_document(asked):
    assert find(KEYS, asked) is None


@pytest.mark.parametrize(
    ("asked", "key", "line"),
    [
        ("readme.md", "notes/readme.md", None),
        ("docs/readme.md", "docs/readme.md", None),
        ("docs/a:12", "docs/a:12", None),
        ("a:12", "docs/a:12", None),
        ("a:13", "docs/a", 13),
        ("a:12.md", "docs/a:12.md", None),
        ("meeting-notes/q1-2024.md", "docs/Meeting Notes/Q1 (2024).md", None),
        ("docs/meeting-notes/q1-2024.md:4", "docs/Meeting Notes/Q1 (2024).md", 4),
        ("q1-2024.md", "docs/Meeting Notes/Q1 (2024).md", None),
        ("Caf\u00e9.md", "docs/Cafe\u0301.md", None),
        ("'quoted'.md", "docs/'quoted'.md", None),
        ("docs/100%25.md", "docs/100%25.md", None),
        (uri_of("docs/100%25.md"), "docs/100%25.md", None),
        ("qmd://docs/100%25.md", "docs/100%25.md", None),
    ],
)
def test_what_is_nearer_to_the_letter_wins(asked, key, line):
    found = find(ODD, asked)
    assert (found.key, found.line) == (key, line)


@pytest.mark.parametrize(
    ("asked", "others"),
    [
        ("readme.md", ("b/readme.md", "c/readme.md")),
        ("readme.md:3", ("b/readme.md", "c/readme.md")),
        ("a/readme.md", ()),
        ("deep/readme.md", ()),
        ("eadme.md", ("b/readme.md", "c/readme.md", "c/deep/readme.md")),
    ],
)
def test_what_else_a_name_means_is_known(asked, others):
    keys = ["a/readme.md", "b/readme.md", "c/readme.md", "c/deep/readme.md"]
    assert find(keys, asked).others == others


@given(st.sampled_from(ODD + KEYS), st.integers(1, 99))
def test_every_document_is_found_by_all_its_names(key, line):
    keys = list(dict.fromkeys(ODD + KEYS))
    path = key.partition("/")[2]
    assert find(keys, key) == find(keys, uri_of(key)) == Found(key)
    found = find(keys, f"{key}:{line}")
    assert found == Found(key, line) or f"{key}:{line}" in keys
    assert find([key], path) == find([key], slug_of(key)) == Found(key)


@given(st.text("ab/.:#-'\\%~ éA\0", max_size=30))
def test_no_name_leads_elsewhere(asked):
    for places in (None, PLACES):
        found = find(ODD, asked, places)
        assert found is None or found.key in ODD


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("docs/Meeting Notes/Q1 (2024).md", "docs/meeting-notes/q1-2024.md"),
        ("A_B--c  d.MD", "a-b-c-d.md"),
        ("(draft)/[x]!.md", "draft/x.md"),
        ("Über/Ключ.md", "über/ключ.md"),
        ("no suffix", "no-suffix"),
        ("a.b.c.txt", "a-b-c.txt"),
        ("!!!/a.md", "a.md"),
        ("...", ""),
    ],
)
def test_the_name_that_was_once_told(path, slug):
    assert slug_of(path) == slug


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("readm.md", ["readme.md", "api.md", "plan.md"]),
        ("nope.md", ["api.md", "plan.md", "readme.md"]),
        ("docs/readm.md", []),
        ("nothing-like-this-at-all.md", []),
        ("qmd://docs/readm.md", ["readme.md", "api.md", "plan.md"]),
        ("README.md:3", ["readme.md", "api.md", "plan.md"]),
        ("meeting-2024-03.md", MEETINGS),
        ("meetings/meeting-2024-1.md", MEETINGS),
        ("qq", []),
        ("", []),
        ("x" * 10_000, []),
    ],
)  # fmt: skip
def test_what_is_like_a_name_is_told(asked, expected):
    assert similar(KEYS, asked) == expected


def test_no_name_is_told_twice_and_no_more_than_wanted():
    keys = [f"{name}/readme.md" for name in "abc"] + [f"a/readme{n}.md" for n in range(9)]
    assert similar(keys, "readme.md") == ["readme.md", "readme0.md", "readme1.md"]
    assert similar(keys, "readme.md", 1) == ["readme.md"]
    assert similar([], "readme.md") == []


@pytest.mark.parametrize(
    "asked",
    ["notes-09999.md", "area-49/x/notes-09999.md", "nothing at all", "x" * 4_000, "-" * 4_000]
    + ["a/" * 2_000, "é" * 4_000, "qmd://docs/notes-09998.md:3", ":" * 4_000, "notes.md"],
)
def test_ten_thousand_documents_keep_nobody_waiting(asked):
    keys = [f"docs/area-{n % 50}/topic {n % 500}/Meeting Notes-{n:05}.md" for n in range(10_000)]
    start = time.thread_time()
    find(keys, asked)
    similar(keys, asked)
    assert time.thread_time() - start < 0.5  # most take 0.01
