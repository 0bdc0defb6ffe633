"""Parses YAML into nodes that know their offsets in the text. Pure. Only this module uses PyYAML.

It uses only PyYAML's parser, which interprets no tags and no values: `yes`, `1` and `2024-01-01`
stay texts, and nothing in a file is ever run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from vector_index_mcp.errors import quoted

MOST_CHARS = 1_000_000

_MOST_NODES = 50_000  # reading them takes 0.2 s
_DEEPEST = 20
# libyaml, if PyYAML was built with it, takes a twentieth of the time.
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS = frozenset({f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq")})


class YamlError(Exception):
    """Raised when a text cannot be read or changed; the message says what to do."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line
        """The number of the line, from 1; 0 if the error is about the whole text."""


@dataclass(slots=True)
class Node:
    """A value and its place in the text."""

    line: int
    """The number of its first line, from 1."""
    start: int
    """The offset of its first character."""
    end: int
    """The offset after its last character; for a block, after that of its last value."""
    text: str | None = None
    """The text of a scalar; None for a list or a mapping."""
    is_null: bool = False
    """Whether it is null, such as `~` or an empty value."""
    is_flow: bool = False
    """Whether it is written in brackets."""
    items: "list[Node]" = field(default_factory=list)
    """The items of a list."""
    entries: "dict[str, tuple[Node, Node]] | None" = None
    """Key and value of each entry of a mapping, by the text of the key; None if it is none."""
    size: int = 1
    """The number of nodes in it, itself included."""


def parsed(text: str) -> Node | None:
    """Return the one document in `text`; None if there is none.

    Raises:
        YamlError: If the text is not YAML, exceeds our limits, or has what we do not support.
    """
    if len(text) > MOST_CHARS:
        raise YamlError(f"the file has more than {MOST_CHARS} characters; make it shorter")
    try:
        return _Reader(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        line = mark.line + 1 if mark else _line_of_character(text, error)
        raise YamlError(f"the text is not YAML ({problem}); correct it", line) from error


def meaning_of(node: Node) -> list[object]:
    """Return what equals that of another node if both have the same values, wherever they stand."""
    found: list[object] = []
    pending = [node]
    while pending:
        each = pending.pop()
        entries = each.entries or {}
        found.append((each.text, each.is_null, len(each.items), each.entries and [*entries]))
        pending += [*each.items, *(value for _, value in entries.values())]
    return found


def _line_of_character(text: str, error: yaml.YAMLError) -> int:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 0


class _Reader:
    """Makes nodes from the parser's events, up to a limit."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._events: Iterator[Any] = yaml.parse(text, Loader=_PARSER)
        self._anchors: dict[str, Node] = {}
        self._nodes = 0

    def document(self) -> Node | None:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        root = self._node(next(self._events), 0)
        next(self._events)
        if not isinstance(following := next(self._events), yaml.StreamEndEvent):
            line = following.start_mark.line + 1
            raise YamlError("the file has a second document; keep only one", line)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        line = event.start_mark.line + 1
        before = self._nodes
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _DEEPEST:
            raise YamlError("the file has too many or too deeply nested values; simplify it", line)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, line)
        if event.tag not in {None, "!"} and event.tag not in _PLAIN_TAGS:
            raise YamlError("this value has a tag (`!…`), which we do not read; remove it", line)
        node = Node(line, event.start_mark.index, event.end_mark.index)
        if isinstance(event, yaml.ScalarEvent):
            self._fill_scalar(node, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._fill_list(node, event, depth)
        else:
            self._fill_mapping(node, event, depth)
        node.size = self._nodes - before
        if event.anchor is not None:  # set last, so that its parts cannot refer to it
            self._anchors[event.anchor] = node
        return node

    def _aliased(self, event: Any, line: int) -> Node:
        """Return a copy of the value that an alias refers to, at the place of the alias."""
        known = self._anchors.get(event.anchor)
        if known is None:
            raise YamlError("this alias refers to no value before it; write the value out", line)
        self._nodes += known.size  # a reader of the result goes through all of them once more
        start, end = event.start_mark.index, event.end_mark.index
        return replace(known, line=line, start=start, end=end)

    def _fill_scalar(self, node: Node, event: Any) -> None:
        node.text = event.value
        node.is_null = not event.style and event.value in _NULLS and event.tag is None
        if event.style in {"|", ">"}:  # for these, the end mark may lie at the next value
            start = line_start(self._text, node.end)
            if not self._text[start : node.end].strip():
                node.end = start

    def _fill_list(self, node: Node, event: Any, depth: int) -> None:
        node.is_flow = event.flow_style
        while not isinstance(following := next(self._events), yaml.SequenceEndEvent):
            node.items.append(self._node(following, depth + 1))
        node.end = following.end_mark.index if node.is_flow else node.items[-1].end

    def _fill_mapping(self, node: Node, event: Any, depth: int) -> None:
        node.is_flow = event.flow_style
        node.entries = {}
        last = node.end
        while not isinstance(following := next(self._events), yaml.MappingEndEvent):
            key = self._node(following, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if key.text is None:
                raise YamlError("a list or a mapping cannot be a key; write a name", key.line)
            if key.text in node.entries:
                raise YamlError(f"the key {quoted(key.text)} occurs twice; keep one", key.line)
            node.entries[key.text] = key, value
            last = max(key.end, value.end)
        node.end = following.end_mark.index if node.is_flow else last


def line_start(text: str, position: int) -> int:
    """Return the offset where the line of `position` begins."""
    return text.rfind("\n", 0, position) + 1
