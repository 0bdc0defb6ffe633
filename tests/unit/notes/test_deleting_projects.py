"""A project that is deleted takes nothing of another one with it."""

import json
import os
import subprocess

import pytest
from kept import kept_in
from processes import posix_only

from vector_index_mcp.notes.refusal import Code, Refusal


@pytest.fixture
def kept(tmp_path):
    with kept_in(tmp_path) as kept:
        kept.change({"projects/evil/main.md": "x", "projects/other/main.md": "y"})
        yield kept


def enter(kept, **folders):
    kept.put("index.json", json.dumps({"projects": folders}))


def entries(kept):
    return json.loads((kept.home / "index.json").read_text(encoding="utf-8"))["projects"]


def delete(kept, project):
    return kept.call("delete_project", project_id=project)["message"]


def test_nothing_is_deleted_while_nobody_knows_whose_folder_it_is(kept):
    kept.put("index.json", '{"projects": {"other": "evil",}}')
    with pytest.raises(Refusal) as caught:
        delete(kept, "evil")
    assert caught.value.code is Code.FILE_SYSTEM_ERROR
    assert "index.json cannot be read" in str(caught.value)
    assert kept.texts["projects/evil/main.md"] == b"x"


@pytest.mark.slow
def test_a_folder_of_two_projects_goes_with_the_last_one(kept):
    enter(kept, evil="evil", also="evil", third="other")
    assert delete(kept, "evil") == (
        "Project 'evil' successfully deleted; projects/evil stays, because another project has "
        "this folder, too"
    )
    assert kept.texts["projects/evil/main.md"] == b"x"
    assert entries(kept) == {"also": "evil", "third": "other"}
    assert delete(kept, "also") == "Project 'also' successfully deleted"
    assert "projects/evil/main.md" not in kept.texts
    assert kept.tree.below("projects/evil") == []
    assert kept.texts["projects/other/main.md"] == b"y"


@pytest.mark.slow
def test_an_entry_that_names_no_folder_keeps_nothing(kept):
    enter(kept, evil="evil", also="../projects/evil", gone="gone")
    assert delete(kept, "evil") == "Project 'evil' successfully deleted"
    assert "projects/evil/main.md" not in kept.texts


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/hosts")])
def test_what_no_commit_can_have_is_not_deleted(kept, make):
    (kept.home / "projects/evil/deep").mkdir()
    there = kept.home / "projects/evil/deep/there"
    make(there)
    with pytest.raises(Refusal, match="evil/deep/there would be lost, because it is a link") as why:
        delete(kept, "evil")
    assert why.value.code is Code.FILE_SYSTEM_ERROR
    assert os.path.lexists(there)
    assert kept.texts["projects/evil/main.md"] == b"x"
    there.unlink()
    delete(kept, "evil")
    assert not (kept.home / "projects/evil").exists()


@pytest.mark.slow
@posix_only
def test_a_link_that_is_committed_and_one_of_an_editor_go(kept):
    (kept.home / "projects/evil/link").symlink_to("main.md")
    kept.person("add", "--all")
    kept.person("commit", "--quiet", "-m", "A link")
    (kept.home / "projects/evil/.#main.md").symlink_to("ann@laptop.123")
    delete(kept, "evil")
    assert not (kept.home / "projects/evil").exists()


@pytest.mark.slow
def test_a_file_in_a_folder_that_is_called_like_a_temporary_file_is_not_lost(kept):
    place = kept.home / "projects/evil/knowledge/draft.tmp"
    place.mkdir(parents=True)
    (place / "inner.md").write_text("mine", encoding="utf-8")
    with pytest.raises(Refusal, match=r"draft\.tmp/inner\.md would be lost"):
        delete(kept, "evil")
    assert (place / "inner.md").exists()


@pytest.mark.slow
@posix_only
def test_a_nest_of_folders_is_refused_with_a_sentence(kept, monkeypatch):
    monkeypatch.chdir(kept.home / "projects/evil")
    for _ in range(1_100):
        os.mkdir("d")  # noqa: PTH102 - a path would be too long
        os.chdir("d")
    with pytest.raises(Refusal, match="nested more than 200 deep"):
        delete(kept, "evil")
    monkeypatch.undo()
    subprocess.run(["rm", "-r", str(kept.home / "projects/evil/d")], check=True)
    assert kept.texts["projects/evil/main.md"] == b"x"


@pytest.mark.slow
@pytest.mark.usefixtures("one_case")
def test_a_folder_may_have_two_names(kept):
    enter(kept, evil="evil", also="EVIL")
    assert "stays" in delete(kept, "evil")
    assert kept.texts["projects/evil/main.md"] == b"x"
    assert entries(kept) == {"also": "EVIL"}


@pytest.mark.usefixtures("one_case")
def test_another_name_of_a_folder_is_no_project(kept):
    enter(kept, also="evil")
    with pytest.raises(Refusal) as refused:
        delete(kept, "EVIL")
    assert refused.value.code is Code.PROJECT_NOT_FOUND
    assert kept.texts["projects/evil/main.md"] == b"x"
