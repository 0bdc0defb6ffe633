"""Folders that are searched together: one that is missing now is among them, a wrong one not."""

import pytest

from vector_index_mcp.codebase.project import resolve_projects
from vector_index_mcp.errors import ProjectError


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path.resolve() / "home"
    for name in ("web", "drive"):
        (folder / name).mkdir(parents=True)
    (folder / "notes.txt").touch()
    (folder / "to_drive").symlink_to(folder / "drive")
    (folder / "dangling").symlink_to(folder / "unmounted")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize(
    ("path", "means"),
    [
        ("~/gone", "gone"),
        ("~/to_drive/gone", "drive/gone"),  # as it is called once it is there
        ("~/dangling", "unmounted"),
        ("~/drive", "drive"),
        ("~/web/../web", None),
    ],
)
def test_a_folder_that_is_missing_is_one_of_several(home, path, means):
    found = resolve_projects(["~/web", path])
    assert found == [home / "web", *([home / means] if means else [])]


@pytest.mark.parametrize("path", ["~", "~/notes.txt", "bad\0name", "~no such user~/x"])
def test_what_can_be_no_project_is_refused(home, path):
    with pytest.raises(ProjectError):
        resolve_projects(["~/web", path])


def test_of_all_missing_folders_nothing_is_searched(home):
    with pytest.raises(ProjectError, match="does not exist"):
        resolve_projects(["~/gone", "~/lost"])


def test_a_folder_that_cannot_be_looked_at_keeps_the_others_served(home):
    (home / "stale").symlink_to("n" * 300)  # `stat` fails, but not since nothing is there
    assert resolve_projects(["~/web", "~/stale"]) == [home / "web", home / ("n" * 300)]
    with pytest.raises(ProjectError, match="cannot be looked at"):
        resolve_projects(["~/stale"])
