"""A user's file is changed in one place, by one process at a time, and whole at any moment."""

import os
import random
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from drawn import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vector_index_mcp.documents import editing
from vector_index_mcp.documents.configuration import Collection, Configuration, read
from vector_index_mcp.errors import SettingsError

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX links or modes")
WRITTEN = """\
# mine
global_context: 'all of it'   # for everybody
collections:
    docs:   # the docs
        path:    /data/docs
        context:
            "/": Everything
            meetings: Talks

        owner: [ann, 'bob']

    # about notes
    notes: {path: /data/notes, context: {/a: A}}

other: {a: 1}
#end
"""
ADDING = """
import sys
from pathlib import Path
from vector_index_mcp.documents import editing
from vector_index_mcp.documents.configuration import Collection
file, name, count = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(count)):
    editing.add(Path(file), Collection(f"{name}-{number}", Path(f"/{name}/{number}")))
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "index.yml"
    path.write_text(WRITTEN, encoding="utf-8")
    return path


def text_of(path):
    return path.read_bytes().decode()


def test_a_collection_is_added_to_no_file(tmp_path):
    path = tmp_path / "new" / "index.yml"
    added = Collection("docs", Path("/data/docs"))
    editing.add(path, added)
    assert read(path) == Configuration((added,))
    assert text_of(path) == (
        'collections:\n  docs:\n    path: /data/docs\n    pattern: "**/*.md"\n'
    )


def test_all_of_a_collection_is_written(file):
    added = Collection("x y", Path("/a b/ü"), "*.{md,txt}", {"/": "a\nb"}, "git pull", ("c", "d"))
    before = read(file)
    editing.add(file, added)
    assert read(file) == replace(before, collections=(*before.collections, added))


def test_what_is_not_changed_stays_to_the_letter(file):
    editing.set_context(file, "docs", "/meetings/", "Meetings: all")
    editing.set_context(file, "notes", "b", "B")
    editing.set_global_context(file, "New")
    editing.rename(file, "docs", "papers")
    assert text_of(file) == (
        WRITTEN.replace("meetings: Talks", 'meetings: "Meetings: all"')
        .replace("{/a: A}", '{/a: A, "/b": "B"}')
        .replace("'all of it'", '"New"')
        .replace("docs:   #", "papers:   #")
    )


def test_what_is_added_can_be_removed_without_a_trace(file):
    editing.add(file, Collection("new", Path("/new")))
    editing.set_context(file, "new", "x", "X")
    editing.remove_context(file, "new", "x")
    editing.remove(file, "new")
    assert text_of(file) == WRITTEN


def test_a_context_goes_and_the_last_one_takes_the_mapping_with_it(file):
    editing.remove_context(file, "docs", "/meetings")
    assert text_of(file) == WRITTEN.replace("            meetings: Talks\n", "")
    editing.remove_context(file, "docs", "")
    editing.remove_context(file, "notes", "a/")
    assert [dict(each.contexts) for each in read(file).collections] == [{}, {}]
    assert "{path: /data/notes}" in text_of(file)


def test_the_global_context_comes_and_goes(file):
    editing.set_global_context(file, "")
    editing.set_global_context(file, "")
    assert read(file).global_context == ""
    assert "global" not in text_of(file)
    editing.set_global_context(file, "Back")
    assert read(file).global_context == "Back"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda file: editing.add(file, Collection("docs", Path("/y"))),
            "/data/docs is gone; if it",
        ),
        (lambda file: editing.add(file, Collection("y", Path("/data/docs"))), "'docs' has these"),
        (lambda file: editing.add(file, Collection("y", Path("/data/x/../docs/"))), "'docs' has"),
        (lambda file: editing.add(file, Collection("a/b", Path("/y"))), "name of a collection"),
        (lambda file: editing.remove(file, "nope"), "Collection not found: nope"),
        (lambda file: editing.rename(file, "nope", "x"), "Collection not found: nope"),
        (lambda file: editing.rename(file, "docs", "notes"), "'notes' already"),
        (lambda file: editing.rename(file, "docs", "docs"), "'docs' already"),
        (lambda file: editing.rename(file, "docs", ".."), "name of a collection"),
        (lambda file: editing.set_context(file, "nope", "", "x"), "Collection not found: nope"),
        (lambda file: editing.set_context(file, "docs", "", "\udc80"), "not UTF-8"),
        (lambda file: editing.set_context(file, "docs", "", "x" * 1_000_000), "shorter.* by hand"),
        (lambda file: editing.set_context(file, "docs", "x" * 2_000, "x"), "left as it is"),
        (lambda file: editing.add(file, Collection("y", Path("/\udc80"))), "not UTF-8"),
        (lambda file: editing.remove_context(file, "docs", "x"), "no context for qmd://docs/x;"),
        (lambda file: editing.remove_context(file, "nope", "x"), "Collection not found: nope"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(file, change, words):
    with pytest.raises(SettingsError, match=words):
        change(file)
    assert text_of(file) == WRITTEN
    assert {path.name for path in file.parent.iterdir()} <= {"index.yml", ".index.yml.lock"}


def test_the_same_folder_may_be_two_collections_of_different_files(file):
    editing.add(file, Collection("texts", Path("/data/docs"), "**/*.txt"))
    assert read(file).named("texts").pattern == "**/*.txt"


@pytest.mark.parametrize(
    "text",
    ["collections: [\n", "a: 1\na: 2\n", "collections:\n  a:\n", "\udcff", "- a\n", "a: !x y\n"],
)
def test_a_broken_file_is_never_overwritten(file, text):
    data = text.encode("utf-8", "surrogateescape")
    file.write_bytes(data)
    for change in (
        lambda: editing.add(file, Collection("y", Path("/y"))),
        lambda: editing.set_global_context(file, "x"),
        lambda: editing.remove(file, "a"),
    ):
        with pytest.raises(SettingsError, match="index.yml, line"):
            change()
    assert file.read_bytes() == data


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (
            "x: &x {/a: A}\ncollections:\n  a: {path: /a, context: *x}\n"
            "  b: {path: /b, context: *x}\n",
            lambda file: editing.set_context(file, "a", "b", "B"),
        ),
        (
            "collections:\n  a: &a\n    path: /a\n  b:\n    path: /b\n    copy: *a\n",
            lambda file: editing.remove(file, "a"),
        ),
        (
            "global_context: &g x\ncollections:\n  a:\n    path: /a\n    update: *g\n",
            lambda file: editing.set_global_context(file, "y"),
        ),
        (
            "collections:\n  ? a\n  : path: /a\n",
            lambda file: editing.add(file, Collection("b", Path("/b"))),
        ),
    ],
)
def test_what_others_refer_to_is_left_to_its_writer(file, text, change):
    file.write_text(text, encoding="utf-8")
    before = read(file)
    try:
        change(file)
    except SettingsError as error:
        assert "left as it is" in str(error)
        assert text_of(file) == text
    else:
        assert read(file) != before  # it could be done after all


@pytest.mark.parametrize(
    "text",
    [
        "collections:\n  a: &a\n    path: /a\nmine: *a\n",
        "collections:\n  a: &a\n    path: /a\n  b:\n    path: /b\n    mine: *a\n",
        "collections:\n  a: &a\n    path: /a\n  b:\n    path: /b\n    mine: [x, {y: *a}]\n",
    ],
)
def test_a_key_that_means_nothing_to_us_keeps_its_value(file, text):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="would alter other entries too"):
        editing.set_context(file, "a", "", "A")
    assert text_of(file) == text
    editing.rename(file, "a", "c")
    assert text_of(file) == text.replace("  a:", "  c:")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_marks_and_ends_of_lines_stay(file, mark, newline):
    written = mark + WRITTEN.replace("\n", newline)
    file.write_bytes(written.encode())
    editing.add(file, Collection("new", Path("/new")))
    after = text_of(file)
    assert after.count("\ufeff") == len(mark)
    assert after.count("\r\n") == (after.count("\n") if newline == "\r\n" else 0)
    editing.remove(file, "new")
    assert text_of(file) == written


@posix_only
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_stays(file, mode):
    file.chmod(mode)
    editing.set_global_context(file, "x")
    assert stat.S_IMODE(file.stat().st_mode) == mode


@posix_only
def test_a_read_only_file_is_left(file):
    file.chmod(0o444)
    with pytest.raises(SettingsError, match="read-only; make it writable"):
        editing.set_global_context(file, "x")
    assert text_of(file) == WRITTEN


@posix_only
def test_a_link_stays_and_its_target_changes(file, tmp_path):
    link = tmp_path / "config" / "index.yml"
    link.parent.mkdir()
    link.symlink_to("../middle.yml")
    (tmp_path / "middle.yml").symlink_to(file)
    editing.set_global_context(link, "x")
    assert link.is_symlink() and (tmp_path / "middle.yml").is_symlink()
    assert read(file).global_context == "x"
    assert [path.name for path in link.parent.iterdir()] == ["index.yml"]


@posix_only
def test_what_a_link_leads_to_is_made(tmp_path):
    link = tmp_path / "index.yml"
    link.symlink_to(tmp_path / "elsewhere" / "mine.yml")
    editing.set_global_context(link, "x")
    assert link.is_symlink()
    assert read(tmp_path / "elsewhere" / "mine.yml").global_context == "x"


@posix_only
@pytest.mark.parametrize("place", ["/proc/new/index.yml", "/dev/null/index.yml"])
def test_a_place_that_cannot_be_written_is_told(place):
    with pytest.raises(SettingsError, match="; "):
        editing.set_global_context(Path(place), "x")


@posix_only
def test_what_lies_where_a_new_file_is_made_is_not_written_through(file, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    file.with_name(".index.yml.new").symlink_to(victim)
    editing.set_global_context(file, "x")
    assert victim.read_bytes() == b"precious"
    assert not file.is_symlink()


@posix_only
def test_a_full_disk_leaves_the_old_file(small_disk):
    file = small_disk / "index.yml"
    file.write_text(WRITTEN, encoding="utf-8")
    editing.set_global_context(file, "before")
    before = text_of(file)
    with pytest.raises(OSError, match="No space"):
        (small_disk / "filler").write_bytes(bytes(9_000_000))
    with pytest.raises(SettingsError, match="free some space"):
        editing.set_global_context(file, "x" * 50_000)
    assert text_of(file) == before
    assert not file.with_name(".index.yml.new").exists()


def adding(file, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", ADDING, str(file), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@pytest.mark.slow
def test_processes_that_add_at_once_lose_nothing(file):
    children = [adding(file, f"c{number}", 8) for number in range(4)]
    try:
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write(b"\n")
            child.stdin.flush()
        for child in children:
            child.communicate(timeout=60)
            assert child.returncode == 0
    finally:
        for child in children:
            child.kill()
            child.wait()
    names = {each.name for each in read(file).collections}
    assert names == {"docs", "notes"} | {f"c{n}-{m}" for n in range(4) for m in range(8)}
    assert text_of(file).startswith(WRITTEN.partition("    notes:")[0])


@posix_only
def test_what_an_editor_saves_in_the_last_moment_is_kept(file, monkeypatch):
    wait = os.fsync
    unsaved = ["  by_hand:\n    path: /by/hand\n"]

    def save_first(descriptor):
        if unsaved:
            with file.open("a", encoding="utf-8") as editor:
                editor.write(unsaved.pop())
        wait(descriptor)

    file.write_text("collections:\n  one:\n    path: /one\n", encoding="utf-8")
    monkeypatch.setattr(editing.os, "fsync", save_first)
    editing.add(file, Collection("two", Path("/two"), "**/*.md"))
    assert {each.name for each in read(file).collections} == {"one", "by_hand", "two"}


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_a_whole_file_and_no_lock(file):
    chance = random.Random(7)
    for number in range(examples(30)):
        before = read(file)
        child = adding(file, f"k{number}", 100)
        child.stdout.readline()
        child.stdin.write(b"\n")
        child.stdin.flush()
        time.sleep(chance.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        after = read(file)
        assert after.collections[: len(before.collections)] == before.collections
        added = [each.name for each in after.collections[len(before.collections) :]]
        assert added == [f"k{number}-{n}" for n in range(len(added))]
        assert "#end\n" in text_of(file)
        if len(after.collections) > 300:
            file.write_text(WRITTEN, encoding="utf-8")
    editing.set_global_context(file, "after all")
    assert {path.name for path in file.parent.iterdir()} == {"index.yml", ".index.yml.lock"}


NAMES = st.text("ab1é-_ .:#", min_size=1, max_size=8)
COLLECTIONS = st.builds(Collection, NAMES, NAMES.map(Path("/").joinpath))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just(editing.add), COLLECTIONS),
        st.tuples(st.just(editing.remove), NAMES),
        st.tuples(st.just(editing.rename), NAMES, NAMES),
        st.tuples(st.just(editing.set_context), NAMES, NAMES, st.text(max_size=20)),
        st.tuples(st.just(editing.remove_context), NAMES, NAMES),
        st.tuples(st.just(editing.set_global_context), st.text(max_size=20)),
    ),
    max_size=12,
)  # fmt: skip
KINDS = ["", WRITTEN, "collections: {}", "{}", WRITTEN.replace("\n", "\r\n")]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES, st.sampled_from(KINDS))
def test_any_changes_are_made_or_refused_and_comments_stay(tmp_path, changes, text):
    path = tmp_path / "drawn.yml"
    path.write_bytes(text.encode())
    for change, *arguments in changes:
        before = path.read_bytes()
        try:
            change(path, *arguments)
        except SettingsError as error:
            assert "alter other entries" not in str(error)
            assert path.read_bytes() == before
        read(path)
    after = text_of(path)
    for others in ("# mine", "# about notes", "other: {a: 1}", "#end"):
        assert (others in after) == (others in text)
