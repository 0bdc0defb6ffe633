"""Configurations of a megabyte that are made to keep us busy: each is answered in seconds.

Without their defences these take minutes to hours, or all memory; pytest's limit of time ends them.
"""

import subprocess
import sys

import pytest

from vector_index_mcp.clients import guide, screen
from vector_index_mcp.clients.configs import Change
from vector_index_mcp.clients.edits import EditError
from vector_index_mcp.clients.jsonc import Json
from vector_index_mcp.clients.target import target_of

BYTES = 1_000_000
MOST_MEMORY_BYTES = 2_000_000_000


def filled(unit: str) -> str:
    return unit * (BYTES // len(unit))


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{" + filled('"\\'), id="strings that never end"),
        pytest.param("{" + filled("/*"), id="comments that never end"),
        pytest.param('{"a":' + filled("["), id="brackets"),
        pytest.param(filled('{"a":'), id="objects"),
    ],
)
def test_json_that_is_none_is_refused_at_once(text):
    with pytest.raises(EditError):
        Json().read(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" + ".a" * 30_000 + "=1", id="a dotted key"),
        pytest.param("[a" + ".a" * 3_000 + "]\n" + "b.c=1\n" * 100_000, id="below a dotted header"),
    ],
)
def test_toml_nested_beyond_measure_is_refused_in_little_memory(tmp_path, text):
    resource = pytest.importorskip("resource")
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    code = (
        "import sys\n"
        "from vector_index_mcp.clients.edits import EditError\n"
        "from vector_index_mcp.clients.toml import Toml\n"
        "try: Toml().read(open(sys.argv[1]).read())\n"
        "except EditError as error: sys.exit(str(error))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "config.toml"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES)
        ),
    )
    assert ran.stderr == "it is nested too deeply\n"


def test_an_ordinary_toml_with_long_strings_is_read():
    from vector_index_mcp.clients.toml import Toml

    long = "see https://a.example/b. " * 1_000
    data = Toml().read(f'about = "{long}"\n' + "".join(f"[a.b.c{n}]\nx=1.5\n" for n in range(500)))
    assert data["about"] == long


def test_a_section_that_begins_again_and_again_has_no_end():
    text = filled("<!-- vector-index-mcp: start -->")
    assert not guide.is_in(text)
    assert guide.removed(guide.added("# Us\n") + text) == "# Us\n" + text


@pytest.mark.slow
def test_a_change_of_a_long_file_is_shown_at_once(tmp_path, capsys):
    before = filled("".join(f"{n}\n" for n in range(200)))
    after = before.replace("7\n", "7\nours\n", 1)
    target = target_of(tmp_path / "AGENTS.md")
    screen.show("AGENTS.md", Change(target, before.encode(), after.encode()))
    assert "@@ -6,6 +6,7 @@\n 5\n 6\n 7\n+ours\n 8\n 9\n 10\n" in capsys.readouterr().out
    screen.show(
        "AGENTS.md", Change(target, before.encode(), before[:-4].replace("0", "1").encode())
    )
    assert " become " in capsys.readouterr().out
