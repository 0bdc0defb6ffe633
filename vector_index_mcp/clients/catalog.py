"""The table of the clients: the files of each, and the format of an entry in them. Data.

`source` says where the format was looked up, and when: in the package of the client or, if it has
none that can be read, on a page of its documentation. Such a page was not read again on that day.
If several files are given, the first that exists is used; if none exists, the first.
"""

from collections.abc import Sequence
from typing import Any

from vector_index_mcp.clients.client import (
    PRIVATE,
    PROJECT,
    REPOSITORY,
    STARTED_THERE,
    USER,
    Client,
    Form,
)
from vector_index_mcp.clients.jsonc import Json
from vector_index_mcp.clients.toml import Toml

_GEMINI = "GEMINI.md"
# A first start may take this long on a busy machine. By default, Codex waits 10 s for a start, and
# OpenCode 5 s for every request; requests that index take longest.
_START_SECONDS = 30
_REQUEST_MS = 60_000


def _plain(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


def _typed(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(words)}


def _codex(words: Sequence[str]) -> dict[str, Any]:
    return {**_plain(words), "startup_timeout_sec": _START_SECONDS}


def _opencode(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(words), "enabled": True, "timeout": _REQUEST_MS}


def _opencode_2(words: Sequence[str]) -> dict[str, Any]:
    timeout = {"startup": _START_SECONDS * 1000, "request": _REQUEST_MS}
    return {"type": "local", "command": list(words), "timeout": timeout}


def _copilot(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", **_plain(words), "tools": ["*"]}


CLIENTS = (
    Client(
        name="claude-code",
        title="Claude Code",
        source="npm @anthropic-ai/claude-code 2.1.330, 2026-11-23",
        servers="mcpServers",
        shape=_typed,
        files={
            PROJECT: ("project/.mcp.json",),
            USER: ("claude/.claude.json",),
            PRIVATE: ("claude/.claude.json",),
        },
        around={PRIVATE: ("projects", REPOSITORY)},
        folder="${CLAUDE_PROJECT_DIR:-.}",
        signs=("claude/.claude.json", "home/.claude"),
        command="claude",
        syntax=Json(comments=False, trailing_commas=False),
        document="CLAUDE.md",
        then="start `claude` in the project; it asks once whether to use the server",
    ),
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        source="page: modelcontextprotocol.io, 'Connect to local MCP servers', 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={USER: ("applications/Claude/claude_desktop_config.json",)},
        signs=("applications/Claude",),
        document="",
        then="quit Claude Desktop and start it again",
    ),
    Client(
        name="cursor",
        title="Cursor",
        source="page: cursor.com/docs, 'Model Context Protocol (MCP)', 2026-11-23",
        servers="mcpServers",
        shape=_typed,
        folder="${workspaceFolder}",
        files={PROJECT: ("project/.cursor/mcp.json",), USER: ("home/.cursor/mcp.json",)},
        signs=("home/.cursor",),
        command="cursor",
        then="enable the server in Settings, MCP, if Cursor does not ask",
    ),
    Client(
        name="vscode",
        title="VS Code",
        source="page: code.visualstudio.com/docs, 'MCP configuration reference', 2026-11-23",
        servers="servers",
        shape=_typed,
        folder="${workspaceFolder}",
        files={PROJECT: ("project/.vscode/mcp.json",), USER: ("applications/Code/User/mcp.json",)},
        signs=("applications/Code/User",),
        command="code",
        then="open the project; it asks once whether you trust the server",
    ),
    Client(
        name="codex",
        title="Codex",
        source="npm @openai/codex 0.169.0; its documentation, 'Model Context Protocol', 2026-11-23",
        servers="mcp_servers",
        shape=_codex,
        folder=STARTED_THERE,
        files={PROJECT: ("project/.codex/config.toml",), USER: ("codex/config.toml",)},
        signs=("codex",),
        command="codex",
        syntax=Toml(),
        then="start `codex` in the project; it reads the project's file once you trust the folder",
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        source="npm @google/gemini-cli 0.61.0, docs/tools/mcp-server.md, 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        folder=STARTED_THERE,
        files={PROJECT: ("project/.gemini/settings.json",), USER: ("home/.gemini/settings.json",)},
        signs=(  # not the folder alone, since Antigravity uses it too
            "home/.gemini/settings.json",
            "home/.gemini/oauth_creds.json",
            "home/.gemini/google_accounts.json",
        ),
        command="gemini",
        syntax=Json(trailing_commas=False),
        document=_GEMINI,
        reads_agents=False,
        then="start `gemini` in the project; it uses servers in folders you trust",
    ),
    Client(
        name="antigravity",
        title="Antigravity",
        source="page: antigravity.google/docs, 'MCP'; `agy`: @google/gemini-cli 0.61.0, 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={
            PROJECT: ("project/.agents/mcp_config.json",),
            USER: (
                "home/.gemini/config/mcp_config.json",
                "home/.gemini/antigravity/mcp_config.json",
            ),
        },
        signs=(
            "home/.gemini/config/mcp_config.json",
            "home/.gemini/antigravity",
            "home/.gemini/antigravity-cli",
        ),
        command="agy",
        document=_GEMINI,
        then="start `agy` in the project, or refresh the servers in the agent's panel",
    ),
    Client(
        name="devin",
        title="Devin Desktop (Windsurf)",
        source="page: docs.devin.ai, 'Cascade MCP Integration', 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={
            USER: ("config/devin/mcp_config.json", "home/.codeium/windsurf/mcp_config.json"),
        },
        signs=("config/devin/mcp_config.json", "home/.codeium/windsurf"),
        command="windsurf",
        also=("windsurf",),
        then="refresh the servers in Cascade's MCP panel",
    ),
    Client(
        name="devin-cli",
        title="Devin CLI",
        source="page: docs.devin.ai, 'Configuration' of the CLI, 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={USER: ("config/devin/config.json",)},
        signs=("config/devin/config.json",),
        command="devin",
        then="start `devin` in the project",
    ),
    Client(
        name="zed",
        title="Zed",
        source="page: zed.dev/docs, 'Model Context Protocol', 2026-11-23",
        servers="context_servers",
        shape=_plain,
        folder=STARTED_THERE,
        files={PROJECT: ("project/.zed/settings.json",), USER: ("zed/settings.json",)},
        signs=("zed",),
        command="zed",
        then="open the project; it uses the server once you trust the folder",
    ),
    Client(
        name="opencode",
        title="OpenCode",
        source="npm opencode-ai 1.18.34, ConfigV2.MCP for the second form, 2026-11-23",
        servers="mcp",
        shape=_opencode,
        second=Form(("mcp", "servers"), _opencode_2),
        folder=STARTED_THERE,
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
    Client(
        name="copilot",
        title="GitHub Copilot CLI",
        source="npm @github/copilot 1.0.61, `copilot mcp` and changelog.json, 2026-11-23",
        servers="mcpServers",
        shape=_copilot,
        folder=STARTED_THERE,
        files={PROJECT: ("project/.github/mcp.json",), USER: ("copilot/mcp-config.json",)},
        signs=("copilot",),
        command="copilot",
        syntax=Json(comments=False, trailing_commas=False),
        then="start `copilot` in the project; it uses the server once you trust the folder",
    ),
    Client(
        name="cline",
        title="Cline",
        source="npm cline 3.0.65; docs.cline.bot, 'Adding MCP servers', for VS Code, 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={
            USER: (
                "cline/settings/cline_mcp_settings.json",
                "applications/Code/User/globalStorage/saoudrizwan.claude-dev/settings"
                "/cline_mcp_settings.json",
            ),
        },
        signs=("cline", "applications/Code/User/globalStorage/saoudrizwan.claude-dev"),
        command="cline",
        syntax=Json(comments=False, trailing_commas=False),
        then="begin a new task",
    ),
    Client(
        name="kilo",
        title="Kilo Code",
        source="npm @kilocode/cli 7.7.9, its configuration reference, 2026-11-23",
        servers="mcp",
        shape=_opencode,
        folder=STARTED_THERE,
        files={
            PROJECT: (
                "project/.kilo/kilo.jsonc",
                "project/.kilo/kilo.json",
                "project/kilo.jsonc",
                "project/kilo.json",
            ),
            USER: ("config/kilo/kilo.jsonc", "config/kilo/kilo.json"),
        },
        signs=("config/kilo",),
        command="kilo",
        then="start `kilo` in the project, or open it in your editor",
    ),
    Client(
        name="qwen",
        title="Qwen Code",
        source="npm @qwen-code/qwen-code 0.15.10, docs/features/mcp.md, 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        folder=STARTED_THERE,
        files={PROJECT: ("project/.qwen/settings.json",), USER: ("qwen/settings.json",)},
        signs=("qwen",),
        command="qwen",
        syntax=Json(trailing_commas=False),
        document="QWEN.md",
        then="start `qwen` in the project; it uses servers in folders you trust",
    ),
    Client(
        name="amp",
        title="Amp",
        source="npm @sourcegraph/amp 0.0.1777897475, `amp mcp`, 2026-11-23",
        servers="amp.mcpServers",
        shape=_plain,
        files={
            PROJECT: ("project/.amp/settings.json", "project/.amp/settings.jsonc"),
            USER: ("config/amp/settings.json", "config/amp/settings.jsonc"),
        },
        signs=("config/amp",),
        command="amp",
        then="start `amp` in the project and approve the server",
    ),
    Client(
        name="junie",
        title="JetBrains Junie",
        source="page: jetbrains.com/help/junie, 'Model Context Protocol (MCP)', 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={PROJECT: ("project/.junie/mcp/mcp.json",), USER: ("home/.junie/mcp/mcp.json",)},
        signs=("home/.junie",),
        command="junie",
        syntax=Json(comments=False, trailing_commas=False),
        then="enable the server in Settings, Tools, Junie, MCP Settings",
    ),
    Client(
        name="kiro",
        title="Kiro",
        source="page: kiro.dev/docs, 'MCP' and 'Configuration', 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={
            PROJECT: ("project/.kiro/settings/mcp.json",),
            USER: ("home/.kiro/settings/mcp.json",),
        },
        signs=("home/.kiro",),
        command="kiro",
        syntax=Json(comments=False, trailing_commas=False),
        then="open the project; the server appears in the MCP panel",
    ),
    Client(
        name="lm-studio",
        title="LM Studio",
        source="page: lmstudio.ai/docs, 'Use MCP Servers', 2026-11-23",
        servers="mcpServers",
        shape=_plain,
        files={USER: ("home/.lmstudio/mcp.json",)},
        signs=("home/.lmstudio",),
        syntax=Json(comments=False, trailing_commas=False),
        document="",
        then="turn the server on in a chat's list of integrations",
    ),
)
