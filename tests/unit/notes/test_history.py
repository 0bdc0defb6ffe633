"""What happened to the notes and when: moments as people write them, commits, states, diffs."""

import re
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import kept_by_hand
from processes import posix_only

from vector_index_mcp.errors import SettingsError, UnknownError
from vector_index_mcp.notes.past import comparing, history
from vector_index_mcp.notes.past.differences import unified
from vector_index_mcp.notes.past.moments import moment_of
from vector_index_mcp.notes.past.pieces import ALL, MAIN_TEXT, document, piece_of
from vector_index_mcp.notes.past.states import Past, state_now, state_then
from vector_index_mcp.notes.refusal import Refusal

NOW = datetime(2026, 11, 22, 23, 16)  # a Sunday


@pytest.fixture
def by_hand(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        yield kept


def index(**folders):
    return '{"projects": {' + ", ".join(f'"{k}": "{v}"' for k, v in folders.items()) + "}}"


def whats(found):
    return [entry.what for entry in found]


# -- moments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("now", "2026-11-22 23:16:00"),
        ("today", "2026-11-22 23:59:59"),
        ("yesterday", "2026-11-21 23:59:59"),
        ("Yesterday 14:00", "2026-11-21 14:00:59"),
        ("yesterday noon", "2026-11-21 12:00:00"),
        ("2pm yesterday", "2026-11-21 14:00:00"),
        ("tuesday", "2026-11-17 23:59:59"),
        ("Tue", "2026-11-17 23:59:59"),
        ("last tuesday", "2026-11-17 23:59:59"),
        ("on tuesday at 14:00", "2026-11-17 14:00:59"),
        ("sunday", "2026-11-15 23:59:59"),
        ("3 days ago", "2026-11-19 23:59:59"),
        ("3.days.ago", "2026-11-19 23:59:59"),
        ("a week ago", "2026-11-15 23:59:59"),
        ("two weeks ago", "2026-11-08 23:59:59"),
        ("last month", "2026-10-22 23:59:59"),
        ("9 months ago", "2026-02-22 23:59:59"),
        ("a year ago", "2025-11-22 23:59:59"),
        ("2 hours ago", "2026-11-22 21:16:00"),
        ("an hour ago", "2026-11-22 22:16:00"),
        ("90 minutes ago", "2026-11-22 21:46:00"),
        ("2026-11-17", "2026-11-17 23:59:59"),
        ("2026-11-7", "2026-11-07 23:59:59"),
        ("20261117", "2026-11-17 23:59:59"),
        ("2026/11/17", "2026-11-17 23:59:59"),
        ("17.11.2026", "2026-11-17 23:59:59"),
        ("2026-11-17 14:00", "2026-11-17 14:00:59"),
        ("2026-11-17T14:00:30", "2026-11-17 14:00:30"),
        ("17 November 2026", "2026-11-17 23:59:59"),
        ("nov 17", "2026-11-17 23:59:59"),
        ("Tuesday, Nov 17", "2026-11-17 23:59:59"),
        ("Nov. 17, 2025 9am", "2025-11-17 09:00:00"),
        ("12am nov 17", "2026-11-17 00:00:00"),
        ("nov 30", "2025-11-30 23:59:59"),
        ("22:00", "2026-11-22 22:00:59"),
        ("23:16", "2026-11-22 23:16:59"),
        ("23:30", "2026-11-21 23:30:59"),
    ],
)
def test_what_people_write_is_the_moment_they_mean(words, expected):
    assert datetime.fromtimestamp(moment_of(words, NOW)) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "words",
    [
        "2026-11-17T14:00:00Z",
        "2026-11-17 14:00:00 UTC",
        "2026-11-17 15:00:00 +0100",
        "2026-11-17T15:00:00.5+01:00",
        "2026-11-17 08:30:00 -05:30",
        "Tue Nov 17 15:00:00 2026 +0100",
    ],
)
def test_a_zone_counts_wherever_we_are(words):
    assert moment_of(words, NOW) == 1_794_924_000


@posix_only
@pytest.mark.parametrize("now", ["2026-03-29T01:30Z", "2026-10-25T01:30Z", "2026-10-25T00:30Z"])
def test_an_hour_is_an_hour_around_the_change_of_summer_time(monkeypatch, now):
    seconds = datetime.fromisoformat(now).timestamp()
    monkeypatch.setenv("TZ", "Europe/Berlin")
    try:
        time.tzset()
        here = datetime.fromtimestamp(seconds)
        words = ("now", "10 minutes ago", "an hour ago", "3 hours ago")
        passed = [seconds - moment_of(each, here) for each in words]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert passed == [0, 600, 3_600, 10_800]


def test_a_month_ends_where_it_ends():
    march = datetime(2026, 3, 31, 12)
    found = datetime.fromtimestamp(moment_of("a month ago", march))
    assert (found.month, found.day) == (2, 28)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-22", "2024-02-29"),
        ("2024-01-31", "2020-02-29"),
        ("2024-02-29", "2024-02-29"),
        ("1903-01-01", "1896-02-29"),
    ],
)
def test_a_leap_day_is_the_last_one(now, expected):
    found = datetime.fromtimestamp(moment_of("29 feb", datetime.fromisoformat(now)))
    assert found.date() == datetime.fromisoformat(expected).date()


@pytest.mark.parametrize(
    "words",
    [
        "", " ", "foo", "soon", "3", "17", "2026", "2026-11", "2026-13-01", "2026-02-30",
        "30.02.2026", "17/11/2026", "foo 3", "3 apples ago", "some days ago", "-3 days ago",
        "tuesdays 9", "before nov 17", "not nov 17", "since nov 17 2025",
        "25:00", "tuesday 25:00", "13pm", "yesterday tomorrow", "decade", "nov", "feb 30",
        "999999 years ago", "9999999999 days ago", "--all", "$(date)", "x" * 10_000,
        "1763000000", "tea", "never",
    ],
)  # fmt: skip
def test_nonsense_is_refused_and_not_taken_for_now(words):
    with pytest.raises(SettingsError, match="cannot be understood as a moment"):
        moment_of(words, NOW)


# -- commits at moments ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_commit_at_a_moment_is_the_last_one_until_then(by_hand):
    morning = by_hand.commit({"a.md": "1"}, at="2026-11-17 10:00")
    evening = by_hand.commit({"a.md": "2"}, at="2026-11-17 18:00")
    later = by_hand.commit({"a.md": "3"}, at="2026-11-18 09:00")

    def at(when):
        return history.commit_at(by_hand.store, later, "p", when)

    assert at("2026-11-17") == evening  # a day means its end
    assert at("2026-11-17 12:00") == morning
    assert at("2026-11-17 18:00") == evening
    assert at("now") == later
    assert at("2026-11-16") == ""


def test_before_1970_there_was_no_commit(by_hand):
    head = by_hand.commit({"a.md": "1"})
    assert history.commit_at(by_hand.store, head, "p", "1950-01-01") == ""
    with pytest.raises(UnknownError, match="no notes yet at '1950-01-01'"):
        history.past_commit(by_hand.store, head, "p", "1950-01-01")


def test_a_commit_is_named_as_log_shows_it_or_from_the_last(by_hand):
    first = by_hand.commit({"a.md": "1"})
    last = by_hand.commit({"a.md": "2"})
    for when in (first, first[:10], first[:5], "HEAD~1", "HEAD^"):
        assert history.commit_at(by_hand.store, last, "p", when) == first
    assert history.commit_at(by_hand.store, last, "p", "HEAD") == last
    with pytest.raises(SettingsError, match="before the first"):
        history.commit_at(by_hand.store, last, "p", "HEAD~2")
    with pytest.raises(SettingsError, match="cannot be understood as a moment"):
        history.commit_at(by_hand.store, last, "p", "deadbeef")


def test_the_branch_that_is_checked_out_counts_whatever_its_name(by_hand):
    first = by_hand.commit({"a.md": "1"})
    by_hand.person("branch", "-m", "trunk")
    last = by_hand.commit({"a.md": "2"})
    assert history.head_of(by_hand.store) == last
    assert history.commit_at(by_hand.store, last, "p", "HEAD~1") == first


def test_what_came_by_a_merge_was_not_there_before_it(by_hand):
    by_hand.commit({"a.md": "1"}, at="2026-11-15 12:00")
    by_hand.person("checkout", "--quiet", "-b", "theirs")
    by_hand.commit({"b.md": "2"}, at="2026-11-17 12:00")
    by_hand.person("checkout", "--quiet", "main")
    ours = by_hand.commit({"a.md": "3"}, at="2026-11-16 12:00")
    by_hand.person("merge", "--quiet", "--no-edit", "theirs", at="2026-11-18 12:00")
    assert history.commit_at(by_hand.store, by_hand.head, "p", "2026-11-17") == ours


def test_a_moment_before_the_first_commit_is_refused_with_where_to_look(by_hand):
    head = by_hand.commit({"a.md": "1"})
    with pytest.raises(UnknownError, match="no notes yet at '2026-01-01'.* notes log"):
        history.past_commit(by_hand.store, head, "p", "2026-01-01")
    with pytest.raises(UnknownError, match="no history yet"):
        history.past_commit(by_hand.store, "", "p", "now")


# -- entries ---------------------------------------------------------------------------------


def test_each_commit_is_told_newest_first(by_hand):
    first = by_hand.commit({"a.md": "1"}, at="2026-11-17 10:00", name="Bob", message="One\n\nmore")
    last = by_hand.commit({"b.md": "2"}, at="2026-11-18 10:00", message="Two")
    newest, oldest = history.entries(by_hand.store, last)
    assert (newest.commit, newest.parent, newest.who, newest.what) == (last, first, "Ann", "Two")
    assert (oldest.commit, oldest.parent, oldest.who, oldest.what) == (first, "", "Bob", "One")
    assert datetime.fromtimestamp(oldest.when) == datetime(2026, 11, 17, 10)
    assert whats(history.entries(by_hand.store, last, most=1)) == ["Two"]


@pytest.mark.slow
def test_a_document_is_known_by_its_name_to_the_letter(by_hand):
    names = ["-n.md", ":(glob)*.md", "*.md", "a.md", "b\nc.md"]
    for name in names:
        by_hand.commit({f"projects/p/knowledge/{name}": "x"}, message=repr(name))
    for name in names:
        found = history.entries_of(by_hand.store, by_hand.head, "p", document(name))
        assert whats(found) == [repr(name)]


@pytest.mark.slow
def test_a_deleted_document_and_a_deleted_project_have_a_history(kept):
    kept.document("shop", "setup")
    kept.main("shop", "text")
    kept.call("delete_knowledge_file", project_id="shop", filename="setup.md")
    kept.call("delete_project", project_id="shop")
    told = [
        entry.what_of("shop")
        for entry in history.entries_of(kept.store, kept.head, "shop", piece_of(["setup"]))
    ]
    assert told == ["Deleted setup.md", "Created setup.md"]
    told = whats(history.entries_of(kept.store, kept.head, "shop", ALL))
    assert [what.rpartition(": ")[2] for what in told] == [
        "Deleted project", "Deleted setup.md", "Created main.md", "Created setup.md",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_to_do_list_has_a_history(kept):
    number = kept.todo("shop", "list", "task")
    kept.call("complete_todo_task", project_id="shop", todo_number=number, task_number=1)
    kept.todo("shop", "another")
    found = history.entries_of(kept.store, kept.head, "shop", piece_of(["todo", "1"]))
    assert [entry.what_of("shop") for entry in found] == [
        "Marked task #1 as completed in TODO #1", "Created TODO #1",
    ]  # fmt: skip


@pytest.mark.slow
def test_projects_that_had_the_same_folder_one_after_the_other_are_told_apart(kept):
    kept.main("a b", "first")
    kept.call("delete_project", project_id="a b")
    kept.main("A-B", "second")

    def told(project):
        found = history.entries_of(kept.store, kept.head, project, ALL)
        return [entry.what.removeprefix("Update knowledge for ") for entry in found]

    assert (kept.home / "projects/a-b").is_dir()
    assert told("a b") == ["a b: Deleted project", "a b: Created main.md"]
    assert told("A-B") == ["A-B: Created main.md"]
    assert told("a-b") == []


@pytest.mark.slow
def test_a_project_that_moved_to_another_folder_keeps_its_history(by_hand):
    by_hand.commit({"index.json": index(p="old"), "projects/old/main.md": "1"}, message="one")
    by_hand.commit(
        {"index.json": index(p="new"), "projects/new/main.md": "2"},
        ["projects/old/main.md"],
        at="2026-11-18 12:00",
        message="two",
    )
    by_hand.commit({"projects/new/main.md": "3"}, at="2026-11-19 12:00", message="three")
    found = history.entries_of(by_hand.store, by_hand.head, "p", MAIN_TEXT)
    assert whats(found) == ["three", "two", "one"]


@pytest.mark.slow
def test_a_clock_that_was_wrong_changes_no_order(by_hand):
    for at, what in [("2020-01-01", "one"), ("2035-01-01", "two"), ("2021-01-01", "three")]:
        by_hand.commit({"projects/p/main.md": what}, at=f"{at} 12:00", message=what)
    found = history.entries_of(by_hand.store, by_hand.head, "p", MAIN_TEXT)
    assert whats(found) == ["three", "two", "one"]
    last = comparing.last_change(by_hand.store, "p", MAIN_TEXT, "")
    assert (last.old, last.new) == ({"main.md": b"two"}, {"main.md": b"three"})


@pytest.mark.slow
def test_a_broken_index_hides_no_change(by_hand):
    by_hand.commit({"index.json": index(P="x"), "projects/x/main.md": "1"}, message="one")
    by_hand.commit({"index.json": "{", "projects/x/main.md": "2"}, message="two")
    by_hand.commit({"projects/x/main.md": "3"}, message="three")
    found = whats(history.entries_of(by_hand.store, by_hand.head, "P", ALL))
    assert found == ["three", "two", "one"]


@pytest.mark.parametrize("folder", ["..", "", "a/b", "x\ny", "\\ud800", "\\u0000"])
def test_an_index_that_names_what_is_no_folder_leads_nowhere(by_hand, folder):
    by_hand.commit({"secret.md": "1"})
    by_hand.commit({"index.json": index(p=folder).replace("\n", "\\n"), "projects/q/main.md": "1"})
    by_hand.commit({"index.json": index(q="q")})
    assert history.entries_of(by_hand.store, by_hand.head, "p", ALL) == []


def test_hostile_commits_are_read(by_hand):
    by_hand.commit({"a.md": "1"}, name="e\x1b[31mvil", message="sub\x1b]0;x\x07ject")
    tree = by_hand.person("rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor x <x> 9999999999999999999 +0000\ncommitter x\n\n\xff\n"
    commit = by_hand.person(
        "hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=raw.encode("latin-1")
    )
    by_hand.person("update-ref", "refs/heads/main", commit)
    [entry] = history.entries(by_hand.store, by_hand.head)
    assert (entry.commit, entry.when, entry.what) == (commit, 0, "\ufffd")


@pytest.mark.slow
def test_versions_and_last_changes_are_those_of_the_file(by_hand):
    path = "projects/p/b\nc.md"
    for number, day in enumerate(("17", "18", "19"), 1):
        by_hand.commit({path: f"{number}"}, at=f"2026-11-{day} 12:00")
    by_hand.commit({"projects/p/other.md": "x"}, at="2026-11-20 12:00")
    by_hand.commit(drops=[path], at="2026-11-21 12:00")
    head = by_hand.head
    names = history.versions(by_hand.store, head, path)
    blobs = [by_hand.person("cat-file", "blob", name) for name in names]
    assert blobs == ["3", "2", "1"]
    changed = history.last_changes(by_hand.store, head, "projects/p")
    assert {p: datetime.fromtimestamp(when).day for p, when in changed.items()} == {
        path: 21, "projects/p/other.md": 20,
    }  # fmt: skip


# -- states ----------------------------------------------------------------------------------


def test_a_commit_is_read_as_a_disk_is(by_hand):
    by_hand.put("projects/p/main.md", "now")
    (by_hand.home / "projects/p/link.md").symlink_to("main.md")
    commit = by_hand.commit({"projects/p/knowledge/a.md": "x", "top.md": "t"})
    by_hand.commit({"projects/p/main.md": "later"}, ["projects/p/knowledge/a.md"])
    past = Past(by_hand.store.repository, commit)
    assert [name for name, _ in past.entries("projects/p")] == ["knowledge", "main.md"]
    assert past.is_folder("projects/p/knowledge")
    assert not past.is_folder("projects/p/main.md")
    assert past.read_text("projects/p/main.md") == "now"
    assert past.read("projects/p/link.md") is None
    assert past.read("projects/p") is None
    assert past.status("projects/q") is None
    assert sorted(past.files("projects")) == ["projects/p/knowledge/a.md", "projects/p/main.md"]
    assert past.entries("projects/q") == []


def test_a_commit_gives_no_file_that_would_lie_elsewhere(by_hand):
    blob = by_hand.person("hash-object", "-w", "--stdin", given=b"x")
    inner = by_hand.person("mktree", given=f"100644 blob {blob}\tmain.md\n".encode())
    lines = [f"040000 tree {inner}\t{name}\n" for name in ("..", ".git", ".GIT", "p")]
    tree = by_hand.person("mktree", given="".join(lines).encode())
    outer = by_hand.person("mktree", given=f"040000 tree {tree}\tprojects\n".encode())
    commit = by_hand.person("commit-tree", outer, "-m", "evil")
    by_hand.person("update-ref", "refs/heads/main", commit)
    assert list(Past(by_hand.store.repository, by_hand.head).files("")) == ["projects/p/main.md"]


def test_nothing_of_the_past_can_be_changed(by_hand):
    past = Past(by_hand.store.repository, by_hand.commit({"a.md": "1"}))
    with pytest.raises(Refusal):
        past.tidy()


@pytest.mark.slow
def test_the_state_now_is_what_the_disk_has_committed_or_not(kept):
    kept.document("shop", "setup")
    kept.stage()
    kept.put("projects/shop/knowledge/new.md", "new")
    kept.put("projects/shop/main.md", "text")
    kept.put("projects/shop/.DS_Store", "junk")
    (kept.home / "projects/shop/knowledge/setup.md").unlink()
    found = state_now(kept.store.disk, kept.tree, kept.by_hand, "shop")
    assert found.files == {"knowledge/new.md": b"new", "main.md": b"text"}
    assert state_now(kept.store.disk, kept.tree, kept.by_hand, "x").project is None


def test_a_project_is_where_the_index_of_the_time_says(by_hand):
    first = by_hand.commit({"index.json": index(p="old"), "projects/old/main.md": "1"})
    broken = by_hand.commit({"index.json": "{", "projects/p/main.md": "not it"})
    found = state_then(Past(by_hand.store.repository, first), "p")
    assert found.files == {"main.md": b"1"}
    past = Past(by_hand.store.repository, broken)
    assert state_then(past, "p", "projects/old").files == {"main.md": b"1"}
    assert state_then(Past(by_hand.store.repository, ""), "p").project is None


# -- diffs -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_last_change_is_compared_by_default(kept):
    kept.document("shop", "setup", "one")
    kept.main("shop", "main")
    kept.chapter("shop", "setup", "two")
    kept.main("other", "x")
    found = comparing.last_change(kept.store, "shop", ALL, "")
    assert found.entry.what_of("shop") == "Updated chapter 'Chapter' in setup.md"
    changed = [line for line in unified(found.old, found.new) if line in {"-one", "+two"}]
    assert changed == ["-one", "+two"]
    found = comparing.last_change(kept.store, "shop", MAIN_TEXT, "")
    assert (found.old, found.new) == ({}, {"main.md": b"main"})


@pytest.mark.slow
def test_what_is_not_committed_is_the_last_change(kept):
    kept.main("shop", "one")
    kept.put("projects/shop/main.md", "two")
    found = comparing.last_change(kept.store, "shop", ALL, "")
    assert found.is_edit
    assert (found.old, found.new) == ({"main.md": b"one"}, {"main.md": b"two"})
    assert not comparing.last_change(kept.store, "shop", ALL, "HEAD").is_edit


@pytest.mark.slow
def test_a_deleted_project_was_changed_last_when_it_was_deleted(kept):
    kept.main("shop", "one")
    kept.call("delete_project", project_id="shop")
    found = comparing.last_change(kept.store, "shop", ALL, "")
    assert (found.old, found.new) == ({"main.md": b"one"}, {})


@pytest.mark.slow
def test_two_moments_are_compared(by_hand):
    for number, day in enumerate(("15", "17", "19"), 1):
        files = {"projects/p/main.md": f"{number}", f"projects/p/knowledge/{day}.md": "x"}
        by_hand.commit(files, at=f"2026-11-{day} 12:00")

    def between(since, until, piece=MAIN_TEXT):
        found = comparing.between(by_hand.store, "p", piece, since, until)
        return found.old.get("main.md"), found.new.get("main.md")

    assert between("2026-11-16", "") == (b"1", b"3")
    assert between("2026-11-16", "2026-11-18") == (b"1", b"2")
    assert between("2026-11-01", "2026-11-16") == (None, b"1")
    assert comparing.last_change(by_hand.store, "p", MAIN_TEXT, "2026-11-18").new == {
        "main.md": b"2"
    }


@pytest.mark.slow
def test_what_never_was_is_not_compared(kept):
    kept.main("shop", "one")
    for call in (
        lambda: comparing.last_change(kept.store, "shoq", ALL, ""),
        lambda: comparing.last_change(kept.store, "shop", document("x.md"), ""),
        lambda: comparing.between(kept.store, "shoq", ALL, "HEAD", ""),
    ):
        with pytest.raises(UnknownError, match="history knows nothing of"):
            call()


def patched(old, lines):
    """A text with the hunks of a diff applied."""
    before = old.split("\n")
    after, at = [], 0
    for line in lines[2:]:
        if match := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            start = int(match[1]) - (match[2] != "0")
            after += before[at:start]
            at = start
        elif line.startswith((" ", "-")):
            assert before[at] == line[1:]
            at += 1
            after += [line[1:]] * line.startswith(" ")
        elif line.startswith("+"):
            after.append(line[1:])
    return after + before[at:]


texts = st.lists(st.sampled_from(["a", "b", "", "\r", "- c"]), max_size=40).map("\n".join)


@given(texts, texts)
def test_a_diff_makes_the_new_text_of_the_old(old, new):
    old, new = f"{old}\n", f"{new}\n"
    lines = list(unified({"a": old.encode()}, {"a": new.encode()}))
    assert (patched(old, lines) if lines else old.split("\n")) == new.split("\n")


def test_a_diff_says_what_comes_what_goes_and_what_is_no_text():
    old = {"gone.md": b"x\n", "same.md": b"s", "bytes.md": b"\xff"}
    new = {"come.md": b"y", "same.md": b"s", "bytes.md": b"\xff\xfe"}
    assert list(unified(old, new)) == [
        "--- bytes.md", "+++ bytes.md",
        "@@ 1 byte became 2; they are no text in UTF-8 @@",
        "--- /dev/null", "+++ come.md", "@@ -0,0 +1 @@", "+y", "\\ No newline at end of file",
        "--- gone.md", "+++ /dev/null", "@@ -1 +0,0 @@", "-x",
    ]  # fmt: skip


def test_an_edit_of_a_huge_text_is_a_hunk_and_another_huge_text_is_a_line():
    lines = [f"{number}\n" for number in range(60_000)]
    edited = [*lines[:30_000], "new\n", *lines[30_001:]]
    found = list(unified({"a": "".join(lines).encode()}, {"a": "".join(edited).encode()}))
    assert found[2] == "@@ -29998,7 +29998,7 @@"
    assert found[6:8] == ["-30000", "+new"]
    other = "".join(reversed(lines))
    [*_, said] = unified({"a": "".join(lines).encode()}, {"a": other.encode()})
    assert said == "@@ 60,000 lines from 1 on became 60,000 @@"


# -- pieces ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ([], ""),
        (["setup"], "knowledge/setup.md"),
        (["setup.md"], "knowledge/setup.md"),
        (["knowledge/setup.md"], "knowledge/setup.md"),
        (["main.md"], "main.md"),
        (["main"], "main.md"),
        (["knowledge/main.md"], "knowledge/main.md"),
        (["todo"], "knowledge/todo.md"),
        (["todo", "3"], "TODO/3"),
        (["todo", "003"], "TODO/3"),
        (["-n.md"], "knowledge/-n.md"),
    ],
)
def test_a_piece_of_a_project_is_named_as_people_would(words, path):
    assert piece_of(words).path == path


@pytest.mark.parametrize(
    "words",
    [
        ["../x"], ["a/b.md"], [""], ["knowledge/"], ["knowledge/../main.md"], ["a\0"],
        ["todo", "x"], ["todo", "0"], ["todo", "-1"], ["todo", "1" * 7], ["a", "b"],
        ["todo", "1", "2"],
    ],
)  # fmt: skip
def test_what_is_no_piece_of_a_project_is_refused(words):
    with pytest.raises(SettingsError):
        piece_of(words)


def test_a_piece_holds_its_own_files_only():
    todo = piece_of(["todo", "1"])
    assert todo.holds("TODO/1/index.json")
    assert not todo.holds("TODO/10/index.json")
    assert not MAIN_TEXT.holds("knowledge/main.md")
