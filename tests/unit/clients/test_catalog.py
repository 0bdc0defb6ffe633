"""Where each client keeps its configuration, on each platform."""

from pathlib import Path

import pytest

from vector_index_mcp.clients.catalog import CLIENTS, PROJECT, USER
from vector_index_mcp.clients.places import places

HOME, WEB = Path("/home/ada"), Path("/home/ada/web")
SUPPORT = "Library/Application Support"
ROAMING = "AppData/Roaming"

IN_THE_PROJECT = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "zed": ".zed/settings.json",
    "opencode": "opencode.json",
}
EVERYWHERE_IN_THE_HOME = {
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "opencode": ".config/opencode/opencode.jsonc",
}
IN_THE_HOME = {
    "linux": {
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "vscode": ".config/Code/User/mcp.json",
        "zed": ".config/zed/settings.json",
    },
    "darwin": {
        "claude-desktop": f"{SUPPORT}/Claude/claude_desktop_config.json",
        "vscode": f"{SUPPORT}/Code/User/mcp.json",
        "zed": ".config/zed/settings.json",
    },
    "win32": {
        "claude-desktop": f"{ROAMING}/Claude/claude_desktop_config.json",
        "vscode": f"{ROAMING}/Code/User/mcp.json",
        "zed": f"{ROAMING}/Zed/settings.json",
    },
}


def first_files(scope: str, where: dict[str, Path]) -> dict[str, Path]:
    return {c.name: c.paths(scope, where)[0] for c in CLIENTS if scope in c.files}


@pytest.mark.parametrize("platform", IN_THE_HOME)
def test_the_files_of_each_platform(platform):
    where = places(WEB, HOME, platform, {})
    in_the_home = EVERYWHERE_IN_THE_HOME | IN_THE_HOME[platform]
    assert first_files(PROJECT, where) == {n: WEB / file for n, file in IN_THE_PROJECT.items()}
    assert first_files(USER, where) == {n: HOME / file for n, file in in_the_home.items()}


def test_variables_of_the_clients_are_followed():
    variables = {"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/a"}
    files = first_files(USER, places(WEB, HOME, "linux", variables))
    assert files["zed"] == Path("/x/zed/settings.json")
    assert files["opencode"] == Path("/x/opencode/opencode.jsonc")
    assert files["vscode"] == Path("/x/Code/User/mcp.json")
    assert files["codex"] == Path("/c/config.toml")
    assert files["claude-code"] == Path("/a/.claude.json")
    windows = places(WEB, HOME, "win32", {"APPDATA": "/r", "CODEX_HOME": ""})
    assert first_files(USER, windows)["zed"] == Path("/r/Zed/settings.json")
    assert first_files(USER, windows)["codex"] == HOME / ".codex/config.toml"


def test_of_two_files_the_one_that_exists_is_used(tmp_path):
    where = places(tmp_path, tmp_path, "linux", {})
    (tmp_path / "opencode.jsonc").touch()
    assert first_files(PROJECT, where)["opencode"] == tmp_path / "opencode.jsonc"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_is_found_by_its_folder_or_its_command(client, tmp_path, monkeypatch):
    where = places(tmp_path / "web", tmp_path, "linux", {})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not client.is_installed(where)
    client.paths(USER, where)[0].parent.mkdir(parents=True, exist_ok=True)
    client.paths(USER, where)[0].touch()
    assert client.is_installed(where)
    if client.command:
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        command = tmp_path / "bin" / client.command
        command.parent.mkdir()
        command.write_text("#!/bin/sh\n")
        command.chmod(0o755)
        assert client.is_installed(places(tmp_path / "web", tmp_path / "other", "linux", {}))
