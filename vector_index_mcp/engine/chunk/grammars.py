"""The node types of syntax trees that are definitions, by language; from `grammars.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Grammar:
    """How to read the syntax trees of one language."""

    name: str
    """The name of the grammar in the grammar package."""
    structures: dict[str, str]
    """Node type to kind (`class`, `function`, …), of definitions that may contain others.

    A text is best cut between these.
    """
    values: dict[str, str]
    """Node type to kind, of names that count only outside of function bodies, as symbols."""
    is_code: bool
    """Whether the names are symbols; the keys, rules and elements of data are not."""


FUNCTIONS = frozenset(
    "function method constructor initializer subscript test macro property value".split()
)
"""The kinds of definitions in which all values are local, so that nobody looks them up by name."""

SCRIPTS = {"html": "javascript", "vue": "typescript", "svelte": "typescript"}
"""The language of the scripts inside a page, by the language of the page."""


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
"""The grammars, by the languages' names in `files.language`."""
