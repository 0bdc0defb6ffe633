"""Which nodes of a syntax tree define something, by language; the table is `grammars.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Grammar:
    """How to read the syntax trees of one language."""

    name: str
    """Of the grammar."""
    structures: dict[str, str]
    """Node type to kind (`class`, `function`, …): may hold others, and are best cut at."""
    values: dict[str, str]
    """Node type to kind: symbols only, and outside of function bodies only."""
    is_code: bool
    """Whether the names are symbols; keys, rules and elements are not."""


FUNCTIONS = frozenset(
    "function method constructor initializer subscript test macro property value".split()
)
"""The kinds whose insides hold only what nobody looks up by name: local values."""

SCRIPTS = {"html": "javascript", "vue": "typescript", "svelte": "typescript"}
"""The language of the scripts inside a page."""


def _load() -> dict[str, Grammar]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        language: Grammar(
            entry.get("grammar", language),
            _by_type(entry.get("structures", {})),
            _by_type(entry.get("values", {})),
            entry.get("is_code", True),
        )
        for language, entry in table.items()
    }


def _by_type(kinds: dict[str, Any]) -> dict[str, str]:
    return {type_: kind for kind, types in kinds.items() for type_ in types.split()}


GRAMMARS = _load()
"""By language, as `files.language` names them."""
