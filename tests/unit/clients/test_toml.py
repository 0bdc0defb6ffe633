"""Editing TOML, compared with what tomllib reads before and after."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.clients import edits
from vector_index_mcp.clients.edits import EditError
from vector_index_mcp.clients.toml import Toml

PATH = ("mcp_servers", "web")
ENTRY = {"command": 'C:\\a "b"\x7f', "args": ["ü", "[x]"], "startup_timeout_sec": 30}

pieces = st.sampled_from(
    [
        "# a comment [mcp_servers.web]\n",
        "\n",
        "\n\n",
        '[mcp_servers.{n}]\ncommand = "x" # why\n',
        '[mcp_servers.{n}]\n# of a table\nargs = [\n  "[y]", # ]\n  "#",\n]\n\n',
        "  [ mcp_servers . \"{n}\" . env ]\n  A = '''\n[mcp_servers.web]\n'''\n",
        '[[list{n}]]\n"mcp_servers.web" = {{ a = {{ b = "}}" }} }}\n',
        '[table{n}]\nwhen = 1979-05-27T07:32:00Z\nx.y."z = 1" = """\n"#""" # ""\n',
    ]
)


@st.composite
def texts(draw) -> str:
    """A configuration as somebody may have written it."""
    drawn = draw(st.lists(pieces, max_size=6))
    text = "model = \"m\"\nmcp_servers.first.command = ''\n" if draw(st.booleans()) else ""
    text += "".join(piece.format(n=number) for number, piece in enumerate(drawn))
    text = text.removesuffix("\n") if draw(st.booleans()) else text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(texts())
def test_adding_adds_and_changes_nothing_else(text):
    after = Toml().add(text, PATH, ENTRY)
    before = tomllib.loads(text)
    before.setdefault("mcp_servers", {})["web"] = ENTRY
    assert tomllib.loads(after) == before
    assert after.startswith(text)


@given(texts())
def test_removing_what_was_added_leaves_every_byte_as_it_was(text):
    assert Toml().remove(Toml().add(text, PATH, ENTRY), PATH) == text


@given(texts(), texts())
def test_what_comes_after_it_stays(text, later):
    later = "".join(f"# {line}\n" for line in later.splitlines())
    text = text and text.removesuffix("\n") + "\n"
    added = Toml().add(text, PATH, ENTRY)
    assert Toml().remove(added + later, PATH) == text + later


@given(texts())
def test_replacing_replaces_and_changes_nothing_else(text):
    added = Toml().add(text, PATH, ENTRY)
    after = Toml().replace(added, (*PATH, "args"), ["z"])
    before = tomllib.loads(added)
    before["mcp_servers"]["web"]["args"] = ["z"]
    assert tomllib.loads(after) == before


def test_all_of_a_table_goes_and_comments_around_it_stay():
    text = (
        "# above\n\n[mcp_servers.web]\n# inside\ncommand = 'x'\n\n[mcp_servers.web.env]\nA = '1'\n"
        "\n# of the next\n[mcp_servers.docs]\ncommand = 'y'\n\n[mcp_servers.web.tools]\nB = 1\n"
    )
    assert edits.removed(Toml(), text, PATH) == (
        "# above\n\n# of the next\n[mcp_servers.docs]\ncommand = 'y'\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[mcp_servers]\nweb = { command = 'x', args = [\n'a'] } # ours\ndocs = {}\n",
            "[mcp_servers]\ndocs = {}\n",
        ),
        ("mcp_servers.web.command = 'x'\nmcp_servers.docs = {}\n", "mcp_servers.docs = {}\n"),
        (
            "[mcp_servers]\nweb.command = 'x'\nweb.args = []\ndocs = {}\n",
            "[mcp_servers]\ndocs = {}\n",
        ),
        ("[mcp_servers.web]\ncommand = 'x'", ""),
    ],
)
def test_an_entry_in_another_form_is_removed(text, expected):
    assert edits.removed(Toml(), text, PATH) == expected


def test_an_inline_table_of_servers_is_left_to_a_person():
    text = "mcp_servers = { web = { command = 'x' }, docs = { command = 'y' } }\n"
    with pytest.raises(EditError, match="inline table"):
        edits.added(Toml(), text, ("mcp_servers", "new"), ENTRY)
    with pytest.raises(EditError, match="inline table"):
        edits.removed(Toml(), text, PATH)
    with pytest.raises(EditError, match="not on a line of its own"):
        edits.replaced(Toml(), text, (*PATH, "command"), "z")


def test_what_is_wrong_is_told_with_its_line():
    with pytest.raises(EditError) as caught:
        Toml().read("a = 1\nb = = 2\n")
    assert (caught.value.line, str(caught.value)) == (2, "Invalid value")


@pytest.mark.parametrize(
    ("text", "reason"), [("a = " + "1" * 5000, "4300 digits"), ("a = " + "[" * 5000, "too deeply")]
)
def test_a_value_beyond_measure_is_told(text, reason):
    with pytest.raises(EditError, match=reason):
        Toml().read(text)
