"""The section in AGENTS.md: added once, renewed in its place, removed without a trace."""

import re

import pytest

from vector_index_mcp.clients import guide

TEXTS = ["", "# Rules\n", "# Rules", "# Rules\n\n", "\n", "# Rules\r\n\r\nBe kind.\r\n", "a\r\nb"]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_added_once_and_removed_without_a_trace(text):
    added = guide.added(text)
    assert added.startswith(text)
    assert "search_index" in added
    assert guide.is_in(added) and not guide.is_in(text)
    assert guide.added(added) == added
    assert guide.removed(added) == text


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_its_lines_end_as_the_others(newline):
    added = guide.added(f"# Rules{newline}")
    assert set(re.findall(r"\r?\n", added)) == {newline}


def test_text_around_it_stays():
    text = guide.added("# Rules\n") + "\n# More\n"
    assert guide.removed(text) == "# Rules\n\n# More\n"


def test_an_older_wording_is_renewed_in_its_place():
    today = guide.added("# Rules\n") + "\n# More\n"
    older = today.replace("search_index", "search")
    assert older != today
    assert guide.added(older) == today


def test_what_is_not_there_is_not_removed():
    assert guide.removed("# Rules\n") == "# Rules\n"
