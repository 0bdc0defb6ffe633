"""No file is kept under a name that git refuses: no other machine could fetch it."""

import json
import os
import subprocess

import pytest
from kept import kept_in
from stores import git, opened, writer_of, wrote
from writing import put

from vector_index_mcp.notes.names import is_keepable, is_keepable_path
from vector_index_mcp.notes.past.history import entries_of
from vector_index_mcp.notes.past.pieces import ALL
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts.projects import Projects

GITS = [
    ".git", ".GIT", ".Git", "git~1", "GIT~1", ".git.", ".git ", ".git . ", "git~1 .",
    ".git::$INDEX_ALLOCATION", ".git:x", ".gi\u200ct", "\u200c.git", ".git\ufeff", ".g\u202eit",
    "a\\.git", ".git\\x", os.fsdecode(b".git\xff"), ".git\uffff",
]  # fmt: skip
OTHERS = [
    "git", "git~2", ".gitx", ".git.x", ".git x", "x.git", ".gitignore", ".git\n", ".g\u0131t",
    "...", "a\\b", ".git\u200b", os.fsdecode(b".gi\xfft"),
]  # fmt: skip


@pytest.mark.parametrize("name", GITS + OTHERS)
def test_git_says_the_same(tmp_path, name):
    git(tmp_path, "init", "--quiet")
    blob = git(tmp_path, "hash-object", "-w", "--stdin", given="x")
    tree = b"100644 " + os.fsencode(name) + b"\0" + bytes.fromhex(blob)
    command = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    subprocess.run(command, cwd=tmp_path, input=tree, capture_output=True, check=True)
    checked = subprocess.run(
        ["git", "fsck", "--strict"], cwd=tmp_path, capture_output=True, check=False
    )
    assert is_keepable(name) == (b"hasDotgit" not in checked.stderr)
    assert is_keepable_path(f"projects/{name}/a.md") == is_keepable(name)
    assert is_keepable(name) == (name in OTHERS)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_is_not_kept(name):
    assert not is_keepable(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [".Git", "git~1", ".git:x", ".gi\u200ct"])
def test_a_file_that_a_person_puts_there_is_not_committed(store, tmp_path, name):
    with writer_of(tmp_path) as writer:
        opened(writer)
        put(store, f"projects/shop/{name}/notes.md", "x")
        put(store, f"projects/{name}/main.md", "x")
        put(store, "projects/shop/main.md", "x")
        assert writer.alone(writer.take_over_by_hand).result() == 1
        for path in (f"projects/{name}/main.md", f"projects/shop/{name}/notes.md"):
            with pytest.raises(Refusal) as refused:
                wrote(writer, {path: "ours"})
            assert refused.value.code is Code.INVALID_FILENAME
            assert (store / path).read_text(encoding="utf-8") == "x"
    assert git(store, "ls-tree", "-r", "--name-only", "HEAD:projects") == "shop/main.md"
    clone = ["-c", "transfer.fsckObjects=true", "clone", "--quiet", f"file://{store}", "clone"]
    git(tmp_path, *clone)


@pytest.mark.parametrize("name", [name for name in GITS if "\\" not in name])
def test_no_project_lies_there(tmp_path, name):
    disk = Disk(tmp_path)
    (tmp_path / "projects" / name).mkdir(parents=True)
    assert Projects(disk).folders() == []
    assert Projects(disk).find(name) is None
    text = json.dumps({"projects": {"tools": name}})
    (tmp_path / "index.json").write_text(text, encoding="utf-8")
    assert Projects(disk).unusable == ["tools"]
    assert list(Projects(disk).all()) == []
    with pytest.raises(Refusal) as refused:
        Projects(disk).find("tools")
    assert refused.value.code is Code.INVALID_PROJECT_ID


def test_the_past_of_a_project_is_not_looked_for_there(tmp_path):
    with kept_in(tmp_path) as kept:
        text = json.dumps({"projects": {"tools": ".Git"}})
        stream = (
            "commit refs/heads/main\ncommitter A <a@x> 0 +0000\ndata 1\nx\n"
            f"M 644 inline index.json\ndata {len(text)}\n{text}\n"
            "M 644 inline projects/.Git/main.md\ndata 1\nx\n"
        )
        kept.home.mkdir()
        kept.person("init", "--quiet", "--initial-branch=main")
        kept.person("fast-import", "--quiet", given=stream.encode())
        kept.store.repository.prepare()
        assert entries_of(kept.store, kept.head, "tools", ALL) == []


def test_a_repository_in_a_project_does_not_go_with_it(store, tmp_path):
    with kept_in(tmp_path) as kept:
        kept.main("shop", "x")
        kept.put("projects/shop/.git/HEAD", "theirs")
        with pytest.raises(Refusal, match="would be lost"):
            kept.call("delete_project", project_id="shop")
        assert (store / "projects/shop/main.md").exists()
