"""The file in which a browser gets a link: for the user alone, where the browser can read it."""

import stat
import sys
from pathlib import Path

import pytest

from vector_index_mcp.page.handover import Handover, folders_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="looks at POSIX modes")


def test_a_file_is_for_the_user_s_eyes_and_says_where_to_go(tmp_path):
    path = Handover("abc", [tmp_path]).write("http://127.0.0.1:1/", "s<cret>")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.suffix == ".html"
    assert "s<" not in path.name
    text = path.read_text("utf-8")
    assert 'action="http://127.0.0.1:1/"' in text
    assert 'value="s&lt;cret&gt;"' in text


def test_what_is_left_is_removed_and_nothing_else(tmp_path):
    folders = [tmp_path / "home", tmp_path / "run"]
    for folder in folders:
        folder.mkdir()
    others = [
        Handover("abcd", folders).write("http://x/", "token"),
        folders[0] / "vector-index-mcp-abc-notes.html",
        folders[1] / "abc.json",
    ]
    for path in others[1:]:
        path.write_text("mine")
    for order in (folders, folders[::-1]):  # the machine has got snaps meanwhile, or lost them
        Handover("abc", order).write("http://x/", "token")
    Handover("abc", [*folders, tmp_path / "nowhere"]).remove_left()
    assert sorted(path for folder in folders for path in folder.iterdir()) == sorted(others)


def test_a_link_at_its_place_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("vector_index_mcp.page.handover.secrets.token_hex", lambda _: "00")
    (tmp_path / "vector-index-mcp-abc-00.html").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        Handover("abc", [tmp_path]).write("http://x/", "token")
    assert not (tmp_path / "elsewhere").exists()


def test_browsers_that_are_snaps_read_no_hidden_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    runtime = Path("/run/user/1000/vector-index-mcp")
    assert folders_for(runtime, has_snaps=True) == [tmp_path, runtime]
    assert folders_for(runtime, has_snaps=False) == [runtime]
