"""Which command is written, and which one is recognised as ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from vector_index_mcp.clients import launch
from vector_index_mcp.clients.launch import Launch
from vector_index_mcp.clients.served import Collections, Project

PROJECT = Path("/home/ada/web")
WEB = Project(PROJECT)


@pytest.mark.parametrize(
    "words",
    [
        ["/home/ada/.local/bin/vector-index-mcp", "/home/ada/web"],
        ["vector-index-mcp", "serve", "/home/ada/web", "--foreground"],
        ["vector-index-mcp", "--env-file", "/home/ada/settings", "/home/ada/web"],
        ["C:\\tools\\vector-index-mcp.exe", "/home/ada/web/"],
        ["/usr/bin/python3", "-m", "vector_index_mcp", "/home/ada/x/../web"],
        ["/usr/bin/python3", "-P", "-m", "vector_index_mcp", "/home/ada/web"],
        ["uvx", "vector-index-mcp[offline]", "/home/ada/web"],
        ["uvx", "--from", "vector-index-mcp==1.0", "vector-index-mcp", "/home/ada/web"],
        ["uvx", "--python", "3.12", "--offline", "vector-index-mcp@latest", "/home/ada/web"],
        ["uv", "--directory", "/x/vector-index-mcp", "run", "vector-index-mcp", "/home/ada/web"],
        ["uv", "tool", "run", "vector-index-mcp", "/home/ada/web"],
        [
            "pipx",
            "run",
            "--spec",
            "./vector-index-mcp[offline]",
            "vector-index-mcp",
            "/home/ada/web",
        ],
        ["env", "HF_HUB_OFFLINE=1", "/opt/bin/vector-index-mcp", "/home/ada/web"],
        ["cmd.exe", "/c", "vector-index-mcp.cmd", "/home/ada/web"],
        ["uvx", "--python-platform", "linux", "vector-index-mcp", "/home/ada/web"],
        ["/venv/bin/python3.12", "-P", "/venv/bin/vector-index-mcp", "/home/ada/web"],
    ],
)
def test_a_command_line_of_ours_is_recognised(words):
    assert launch.serves(words, WEB, None)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["vector-index-mcp"],
        ["vector-index-mcp", "/home/ada/webshop"],
        ["vector-index-mcp", "/home/ada"],
        ["vector-index-mcp", "."],
        ["vector-index-mcp", "\0"],
        ["other-mcp", "/home/ada/web"],
        ["my-vector-index-mcp", "/home/ada/web"],
        ["other-mcp", "/home/ada/web", "--instead-of", "vector-index-mcp"],
        ["npx", "server-filesystem", "/x/vector-index-mcp", "/home/ada/web"],
        ["/x/bin/server-filesystem", "/x/vector-index-mcp", "/home/ada/web"],
        ["python3", "/x/server.py", "/x/vector-index-mcp", "/home/ada/web"],
        ["uvx", "--from", "vector-index-mcp", "other-mcp", "vector-index-mcp", "/home/ada/web"],
        ["uv", "--directory", "/x/vector-index-mcp", "run", "other-mcp", "/home/ada/web"],
        ["uv", "run"],
        ["env", "-C", "/x/vector-index-mcp", "/home/ada/web"],
    ],
)
def test_any_other_command_line_is_not(words):
    assert not launch.serves(words, WEB, None)


@pytest.mark.parametrize("path", [".", "./", "${workspaceFolder}", "/home/ada/web"])
def test_inside_the_project_a_relative_path_counts_from_there(path):
    assert launch.serves(["vector-index-mcp", path], WEB, PROJECT)
    assert not launch.serves(["vector-index-mcp", "src"], WEB, PROJECT)
    assert not launch.serves(["vector-index-mcp", "--foreground"], WEB, PROJECT)


@pytest.mark.parametrize(
    ("words", "index"),
    [
        (["vector-index-mcp", "documents", "mcp"], "index"),
        (["vector-index-mcp", "documents", "serve"], "index"),
        (["uvx", "vector-index-mcp", "--env-file", "/e", "documents", "mcp"], "index"),
        (["vector-index-mcp", "--env-file=/e", "documents", "--index", "work", "mcp"], "work"),
        (["vector-index-mcp", "documents", "mcp", "--index=work"], "work"),
    ],
)
def test_a_command_that_serves_documents_is_told_from_all_others(words, index):
    assert launch.serves(words, Collections(index), None)
    assert not launch.serves(words, Collections("other"), None)
    assert not launch.serves(words, Project(Path("/e")), Path("/e"))


@pytest.mark.parametrize(
    "words",
    [
        ["qmd", "documents", "mcp"],
        ["vector-index-mcp", "/home/ada/documents", "mcp"],
        ["vector-index-mcp", "documents"],
        ["vector-index-mcp", "documents", "search", "mcp"],
        ["vector-index-mcp", "documents", "mcp", "--unheard-of"],
        ["vector-index-mcp", "--env-file"],
    ],
)
def test_what_serves_no_documents(words):
    assert not launch.serves(words, Collections(), PROJECT)


@pytest.mark.parametrize("served", [WEB, Collections(), Collections("work")])
def test_what_is_written_is_recognised(served):
    words = Launch(served, ("/bin/vector-index-mcp",), ("--env-file", "/settings")).words
    assert launch.serves(words, served, None)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "a", "args": ["b"]}, ["a", "b"]),
        ({"command": ["a", "b"]}, ["a", "b"]),
        ({"command": "a", "args": [1, None, ""]}, ["a"]),
        ({"url": "https://example.com"}, []),
        ({"command": {"path": "a"}}, []),
        ("a", []),
        (None, []),
    ],
)
def test_the_command_line_of_any_entry(entry, words):
    assert launch.words_of(entry) == words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/gone/vector-index-mcp", "--env-file", "e", "p"], ["/new", "--env-file", "e", "p"]),
        (["/gone/python", "-m", "vector_index_mcp", "p"], ["/new", "p"]),
    ],
)
def test_another_program_keeps_the_options(words, expected):
    assert launch.with_program(words, ["/new"]) == expected


@pytest.mark.parametrize(
    ("folder", "taken", "name"),
    [
        ("web", [], "web"),
        ("web", ["docs"], "web"),
        ("web", ["web"], "web-2"),
        ("web", ["Web", "web-2", "web-4"], "web-3"),
        ("My Project (2)", [], "My-Project-2"),
        ("snake_case.io", [], "snake-case-io"),
        ("Größe", [], "Groe"),
        ("日本", [], "project"),
        ("日本", ["project"], "project-2"),
        ("-._", [], "project"),
        ("workspace", [], "workspace-2"),
        ("x" * 50, [], "x" * 40),
        ("x" * 50, ["x" * 40], "x" * 38 + "-2"),
    ],
)
def test_the_name_is_the_folders_and_legal_and_free(folder, taken, name):
    assert launch.name_for(folder, taken) == name


def program(folder: Path) -> Path:
    path = folder / "vector-index-mcp"
    folder.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_program_is_the_one_that_runs_and_its_link_is_kept(tmp_path):
    link = tmp_path / "bin" / "vector-index-mcp"
    link.parent.mkdir()
    link.symlink_to(program(tmp_path / "venv"))
    assert launch.this_program(str(link)) == (str(link),)


def test_started_as_a_module_it_is_the_script_beside_python(tmp_path, monkeypatch):
    script = program(tmp_path / "scripts")
    monkeypatch.setattr(launch.sysconfig, "get_path", lambda name: str(tmp_path / name))
    assert launch.this_program("/x/vector_index_mcp/__main__.py") == (str(script),)
    script.unlink()
    module = (sys.executable, "-P", "-m", "vector_index_mcp")
    assert launch.this_program("/x/vector_index_mcp/__main__.py") == module
    assert launch.with_program([*module, "p"], ["/new"]) == ["/new", "p"]


@pytest.mark.slow
def test_started_as_a_module_it_runs_no_code_of_the_project(tmp_path, monkeypatch):
    monkeypatch.setattr(launch.sysconfig, "get_path", lambda _: str(tmp_path / "no scripts"))
    for name in ("json.py", "vector_index_mcp.py"):
        (tmp_path / name).write_text("raise SystemExit('the project was run')")
    words = launch.this_program("/x/vector_index_mcp/__main__.py")
    ran = subprocess.run(
        [*words, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("/home/ada/.cache/uv/archive-v0/x/bin/vector-index-mcp", True),
        ("/Users/ada/Library/Caches/uv/x/bin/vector-index-mcp", True),
        ("/home/ada/.local/bin/vector-index-mcp", False),
        ("/home/ada/cached/bin/vector-index-mcp", False),
    ],
)
def test_a_program_in_a_cache_is_noticed(program, expected):
    assert Launch(WEB, (program,)).lies_in_a_cache is expected
