"""Where each client keeps its configuration, on each platform."""

import re
from pathlib import Path

import pytest

from vector_index_mcp.clients.catalog import CLIENTS
from vector_index_mcp.clients.client import PRIVATE, PROJECT, SCOPES, USER
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
    "antigravity": ".agents/mcp_config.json",
    "copilot": ".github/mcp.json",
    "kilo": ".kilo/kilo.jsonc",
    "qwen": ".qwen/settings.json",
    "amp": ".amp/settings.json",
    "junie": ".junie/mcp/mcp.json",
    "kiro": ".kiro/settings/mcp.json",
}
EVERYWHERE_IN_THE_HOME = {
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "antigravity": ".gemini/config/mcp_config.json",
    "devin": ".config/devin/mcp_config.json",
    "devin-cli": ".config/devin/config.json",
    "copilot": ".copilot/mcp-config.json",
    "cline": ".cline/data/settings/cline_mcp_settings.json",
    "kilo": ".config/kilo/kilo.jsonc",
    "qwen": ".qwen/settings.json",
    "amp": ".config/amp/settings.json",
    "junie": ".junie/mcp/mcp.json",
    "kiro": ".kiro/settings/mcp.json",
    "lm-studio": ".lmstudio/mcp.json",
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
    assert first_files(PRIVATE, where) == {"claude-code": HOME / ".claude.json"}


def test_variables_of_the_clients_are_followed():
    variables = {"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/a"}
    files = first_files(USER, places(WEB, HOME, "linux", variables))
    assert files["zed"] == Path("/x/zed/settings.json")
    assert files["opencode"] == Path("/x/opencode/opencode.jsonc")
    assert files["vscode"] == Path("/x/Code/User/mcp.json")
    assert files["codex"] == Path("/c/config.toml")
    assert files["claude-code"] == Path("/a/.claude.json")
    more = {"COPILOT_HOME": "/p", "QWEN_HOME": "/q", "CLINE_DIR": "/l"}
    files = first_files(USER, places(WEB, HOME, "linux", more))
    assert files["copilot"] == Path("/p/mcp-config.json")
    assert files["qwen"] == Path("/q/settings.json")
    assert files["cline"] == Path("/l/data/settings/cline_mcp_settings.json")
    files = first_files(USER, places(WEB, HOME, "linux", {**more, "CLINE_DATA_DIR": "/d"}))
    assert files["cline"] == Path("/d/settings/cline_mcp_settings.json")
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


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_row_says_where_its_format_is_from_and_when_it_was_looked_up(client):
    assert re.fullmatch(r"(npm|page:) .+, 20\d\d-\d\d-\d\d", client.source)
    assert set(client.files) <= set(SCOPES)
    assert client.around.keys() <= client.files.keys()


def test_there_are_twelve_clients_and_no_name_is_there_twice():
    names = [name for client in CLIENTS for name in (client.name, *client.also)]
    assert len(CLIENTS) >= 12
    assert len(names) == len(set(names))


def test_what_antigravity_leaves_is_no_sign_of_gemini(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    where = places(tmp_path / "web", tmp_path, "linux", {})
    (tmp_path / ".gemini" / "antigravity-cli").mkdir(parents=True)
    assert [c.name for c in CLIENTS if c.is_installed(where)] == ["antigravity"]
    (tmp_path / ".gemini" / "settings.json").touch()
    assert [c.name for c in CLIENTS if c.is_installed(where)] == ["gemini", "antigravity"]
