"""What git keeps encrypted, or through any other filter, is never committed as it is."""

import os

import pytest
from kept import kept_by_hand
from stores import answered, committed, done, git, notes_of, opened, serving
from writing import put

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import filters

pytestmark = pytest.mark.anyio

SECRET, OTHER = "projects/p/knowledge/secret.md", "projects/p/knowledge/other.md"
FILTER = {"clean": "sed s/secret/hidden/", "smudge": "sed s/hidden/secret/", "required": "true"}
SAID = f"git keeps {SECRET} through a filter"


@pytest.fixture
def filtering(tmp_path, monkeypatch):
    """The settings of a person who has such a filter, as git-crypt and LFS are."""
    settings = tmp_path / "gitconfig"
    lines = "".join(f'\t{name} = "{value}"\n' for name, value in FILTER.items())
    settings.write_text(f'[filter "crypt"]\n{lines}', encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return settings


@pytest.fixture
def kept(tmp_path, filtering):
    with kept_by_hand(tmp_path) as kept:
        kept.person("config", "include.path", str(filtering))
        kept.commit({".gitattributes": "secret* filter=crypt\n"})
        kept.commit({SECRET: "my secret\n", OTHER: "my secret\n"})
        assert committed(kept.home, SECRET) == "my hidden"
        yield kept


def test_what_differs_only_by_the_filter_is_no_edit(kept):
    opened(kept.writer)
    assert committed(kept.home, SECRET) == "my hidden"


def test_an_edit_and_a_new_file_are_left_to_git(kept):
    opened(kept.writer)
    kept.put(SECRET, "another secret\n")
    kept.put("projects/p/secret.md", "new secret\n")
    kept.put(OTHER, "another secret\n")
    assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 1
    assert committed(kept.home, OTHER) == "another secret"
    assert "secret.md" not in kept.person("log", "-1", "--name-only", "--format=")
    assert sorted(kept.writer.by_hand.filtered) == [SECRET, "projects/p/secret.md"]


def test_attributes_that_nobody_has_committed_count_as_well(tmp_path, filtering):
    with kept_by_hand(tmp_path) as kept:
        kept.put(".gitattributes", "secret* filter=crypt\n")
        kept.put(SECRET, "my secret\n")
        opened(kept.writer)
        assert SECRET not in kept.person("ls-tree", "-r", "--name-only", "HEAD")


@pytest.mark.parametrize("folder", ["projects", "projects/p", "projects/p/knowledge"])
def test_attributes_in_any_folder_count_before_they_are_committed(tmp_path, filtering, folder):
    with kept_by_hand(tmp_path) as kept:
        kept.put(f"{folder}/.gitattributes", "secret* filter=crypt\n")
        kept.put(SECRET, "my secret\n")
        opened(kept.writer)
        assert SECRET not in kept.person("ls-tree", "-r", "--name-only", "HEAD")
        kept.put(f"{folder}/.gitattributes", "secret* filter=crypt\n\n")
        with pytest.raises(Refusal, match=SAID):
            kept.change({SECRET: "x"})


def test_a_damaged_index_hides_no_attributes(kept):
    opened(kept.writer)
    (kept.home / ".git" / "index").write_bytes(b"DIRC, and nothing that follows")
    kept.put(SECRET, "another secret\n")
    assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0
    assert committed(kept.home, SECRET) == "my hidden"


def test_attributes_that_are_not_checked_out_count(kept):
    kept.person("update-index", "--skip-worktree", ".gitattributes")
    (kept.home / ".gitattributes").unlink()
    opened(kept.writer)
    kept.put(SECRET, "another secret\n")
    assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0


def test_git_is_not_asked_where_no_attributes_name_a_filter(kept, monkeypatch):
    kept.commit({".gitattributes": "* text=auto\n"})
    opened(kept.writer)
    monkeypatch.setattr(filters, "_is_required", None)
    kept.change({OTHER: "x"})
    assert committed(kept.home, OTHER) == "x"


def test_no_call_writes_or_removes_such_a_file(kept):
    opened(kept.writer)
    for puts, drops in (({SECRET: "x"}, ()), ({}, (SECRET,))):
        with pytest.raises(Refusal) as refused:
            kept.change(puts, drops)
        assert refused.value.code is Code.GIT_ERROR
        assert str(refused.value).startswith(SAID)
    assert (kept.home / SECRET).read_text(encoding="utf-8") == "my secret\n"


def test_a_filter_that_is_not_required_is_nothing(kept, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    kept.person("config", "--unset-all", "include.path")
    kept.change({SECRET: "x"})
    assert committed(kept.home, SECRET) == "x"


@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_the_exchange_of_everything_else_goes_on(kept, tmp_path, is_ahead):
    origin = tmp_path / "origin.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(kept.home), str(origin))
    kept.person("remote", "add", "origin", str(origin))
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(origin), str(other))
    put(other, SECRET, "a new hidden\n")
    put(other, OTHER, "theirs\n")
    git(other, "commit", "--quiet", "-am", "Theirs")
    git(other, "push", "--quiet", "origin", "main")
    if is_ahead:
        kept.commit({"projects/p/knowledge/mine.md": "mine\n"})
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "sync_storage")
        details = (await done(client, "get_storage_status"))["status_details"]
        assert f"`git checkout -- {SECRET}`" in details
        assert SAID in details
        arguments = {"project_id": "p", "filename": "other.md"}
        assert (
            "theirs"
            in (await done(client, "get_knowledge_file", **arguments))["document"]["full_content"]
        )
        said = await answered(client, "delete_knowledge_file", project_id="p", filename="secret.md")
        assert said["error"].startswith(SAID)
    assert (kept.home / SECRET).read_text(encoding="utf-8") == "my secret\n"
    assert committed(kept.home, SECRET) == "a new hidden"
    kept.person("checkout", "--", SECRET)
    assert (kept.home / SECRET).read_text(encoding="utf-8") == "a new secret\n"
