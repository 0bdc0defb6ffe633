"""Which project somebody means who stands in a folder, or names one that lies in a project."""

import os
import shutil

import pytest

from vector_index_mcp.codebase import project
from vector_index_mcp.codebase.project import repository_around
from vector_index_mcp.indexing.opening.ownership import Records

INDEX = ".lancedb"
NOBODY = 65_534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def enclosing(state):
    return lambda folder, configured: project.enclosing(folder, configured, state)


@pytest.fixture
def indexed_above(state):
    return lambda folder, configured: project.indexed_above(folder, configured, state)


@pytest.fixture
def deep(tmp_path):
    folder = tmp_path / "one/two/three"
    folder.mkdir(parents=True)
    return folder


def test_without_any_sign_there_is_none(deep, enclosing, indexed_above):
    assert enclosing(deep, INDEX) is None
    assert indexed_above(deep, INDEX) is None


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "package.json", "go.mod"])
def test_the_nearest_that_looks_like_a_project_is_meant(tmp_path, deep, mark, enclosing):
    (tmp_path / "one" / ".git").mkdir()
    (tmp_path / "one/two" / mark).touch()
    assert enclosing(deep, INDEX) == tmp_path / "one/two"


def test_one_that_is_indexed_comes_before_one_that_looks_like_it(
    tmp_path, deep, state, enclosing, indexed_above
):
    Records(state).make(tmp_path / "one" / INDEX)
    (tmp_path / "one/two/package.json").touch()
    assert enclosing(deep, INDEX) == tmp_path / "one" == indexed_above(deep, INDEX)
    Records(state).make(deep / INDEX)
    assert indexed_above(deep, INDEX) == deep


def test_an_index_that_is_not_ours_says_nothing_of_the_folders_below(
    tmp_path, deep, state, enclosing, indexed_above
):
    (tmp_path / "one" / INDEX).mkdir()
    Records(tmp_path / "state of another user").make(tmp_path / "one/two" / INDEX)
    assert indexed_above(deep, INDEX) is None
    assert enclosing(deep, INDEX) is None
    Records(state).make(tmp_path / "ours")
    shutil.rmtree(tmp_path / "one" / INDEX)
    (tmp_path / "one" / INDEX).symlink_to(tmp_path / "ours")
    assert indexed_above(deep, INDEX) is None


@as_root
def test_an_index_that_was_given_to_somebody_else_is_not_ours(tmp_path, deep, state, indexed_above):
    Records(state).make(tmp_path / "one" / INDEX)
    assert indexed_above(deep, INDEX) == tmp_path / "one"
    os.chown(tmp_path / "one" / INDEX, NOBODY, NOBODY)
    assert indexed_above(deep, INDEX) is None


@as_root
@pytest.mark.parametrize("mark", [".git", "pyproject.toml"])
def test_marks_of_strangers_make_no_project(tmp_path, deep, enclosing, mark):
    (tmp_path / "one" / mark).mkdir()
    os.chown(tmp_path / "one" / mark, NOBODY, NOBODY)
    assert enclosing(deep, INDEX) is None
    (tmp_path / mark).mkdir()
    assert enclosing(deep, INDEX) == tmp_path
    os.chown(tmp_path, NOBODY, NOBODY)  # who could have moved it there
    assert enclosing(deep, INDEX) is None


@as_root
def test_in_a_folder_of_somebody_else_his_marks_count(tmp_path, deep, enclosing):
    (tmp_path / "one/.git").mkdir()
    for path in (tmp_path / "one", tmp_path / "one/.git", deep):
        os.chown(path, NOBODY, NOBODY)
    assert enclosing(deep, INDEX) == tmp_path / "one"


def test_the_repository_around_a_folder_is_the_nearest(tmp_path, deep):
    assert repository_around(deep) is None
    (tmp_path / "one/.git").mkdir()
    assert repository_around(deep) == tmp_path / "one"
    (tmp_path / "one/two/.git").touch()  # a linked work tree, or a submodule
    assert repository_around(deep) == tmp_path / "one/two"


@pytest.mark.parametrize("place", ["s3://bucket/index", "/somewhere/else", "~/indexes"])
def test_an_index_that_lies_elsewhere_says_nothing_of_a_folder(
    tmp_path, deep, place, enclosing, indexed_above
):
    (tmp_path / "one/two/.git").mkdir()
    assert indexed_above(deep, place) is None
    assert enclosing(deep, place) == tmp_path / "one/two"


def test_a_home_folder_is_nobodys_project(tmp_path, deep, state, enclosing, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    Records(state).make(tmp_path / INDEX)
    assert enclosing(deep, INDEX) is None
