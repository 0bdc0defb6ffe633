"""What the documents' command line prints. The recorded texts are in the end-to-end tests."""

import csv
import json
import time
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import pytest

from vector_index_mcp.console.colours import ON_TERMINAL
from vector_index_mcp.console.documents import formats, reports
from vector_index_mcp.console.documents.formats import Document, Hit, of_documents, of_hits

HIT = Hit(
    docid="#306409",
    key="notes/plan.md",
    title="Plan",
    score=0.7062,
    context="Global ctx",
    line=3,
    has_words=True,
    header="@@ -2,2 @@ (1 before, 2 after)",
    start=2,
    lines=("", "The budget"),
)
HOSTILE = replace(
    HIT,
    key="notes/\x1b]0;x\x07\u202e.md",
    title='"<b>\x1b[2J',
    context='a "b", <c> & \x9b',
    lines=("\x1b[31m<d>", "tab\there"),
)
DOCUMENT = Document("qmd://docs/a.md", "A", "Global ctx", "one\ntwo")
SKIPPED = replace(
    DOCUMENT, body="", skipped="[SKIPPED: File too large (23KB > 10KB). Use 'qmd get a' to do so.]"
)


@pytest.mark.parametrize("kind", ["cli", "csv", "md", "xml", "files"])
def test_nothing_that_a_terminal_obeys_is_printed(kind):
    shown = of_hits([HOSTILE], kind) + of_documents(
        [Document(HOSTILE.file, HOSTILE.title, HOSTILE.context, "\x1b[31m")], kind
    )
    assert not set(shown) & set("\x1b\x07\x9b\u202e")
    assert "\\x1b" in shown


def test_json_is_as_the_texts_are():
    [found] = json.loads(of_hits([HOSTILE], "json"))
    assert (found["title"], found["score"]) == (HOSTILE.title, 0.71)
    assert found["snippet"] == f"{HIT.header}\n\x1b[31m<d>\ntab\there"
    assert of_hits([HOSTILE], "json").isprintable() is False  # lines, and nothing a terminal obeys
    assert "\x1b" not in of_hits([HOSTILE], "json")


def test_a_name_that_is_no_text_can_be_written():
    of_hits([replace(HIT, key="notes/\udcff.md")], "json").encode()


def test_csv_and_xml_are_read_back():
    rows = [*csv.reader(StringIO(of_hits([HOSTILE], "csv")))]
    assert rows[1][0] == "#306409"
    assert (len(rows), rows[1][4]) == (2, 'a "b", <c> & \\x9b')
    element = ElementTree.fromstring(of_hits([HOSTILE], "xml"))
    assert element.get("context") == 'a "b", <c> & \\x9b'


@pytest.mark.parametrize("kind", ["csv", "md", "xml", "json"])
def test_a_whole_document_takes_the_place_of_the_snippet(kind):
    shown = of_hits([replace(HIT, body="first\nlast")], kind, is_numbered=True)
    assert "1: first" in shown
    assert HIT.header not in shown


def test_a_line_is_named_only_if_it_has_words_of_the_query():
    assert of_hits([HIT], "cli").startswith("qmd://notes/plan.md:3 #306409\n")
    without = of_hits([replace(HIT, has_words=False)], "cli")
    assert without.startswith("qmd://notes/plan.md #306409\n")


def test_what_lacks_a_context_has_no_empty_one():
    bare = replace(HIT, context="")
    assert "Context" not in of_hits([bare], "cli")
    assert "context" not in of_hits([bare], "xml")
    assert "**context:**" not in of_hits([bare], "md")
    assert "context" not in json.loads(of_hits([bare], "json"))[0]
    assert of_hits([bare], "files") == "#306409,0.71,qmd://notes/plan.md\n"


def test_a_terminal_has_colours():
    shown = of_hits([HIT], "cli", colours=ON_TERMINAL)
    assert "\x1b[36mqmd://notes/plan.md\x1b[2m:3\x1b[0m" in shown
    assert "\x1b[32m 71%\x1b[0m" in shown


def test_several_documents_in_each_format():
    both = [DOCUMENT, SKIPPED]
    assert of_documents(both, "files") == (
        'qmd://docs/a.md,"Global ctx"\nqmd://docs/a.md,"Global ctx",[SKIPPED]\n'
    )
    rows = [*csv.reader(StringIO(of_documents(both, "csv")))]
    assert rows[0] == ["file", "title", "context", "skipped", "body"]
    assert [row[3:] for row in rows[1:]] == [["false", "one\ntwo"], ["true", SKIPPED.reason]]
    values = json.loads(of_documents(both, "json"))
    assert values[1]["skipped"] is True
    assert values[1]["reason"].startswith("File too large")
    assert "```\none\ntwo\n```\n" in of_documents(both, "md")
    assert f"> {SKIPPED.reason}\n" in of_documents(both, "md")
    tree = ElementTree.fromstring(of_documents(both, "xml").encode())
    assert [each.findtext("skipped") for each in tree] == [None, "true"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (24_052, "23.5 KB"),
        (5 * 2**20, "5.0 MB"),
        (3 * 2**30, "3.0 GB"),
    ],
)
def test_sizes_are_those_that_people_read(count, shown):
    assert reports.size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s ago"), (59, "59s ago"), (1_260, "21m ago"), (7_300, "2h ago"), (200_000, "2d ago")],
)
def test_times_are_told_by_their_largest_unit(seconds, shown):
    assert reports.ago(seconds) == shown


def test_an_old_date_has_its_year():
    moment = time.mktime((2024, 11, 3, 8, 5, 0, 0, 0, -1))
    assert reports.date(moment, moment + 60) == "Nov  3 08:05"
    assert reports.date(moment, moment + 366 * 86_400) == "Nov  3  2024"


def test_a_time_before_1970_has_its_date_on_every_system(monkeypatch):
    def as_on_windows(seconds):
        if seconds < 0:
            raise OSError(22, "Invalid argument")
        return localtime(seconds)

    localtime = time.localtime
    monkeypatch.setattr(reports.time, "localtime", as_on_windows)
    assert reports.date(-40 * 86_400.0, 0.0) == reports.date(325 * 86_400.0, 365 * 86_400.0)
    assert reports.date(-39.5 * 86_400, 1e9) == "Nov 22  1969"


@pytest.mark.parametrize(("days", "shown"), [(364, "364d ago"), (366, "1985-10-26")])
def test_what_is_older_than_a_year_has_its_date(days, shown):
    moment = time.mktime((1985, 10, 26, 12, 0, 0, 0, 0, -1))
    assert reports.since(moment, moment + days * 86_400) == shown
    of = {"name": "npm", "pattern": "**/*.md", "documents": 1, "updated": moment}
    assert f"Updated:  {shown}\n" in reports.of_collections([of], moment + days * 86_400)


def test_names_and_contexts_of_others_are_visible_in_reports():
    collection = {
        "name": "a\x1b",
        "path": "/\x1b",
        "pattern": "\x1b",
        "documents": 1,
        "updated": 0.0,
        "problem": "\x1b",
        "contexts": [["\x1b", "\x1b" * 80]],
    }
    state = {
        "index": "/\x1b",
        "size": 1,
        "skipped": {"\x1b": 12},
        "skipped_files": ["\x1b"],
        "failed": ["\x1b"],
        "operations": ["add \x1b"],
        "work": {"what": "Embedding", "done": 1, "total": 2},
        "documents": 1,
        "embedded": 0,
        "unembedded": 0,
        "problem": "\x1b",
        "collections": [collection],
    }
    counts = {"new": 0, "updated": 0, "unchanged": 0, "removed": 0, "pulled": "\x1b\nline"}
    shown = (
        reports.of_status(state, 1.0),
        reports.of_work(state),
        reports.of_collections([collection], 1.0),
        reports.of_names([collection]),
        reports.of_contexts([["a\x1b", "\x1b", "\x1b"]]),
        reports.of_lacking({"collections": [["\x1b", 1]], "folders": [["\x1b", ["\x1b"]]]}),
        reports.of_update({"collections": [collection | counts], "unembedded": 0}),
        formats.with_context("\x1b", "\x1b"),
    )
    assert "\x1b" not in "".join(shown)
    assert "    … 12 in all\n" in shown[0]


def test_nothing_at_all_is_said_in_words():
    state = {
        "index": "i",
        "size": 0,
        "skipped": {},
        "failed": [],
        "operations": [],
        "work": {},
        "documents": 0,
        "embedded": 0,
        "unembedded": 0,
        "problem": "",
        "collections": [],
    }
    assert "No collections." in reports.of_status(state, 0.0)
    assert reports.of_collections([], 0.0).startswith("No collections found.")
    assert reports.of_names([]).startswith("No collections found.")
    assert reports.of_contexts([]).startswith("No contexts configured.")
    assert "have context" in reports.of_lacking({"collections": [], "folders": []})
    assert reports.of_update({"collections": [], "unembedded": 0}).startswith("No collections")
    nothing = {"collection": "a", "folder": "b", "documents": []}
    assert reports.of_files(nothing, 0.0) == "No files found under qmd://a/b\n"
