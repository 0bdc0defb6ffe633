"""What git has not checked out is no deletion, and its own line ends are no edit."""

import shutil
import subprocess

import pytest
from kept import kept_by_hand, kept_in
from stores import answered, committed, done, git, log, notes_of, opened, serving, writer_of, wrote
from writing import put

from vector_index_mcp.notes.doctor import examining
from vector_index_mcp.notes.refusal import Code, Refusal

MAIN = {f"projects/{name}/main.md": f"# {name}\n\nOne\n" for name in ("a", "b", "c")}
pytestmark = pytest.mark.anyio

RESTORE = "run `git checkout HEAD -- .` there"


@pytest.fixture
def origin(tmp_path):
    """A repository with three projects, as another machine has pushed it."""
    store = tmp_path / "origin"
    for path, text in MAIN.items():
        put(store, path, text)
    git(store, "init", "--quiet", "--initial-branch=main")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "Theirs")
    git(store, "config", "receive.denyCurrentBranch", "ignore")
    return store


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def clone(origin, store, *options):
    git(origin.parent, "clone", "--quiet", *options, f"file://{origin}", str(store))


def remaining(store):
    """The projects in the last commit."""
    return git(store, "ls-tree", "--name-only", "HEAD:projects").splitlines()


def refusal(do):
    with pytest.raises(Refusal) as refused:
        do()
    assert refused.value.code is Code.GIT_ERROR
    return str(refused.value)


# -- sparse checkouts --------------------------------------------------------------------------


@pytest.mark.parametrize("is_sparse_index", [False, True])
def test_what_a_sparse_checkout_leaves_out_stays(origin, store, tmp_path, is_sparse_index):
    clone(origin, store)
    option = "--sparse-index" if is_sparse_index else "--no-sparse-index"
    git(store, "sparse-checkout", "set", "--cone", option, "projects/a")
    assert not (store / "projects/b").exists()
    with writer_of(tmp_path) as writer:
        opened(writer)
        wrote(writer, {"projects/a/main.md": "ours"})
        assert writer.alone(writer.take_over_by_hand).result() == 0
        (store / "projects/a/main.md").unlink()
        assert writer.alone(writer.take_over_by_hand).result() == 1
    assert remaining(store) == ["b", "c"]


async def test_no_machine_loses_it(origin, store, tmp_path):
    clone(origin, store)
    git(store, "sparse-checkout", "set", "--cone", "projects/a")
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", project_id="a", content="ours\n")
        await done(client, "sync_storage")
    assert remaining(origin) == ["a", "b", "c"]
    assert committed(origin, "projects/a/main.md") == "ours"


def test_what_becomes_sparse_under_a_writer_stays(origin, store, tmp_path):
    clone(origin, store)
    with writer_of(tmp_path) as writer:
        opened(writer)
        git(store, "sparse-checkout", "set", "--cone", "projects/a")
        assert writer.alone(writer.take_over_by_hand).result() == 0
        git(store, "sparse-checkout", "disable")
        (store / "projects/b/main.md").unlink()
        assert writer.alone(writer.take_over_by_hand).result() == 1
    assert remaining(store) == ["a", "c"]


def test_with_an_index_that_git_cannot_read_nothing_counts_as_deleted(origin, store, tmp_path):
    clone(origin, store)
    put(store, ".git/index", "broken")
    (store / "projects/b/main.md").unlink()
    with writer_of(tmp_path) as writer:
        opened(writer)
    assert remaining(store) == ["a", "b", "c"]


# -- no checkout at all ------------------------------------------------------------------------


def not_checked_out(origin, store):
    clone(origin, store, "--no-checkout")


def emptied(origin, store):
    clone(origin, store)
    shutil.rmtree(store / "projects")


def cut_off(origin, store):
    """A clone for which there was no space: git writes its index last."""
    clone(origin, store)
    shutil.rmtree(store / "projects/c")
    (store / ".git/index").unlink()


@pytest.mark.parametrize("make", [not_checked_out, emptied, cut_off])
def test_a_clone_without_its_files_is_not_written(origin, store, tmp_path, make):
    make(origin, store)
    before = git(store, "rev-parse", "HEAD")
    with writer_of(tmp_path) as writer:
        for _ in range(2):
            words = refusal(lambda: wrote(writer, {"projects/new/main.md": "x"}))
            assert words.startswith("git has not checked out projects/")
            assert words.endswith(RESTORE)
        assert git(store, "rev-parse", "HEAD") == before
        assert not (store / "projects/new").exists()
        git(store, "checkout", "HEAD", "--", ".")
        wrote(writer, {"projects/new/main.md": "x"})
    assert remaining(store) == ["a", "b", "c", "new"]


async def test_it_says_so_and_pushes_nothing(origin, store, tmp_path):
    clone(origin, store, "--no-checkout")
    async with serving(notes_of(tmp_path)) as client:
        said = await answered(client, "update_project_main", project_id="new", content="x\n")
        assert said["code"] == Code.GIT_ERROR
        status = await done(client, "get_storage_status")
        assert RESTORE in status["status_details"]
        await answered(client, "sync_storage")
    assert log(origin) == [("Bob <bob@example.org>", "Theirs")]


def test_files_that_all_go_under_a_writer_are_not_deleted(origin, store, tmp_path):
    clone(origin, store)
    with writer_of(tmp_path) as writer:
        opened(writer)
        for path in (*MAIN, ".gitignore"):
            (store / path).unlink()
        words = refusal(lambda: writer.alone(writer.take_over_by_hand).result())
        assert words.endswith(RESTORE)
    assert remaining(store) == ["a", "b", "c"]


def test_the_doctor_says_so(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        kept.commit(MAIN)
        shutil.rmtree(kept.home / "projects")
        found = {f.name: f for f in examining.examine(kept.store)}["commits"]
        assert "git has not checked out" in found.words
        assert found.remedy == RESTORE


# -- line ends ---------------------------------------------------------------------------------


@pytest.fixture
def windows(origin, store):
    """A clone as Git for Windows makes it."""
    clone(origin, store, "-c", "core.autocrlf=true")
    assert (store / "projects/a/main.md").read_bytes() == b"# a\r\n\r\nOne\r\n"
    return store


def kept_now(store, path):
    """What the last commit has at a path, every byte."""
    ran = subprocess.run(
        ["git", "cat-file", "blob", f"HEAD:{path}"], cwd=store, capture_output=True, check=True
    )
    return ran.stdout


def test_what_git_has_converted_is_no_edit(windows, tmp_path):
    with writer_of(tmp_path) as writer:
        opened(writer)
        assert writer.alone(writer.take_over_by_hand).result() == 0
    assert git(windows, "diff", "--stat", "origin/main", "HEAD", "--", "projects") == ""
    assert git(windows, "status", "--porcelain", "projects") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"# a\r\n\r\nTwo\r\n", b"# a\n\nTwo\n"),
        (b"# a\r\n\nOne\r\n", None),  # git calls it clean
        (b"# a\r\n\nTwo\r\n", b"# a\r\n\nTwo\r\n"),
        (b"# a\r\r\n\r\nOne\r\n", b"# a\r\r\n\r\nOne\r\n"),
        (b"# a\r\n\0\r\n", b"# a\r\n\0\r\n"),
        (b"", b""),
    ],
)
def test_an_edit_keeps_the_line_ends_of_the_history(windows, tmp_path, text, expected):
    with writer_of(tmp_path) as writer:
        opened(writer)
        (windows / "projects/a/main.md").write_bytes(text)
        count = writer.alone(writer.take_over_by_hand).result()
        assert count == (expected is not None)
        assert writer.alone(writer.take_over_by_hand).result() == 0
    wanted = b"# a\n\nOne\n" if expected is None else expected
    assert kept_now(windows, "projects/a/main.md") == wanted
    assert (windows / "projects/a/main.md").read_bytes() == text


def test_a_file_that_always_had_such_line_ends_keeps_them(tmp_path):
    with kept_in(tmp_path) as kept:
        kept.change({"projects/p/main.md": "one\r\n"})
        kept.put("projects/p/main.md", b"two\r\n")
        kept.put("projects/p/new.md", b"new\r\n")
        assert kept.by_hand.changed(kept.tree) == {
            "projects/p/main.md": b"two\r\n",
            "projects/p/new.md": b"new\r\n",
        }
