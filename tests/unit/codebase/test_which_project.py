"""Which project somebody means who stands in a folder, or names one that lies in a project."""

import pytest

from vector_index_mcp.codebase.project import enclosing, indexed_above, repository_around

INDEX = ".lancedb"


@pytest.fixture
def deep(tmp_path):
    folder = tmp_path / "one/two/three"
    folder.mkdir(parents=True)
    return folder


def test_without_any_sign_it_is_the_folder_itself(deep):
    assert enclosing(deep, INDEX) == deep
    assert indexed_above(deep, INDEX) is None


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "package.json", "go.mod"])
def test_the_nearest_that_looks_like_a_project_is_meant(tmp_path, deep, mark):
    (tmp_path / "one" / ".git").mkdir()
    (tmp_path / "one/two" / mark).touch()
    assert enclosing(deep, INDEX) == tmp_path / "one/two"


def test_one_that_is_indexed_comes_before_one_that_looks_like_it(tmp_path, deep):
    (tmp_path / "one" / INDEX).mkdir()
    (tmp_path / "one/two/package.json").touch()
    assert enclosing(deep, INDEX) == tmp_path / "one" == indexed_above(deep, INDEX)
    (deep / INDEX).mkdir()
    assert indexed_above(deep, INDEX) == deep


def test_the_repository_around_a_folder_is_the_nearest(tmp_path, deep):
    assert repository_around(deep) is None
    (tmp_path / "one/.git").mkdir()
    assert repository_around(deep) == tmp_path / "one"
    (tmp_path / "one/two/.git").touch()  # a linked work tree, or a submodule
    assert repository_around(deep) == tmp_path / "one/two"


@pytest.mark.parametrize("place", ["s3://bucket/index", "/somewhere/else", "~/indexes"])
def test_an_index_that_lies_elsewhere_says_nothing_of_a_folder(tmp_path, deep, place):
    (tmp_path / "one/two/.git").mkdir()
    assert indexed_above(deep, place) is None
    assert enclosing(deep, place) == tmp_path / "one/two"


def test_a_home_folder_is_nobodys_project(tmp_path, deep, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / INDEX).mkdir()
    assert enclosing(deep, INDEX) == deep
