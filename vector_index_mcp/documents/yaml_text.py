"""What stands where in a text in YAML. Pure. Only here is PyYAML known.

Only its parser is used: nothing is made of a tag, a word or a number, so that `yes`, `1` and
`2024-01-01` are the texts that stand there, and nothing that a file says is ever run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

MOST_CHARS = 1_000_000

_MOST_NODES = 50_000  # read in 0.2 s
_DEEPEST = 20
_MOST_SHOWN_CHARS = 80
# Where it is there, libyaml takes a twentieth of the time.
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS = frozenset({f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq")})


class YamlError(Exception):
    """Raised when a text cannot be read or changed; the message says what to do."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line
        """1-based; 0 if it is about the whole text."""


@dataclass(slots=True)
class Node:
    """A value as it stands in the text."""

    line: int
    """1-based."""
    start: int
    """Where it begins: a position in the text."""
    end: int
    """Where it ends. For a block, that is where its last value does."""
    text: str | None = None
    """What a scalar says; None for a list and a mapping."""
    is_null: bool = False
    """Whether it says nothing, as `~` and an empty value do."""
    is_flow: bool = False
    """Whether it stands in brackets."""
    items: "list[Node]" = field(default_factory=list)
    """Of a list."""
    entries: "dict[str, tuple[Node, Node]] | None" = None
    """Key and value of each entry of a mapping, by the text of the key; None for the others."""
    size: int = 1
    """How many values it is made of."""


def parsed(text: str) -> Node | None:
    """The one document in `text`; None if there is none.

    Raises:
        YamlError: If it is not YAML, is made to be slow, or holds what we do not read.
    """
    if len(text) > MOST_CHARS:
        raise YamlError(f"it has more than {MOST_CHARS} characters; make it shorter")
    try:
        return _Reader(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        line = mark.line + 1 if mark else _line_of_character(text, error)
        raise YamlError(f"it is not YAML ({problem}); correct that", line) from error


def _line_of_character(text: str, error: yaml.YAMLError) -> int:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 0


class _Reader:
    """Makes nodes of the parser's events, within bounds."""

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
            raise YamlError("it holds a second document; keep one", following.start_mark.line + 1)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        line = event.start_mark.line + 1
        before = self._nodes
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _DEEPEST:
            raise YamlError("it holds more than anybody writes; make it simpler", line)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event, line)
        if event.tag not in {None, "!"} and event.tag not in _PLAIN_TAGS:
            raise YamlError("it has a tag of its own (`!…`); take it out", line)
        node = Node(line, event.start_mark.index, event.end_mark.index)
        if isinstance(event, yaml.ScalarEvent):
            self._fill_scalar(node, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._fill_list(node, event, depth)
        else:
            self._fill_mapping(node, event, depth)
        node.size = self._nodes - before
        if event.anchor is not None:  # after its parts: what holds itself is not known to them
            self._anchors[event.anchor] = node
        return node

    def _aliased(self, event: Any, line: int) -> Node:
        """The value that is referred to, at the place of the reference."""
        known = self._anchors.get(event.anchor)
        if known is None:
            raise YamlError("it refers to what does not stand before it; write it out", line)
        self._nodes += known.size  # whoever reads it reads all of that once more
        start, end = event.start_mark.index, event.end_mark.index
        return replace(known, line=line, start=start, end=end)

    def _fill_scalar(self, node: Node, event: Any) -> None:
        node.text = event.value
        node.is_null = not event.style and event.value in _NULLS and event.tag is None
        if event.style in {"|", ">"}:  # the parser has gone on, up to what follows
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
                raise YamlError("a list or a mapping stands where a name belongs", key.line)
            if key.text in node.entries:
                raise YamlError(f"{shown(key.text)} is there twice; keep one", key.line)
            node.entries[key.text] = key, value
            last = max(key.end, value.end)
        node.end = following.end_mark.index if node.is_flow else last


def line_start(text: str, position: int) -> int:
    """Where the line of `position` begins."""
    return text.rfind("\n", 0, position) + 1


def shown(text: str) -> str:
    """`text` in a message, or its beginning if it is very long."""
    return repr(text if len(text) <= _MOST_SHOWN_CHARS else f"{text[:_MOST_SHOWN_CHARS]}…")
