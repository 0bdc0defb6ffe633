"""Under which folder a client keeps what it remembers of a project."""

import os
import shutil
import subprocess

import pytest

from vector_index_mcp.clients import repository

GIT = shutil.which("git")


@pytest.fixture
def main(tmp_path):
    folder = tmp_path / "main"
    (folder / ".git" / "worktrees" / "side").mkdir(parents=True)
    return folder


@pytest.fixture
def side(tmp_path, main):
    """A worktree of `main`."""
    folder = tmp_path / "side"
    folder.mkdir()
    own = main / ".git" / "worktrees" / "side"
    (folder / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{folder / '.git'}\n")
    return folder


def test_without_a_repository_it_is_the_project(tmp_path):
    assert repository.root_of(tmp_path) == tmp_path


def test_a_folder_of_a_repository_counts_as_the_repository(main):
    assert repository.root_of(main) == main
    assert repository.root_of(main / "a" / "b") == main


def test_a_worktree_counts_as_the_main_one(main, side):
    assert repository.root_of(side) == main
    assert repository.root_of(side / "a") == main


@pytest.mark.skipif(GIT is None, reason="needs git")
def test_a_worktree_as_git_makes_it(tmp_path):
    for command in (
        "init -q real",
        "-C real -c user.name=a -c user.email=a@b commit -q --allow-empty -m a",
        "-C real worktree add -q ../tree",
    ):
        subprocess.run([GIT, *command.split()], cwd=tmp_path, check=True, capture_output=True)
    assert repository.root_of(tmp_path / "tree") == tmp_path / "real"


def test_a_folder_that_only_claims_to_be_a_worktree_is_itself(main, side, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text((side / ".git").read_text())
    assert repository.root_of(other) == other


@pytest.mark.parametrize(
    "said", ["", "gitdir: /nowhere\n", "gitdir: ../.git/modules/x", "\0", "x" * 99_999]
)
def test_what_is_no_worktree_is_itself(tmp_path, said):
    (tmp_path / ".git").write_text(said)
    assert repository.root_of(tmp_path) == tmp_path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="uses a pipe")
def test_a_pipe_makes_nobody_wait(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    os.mkfifo(folder / ".git")
    assert repository.root_of(folder) == folder
