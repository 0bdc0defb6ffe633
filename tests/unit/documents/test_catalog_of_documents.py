"""What documents link to is found by their names, and what links to them with it."""

import time
from datetime import UTC, datetime

import pytest

from vector_index_mcp.documents.catalog import (
    Entry,
    LinkMap,
    Links,
    entries_of,
    entry_at,
    keys_of,
    keys_with_hash,
)
from vector_index_mcp.documents.conditions import date_of
from vector_index_mcp.engine.prose import Properties
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.reasons import INDEXED, SKIPPED


def record(key, *, content_hash="", state=INDEXED, stamp=(1, 2, 3), properties=None):
    details = properties.dumped() if properties else ""
    return FileRecord(key, stamp, content_hash, 1, state, "", details=details)


def entry(key, *links, title="", aliases=()):
    properties = Properties(title or f"title of {key}", aliases=aliases, links=links)
    return Entry(record(key), properties)


def out_of(link, *others, key="a/notes/from.md"):
    """What one link leads to."""
    return LinkMap([entry(key, link), *others]).of(key).out


@pytest.mark.parametrize(
    ("link", "key"),
    [
        ("other.md", "a/notes/other.md"),
        ("./other.md", "a/notes/other.md"),
        ("other", "a/notes/other.md"),
        ("../top.md", "a/top.md"),
        ("../x/./../top.md", "a/top.md"),
        ("/top.md", "a/top.md"),
        ("top.md", "a/top.md"),  # else from the collection
        ("sub", "a/notes/sub/index.md"),
        ("../pack/", "a/pack/README.md"),
        ("two  spaces.md", "a/notes/two  spaces.md"),
    ],
)
def test_a_path_counts_from_its_folder_else_from_its_collection(link, key):
    assert out_of(link, entry(key), entry("b/top.md"), entry("b/notes/other.md")) == (key,)


def test_the_folder_of_a_document_comes_first():
    both = entry("a/same.md"), entry("a/notes/same.md")
    assert out_of("same.md", *both) == ("a/notes/same.md",)
    assert out_of("/same.md", *both) == ("a/same.md",)


@pytest.mark.parametrize(
    "link", ["../../../x.md", "..", "/", ".", "missing.md", "[[", "[[/", "x\0y"]
)
def test_what_leads_nowhere_is_no_link(link):
    assert out_of(link, entry("x.md")) == ()


@pytest.mark.parametrize(
    "name",
    [
        *("Deep Thought", "deep thought", "DEEP THOUGHT.md", "sub/deep thought"),
        *("Its Title", "An Alias", " its title ", "Node.js"),
    ],
)
def test_a_wiki_link_names_path_file_title_or_alias_in_any_case(name):
    target = entry("a/sub/Deep Thought.md", title="Its Title", aliases=("An Alias", "Node.js"))
    assert out_of(f"[[{name}", target) == (target.key,)


def test_the_dot_in_the_name_of_a_file_is_part_of_it():
    assert out_of("[[v1.2 notes", entry("a/v1.md"), entry("a/v1.2 notes.md")) == (
        "a/v1.2 notes.md",
    )


def test_an_ambiguous_name_means_the_nearest_whatever_their_order():
    others = [
        entry("a/1.md", aliases=("name",)),
        entry("a/2.md", title="Name"),
        entry("a/z/name.md"),
        entry("a/y/name.md"),
        entry("a/name.md"),
        entry("0/name.md"),
    ]
    expected = ["a/name.md", "a/y/name.md", "a/z/name.md", "a/2.md", "a/1.md", "0/name.md"]
    while others:
        assert out_of("[[name", *others) == out_of("[[name", *reversed(others)) == (expected[0],)
        others = [other for other in others if other.key != expected[0]]
        expected.pop(0)


def test_back_are_those_that_link_to_it_once_each_and_not_itself():
    circle = [
        entry("a/1.md", "2.md", "1.md", "[[2", "./2.md"),
        entry("a/2.md", "3.md", "[[1"),
        entry("a/3.md", "1.md", "2.md"),
        entry("b/4.md", "[[title of a/2.md"),
    ]
    links = LinkMap(circle)
    assert links.of("a/1.md") == Links(("a/2.md",), ("a/2.md", "a/3.md"))
    assert links.of("a/2.md") == Links(("a/3.md", "a/1.md"), ("a/1.md", "a/3.md", "b/4.md"))


def test_a_document_that_there_is_not_has_no_links():
    assert LinkMap([entry("a/1.md", "gone.md")]).of("a/gone.md") == Links((), ())


@pytest.mark.slow
@pytest.mark.parametrize("link", ["[[same title", "../0/5.md", "[[17"])
def test_the_links_of_ten_thousand_documents_take_no_time(link):
    entries = [
        entry(f"a/{n % 100}/{n}.md", link, *(f"{n + i}.md" for i in range(9)), title="Same title")
        for n in range(10_000)
    ]
    began = time.process_time()
    LinkMap(entries).of("a/5/5.md")
    assert time.process_time() - began < 3  # 0.5 here


def test_what_is_indexed_is_a_document_and_nothing_else():
    ledger = Ledger()
    for key, state in (("b/2.md", INDEXED), ("b/1.md", INDEXED), ("b/3.md", SKIPPED)):
        ledger.put(record(key, state=state), 0)
    ledger.put(record("a/1.md", content_hash="abcdef12"), 0)
    for key, end in (("c/1.md", "34"), ("c/2.md", "12"), ("c/3.md", "34")):
        ledger.put(record(key, content_hash=f"abcdef{end}"), 0)
    assert keys_of(ledger)[:3] == ["a/1.md", "b/1.md", "b/2.md"]
    assert keys_of(ledger, "b") == ["b/1.md", "b/2.md"]
    assert [found.key for found in entries_of(ledger, "b")] == ["b/1.md", "b/2.md"]
    assert entry_at(ledger, "b/3.md") is None
    assert entry_at(ledger, "b/4.md") is None
    assert keys_with_hash(ledger, "abcdef") == ("a/1.md", "c/1.md")
    assert keys_with_hash(ledger, "abcdef3") == ("c/1.md",)
    assert keys_with_hash(ledger, "bbcdef") == ()


def test_an_entry_is_what_its_record_says():
    ledger = Ledger()
    properties = Properties("A title", tags=("t",), links=("x.md",))
    ledger.put(
        record(
            "a/b c/d.md", content_hash="0123456789", stamp=(7, 2 * 10**9, 3), properties=properties
        ),
        0,
    )
    found = entry_at(ledger, "a/b c/d.md")
    assert (found.collection, found.path) == ("a", "b c/d.md")
    assert (found.docid, found.uri) == ("#012345", "qmd://a/b%20c/d.md")
    assert (found.title, found.size, found.modified) == ("A title", 7, 2.0)
    assert found.properties == properties


@pytest.mark.parametrize(
    ("seconds", "day"), [(0, "1970-01-01"), (-1, "1969-12-31"), (-8_000_000_000, "1716-06-28")]
)
def test_a_file_of_before_1970_has_its_own_date(seconds, day):
    found = Entry(record("a/b.md", stamp=(7, seconds * 10**9, 5)), Properties("b"))
    assert found.modified == seconds
    assert date_of(found) == day


@pytest.mark.parametrize("stamp", [(-1, -1, -1), (0, 0, 0)])
def test_a_file_that_was_just_written_is_of_now_and_has_no_size_yet(stamp):
    before = time.time()
    found = Entry(record("a/b.md", stamp=stamp), Properties("b"))
    assert found.size == 0
    assert before <= found.modified <= time.time()
    days = {datetime.fromtimestamp(at, UTC).date().isoformat() for at in (before, time.time())}
    assert date_of(found) in days
