"""What `install` shows of configurations that others wrote."""

from vector_index_mcp.clients import screen
from vector_index_mcp.clients.configs import Change
from vector_index_mcp.clients.target import target_of


def test_what_a_terminal_would_obey_is_shown_in_a_change_and_around_it(tmp_path, capsys):
    target = target_of(tmp_path / "a\x1bb.json")
    screen.show("A", Change(target, None, "evil \x1b[2J \u202e\xad 👩\u200d💻\r\n".encode()))
    screen.say("a\nb\x9b")
    screen.complain("c\x9b")
    told = capsys.readouterr()
    assert "warning" not in told.out
    assert "+++ " + str(tmp_path) + "/a\\x1bb.json\n" in told.out
    assert "+evil \\x1b[2J \\u202e\\xad 👩\u200d💻\n" in told.out
    assert told.out.endswith("a\nb\\x9b\n")
    assert told.err == "vector-index-mcp: c\\x9b\n"


def test_a_warning_stands_below_its_change_and_commands_no_terminal(tmp_path, capsys):
    change = Change(target_of(tmp_path / "a.json"), None, b"{}\n")
    screen.show("A", change, "this path is \x1b[2J")
    assert capsys.readouterr().out.endswith("+{}\nwarning: this path is \\x1b[2J\n")
