"""What is said of documents reaches those it is about, and what nothing is said of is told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.configuration import Collection, Configuration
from vector_index_mcp.documents.contexts import (
    Context,
    Lacking,
    Target,
    context_of,
    lacking,
    listed,
    normalized,
    path_of,
    target_of,
)
from vector_index_mcp.documents.places import Places
from vector_index_mcp.errors import SettingsError

DOCS = Collection("docs", Path("/data/docs"), contexts={"/meetings": "Meeting notes"})
NOTES = Collection("notes", Path("/data/notes"))
BOTH = Configuration((DOCS, NOTES), "Global ctx")
KEYS = [
    "docs/api.md",
    "docs/external-podcast/2023-april-interview.md",
    "docs/meetings/meeting-2024-01.md",
    "docs/meetings/meeting-2024-02.md",
    "docs/readme.md",
    "notes/plan.md",
]


def said(contexts, key, overall=""):
    return context_of(
        Configuration((Collection("c", Path("/c"), contexts=contexts),), overall), key
    )


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("docs/readme.md", "Global ctx"),
        ("docs/meetings/meeting-2024-01.md", "Global ctx\n\nMeeting notes"),
        ("docs/meetings2/a.md", "Global ctx"),
        ("docs/meetings.md", "Global ctx"),
        ("notes/meetings/a.md", "Global ctx"),
        ("gone/meetings/a.md", "Global ctx"),
    ],
)
def test_a_document_has_the_contexts_of_its_folders(key, expected):
    assert context_of(BOTH, key) == expected


@pytest.mark.parametrize("prefix", ["a/b", "/a/b", "a/b/", "//a//b", "./a/./b", "/a/x/../b"])
def test_a_prefix_may_be_written_in_many_ways(prefix):
    assert said({prefix: "x"}, "c/a/b/d.md") == "x"
    assert said({prefix: "x"}, "c/a/bc.md") == ""


@pytest.mark.parametrize("prefix", ["", "/", ".", "./"])
def test_an_empty_prefix_is_about_the_whole_collection(prefix):
    assert said({prefix: "x"}, "c/a.md") == "x"


def test_the_most_general_comes_first():
    contexts = {"a/b/c.md": "file", "a": "top", "/": "all", "a/b": "below", "b": "other", "a/x": ""}
    assert said(contexts, "c/a/b/c.md", "global") == "global\n\nall\n\ntop\n\nbelow\n\nfile"


def test_accents_may_be_put_together_in_two_ways():
    assert said({"Cafe\u0301": "x"}, "c/Caf\u00e9/a.md") == "x"
    assert said({"Caf\u00e9": "x"}, "c/Cafe\u0301/a.md") == "x"


@given(st.text("ab/.", max_size=12), st.text("ab/.", max_size=12))
def test_what_leads_out_of_the_collection_stays_in_it(prefix, path):
    assert ".." not in normalized(f"../{prefix}").split("/")
    assert normalized(normalized(prefix)) == normalized(prefix)
    if normalized(path):
        assert said({normalized(path): "x"}, f"c/{normalized(path)}/more") == "x"


def test_contexts_are_listed_as_they_are_written():
    assert listed(BOTH) == [
        Context("", "/", "Global ctx"),
        Context("docs", "meetings", "Meeting notes"),
    ]
    whole = Configuration((Collection("c", Path("/c"), contexts={"/": "all"}),))
    assert listed(whole) == [Context("c", "/", "all")]
    assert listed(Configuration()) == []


@pytest.mark.parametrize("name", ["*", "docs", "a b", "50%25"])
@pytest.mark.parametrize("folder", ["/data/own", "/data/shared"])
@pytest.mark.parametrize("prefix", ["", "a b", "a%20b"])
def test_the_path_of_a_context_leads_to_it_and_to_no_other(name, folder, prefix):
    shared = Collection("shared", Path("/data/shared"), contexts={"/": "theirs"})
    own = Collection(name, Path(folder), contexts={prefix: "own"})
    configuration = Configuration((shared, own), "Global ctx")
    paths = [path_of(each, configuration) for each in listed(configuration)]
    targets = [target_of(path, configuration) for path in paths]
    assert targets == [Target(""), Target("shared"), Target(name, prefix)]


def test_what_lacks_a_context_is_told():
    assert lacking(BOTH, KEYS) == Lacking((("notes", 1),), (("docs", ("external-podcast",)),))


@pytest.mark.parametrize(
    ("contexts", "folders"),
    [
        ({"a": "x"}, ("b", "c")),
        ({"a/deep": "x"}, ("b", "c")),
        ({"a": "x", "/b/": "x", "c": "x"}, ()),
        ({"/": "x"}, ()),
        ({"a": "", "b": "x"}, ("a", "c")),
    ],
)
def test_a_folder_is_lacking_if_nothing_in_it_is_described(contexts, folders):
    configuration = Configuration((Collection("d", Path("/d"), contexts=contexts),))
    found = lacking(configuration, ["d/c/x.md", "d/b/x.md", "d/a/y/x.md", "d/top.md", "e/f/x.md"])
    assert found == Lacking((), (("d", folders),) if folders else ())


def test_an_empty_context_says_nothing():
    configuration = Configuration((Collection("d", Path("/d"), contexts={"/": ""}),))
    assert lacking(configuration, []) == Lacking((("d", 0),), ())


@pytest.mark.parametrize(
    ("written", "here", "expected"),
    [
        ("/", None, Target("")),
        ("qmd://docs/", None, Target("docs")),
        ("qmd://docs", None, Target("docs")),
        ("qmd://docs/a/b/", None, Target("docs", "a/b")),
        ("qmd://docs/a%20b", None, Target("docs", "a b")),
        ('"qmd://docs/a"', None, Target("docs", "a")),
        ("/data/docs", None, Target("docs")),
        ("/data/docs/a", None, Target("docs", "a")),
        ("/data/docs/../notes/a", None, Target("notes", "a")),
        ("docs", None, Target("docs")),
        ("docs/a", None, Target("docs", "a")),
        ("/docs/a", None, Target("docs", "a")),
        (".", "/data/docs", Target("docs")),
        (".", "/data/docs/a", Target("docs", "a")),
        ("b", "/data/docs/a", Target("docs", "a/b")),
        ("..", "/data/docs/a", Target("docs")),
        ("../notes", "/data/docs", Target("notes")),
        ("docs", "/data", Target("docs")),
        ("docs/a", "/elsewhere", Target("docs", "a")),
        ("/sub", "/data/docs/a", Target("docs", "sub")),
        ("docs", "/data/docs", Target("docs", "docs")),
    ],
)
def test_a_context_is_about_what_somebody_names(written, here, expected):
    assert target_of(written, BOTH, Path(here) if here else None) == expected


@pytest.mark.parametrize(
    ("written", "here"),
    [("", None), ("''", "/data/docs"), (".", None), (".", "/data"), ("../x", "/data/docs")]
    + [("/etc", None), ("/etc", "/elsewhere"), ("~/x", None), ("~nobody-at-all/x", "/data")]
    + [("qmd://docs/../notes", None), ("docs/../../etc", None), ("/data/docs2", None)]
    + [("x" * 9_999, None)],
)  # fmt: skip
def test_what_is_in_no_collection_is_refused(written, here):
    with pytest.raises(SettingsError, match="is in no collection; name") as refused:
        target_of(written, BOTH, Path(here) if here else None)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("written", ["qmd://nope/x", "qmd://", "qmd:///docs2"])
def test_a_collection_that_is_not_there_is_told(written):
    with pytest.raises(SettingsError, match=r"^Collection not found: (nope|docs2)?\n"):
        target_of(written, BOTH)


def test_of_collections_in_each_other_the_innermost_counts():
    places = Places({"outer": Path("/a"), "inner": Path("/a/b"), "other": Path("/a/bc")})
    assert places.key_at("/a/b/c.md") == "inner/c.md"
    assert places.key_at("/a/c/../b") == "inner"
    assert places.key_at("/a/bcd/x") == "outer/bcd/x"
    assert places.key_at("/") == places.key_at("") == places.key_at("b/c.md") == ""


def test_a_home_folder_is_known(monkeypatch):
    monkeypatch.setenv("HOME", "/data")
    assert target_of("~/docs/a", BOTH) == Target("docs", "a")
