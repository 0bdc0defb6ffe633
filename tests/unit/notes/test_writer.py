"""Every change is on the disk and one commit, or neither; edits by hand are commits of theirs."""

import errno
import os
import pkgutil
import shutil
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import posix_only
from stores import (
    ANN,
    OURS,
    asked,
    committed,
    files_of,
    git,
    log,
    opened,
    settings_of_ann,
    state_of,
    writer_of,
    wrote,
)
from waiting import PATIENCE_SECONDS, eventually
from writing import put

from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import writer as writer_module
from vector_index_mcp.notes.store.disk import Change
from vector_index_mcp.notes.store.writer import Plan

pytestmark = pytest.mark.usefixtures("ann")

A, B = "projects/p/a.md", "projects/p/b.md"
TASK = "projects/p/TODO/1/TASK-001-a.json"


@pytest.fixture
def writer(tmp_path):
    """The one who writes a store with a file."""
    with writer_of(tmp_path) as writer:
        wrote(writer, {A: "first"}, message="Made a")
        yield writer


def tree(store, commit="HEAD"):
    """All that a commit holds."""
    paths = git(store, "ls-tree", "-r", "--name-only", commit).splitlines()
    return {path: committed(store, path, commit) for path in paths}


def on_disk(store):
    """The same, of the disk."""
    return {
        path: data.decode().rstrip("\n")
        for path, data in files_of(store).items()
        if data != "folder"
    }


def whole(store):
    """Make sure that disk and history say the same, and that git finds nothing wrong."""
    assert tree(store) == on_disk(store)
    git(store, "fsck", "--strict", "--no-dangling")
    return True


@pytest.mark.slow
@pytest.mark.parametrize("error", [ValueError("odd"), OSError(errno.ENOSPC, "No space")])
def test_an_error_of_the_work_is_not_blamed_on_the_mark_of_a_change(writer, store, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        writer.alone(fail).result(PATIENCE_SECONDS)
    assert raised.value is error
    assert wrote(writer, {B: "b"}) == "Changed"
    assert whole(store)


# -- one change, one commit --------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_store_begins_with_a_commit_of_its_own(writer, store):
    assert log(store) == [(OURS, "Made a"), (OURS, "Initial commit")]
    assert git(store, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert set(tree(store, "HEAD~1")) == {".gitignore", "README.md"}
    assert whole(store)


@pytest.mark.slow
def test_every_change_is_a_commit(writer, store):
    wrote(writer, {A: "second", B: "b"}, message="Changed two")
    wrote(writer, {}, [B], message="Dropped one")
    wrote(writer, {"index.json": "{}"}, ["projects/p"], message="Dropped a folder")
    folder = {TASK: "{}", "projects/p/TODO/1/index.json": "{}"}
    wrote(writer, folder, message="Made a folder", folder="projects/p/TODO/1")
    subjects = ["Made a folder", "Dropped a folder", "Dropped one", "Changed two"]
    assert log(store)[:4] == [(OURS, subject) for subject in subjects]
    assert git(store, "log", "-4", "--format=%cn <%ce>").splitlines() == [OURS] * 4
    assert git(store, "show", "--name-status", "--format=", "HEAD~2") == f"D\t{B}"
    assert committed(store, A, "HEAD~3") == "second"
    assert whole(store)


def test_a_message_is_one_line_and_not_too_long(writer, store):
    wrote(writer, {A: "x"}, message="Changed  '\tü\u2028 " + "x" * 300)
    [(_, subject)] = log(store, "-1")
    assert subject == "Changed ' ü " + "x" * 188


@pytest.mark.slow
@pytest.mark.parametrize("name", ['a "b" \\ü.md', "tab\there.md", "new\nline.md", "-x.md", "é.md"])
def test_no_name_is_too_odd_for_the_history(writer, store, name):
    path = f"projects/p/{name}"
    wrote(writer, {path: "odd"})
    assert git(store, "cat-file", "blob", f"HEAD:{path}") == "odd"
    wrote(writer, {}, [path])
    assert whole(store)


def test_nothing_of_a_change_that_is_refused_is_kept(writer, store):
    before = state_of(store)

    def refuse():
        raise Refusal(Code.INVALID_INPUT, "no")

    with pytest.raises(Refusal, match="no"):
        writer.ask(refuse).result(PATIENCE_SECONDS)
    with pytest.raises(Refusal):
        wrote(writer, {B: "b", f"{A}/c.md": "c"})
    assert state_of(store) == before


@pytest.mark.slow
def test_several_at_once_are_several_commits_in_their_order(writer, store):
    with held(writer):
        changes = [asked(writer, {f"projects/p/{n}": f"{n}"}, message=f"{n}") for n in range(100)]
    assert [change.result(PATIENCE_SECONDS) for change in changes] == [str(n) for n in range(100)]
    assert [subject for _, subject in reversed(log(store)[:100])] == [str(n) for n in range(100)]
    assert whole(store)


@pytest.mark.slow
def test_a_refused_one_among_several_stops_no_other(writer, store):
    with held(writer):
        changes = [
            asked(writer, {A: "one"}, message="1"),
            asked(writer, {A: "two", f"{A}/x": "no"}, message="2"),
            asked(writer, {A: "three"}, message="3"),
            asked(writer, {}, [A], message="4"),
            asked(writer, {}, [A], message="5"),
        ]
    failed = [isinstance(change.exception(PATIENCE_SECONDS), Refusal) for change in changes]
    assert failed == [False, True, False, False, True]
    assert [subject for _, subject in log(store)[:3]] == ["4", "3", "1"]
    assert [committed(store, A, f"HEAD~{n}") for n in (1, 2)] == ["three", "one"]
    assert whole(store)


@contextmanager
def held(writer):
    """The writer waits meanwhile; what it is asked for is made together then."""
    begun, over = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert over.wait(PATIENCE_SECONDS)

    waiting = writer.alone(wait)
    assert begun.wait(PATIENCE_SECONDS)
    yield
    over.set()
    waiting.result(PATIENCE_SECONDS)


@pytest.mark.slow
def test_a_plan_is_made_of_what_the_disk_says_at_that_moment(writer, store):
    def more():
        text = writer.disk.read_text(A) + "+"
        return Plan(Change({A: text.encode()}), "More", text)

    changes = [writer.ask(more) for _ in range(30)]
    assert changes[-1].result(PATIENCE_SECONDS) == "first" + "+" * 30
    assert on_disk(store)[A] == "first" + "+" * 30
    assert whole(store)


# -- a history that cannot be written ----------------------------------------------------------


def no_branch(store):
    (store / ".git/refs/heads/main.lock").touch()


def no_objects(store):
    shutil.rmtree(store / ".git/objects")
    (store / ".git/objects").mkdir()


def objects_are_a_file(store):
    shutil.rmtree(store / ".git/objects")
    (store / ".git/objects").write_text("", encoding="utf-8")


def garbled_branch(store):
    (store / ".git/refs/heads/main").write_text("0" * 40, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [no_branch, no_objects, objects_are_a_file, garbled_branch], ids=lambda f: f.__name__
)
def test_a_change_that_the_history_does_not_take_is_undone(writer, store, fault):
    wrote(writer, {B: "b", "projects/q/c.md": "c"})
    folder = {TASK: "{}", "index.json": "{}"}
    with held(writer):
        fault(store)
        before = state_of(store)
        changes = [
            asked(writer, {A: "second"}),
            asked(writer, {A: "third", "projects/new/n/m.md": "x"}),
            asked(writer, {}, ["projects/q", B]),
            asked(writer, folder, folder="projects/p/TODO/1"),
        ]
    for change in changes:
        error = change.exception(PATIENCE_SECONDS)
        assert isinstance(error, Refusal)
        assert error.code in {Code.GIT_COMMAND_FAILED, Code.GIT_ERROR}
    assert state_of(store) == before


@pytest.mark.slow
def test_writing_goes_on_when_git_can(writer, store):
    no_branch(store)
    with pytest.raises(Refusal):
        wrote(writer, {A: "second", B: "b"})
    (store / ".git/refs/heads/main.lock").unlink()
    wrote(writer, {A: "third"}, message="Again")
    assert log(store)[:2] == [(OURS, "Again"), (OURS, "Made a")]
    assert whole(store)


@pytest.mark.slow
def test_a_change_that_is_committed_stays_although_the_commit_cannot_be_read(
    writer, store, monkeypatch
):
    writer.index.refresh()
    follow, failures = writer.tree.follow, []

    def plan():
        # As we are about to write; without the index, which we hold by now.
        theirs = git(store, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Bob's")
        git(store, "update-ref", "HEAD", theirs)
        monkeypatch.setattr(writer.tree, "follow", fail_once)
        return Plan(Change({A: b"second"}), "Ours", "done")

    def fail_once(commit):
        if not failures:
            failures.append(commit)
            raise Refusal(Code.GIT_COMMAND_FAILED, "git was killed")
        follow(commit)

    assert writer.ask(plan).result(PATIENCE_SECONDS) == "done"
    assert failures == [git(store, "rev-parse", "HEAD")]
    wrote(writer, {B: "b"}, message="Ours, later")
    subjects = [subject for _, subject in log(store)]
    assert subjects[:4] == ["Ours, later", "Ours", "Bob's", "Made a"]
    assert whole(store)


@pytest.mark.slow
@posix_only
def test_a_commit_counts_although_git_dies_when_it_has_made_it(
    writer, store, tmp_path, monkeypatch
):
    dies = f'{shutil.which("git")} "$@"; [ "$1" = fast-import ] && kill -9 $$; exit 0\n'
    put(tmp_path, "bin/git", f"#!/bin/sh\n{dies}")
    (tmp_path / "bin/git").chmod(0o755)
    with monkeypatch.context() as dying:
        dying.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
        wrote(writer, {A: "second"}, message="Ours")
    wrote(writer, {B: "b"}, message="Ours, later")
    assert [subject for _, subject in log(store)][:3] == ["Ours, later", "Ours", "Made a"]
    assert whole(store)


# -- what people edit --------------------------------------------------------------------------


@pytest.mark.slow
def test_an_edit_of_the_same_file_is_committed_before_as_theirs(writer, store):
    put(store, A, "by Ann")
    wrote(writer, {A: "ours"}, message="Ours")
    assert log(store)[:3] == [(OURS, "Ours"), (ANN, f"Edited by hand: {A}"), (OURS, "Made a")]
    assert committed(store, A, "HEAD~1") == "by Ann"
    assert whole(store)


@pytest.mark.slow
def test_what_people_delete_and_add_is_committed_before_as_theirs(writer, store):
    (store / A).unlink()
    put(store, "projects/p/mine.md", "mine")
    put(store, "projects/p/deep/mine.md", "mine")
    wrote(writer, {A: "ours"}, ["projects/p/mine.md", "projects/p/deep"], message="Ours")
    assert log(store)[1][0] == ANN
    assert git(store, "show", "--name-status", "--format=", "HEAD~1").splitlines() == [
        f"D\t{A}", "A\tprojects/p/deep/mine.md", "A\tprojects/p/mine.md",
    ]  # fmt: skip
    assert on_disk(store).keys() - {".gitignore", "README.md"} == {A}
    assert whole(store)


@pytest.mark.slow
def test_an_edit_is_in_the_history_before_its_file_is_replaced(writer, store, monkeypatch):
    """So a kill after that loses nothing."""
    put(store, A, "by Ann")
    put(store, "projects/q/deep/c.md", "by Ann as well")
    there, apply = [], writer_module.applying.apply

    def looked(*arguments):
        there.append(tree(store))
        return apply(*arguments)

    monkeypatch.setattr(writer_module.applying, "apply", looked)
    with held(writer):
        changes = [asked(writer, {B: "b"}), asked(writer, {A: "ours"}, ["projects/q"], "Ours")]
    assert [change.result(PATIENCE_SECONDS) for change in changes] == ["Changed", "Ours"]
    assert there[-1][A] == "by Ann"
    assert there[-1]["projects/q/deep/c.md"] == "by Ann as well"
    assert there[-1][B] == "b"  # what was asked for before comes before
    assert log(store)[0] == (OURS, "Ours")
    assert whole(store)


@pytest.mark.slow
def test_if_an_edit_cannot_be_committed_its_file_stays(writer, store):
    put(store, A, "by Ann")
    with held(writer):
        no_objects(store)
        before = state_of(store)
        changes = [asked(writer, {B: "b"}), asked(writer, {A: "ours"}), asked(writer, {B: "c"})]
    for change in changes:
        assert isinstance(change.exception(PATIENCE_SECONDS), Refusal)
    assert state_of(store) == before


@pytest.mark.slow
def test_an_edit_of_another_file_is_left_for_later(writer, store, tmp_path):
    put(store, B, "by Ann")
    wrote(writer, {A: "ours"}, message="Ours")
    assert log(store)[0] == (OURS, "Ours")
    assert B not in tree(store)
    with writer_of(tmp_path) as another:
        opened(another)
    assert log(store)[0] == (ANN, f"Edited by hand: {B}")
    assert whole(store)


@pytest.mark.slow
def test_an_edit_among_several_changes_is_in_its_place(writer, store):
    put(store, B, "by Ann")
    texts = [(A, "1"), (B, "2"), (B, "3"), (A, "4"), (B, "5")]
    with held(writer):
        changes = [asked(writer, {path: text}, message=text) for path, text in texts]
    assert [change.result(PATIENCE_SECONDS) for change in changes] == list("12345")
    subjects = [subject for _, subject in reversed(log(store)[:6])]
    assert subjects == ["1", f"Edited by hand: {B}", "2", "3", "4", "5"]
    assert whole(store)


@pytest.mark.slow
def test_very_many_edits_are_several_commits(writer, store, tmp_path, monkeypatch):
    """All of them at once may be more than the memory."""
    monkeypatch.setattr("vector_index_mcp.notes.store.byhand._MOST_BYTES", 1_000)

    def edited(number):
        for name in range(5):
            put(store, f"projects/p/{number}{name}.md", f"{number}{name}" * 300)

    edited(1)
    (store / A).unlink()
    assert len(writer.alone(lambda: writer.by_hand.edited(writer.tree)).result()) == 6
    assert writer.alone(writer.take_over_by_hand).result() == 6
    assert len(log(store)) == 2 + 3
    assert {author for author, _ in log(store)[:3]} == {ANN}
    assert whole(store)
    edited(2)
    with writer_of(tmp_path) as another:
        opened(another)
    assert len(log(store)) == 2 + 3 + 3
    assert whole(store)
    edited(3)
    wrote(writer, {}, ["projects/p"], message="Removed")
    assert log(store)[0] == (OURS, "Removed")
    assert whole(store)


def test_a_nameless_person_is_named_by_what_they_do(tmp_path, monkeypatch):
    Path(settings_of_ann(tmp_path)["GIT_CONFIG_GLOBAL"]).write_text("", encoding="utf-8")
    put(tmp_path / "store", "projects/p/a.md", "mine")
    with writer_of(tmp_path) as writer:
        opened(writer)
        put(writer.disk.root, A, "by hand, later")
        wrote(writer, {A: "ours"})
    author = "Edited by hand <knowledge-mcp@localhost>"
    assert [who for who, _ in log(tmp_path / "store")] == [OURS, author, OURS]


@pytest.mark.slow
def test_an_edit_by_hand_has_the_author_that_the_user_has_for_this_folder(writer, store, tmp_path):
    included = tmp_path / "included"
    included.write_text("[user]\n\tname = Ann at work\n", encoding="utf-8")
    where = f'[user]\n\tname = Ann\n[includeIf "gitdir:{store}/"]\n\tpath = {included}\n'
    Path(settings_of_ann(tmp_path)["GIT_CONFIG_GLOBAL"]).write_text(where, encoding="utf-8")
    opened(writer)
    put(store, A, "by hand")
    assert writer.alone(writer.take_over_by_hand).result() == 1
    assert git(store, "log", "-1", "--format=%an") == "Ann at work"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A <n> \n B", "<>", "ü\x07"])
def test_no_name_of_a_person_breaks_a_commit(tmp_path, name):
    settings = settings_of_ann(tmp_path)["GIT_CONFIG_GLOBAL"]
    subprocess.run(["git", "config", "--file", settings, "user.name", name], check=True)
    with writer_of(tmp_path) as writer:
        wrote(writer, {A: "ours"})
        put(writer.disk.root, A, "by hand")
        wrote(writer, {A: "ours, too"})
    assert len(log(tmp_path / "store")) == 4
    assert whole(tmp_path / "store")


@pytest.mark.slow
def test_what_people_commit_themselves_stays(writer, store):
    writer.index.refresh()
    put(store, A, "by Bob")
    git(store, "add", A)
    git(store, "commit", "--quiet", "-m", "Bob's")
    wrote(writer, {B: "ours"}, message="Ours")
    wrote(writer, {A: "ours"}, message="Ours, too")
    subjects = [subject for _, subject in log(store)]
    assert subjects[:4] == ["Ours, too", "Ours", "Bob's", "Made a"]
    assert whole(store)


@pytest.mark.slow
@pytest.mark.anyio
async def test_writing_goes_on_behind_what_people_do_with_git(writer, store):
    git(store, "pack-refs", "--all")
    await eventually(lambda: not (store / ".git/gc.pid").exists())  # that of the first write
    git(store, "gc", "--quiet", "--prune=now")
    wrote(writer, {A: "second"})
    git(store, "branch", "side", "HEAD~1")
    git(store, "symbolic-ref", "HEAD", "refs/heads/side")
    wrote(writer, {B: "on the side"}, message="Side")
    assert git(store, "log", "--format=%s", "main").splitlines()[0] == "Changed"
    assert git(store, "log", "--format=%s", "side").splitlines()[0] == "Side"
    git(store, "fsck", "--strict", "--no-dangling")


# -- what is ignored ---------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_ignored_is_not_committed(tmp_path, store):
    ignored = ["activity.log", "activity.log.1", ".DS_Store", "projects/p/a.tmp", "x.swp", "a.md~"]
    ignored += ["private/a.md", "projects/p/secret.md"]
    kept = ["projects/p/main.md", "projects/p/log.md"]
    for path in [*ignored, *kept]:
        put(store, path, path)
    put(store, ".gitignore", "private/\nsecret.md\n")
    put(store, "index.json", '{"projects": {}}')
    with writer_of(tmp_path) as writer:
        wrote(writer, {B: "b"})
        put(store, "projects/p/secret.md", "changed")
        wrote(writer, {B: "c"})
    assert set(tree(store)) == {*kept, B, ".gitignore", "README.md", "index.json"}
    assert all((store / path).exists() for path in ignored)


def test_a_folder_with_what_people_ignore_does_not_go(writer, store):
    """It would be lost: the history is not to have it."""
    put(store, ".gitignore", "secret.md\n")
    put(store, "projects/p/secret.md", "secret")
    with pytest.raises(Refusal, match="secret.md would be lost"):
        wrote(writer, {}, ["projects/p"])
    assert (store / "projects/p/secret.md").read_text(encoding="utf-8") == "secret"
    assert "secret.md" not in git(store, "log", "--all", "--name-only", "--format=")


@pytest.mark.slow
def test_a_folder_goes_with_what_systems_leave_behind(writer, store):
    put(store, "projects/p/main.md", "x")
    put(store, "projects/p/.DS_Store", "x")
    wrote(writer, {}, ["projects/p"])
    assert not (store / "projects/p").exists()


@pytest.mark.slow
@pytest.mark.parametrize("puts", [{}, {A: "new"}], ids=["removed", "replaced"])
def test_what_no_history_can_keep_is_neither_removed_nor_replaced(writer, store, puts):
    large = "x" * (LARGEST_FILE_BYTES + 1)
    put(store, A, large)
    with pytest.raises(Refusal, match="more than"):
        wrote(writer, puts, [] if puts else [A])
    assert (store / A).stat().st_size == len(large)


@pytest.mark.slow
def test_a_file_that_is_ignored_and_removed_by_name_can_be_brought_back(writer, store):
    put(store, ".gitignore", "secret.md\n")
    put(store, "projects/p/secret.md", "secret")
    wrote(writer, {}, ["projects/p/secret.md"])
    assert not (store / "projects/p/secret.md").exists()
    assert git(store, "show", "HEAD~1:projects/p/secret.md") == "secret"


@pytest.mark.slow
def test_our_own_folder_is_made_anew_when_it_goes(writer, store, tmp_path):
    shutil.rmtree(tmp_path / "state")
    wrote(writer, {A: "second"}, message="Again")
    assert log(store)[0] == (OURS, "Again")


MOMENTS = ("plan", "byhand.ByHand.changed", "applying.mode_of", "applying.write")


def saving_once(monkeypatch, moment, save):
    """Call `save` once, behind the first call of a function of the store."""
    calls = []
    if moment == "plan":
        return lambda: calls or calls.append(save())
    place, _, name = f"vector_index_mcp.notes.store.{moment}".rpartition(".")
    do = getattr(pkgutil.resolve_name(place), name)

    def done(*arguments, **options):
        result = do(*arguments, **options)
        if not calls:
            calls.append(save())
        return result

    monkeypatch.setattr(f"{place}.{name}", done)
    return lambda: None


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("is_removed", [False, True], ids=["changed", "removed"])
def test_what_a_person_saves_during_a_write_is_kept(writer, store, monkeypatch, moment, is_removed):
    wrote(writer, {A: "first\n"})

    def save():
        put(store, "saved", (store / A).read_text(encoding="utf-8") + "by hand\n")
        (store / "saved").replace(store / A)

    with monkeypatch.context() as meanwhile:
        then = saving_once(meanwhile, moment, save)

        def planned():
            text = (store / A).read_text(encoding="utf-8")
            then()
            puts = {} if is_removed else {A: f"{text}ours\n".encode()}
            return Plan(Change(puts, (A,) if is_removed else ()), "Ours")

        writer.ask(planned).result(PATIENCE_SECONDS)
    before = git(store, "show", f"HEAD~1:{A}")
    if is_removed:
        assert not (store / A).exists()
    else:
        assert (store / A).read_text(encoding="utf-8") == f"{before}\nours\n"
    if not (is_removed and moment.startswith("applying")):  # nothing is written for a removal
        assert before == "first\nby hand"
        assert log(store)[:2] == [(OURS, "Ours"), (ANN, f"Edited by hand: {A}")]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["byhand.ByHand.check_can_go", "byhand.ByHand.kept"])
def test_what_appears_in_a_folder_while_it_is_removed_is_kept(writer, store, monkeypatch, moment):
    wrote(writer, {A: "first\n"})
    with monkeypatch.context() as meanwhile:
        saving_once(meanwhile, moment, lambda: put(store, "projects/p/draft.md", "by hand"))
        wrote(writer, {}, ["projects/p"])
    assert not (store / "projects/p").exists()
    assert git(store, "show", "HEAD~1:projects/p/draft.md") == "by hand"


@pytest.mark.slow
@pytest.mark.parametrize("is_removed", [False, True], ids=["changed", "removed"])
def test_what_is_written_to_an_open_file_during_a_commit_is_kept_beside(
    writer, store, monkeypatch, is_removed
):
    wrote(writer, {A: "first\n"})
    with (store / A).open("a", encoding="utf-8") as held, monkeypatch.context() as meanwhile:

        def save():
            held.write("by hand\n")
            held.flush()

        saving_once(meanwhile, "writer.write", save)
        wrote(writer, {} if is_removed else {A: "ours\n"}, ["projects/p"] if is_removed else ())
    texts = [
        path.read_text(encoding="utf-8")
        for path in (store / ".git/vector-index-mcp").rglob("*")
        if path.is_file() and ".kept" in str(path)
    ]
    assert texts == ["first\nby hand\n"]


@pytest.mark.slow
def test_a_file_that_is_saved_again_and_again_is_not_written(writer, store, monkeypatch):
    do = writer_module.ByHand.changed

    def changed(*arguments, **options):
        found = do(*arguments, **options)
        put(store, A, (store / A).read_text(encoding="utf-8") + "more\n")
        return found

    with monkeypatch.context() as meanwhile, pytest.raises(Refusal, match="again and again"):
        meanwhile.setattr(writer_module.ByHand, "changed", changed)
        wrote(writer, {A: "ours"})
    assert (store / A).read_text(encoding="utf-8").endswith("more\n")
    assert "ours" not in (store / A).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_fault_while_an_error_is_answered_ends_no_writer(writer, monkeypatch):
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(writer.presence, "check", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            writer.alone(lambda: 5).result(PATIENCE_SECONDS)
    assert writer.alone(lambda: 5).result(PATIENCE_SECONDS) == 5
