"""What errors of the system are told as."""

from pathlib import Path

import pytest

from vector_index_mcp.errors import counted, is_of_machine, sentence


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "raise the limit of memory (`ulimit -v`)"),
        (ImportError("x.so: failed to map segment"), "raise the limit of memory (`ulimit -v`)"),
        (SystemError("error return without exception set"), "there is not enough memory"),
        (ImportError("x.so: cannot open shared object file: Too many open files"), "ulimit -n"),
        (RuntimeError("can't start new thread"), "(`ulimit -v`, `ulimit -u`)"),
        (OSError(24, "Too many open files"), "raise the limit of open files"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_missing_is_told_with_what_to_do(error, words):
    assert words in sentence(error)
    assert is_of_machine(ExceptionGroup("unhandled errors in a TaskGroup", [error]))


@pytest.mark.parametrize(
    "error", [ImportError("no module named x"), RuntimeError("x"), OSError(5, "x"), KeyError("x")]
)
def test_a_bug_is_not_the_machines_fault(error):
    assert not is_of_machine(error)


def test_a_thread_that_cannot_be_started_is_told_once():
    told = sentence(RuntimeError("can't start new thread"))
    assert sentence(RuntimeError(told)) == told


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (12_345, "12,345 files")]
)
def test_a_number_has_its_noun(number, words):
    assert counted(number, "file") == words


def test_a_working_folder_that_is_gone_is_named(tmp_path, monkeypatch):
    other = FileNotFoundError(2, "No such file or directory")  # of a socket, for example
    assert "`cd` to another one" not in sentence(other)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as error:
        Path.cwd()
    assert "`cd` to another one" in sentence(error.value)
    assert "`cd`" not in sentence(FileNotFoundError(2, "No such file or directory", "/nowhere"))
