"""The clients as a table: where each keeps its servers and what an entry looks like there. Data.

Each row follows the page of the client's documentation that it names. Where two files are given,
the first that exists is used, or the first.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vector_index_mcp.clients.edits import Syntax
from vector_index_mcp.clients.jsonc import Json
from vector_index_mcp.clients.toml import Toml

Scope = str
PROJECT, USER = "project", "user"
SCOPES = (PROJECT, USER)
AGENTS = "AGENTS.md"

# How long a first start may take on a busy machine. By default Codex gives a server 10 s to start,
# and OpenCode 5 s for every request; those that index take longest.
_START_SECONDS = 30
_REQUEST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    name: str
    """What `--client` takes."""
    title: str
    servers: str
    """The key of the object that holds the servers."""
    shape: Callable[[Sequence[str]], dict[str, Any]]
    """An entry by its command line."""
    files: Mapping[Scope, tuple[str, ...]]
    """Where its configuration lies, beginning with the name of a place."""
    signs: tuple[str, ...]
    """Files and folders that exist where it is installed."""
    command: str = ""
    """The program that is on the PATH where it is installed."""
    syntax: Syntax = Json()
    document: str = AGENTS
    """The file of a project that its agent reads as instructions; empty if it reads none."""
    then: str = ""
    """What a person does when the entry is in the usual scope."""

    @property
    def scope(self) -> Scope:
        """Where an entry goes by default: into a file of the project if the client reads one."""
        return PROJECT if PROJECT in self.files else USER

    def paths(self, scope: Scope, places: Mapping[str, Path]) -> list[Path]:
        """The files it may read in `scope`, the one that counts first."""
        found = [_path(file, places) for file in self.files.get(scope, ())]
        return sorted(found, key=lambda path: not os.path.lexists(path))

    def is_installed(self, places: Mapping[str, Path]) -> bool:
        """Whether this user seems to have it."""
        if self.command and shutil.which(self.command):
            return True
        return any(os.path.exists(_path(sign, places)) for sign in self.signs)


def _path(file: str, places: Mapping[str, Path]) -> Path:
    place, _, rest = file.partition("/")
    return places[place] / rest


def _plain(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


def _typed(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(words)}


def _codex(words: Sequence[str]) -> dict[str, Any]:
    return {**_plain(words), "startup_timeout_sec": _START_SECONDS}


def _opencode(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(words), "enabled": True, "timeout": _REQUEST_MS}


CLIENTS = (
    Client(  # "Connect Claude Code to tools via MCP"
        name="claude-code",
        title="Claude Code",
        servers="mcpServers",
        shape=_typed,
        files={PROJECT: ("project/.mcp.json",), USER: ("claude/.claude.json",)},
        signs=("claude/.claude.json", "home/.claude"),
        command="claude",
        syntax=Json(comments=False, trailing_commas=False),
        document="CLAUDE.md",
        then="start `claude` in the project; it asks once whether to use the server",
    ),
    Client(  # "Connect to local MCP servers" of modelcontextprotocol.io
        name="claude-desktop",
        title="Claude Desktop",
        servers="mcpServers",
        shape=_plain,
        files={USER: ("applications/Claude/claude_desktop_config.json",)},
        signs=("applications/Claude",),
        document="",
        then="quit and start it again",
    ),
    Client(  # "Model Context Protocol (MCP)"
        name="cursor",
        title="Cursor",
        servers="mcpServers",
        shape=_typed,
        files={PROJECT: ("project/.cursor/mcp.json",), USER: ("home/.cursor/mcp.json",)},
        signs=("home/.cursor",),
        command="cursor",
        then="enable the server in Settings, MCP, if it does not ask",
    ),
    Client(  # "MCP configuration reference"
        name="vscode",
        title="VS Code",
        servers="servers",
        shape=_typed,
        files={PROJECT: ("project/.vscode/mcp.json",), USER: ("applications/Code/User/mcp.json",)},
        signs=("applications/Code/User",),
        command="code",
        then="open the project; it asks once whether you trust the server",
    ),
    Client(  # "Model Context Protocol" and "Config basics" of Codex
        name="codex",
        title="Codex",
        servers="mcp_servers",
        shape=_codex,
        files={PROJECT: ("project/.codex/config.toml",), USER: ("codex/config.toml",)},
        signs=("codex",),
        command="codex",
        syntax=Toml(),
        then="start `codex` in the project; it reads the project's file once you trust the folder",
    ),
    Client(  # "MCP servers with Gemini CLI"
        name="gemini",
        title="Gemini CLI",
        servers="mcpServers",
        shape=_plain,
        files={PROJECT: ("project/.gemini/settings.json",), USER: ("home/.gemini/settings.json",)},
        signs=("home/.gemini",),
        command="gemini",
        syntax=Json(trailing_commas=False),
        document="GEMINI.md",
        then="start `gemini` in the project; it uses servers in folders you trust",
    ),
    Client(  # "Cascade MCP Integration"
        name="windsurf",
        title="Windsurf",
        servers="mcpServers",
        shape=_plain,
        files={USER: ("home/.codeium/windsurf/mcp_config.json",)},
        signs=("home/.codeium/windsurf",),
        command="windsurf",
        then="refresh the servers in Cascade's MCP panel",
    ),
    Client(  # "Model Context Protocol" and "Configuring Zed"
        name="zed",
        title="Zed",
        servers="context_servers",
        shape=_plain,
        files={PROJECT: ("project/.zed/settings.json",), USER: ("zed/settings.json",)},
        signs=("zed",),
        command="zed",
        then="open the project; it uses the server once you trust the folder",
    ),
    Client(  # "MCP servers" and "Config"
        name="opencode",
        title="OpenCode",
        servers="mcp",
        shape=_opencode,
        files={
            PROJECT: (
                "project/opencode.json",
                "project/opencode.jsonc",
                "project/.opencode/opencode.json",
                "project/.opencode/opencode.jsonc",
            ),
            USER: (
                "config/opencode/opencode.jsonc",
                "config/opencode/opencode.json",
                "config/opencode/config.json",
            ),
        },
        signs=("config/opencode",),
        command="opencode",
        then="start `opencode` in the project",
    ),
)
