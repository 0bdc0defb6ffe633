"""`install` and `uninstall` as somebody types them, and what a client then starts."""

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from installing import User
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import (
    ANSWER_SECONDS,
    COMMAND,
    MODEL_SECONDS,
    NO_MODEL,
    place_of,
    posix_only,
    run,
)
from writing import write

from vector_index_mcp.cli import COMMANDS
from vector_index_mcp.clients import command as commands
from vector_index_mcp.clients.catalog import CLIENTS
from vector_index_mcp.clients.client import PRIVATE, PROJECT
from vector_index_mcp.console.arguments import parse

pytestmark = pytest.mark.long

NAMES = [client.name for client in CLIENTS]


@pytest.fixture
def user(tmp_path) -> User:
    return User(tmp_path)


def configurations(user: User) -> dict:
    """The user's files without backups."""
    return {name: data for name, data in user.files().items() if not name.endswith(".bak")}


def servers(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))["mcpServers"]


def on_the_path(user: User) -> None:
    """Let the user's shell find the program by its name."""
    program = user.folder / "bin" / "vector-index-mcp"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


# -- install ---------------------------------------------------------------------------------


def test_every_client_at_once_and_nothing_else_is_touched(user):
    before = user.files()
    first = user.run("install", "--client", *NAMES, "--yes")
    assert (first.returncode, first.stderr) == (0, "")
    installed = user.files()
    assert sorted(installed.keys() - before.keys()) == [
        "home/.cline/data/settings/cline_mcp_settings.json",
        "home/.config/Claude/claude_desktop_config.json",
        "home/.config/devin/config.json",
        "home/.config/devin/mcp_config.json",
        "home/.lmstudio/mcp.json",
        "web/.agents/mcp_config.json",
        "web/.amp/settings.json",
        "web/.codex/config.toml",
        "web/.cursor/mcp.json",
        "web/.gemini/settings.json",
        "web/.github/mcp.json",
        "web/.junie/mcp/mcp.json",
        "web/.kilo/kilo.jsonc",
        "web/.kiro/settings/mcp.json",
        "web/.mcp.json",
        "web/.qwen/settings.json",
        "web/.vscode/mcp.json",
        "web/.zed/settings.json",
        "web/opencode.json",
    ]
    second = user.run("install", "--client", *NAMES, "--yes")
    assert (second.returncode, second.stdout.count("already there, as `web`")) == (0, len(NAMES))
    assert user.files() == installed
    assert user.run("uninstall", "--yes").returncode == 0
    assert user.files() == before


def test_the_users_files_on_request(user):
    before = user.files()
    assert user.run("install", "--client", *NAMES, "--scope", "user", "--yes").returncode == 0
    new = user.files().keys() - before.keys()
    assert len(new) == len(NAMES)
    assert all(name.startswith("home/") for name in new)
    assert user.run("uninstall", "--scope", "project", "--yes").returncode == 0
    assert user.files().keys() - before.keys() == new
    assert user.run("uninstall", "--scope", "user", "--yes").returncode == 0
    assert user.files() == before


def test_the_change_is_shown_and_without_a_terminal_it_needs_a_yes(user):
    write(user.project, {".mcp.json": '{\n  "mcpServers": {}\n}\n'})
    before = user.files()
    shown = user.run("install", "--client", "claude-code")
    assert shown.returncode == 2
    assert "give --yes" in shown.stderr
    assert '-  "mcpServers": {}' in shown.stdout
    assert '+      "args": ["${CLAUDE_PROJECT_DIR:-.}"]' in shown.stdout
    assert user.files() == before


@pytest.mark.parametrize("also", [[], ["--yes"]])
def test_a_dry_run_shows_the_change_and_writes_nothing(user, also):
    before = user.files()
    shown = user.run("install", "--client", "cursor", "--dry-run", *also)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "+++ " in shown.stdout
    assert user.files() == before
    user.run("install", "--client", "cursor", "--yes")
    before = user.files()
    shown = user.run("uninstall", "--dry-run", *also)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "--- " in shown.stdout
    assert user.files() == before


@posix_only
@pytest.mark.parametrize("keys", ["n\n", "what?\nNo\n", "\x04"])
def test_nothing_is_written_without_a_yes(user, keys):
    before = user.files()
    refused = user.type(keys, "install", "--client", "cursor")
    assert refused.returncode == 1
    assert refused.stdout.endswith("nothing was written\n")
    assert user.files() == before


@posix_only
def test_the_clients_found_are_offered(user):
    user.has(".cursor", ".codex")
    write(user.home, {".gemini/settings.json": "{}\n"})
    chosen = user.type("4\n1, gemini\n\n", "install")
    assert chosen.returncode == 0
    assert "  1  Cursor (cursor)\n  2  Codex (codex)\n  3  Gemini CLI (gemini)\n" in chosen.stdout
    assert sorted(user.files()) == [
        "home/.gemini/settings.json",
        "web/.cursor/mcp.json",
        "web/.gemini/settings.json",
        "web/app.py",
    ]


@posix_only
def test_choosing_none_of_those_found_writes_nothing(user):
    user.has(".cursor", ".codex")
    assert user.type("\x04", "install").returncode == 1
    assert sorted(user.files()) == ["web/app.py"]


def test_with_a_yes_every_client_found_is_taken(user):
    user.has(".cursor", ".codeium/windsurf")
    assert user.run("install", "--yes").returncode == 0
    assert sorted(user.files()) == [
        "home/.config/devin/mcp_config.json",
        "web/.cursor/mcp.json",
        "web/app.py",
    ]
    assert "already there" in user.run("install", "--yes", "--scope", "user").stdout


def test_with_another_scope_than_a_chosen_one_an_entry_is_left_alone(user):
    user.has(".codex")
    project = user.folder / "web/.codex/config.toml"
    assert user.run("install", "--client", "codex", "--scope", "project", "--yes").returncode == 0
    before = user.files()
    more = ("--also", str(user.folder / "api"))
    (user.folder / "api").mkdir()
    said = user.run("install", "--client", "codex", "--scope", "user", *more, "--yes").stdout
    assert f"already there, as `web` in {project}, with --scope project; leave --scope out" in said
    assert user.files() == before
    assert user.run("install", "--client", "codex", *more, "--yes").returncode == 0
    assert str(user.folder / "api") in project.read_text()


def test_when_no_client_is_found_the_names_are_given(user):
    failed = user.run("install", "--yes")
    assert failed.returncode == 2
    assert all(name in failed.stderr for name in NAMES)


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_an_unknown_client_is_answered_with_those_known(user, command):
    failed = user.run(command, "--client", "emacs", "--yes")
    assert failed.returncode == 2
    assert "'emacs' is not a client this program knows" in failed.stderr
    assert all(name in failed.stderr for name in NAMES)
    assert failed.stderr.endswith(f"; clients: {' '.join(NAMES)}\n")


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_the_help_names_every_client_on_two_lines(user, command):
    shown = user.run(command, "--help").stdout.splitlines()
    last = " ".join(shown[-2:])
    assert last == f"clients: {' '.join(NAMES)}"
    private = " ".join(client.name for client in CLIENTS if PRIVATE in client.files)
    said = f"private: yours for this project alone, which these have: {private} --yes"
    assert said in " ".join(" ".join(shown).split())


@pytest.mark.parametrize(
    ("name", "meant"), [("claud-code", "claude-code"), ("Zed", "zed"), ("windsrf", "windsurf")]
)
def test_the_nearest_client_is_suggested(user, name, meant):
    failed = user.run("install", "--client", name, "--yes")
    assert failed.returncode == 2
    assert f"{name!r} is not a client this program knows; did you mean {meant}?" in failed.stderr


def test_a_scope_that_a_client_lacks_is_told(user):
    failed = user.run("install", "--client", "windsurf", "--scope", "project", "--yes")
    assert failed.returncode == 2
    assert "(Windsurf) has no configuration for --scope project" in failed.stderr
    failed = user.run("install", "--client", "cursor", "--scope", "private", "--yes")
    assert failed.returncode == 2
    assert "Cursor has no configuration for --scope private" in failed.stderr


def test_a_client_goes_by_its_former_name_as_well(user):
    assert user.run("install", "--client", "windsurf,devin", "--yes").returncode == 0
    assert sorted(user.files()) == ["home/.config/devin/mcp_config.json", "web/app.py"]


def test_where_windsurf_is_installed_its_file_is_used_and_cleared(user):
    old = ".codeium/windsurf/mcp_config.json"
    write(user.home, {old: '{"mcpServers": {}}\n'})
    before = user.files()
    assert user.run("install", "--yes").returncode == 0
    assert list(servers(user.home / old)) == ["web"]
    write(user.home, {".config/devin/mcp_config.json": "{}\n"})  # as its successor makes it
    assert "already there" in user.run("install", "--client", "devin", "--yes").stdout
    assert user.run("uninstall", "--yes").returncode == 0
    (user.home / ".config/devin/mcp_config.json").unlink()
    assert user.files() == before


def test_the_private_scope_is_claude_codes_entry_for_this_project(user):
    user.has(".cursor", ".claude")
    config = user.home / ".claude.json"
    write(user.home, {".claude.json": '{"numStartups": 3}\n'})
    before = user.files()
    assert user.run("install", "--scope", "private", "--yes").returncode == 0
    said = json.loads(config.read_text(encoding="utf-8"))
    entry = said["projects"][str(user.project)]["mcpServers"]["web"]
    assert entry["args"] == [str(user.project)]
    assert set(user.files()) - set(before) == {"home/.claude.json.bak"}
    assert "already there" in user.run("install", "--client", "claude-code", "--yes").stdout
    nothing = user.run("uninstall", "--scope", "user", "--yes")
    assert nothing.stdout == "no client has an entry for this project\n"
    assert user.run("uninstall", "--scope", "private", "--yes").returncode == 0
    assert user.files() == before


def test_what_a_team_shares_names_no_path_of_this_machine(user):
    on_the_path(user)
    names = [client.name for client in CLIENTS if client.folder]
    written = user.run("install", "--client", *names, "--yes")
    assert (written.returncode, "warning" in written.stdout) == (0, False)
    for path in user.project.rglob("*"):
        assert path.is_dir() or str(user.folder) not in path.read_text(encoding="utf-8")
    assert user.run("uninstall", "--yes").returncode == 0
    assert not (user.project / ".mcp.json").exists()


def test_another_project_is_added_to_an_entry_that_exists(user):
    on_the_path(user)
    other = user.folder / "other"
    other.mkdir()
    install = ("install", "--client", "cursor", "--yes")
    assert user.run(*install).returncode == 0
    added = user.run(*install, "--also", str(other))
    assert (added.returncode, "is not on your PATH" in added.stdout) == (0, False)
    entry = servers(user.project / ".cursor/mcp.json")["web"]
    assert entry["command"] == "vector-index-mcp"
    assert entry["args"] == ["${workspaceFolder}", str(other)]
    assert f'"args": ["${{workspaceFolder}}", "{other}"]' in added.stdout
    assert "already there" in user.run(*install, "--also", str(other)).stdout


def test_a_path_of_this_machine_in_a_team_s_file_is_told_with_the_change(user):
    names = [client.name for client in CLIENTS if PROJECT in client.files]
    shown = user.run("install", "--client", *names)
    assert shown.stdout.count("warning: th") == len(names)
    assert "only on this machine: " in shown.stdout
    assert (
        "only on this machine"
        not in user.run("install", "--client", "cursor", "--scope", "user").stdout
    )


@pytest.mark.parametrize(
    "arguments",
    ["{project} --client cursor zed", "--client cursor zed {project}", "--client cursor,zed"],
)
def test_the_path_may_stand_on_either_side_of_the_clients(user, arguments):
    words = shlex.split(arguments.format(project=user.project))
    assert user.run("install", *words, "--yes").returncode == 0
    assert sorted(user.files()) == ["web/.cursor/mcp.json", "web/.zed/settings.json", "web/app.py"]


def test_a_broken_file_stops_its_client_only(user):
    write(user.project, {".cursor/mcp.json": '{\n  "mcpServers": {\n'})
    before = user.files()
    mixed = user.run("install", "--client", "cursor", "claude-code", "--yes")
    assert mixed.returncode == 1
    assert f"{user.project}/.cursor/mcp.json, line 2: " in mixed.stderr
    assert set(user.files().items()) - set(before.items()) == {
        ("web/.mcp.json", user.files()["web/.mcp.json"])
    }
    assert user.run("uninstall", "--yes").returncode == 1
    assert user.files() == before


def test_what_a_terminal_would_obey_is_not_printed(user):
    write(user.project, {".cursor/mcp.json": "{ // \x1b[2J\n}\n"})
    assert "\x1b" not in user.run("install", "--client", "cursor").stdout


@posix_only
def test_a_link_is_shown_with_what_it_leads_to(user):
    target = user.home / "dotfiles" / "mcp.json"
    write(user.home, {"dotfiles/mcp.json": "{}\n"})
    (user.home / ".cursor").mkdir()
    (user.home / ".cursor" / "mcp.json").symlink_to(target)
    written = user.run("install", "--client", "cursor", "--scope", "user", "--yes")
    assert f"Cursor (a link to {target})\n" in written.stdout
    assert list(servers(target)) == ["web"]


@posix_only
def test_a_project_whose_name_no_file_can_hold_is_told(user):
    folder = os.fsencode(user.folder) + b"/caf\xe9"
    try:
        os.mkdir(folder)  # noqa: PTH102 - its name is bytes
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    chosen = ("--client", "cursor", "zed", "--scope", "user", "--yes")
    failed = user.run("install", os.fsdecode(folder), *chosen)
    assert failed.returncode == 1
    assert failed.stderr.count("not UTF-8; rename") == 2
    assert sorted(user.files()) == ["web/app.py"]


def test_an_env_file_goes_into_the_entry(user):
    write(user.project, {"settings": ""})
    user.run("--env-file", "settings", "install", "--client", "claude-code", "--yes")
    entry = servers(user.project / ".mcp.json")["web"]
    folder = "${CLAUDE_PROJECT_DIR:-.}"
    assert entry["args"][-3:] == ["--env-file", f"{folder}/settings", folder]


def test_a_home_folder_is_refused(user):
    refused = user.run("install", "~", "--client", "cursor", "--yes")
    assert refused.returncode == 2
    assert "home folder" in refused.stderr
    assert sorted(user.files()) == ["web/app.py"]


# -- uninstall -------------------------------------------------------------------------------


def test_other_projects_keep_their_entries(user):
    other = write(user.folder / "other" / "web", {"a.py": ""})
    for project in (user.project, other):
        assert user.run("install", project, "--client", "windsurf", "--yes").returncode == 0
    config = user.home / ".config" / "devin" / "mcp_config.json"
    assert list(servers(config)) == ["web", "web-2"]
    assert user.run("uninstall", user.project, "--yes").returncode == 0
    assert list(servers(config)) == ["web-2"]


def test_a_project_that_is_gone_can_be_taken_out(user):
    user.run("install", "--client", "windsurf", "--yes")
    (user.project / "app.py").unlink()
    gone = user.project.rename(user.folder / "renamed")
    removed = run("uninstall", user.project, "--yes", cwd=gone, variables=user.variables)
    assert removed.returncode == 0
    assert user.files() == {}


def test_where_nothing_is_there_is_nothing_to_take_out(user):
    nothing = user.run("uninstall", "--yes")
    assert (nothing.returncode, nothing.stdout) == (0, "no client has an entry for this project\n")


def unread(user: User, *arguments: str) -> int:
    """The status of a command whose output has no reader any more."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [*COMMAND, *arguments],
            cwd=user.project,
            env=user.variables,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    finally:
        os.close(writing)
    return ran.returncode


def test_what_is_written_does_not_depend_on_who_reads(user):
    before = user.files()
    names = ["cursor", "vscode", "zed"]
    assert unread(user, "install", "--client", *names) == 1
    assert user.files() == before  # nobody has seen what was asked
    assert unread(user, "install", "--client", *names, "--yes") == 0
    assert set(user.files()) - set(before) == {
        *("web/.cursor/mcp.json", "web/.vscode/mcp.json", "web/.zed/settings.json")
    }
    assert unread(user, "uninstall", "--yes") == 0
    assert user.files() == before


def test_who_stops_reading_when_the_first_file_is_written_stops_no_other(user, monkeypatch):
    class Torn(io.StringIO):
        def write(self, text: str) -> int:
            if "wrote" in text:
                raise BrokenPipeError
            return super().write(text)

    monkeypatch.chdir(user.project)
    monkeypatch.setenv("HOME", str(user.home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user.home / ".config"))
    monkeypatch.setattr(sys, "stdout", Torn())
    parsed = parse(["install", "--client", "cursor", "vscode", "zed", "--yes"], COMMANDS)
    assert commands.install(parsed, allow_broad=False) == 0
    assert {"web/.cursor/mcp.json", "web/.vscode/mcp.json", "web/.zed/settings.json"} <= set(
        user.files()
    )


def folders(user: User) -> set[str]:
    """Every folder of the project and the home."""
    found = [p for root in (user.project, user.home) for p in root.rglob("*") if p.is_dir()]
    return {path.relative_to(user.folder).as_posix() for path in found}


@pytest.mark.parametrize("scope", ["project", "user"])
def test_folders_that_were_made_go_with_the_file(user, scope):
    names = [client.name for client in CLIENTS if scope in client.files]
    assert user.run("install", "--client", *names, "--scope", scope, "--yes").returncode == 0
    assert {"project": "web/.cursor", "user": "home/.cursor"}[scope] in folders(user)
    assert user.run("uninstall", "--yes").returncode == 0
    assert folders(user) <= {
        *("home/.agents", "home/.cline/data", "home/.cline", "home/.codex", "home/.config"),
        *("home/.config/zed", "home/.copilot", "home/.qwen"),
    }  # where a user keeps all that is configured


def test_folders_that_hold_anything_else_stay_and_so_do_links(user):
    (user.project / "elsewhere").mkdir()
    (user.project / ".vscode").symlink_to("elsewhere")
    names = ["cursor", "vscode", "junie"]
    installed = user.run("install", "--client", *names, "--scope", "project", "--yes")
    assert installed.returncode == 0
    write(user.project, {".cursor/rules": "", ".junie/other": ""})
    assert user.run("uninstall", "--yes").returncode == 0
    assert folders(user) >= {"web/.cursor", "web/.junie", "web/elsewhere"}
    assert "web/.junie/mcp" not in folders(user)
    assert (user.project / ".vscode").is_symlink()


# -- the section of AGENTS.md ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "clients", "expected"),
    [
        ({}, "claude-code cursor", ["AGENTS.md"]),
        ({"CLAUDE.md": "# Us\n"}, "claude-code", ["CLAUDE.md"]),
        ({"CLAUDE.md": "# Us\n"}, "cursor", ["AGENTS.md"]),
        ({"CLAUDE.md": "# Us\n"}, "claude-code cursor", ["AGENTS.md", "CLAUDE.md"]),
        ({"CLAUDE.md": "@AGENTS.md\n", "AGENTS.md": "# Us"}, "claude-code", ["AGENTS.md"]),
        ({"GEMINI.md": "# Us\n", "CLAUDE.md": "# Us\n"}, "gemini", ["GEMINI.md"]),
        ({"GEMINI.md": "# Us\n"}, "antigravity", ["GEMINI.md"]),
        ({}, "gemini", ["GEMINI.md"]),
        ({"AGENTS.md": "# Us\n"}, "gemini", ["GEMINI.md"]),
        ({"GEMINI.md": "@./AGENTS.md\n", "AGENTS.md": "# Us\n"}, "gemini", ["AGENTS.md"]),
        ({}, "antigravity qwen copilot", ["AGENTS.md"]),
        ({"QWEN.md": "# Us\n"}, "qwen", ["QWEN.md"]),
        ({"CLAUDE.md": "# Us\n"}, "claude-desktop", []),
    ],
)
def test_the_section_goes_where_the_clients_look(user, files, clients, expected):
    write(user.project, files)
    before = user.files()
    arguments = ["--client", *clients.split(), "--agents-md", "--yes"]
    assert user.run("install", *arguments).returncode == 0
    marked = [path.name for path in sorted(user.project.glob("*.md")) if is_marked(path)]
    assert marked == expected
    installed = user.files()
    assert user.run("install", *arguments).returncode == 0
    assert user.files() == installed
    assert user.run("uninstall", "--agents-md", "--yes").returncode == 0
    assert user.files() == before


def is_marked(path: Path) -> bool:
    return "search_index" in path.read_text(encoding="utf-8")


def test_one_document_under_two_names_is_written_once(user):
    write(user.project, {"CLAUDE.md": "# Us\n"})
    (user.project / "AGENTS.md").symlink_to("CLAUDE.md")
    both = user.run("install", "--client", "claude-code", "zed", "--agents-md", "--yes")
    assert (both.returncode, both.stderr) == (0, "")
    assert (user.project / "CLAUDE.md").read_text().count("search_index") == 1


def test_uninstall_says_where_the_section_still_is(user):
    user.run("install", "--client", "zed", "--agents-md", "--yes")
    left = user.run("uninstall", "--yes")
    assert "AGENTS.md: still says when to search" in left.stdout
    assert is_marked(user.project / "AGENTS.md")


# -- what a client starts --------------------------------------------------------------------


# -- documents -------------------------------------------------------------------------------


def test_documents_go_into_the_users_files_and_out_again(user):
    assert user.run("install", "--client", *NAMES, "--scope", "user", "--yes").returncode == 0
    before = configurations(user)
    first = user.run("install", "--set", "documents", "--client", *NAMES, "--yes")
    assert (first.returncode, first.stderr) == (0, "")
    assert configurations(user).keys() == before.keys()
    entries = servers(user.home / ".cursor/mcp.json")
    assert entries.keys() == {"web", "documents"}
    assert entries["documents"]["args"] == ["documents", "mcp"]
    again = user.run("install", "--set", "documents", "--client", *NAMES, "--yes")
    assert again.stdout.count("already there, as `documents`") == len(NAMES)
    assert user.run("uninstall", "--set", "documents", "--yes").returncode == 0
    assert configurations(user) == before


def test_documents_of_another_index_have_an_entry_of_their_own(user):
    for index in ("work", "index"):
        arguments = ("--set", "documents", "--index", index, "--client", "cursor", "--yes")
        assert user.run("install", *arguments).returncode == 0
    assert user.run("uninstall", "--set", "documents", "--yes").returncode == 0
    [entry] = servers(user.home / ".cursor/mcp.json").values()
    assert entry["args"] == ["documents", "mcp", "--index", "work"]
    none = user.run("uninstall", "--set", "documents", "--yes")
    assert (none.returncode, none.stdout) == (0, "no client has an entry for these documents\n")


@pytest.mark.parametrize("index", ["", "../x", "a/b", "a\nb", "x" * 300])
def test_an_index_that_no_command_would_take_gets_no_entry(user, index):
    before = user.files()
    arguments = ("--set", "documents", f"--index={index}", "--client", "cursor", "--yes")
    for command in ("install", "uninstall"):
        told = user.run(command, *arguments)
        assert (told.returncode, "cannot be the name of an index" in told.stderr) == (2, True)
    assert user.files() == before


def test_documents_are_installed_from_anywhere_but_say_nothing_to_agents_of_a_project(user):
    told = user.run("install", "--set", "documents", "--agents-md", "--client", "cursor", "--yes")
    assert (told.returncode, "the tools explain themselves" in told.stderr) == (2, True)
    arguments = ("install", user.home, "--set", "documents", "--client", "cursor", "--yes")
    assert user.run(*arguments).returncode == 0


# -- notes -----------------------------------------------------------------------------------


def test_notes_go_into_the_users_files_and_out_again(user):
    assert user.run("install", "--client", *NAMES, "--scope", "user", "--yes").returncode == 0
    before = configurations(user)
    first = user.run("install", "--set", "notes", "--client", *NAMES, "--yes")
    assert (first.returncode, first.stderr) == (0, "")
    entries = servers(user.home / ".cursor/mcp.json")
    assert entries["notes"]["args"] == ["notes", "serve"]
    again = user.run("install", "--set", "notes", "--client", *NAMES, "--yes")
    assert again.stdout.count("already there, as `notes`") == len(NAMES)
    assert user.run("uninstall", "--set", "notes", "--yes").returncode == 0
    assert configurations(user) == before


def test_notes_of_another_folder_have_an_entry_of_their_own(user):
    team = user.home / ".team"
    for chosen in ((), ("--home", team)):
        told = user.run("install", "--set", "notes", *chosen, "--client", "cursor", "--yes")
        assert told.returncode == 0
    assert user.run("uninstall", "--set", "notes", "--yes").returncode == 0
    entries = servers(user.home / ".cursor/mcp.json")
    assert entries["notes-team"]["args"] == ["notes", "serve", "--home", str(team)]
    assert "notes" not in entries


def test_each_folder_of_datasets_has_an_entry_of_its_own(user):
    for folder in (user.home / "datasets", user.home / "team"):
        arguments = ("install", folder, "--set", "datasets", "--client", "cursor", "--yes")
        assert user.run(*arguments).returncode == 0
    entries = servers(user.home / ".cursor/mcp.json")
    assert entries["datasets"]["args"] == ["datasets", "serve", str(user.home / "datasets")]
    assert entries["datasets-team"]["args"] == ["datasets", "serve", str(user.home / "team")]
    told = user.run("uninstall", user.home / "team", "--set", "datasets", "--yes")
    assert told.returncode == 0
    assert set(servers(user.home / ".cursor/mcp.json")) & {"datasets", "datasets-team"} == {
        "datasets"
    }


def test_what_is_taken_out_in_a_home_folder_is_taken_out_once(user):
    arguments = ("--set", "notes", "--client", "cursor", "--yes")
    assert user.run("install", user.home, *arguments).returncode == 0
    told = user.run("uninstall", user.home, *arguments)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("chosen", "tool"),
    [
        ((), "search_index"),
        (("--set", "documents"), "multi_get"),
        (("--set", "notes"), "get_project_main"),
        (("--set", "datasets"), "knowledge.search"),
    ],
)
async def test_a_client_gets_its_tools_from_the_entry_as_it_is_written(chosen, tool):
    with place_of({"app.py": "def main():\n    pass\n"}, **NO_MODEL) as place:
        scope = ("--scope", "project")
        arguments = ("install", place.project, *chosen, "--client", "claude-code", *scope, "--yes")
        assert (await place.run(*arguments)).returncode == 0
        [entry] = servers(place.project / ".mcp.json").values()
        words = [word.replace("${CLAUDE_PROJECT_DIR:-.}", ".") for word in entry["args"]]
        parameters = StdioServerParameters(  # started in the project's folder, as Claude Code does
            command=entry["command"], args=words, env=place.variables, cwd=place.project
        )
        with (place.folder / "stderr.txt").open("w", encoding="utf-8") as stderr:
            transport = stdio_client(parameters, errlog=stderr)
            async with Client(transport, read_timeout_seconds=MODEL_SECONDS) as client:
                tools = (await client.list_tools()).tools
        assert tool in [each.name for each in tools]


def test_the_commands_are_in_the_help(user):
    shown = subprocess.run(
        [*COMMAND, "--help"], env=user.variables, capture_output=True, text=True, check=True
    ).stdout
    assert "vector-index-mcp install [PATH]" in shown
    assert "vector-index-mcp uninstall [PATH]" in shown
