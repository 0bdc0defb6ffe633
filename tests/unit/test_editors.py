"""Links to editors: whatever a file is called, and whatever a setting says."""

from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.editors import KNOWN, link, template_of

LINKS = {
    "vscode": "vscode://file/home/ada/shop/a%20b.py:12",
    "cursor": "cursor://file/home/ada/shop/a%20b.py:12",
    "zed": "zed://file/home/ada/shop/a%20b.py:12",
    "idea": "idea://open?file=/home/ada/shop/a%20b.py&line=12",
    "myeditor://{path}#{line}": "myeditor:///home/ada/shop/a%20b.py#12",
    "e://open/?line={line}&f={path}": "e://open/?line=12&f=/home/ada/shop/a%20b.py",
}
HOSTILE = [
    "javascript:alert(1)//{path}{line}",
    "JavaScript://%0aalert(1)//{path}{line}",
    " javascript://{path}{line}",
    "java\tscript://{path}{line}",
    "\x01javascript://{path}{line}",
    "javascript\n://{path}{line}",
    "data:text/html,<script>{path}{line}",
    "data://text/html,{path}{line}",
    "vbscript://{path}{line}",
    "blob:http://127.0.0.1/{path}{line}",
    "view-source:http://{path}{line}",
    "http://evil.example/{path}/{line}",
    "HTTPS://evil.example/{path}/{line}",
    "file://{path}#{line}",
    "//evil.example/{path}{line}",
    "/{path}:{line}",
    "{path}://{line}",
    "{path}:{line}",
    "x://{path}:{line}:{column}",
    "x://{path}:{path}:{line}",
    "x://{path}",
    "x://{line}",
    'x://{path}:{line}"onclick="',
    "x://{path}:{line}<script>",
    "x://{path} {line}",
    "x://{path}:{line}\n",
    "x://{path}:{line}" + "x" * 1_000,
    "x:{path}:{line}",
    "ſcript://{path}:{line}",
    "vim",
    "",
]


@pytest.mark.parametrize(("setting", "expected"), LINKS.items())
def test_a_link_is_what_the_editor_understands(setting, expected):
    assert link(template_of(setting), PurePosixPath("/home/ada/shop/a b.py"), 12) == expected


def test_a_path_of_windows_keeps_its_drive():
    path = PureWindowsPath(r"C:\shop\a.py")
    assert link(KNOWN["vscode"], path, 1) == "vscode://file/C%3A/shop/a.py:1"


def test_no_editor_has_no_template():
    assert template_of("none") == template_of("None") == ""


@pytest.mark.parametrize("setting", HOSTILE)
def test_what_a_browser_would_follow_itself_is_refused(setting):
    with pytest.raises(ValueError, match=r"known|itself|once each"):
        template_of(setting)


@pytest.mark.parametrize("setting", LINKS)
@given(
    name=st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"])),
    line=st.integers(1),
)
def test_no_name_means_anything_in_a_link(setting, name, line):
    path = PurePosixPath(f"/shop/{name}")
    template = template_of(setting)
    made = link(template, path, line)
    assert made.isascii()
    assert made.isprintable()
    assert not set(made) & set(" \"'<>\\^`{|}")
    assert urlsplit(made).scheme == template.partition(":")[0]
    plain = link(template, PurePosixPath("/shop/x"), line)
    for mark in "?&#:":
        assert made.count(mark) == plain.count(mark)
    assert path.as_posix().encode() in unquote_to_bytes(made)


def test_bytes_that_are_no_text_stay_themselves():
    assert link(KNOWN["zed"], PurePosixPath("/a/\udcff.py"), 3) == "zed://file/a/%FF.py:3"
