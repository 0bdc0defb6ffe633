"""Finds the definitions of a text in its syntax tree, which tree-sitter makes.

The grammars come with a package, and each is loaded when it is first needed. If a grammar cannot be
loaded or a text is too large, there is no outline, but no error either. Some texts make a parser
crash, hang or take all memory, so only a process that may end may import this module.
"""

import logging
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import tree_sitter
from semble_grammars import get_language

from vector_index_mcp.engine.chunk.exports import is_no_export
from vector_index_mcp.engine.chunk.grammars import FUNCTIONS, GRAMMARS, SCRIPTS
from vector_index_mcp.engine.chunk.macros import expanded
from vector_index_mcp.engine.chunk.naming import (
    first_line,
    innermost_last,
    name_node,
    name_of,
    owner_of,
    text_of,
)
from vector_index_mcp.engine.chunk.parts import Part, flat

_log = logging.getLogger(__name__)

_Extent = tuple[int, int]
"""(0-based first line, 0-based last line)."""

# tree-sitter parses about 10 MB/s, and holds the interpreter's lock while it does.
_MAX_BYTES = 1_000_000
_MAX_SECONDS = 1.0
_MAX_DEPTH = 200  # of syntax nodes; deeper ones are data, or an attack
_READ_BYTES = 1 << 11  # small, because the parser rereads the text around every node

_PROTOTYPES = frozenset({"declaration", "field_declaration"})
"""Nodes of C and C++ that define variables, but only declare functions."""
_WRAPPERS = frozenset(
    "decorated_definition export_statement template_declaration method_signature".split()
)
"""Nodes that contain a definition together with its decorators, its template parameters, …"""
_ASSIGNMENTS = {
    "assignment_expression": ("left", "right"),
    "assignment_statement": None,  # Lua: a list of names and a list of values
    "variable_declarator": ("name", "value"),
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
    "pair": ("key", "value"),
}
_FUNCTION_VALUES = frozenset(
    "function_expression arrow_function generator_function class function_definition".split()
)
# What C's grammar takes for the name of a function where a preprocessor's branches, or a macro that
# it does not know, leave half of a statement.
_NO_NAMES = frozenset("if else for while do switch return sizeof catch __attribute__".split())
_OF_C = frozenset({"c", "cpp", "objc"})
_NEEDED_FIELDS = {
    # Without a body it is only a reference, as in `struct stat *buffer`.
    **dict.fromkeys(("struct_specifier", "union_specifier", "enum_specifier"), "body"),
    "class_specifier": "body",
    # Without a name these are values, not definitions.
    **dict.fromkeys(("function_expression", "class"), "name"),
    "function": "name",  # in Haskell, a node for a function's type is also called so
}
_ANONYMOUS = _FUNCTION_VALUES - {"class"}
_LISTS = frozenset({"assignment_statement", "expression_list"})
_IMPORTS = re.compile(rb"(await\s+)?@?(require|import|__import__)\b")
_ELIXIR_KINDS = {
    **{"defmodule": "module", "defprotocol": "protocol", "defimpl": "implementation"},
    **dict.fromkeys(("def", "defp", "defdelegate"), "function"),
    **dict.fromkeys(("defmacro", "defmacrop"), "macro"),
    **dict.fromkeys(("defguard", "defguardp"), "guard"),
}


class TooSlowError(Exception):
    """The parser takes too long for a text; the message is a sentence about it."""


def definitions(text: str, language: str) -> list[Part]:
    """Return the definitions in `text`, nested; none if it cannot be parsed.

    Raises:
        TooSlowError: If the parser takes too long. Some texts make it hang without this error.
    """
    text, given = expanded(text) if language in _OF_C else (text, {})
    tree = _parse(text.encode("utf-8", "replace"), GRAMMARS[language].name)
    if tree is None:
        return []
    parts = _Walk(language, given).parts_of(tree.root_node)
    if language in SCRIPTS:
        innermost = deque(part for part in flat(parts) if not part.parts)
        for script in _scripts(tree.root_node):
            _add_script(innermost, script, SCRIPTS[language])
    return parts


@dataclass(frozen=True, slots=True)
class _Around:
    """The definition that encloses the nodes up to the byte `end`."""

    end: int
    parts: list[Part]
    """The parts of that definition."""
    in_function: bool


@cache
def _query(language: str) -> tree_sitter.Query:
    """Return a query for the nodes that may be definitions."""
    grammar = GRAMMARS[language]
    syntax = get_language(grammar.name)
    types = {*grammar.structures, *grammar.values, *_ASSIGNMENTS, *_ANONYMOUS}
    if grammar.name == "elixir":
        types = {"call"}
    known = sorted(type_ for type_ in types if syntax.id_for_node_kind(type_, True))
    return tree_sitter.Query(syntax, f"[{' '.join(f'({type_})' for type_ in known)}] @candidate")


@cache
def _parser(name: str) -> tree_sitter.Parser | None:
    try:
        return tree_sitter.Parser(get_language(name))
    except Exception as error:  # noqa: BLE001  # a text without syntax is still cut by lines
        _log.warning("the grammar %s cannot be loaded: %s", name, error)
        return None


def _parse(source: bytes, name: str) -> tree_sitter.Tree | None:
    parser = _parser(name) if len(source) <= _MAX_BYTES else None
    if parser is None:
        return None
    deadline = time.thread_time() + _MAX_SECONDS  # not affected by other load on the machine
    try:
        tree = parser.parse(
            lambda offset, _: source[offset : offset + _READ_BYTES],
            progress_callback=lambda *_: time.thread_time() > deadline,
        )
    except ValueError:
        parser.reset()  # otherwise the parser would go on with this text at the next call
        raise TooSlowError(f"its parser took longer than {_MAX_SECONDS:g} s") from None
    return None if tree.root_node.type == "ERROR" else tree


class _Walk:
    """Turns the nodes of one tree into parts."""

    def __init__(self, language: str, given: Mapping[str, str] = MappingProxyType({})) -> None:
        self._language = language
        self._grammar = GRAMMARS[language]
        self._given = given  # by names in the tree, names that `expanded` has replaced

    def parts_of(self, root: tree_sitter.Node) -> list[Part]:
        """Return the parts below `root`, in order."""
        found: list[Part] = []
        # Inside a function, values are local, so only functions and classes count there.
        around = [_Around(root.end_byte, found, in_function=False)]
        for node in self._candidates(root):
            while len(around) > 1 and around[-1].end <= node.start_byte:
                around.pop()
            holder = around[-1]
            part = self._part(node, holder.in_function)
            if part is not None:
                holder.parts.append(part)
                in_function = holder.in_function or part.kind in FUNCTIONS
                around.append(_Around(node.end_byte, part.parts, in_function))
            elif node.type in _ANONYMOUS and not holder.in_function:
                around.append(_Around(node.end_byte, holder.parts, in_function=True))
        return found

    def _candidates(self, root: tree_sitter.Node) -> list[tree_sitter.Node]:
        """Return the nodes that may be definitions, each before the nodes that it contains.

        They are found with a query, because to visit every node of a tree takes Python three times
        as long as parsing.
        """
        cursor = tree_sitter.QueryCursor(_query(self._language))
        cursor.set_max_start_depth(_MAX_DEPTH if self._grammar.is_code else _MAX_DEPTH // 4)
        found = cursor.captures(root).get("candidate", [])
        return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))

    def _part(self, node: tree_sitter.Node, in_function: bool) -> Part | None:
        kind = self._kind(node, in_function)
        if kind is None:
            return None
        if self._grammar.is_code:
            named = name_node(node)
            name = name_of(named) if named else ""
            name = self._given.get(name, name)
            if name and (owner := owner_of(node)):
                name = f"{owner}.{name}"
            if not name and node.type not in self._grammar.structures:
                return None
            if name in _NO_NAMES and self._grammar.name in _OF_C:
                return None
        else:
            named, name = node, first_line(node)
        is_symbol = bool(name) and self._grammar.is_code and not _belongs_elsewhere(node)
        named_at = (named or node).start_point.row
        return Part(name, kind, *_extent(node), named_at, is_symbol)

    def _kind(self, node: tree_sitter.Node, in_function: bool) -> str | None:
        type_ = node.type
        if self._grammar.name == "elixir":
            return _elixir_kind(node) if type_ == "call" else None
        kind = self._grammar.structures.get(type_)
        if kind is not None:
            lacks = _NEEDED_FIELDS.get(type_)
            if lacks and not node.child_by_field_name(lacks):
                return None
            return kind if kind != "cell" or _is_cell(node) else None
        if type_ in _ASSIGNMENTS and (value := _function_value(node)):
            return "class" if value.type == "class" else "function"
        kind = None if in_function else self._grammar.values.get(type_)
        if type_ == "variable_declaration" and any(
            child.type in _ASSIGNMENTS and _function_value(child) for child in node.named_children
        ):
            return None  # Lua: the name belongs to the function inside
        if kind is None or _is_import(node) or (type_ in _PROTOTYPES and _is_prototype(node)):
            return None
        return None if self._grammar.is_code and is_no_export(node) else kind


def _elixir_kind(node: tree_sitter.Node) -> str | None:
    target = node.child_by_field_name("target")
    return _ELIXIR_KINDS.get(text_of(target)) if target else None


def _function_value(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """Return the function or class to which `node` gives a name; None if there is none."""
    fields = _ASSIGNMENTS[node.type]
    if fields is None:
        values = node.named_children[-1].named_children if node.named_child_count else []
        value = values[0] if values else None
    else:
        value = node.child_by_field_name(fields[1])
    return value if value is not None and value.type in _FUNCTION_VALUES else None


def _is_cell(node: tree_sitter.Node) -> bool:
    """Return whether a JSON object in a notebook is a cell, and not an output or metadata."""
    keys = (pair.child_by_field_name("key") for pair in node.named_children)
    return any(key is not None and text_of(key) == '"cell_type"' for key in keys)


def _is_prototype(node: tree_sitter.Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        if declarator.type == "function_declarator" and (
            inner is None or inner.type != "parenthesized_declarator"  # a pointer to a function
        ):
            return True
        declarator = inner or innermost_last(declarator)
    return False


def _is_import(node: tree_sitter.Node) -> bool:
    """Return whether `node` only imports a definition, as in `const fs = require("fs")`."""
    last = node.named_children[-1] if node.named_child_count else node
    while last.type in _LISTS and last.named_child_count:  # Lua
        last = last.named_children[-1]
    return last.type != "identifier" and bool(_IMPORTS.match((last.text or b"")[:40]))


def _belongs_elsewhere(node: tree_sitter.Node) -> bool:
    """Return whether `node` adds to a definition elsewhere: an `impl`, an `extension`."""
    return node.type in {"impl_item", "instance"} or any(
        child.type == "extension" for child in node.children[:2]
    )


def _extent(node: tree_sitter.Node) -> _Extent:
    """Return the lines of the definition `node`, with its decorators and template parameters."""
    while (parent := node.parent) is not None and parent.type in _WRAPPERS:
        node = parent
    start, end = _lines(node)
    following = node.next_named_sibling
    if following is not None and following.type == "function_body":  # Dart: next to the signature
        end = _lines(following)[1]
    return start, end


def _lines(node: tree_sitter.Node) -> _Extent:
    start, end = node.start_point.row, node.end_point.row
    if end > start and node.end_point.column == 0:
        end -= 1
    return start, end


def _scripts(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Yield the nodes with the texts of the scripts in a page."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.type == "script_element":
            yield from (child for child in element.named_children if child.type == "raw_text")
        else:
            waiting += (child for child in reversed(element.named_children) if child.children)


def _add_script(elements: deque[Part], script: tree_sitter.Node, language: str) -> None:
    """Put the definitions of `script` into the element that contains it.

    Drops the `elements` that contain no later script either: a page may have thousands.
    """
    tree, row = _parse(script.text or b"", GRAMMARS[language].name), script.start_point.row
    inside = _Walk(language).parts_of(tree.root_node) if tree else []
    for part in flat(inside):
        part.start += row
        part.end += row
        part.named_at += row
    while elements and (elements[0].end < row or elements[0].parts):
        elements.popleft()
    if elements and elements[0].start <= row:
        elements[0].parts = inside
