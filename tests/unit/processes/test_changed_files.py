"""Which files of a folder differ from its last commit, whatever they are called."""

import subprocess

import pytest

from vector_index_mcp.processes.git import changed_files

NAMES = {" begins with a space.py", "ends with one .py", "ü.py", "a\nb.py", '"quoted".py', "new.py"}


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
def test_changed_files_have_their_names(tmp_path):
    folder = tmp_path / "a part"
    folder.mkdir()
    git(tmp_path, "init", "--quiet")
    (tmp_path / "beside.py").write_text("1")
    for name in NAMES - {"new.py"}:
        (folder / name).write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    assert changed_files(folder) == []
    for name in NAMES:
        (folder / name).write_text("2")
    (tmp_path / "beside.py").write_text("2")
    assert set(changed_files(folder)) == NAMES


def test_without_a_repository_nothing_is_known(tmp_path):
    assert changed_files(tmp_path) == []
