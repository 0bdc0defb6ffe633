"""Where collections and their index lie: what variables and names make of it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.home import Home, home_of
from vector_index_mcp.errors import SettingsError

HERE = Path("/here")


def home(name="index", **environment):
    return home_of(name, {"HOME": "/home/ann", **environment}, HERE)


def test_without_variables_both_lie_in_the_home_folder():
    assert home() == Home(
        "index",
        Path("/home/ann/.config/qmd/index.yml"),
        "/home/ann/.cache/qmd/index.lancedb",
    )


def test_the_name_picks_both():
    named = home("team")
    assert named.configuration.name == "team.yml"
    assert named.index.endswith("/qmd/team.lancedb")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/x/i.sqlite", "/x/i.lancedb"),
        ("/x/i.lancedb", "/x/i.lancedb"),
        ("/x/i", "/x/i.lancedb"),
        ("/x/i/", "/x/i.lancedb"),
        ("/x/i.db", "/x/i.db.lancedb"),
        ("/x/../y/i.sqlite", "/y/i.lancedb"),
        ("i.sqlite", "/here/i.lancedb"),
        ("~/i.sqlite", "/home/ann/i.lancedb"),
        ("~ann/i.sqlite", "/here/~ann/i.lancedb"),
        ("", "/home/ann/.cache/qmd/index.lancedb"),
    ],
)
def test_the_index_lies_beside_the_file_that_index_path_names(value, expected):
    assert home(INDEX_PATH=value).index == expected


def test_index_path_holds_for_every_name():
    assert home("team", INDEX_PATH="/x/i.sqlite").index == "/x/i.lancedb"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"QMD_CONFIG_DIR": "/c", "XDG_CONFIG_HOME": "/d"}, "/c/index.yml"),
        ({"QMD_CONFIG_DIR": "c"}, "/here/c/index.yml"),
        ({"QMD_CONFIG_DIR": "~/c"}, "/home/ann/c/index.yml"),
        ({"QMD_CONFIG_DIR": "", "XDG_CONFIG_HOME": "/d"}, "/d/qmd/index.yml"),
        ({"XDG_CONFIG_HOME": "relative"}, "/home/ann/.config/qmd/index.yml"),
        ({"XDG_CONFIG_HOME": ""}, "/home/ann/.config/qmd/index.yml"),
    ],
)
def test_the_configuration_lies_where_the_first_variable_says(environment, expected):
    assert home(**environment).configuration == Path(expected)


def test_the_cache_may_lie_elsewhere():
    assert home(XDG_CACHE_HOME="/e").index == "/e/qmd/index.lancedb"
    assert home(XDG_CACHE_HOME="e").index == "/home/ann/.cache/qmd/index.lancedb"


@pytest.mark.parametrize("variable", ["INDEX_PATH", "QMD_CONFIG_DIR"])
@pytest.mark.parametrize("value", ["s3://bucket/index", "a\0b"])
def test_what_is_no_path_is_refused(variable, value):
    with pytest.raises(SettingsError, match=variable):
        home(**{variable: value})


def test_the_root_is_no_index():
    with pytest.raises(SettingsError, match="INDEX_PATH"):
        home(INDEX_PATH="/..")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "../a", "/a", "-a", "--help", "a\n", "a\0", "\x1b[2J", " a", "a "]
    + ["\udc80", "a" * 201, "ü" * 101, "x" * 10_000],
)  # fmt: skip
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(SettingsError, match="name of an index; use") as refused:
        home(name)
    assert len(str(refused.value)) < 1_000


@pytest.mark.slow
@given(st.text(max_size=80))
def test_a_name_leads_nowhere_else(name):
    try:
        found = home(name)
    except SettingsError:
        return
    assert found.configuration.parent == Path("/home/ann/.config/qmd")
    assert Path(found.index).parent == Path("/home/ann/.cache/qmd")


@pytest.mark.parametrize("name", ["a.sqlite", "a.lancedb", "a.yml"])
def test_a_name_is_no_other_name(name):
    assert home(name).index != home("a").index
    assert home(name).configuration != home("a").configuration
