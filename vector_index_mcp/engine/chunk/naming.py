"""What a definition is called, by its node in the syntax tree."""

import re
from collections.abc import Iterator

from tree_sitter import Node

_MAX_NAME_CHARS = 80
_NAME_FIELDS = (
    *("name", "declarator", "pattern", "bound_identifier", "left", "property", "function", "key"),
)
_NAME_TYPES = re.compile(
    r"identifier|^(\w+_)?name$|^(word|constant|alias|atom|constructor|object_reference)$"
)
_WRITABLE = re.compile(r"(?=.*[^\W\d])[^\s(){}\[\],;\"'`]+")
_COMPUTED = re.compile(r"\[[\w$.]+\]")
_QUOTED = re.compile(r"""(["'])([^"']*)\1""")
_GENERICS = re.compile(r"<[^<>]*>|\s+")
_INNERMOST_LAST = frozenset({"reference_declarator", "parenthesized_declarator"})
"""Declarators of C and C++ that contain another one which is in no named field."""
_TYPED = frozenset({"property_declaration", "field_declaration", "event_field_declaration"})
_NAME_HOLDERS = (  # inside the nodes of `_TYPED`: in Kotlin and C#; in Objective-C
    *("variable_declaration", "variable_declarator", "struct_declaration", "struct_declarator"),
)
_NAMELESS = frozenset(
    "struct_specifier union_specifier enum_specifier class_specifier singleton_class "
    "test_declaration operator_declaration conversion_operator_declaration indexer_declaration "
    "companion_object secondary_constructor extension_definition namespace_definition".split()
)
"""Nodes that are named by a field or not at all; other names inside belong to something else."""
_QUALIFIED = frozenset(
    "qualified_identifier qualified_name member_expression dot_index_expression "
    "method_index_expression".split()
)


def name_node(node: Node) -> Node | None:
    """Return the node with the name of the definition `node`; None if it has no name."""
    if node.type == "call":  # Elixir
        arguments = node.named_children[1].named_children if node.named_child_count > 1 else []
        return _elixir_name(arguments[0]) if arguments else None
    if node.type == "impl_item":
        return node.child_by_field_name("type")
    if node.type == "subscript_declaration":  # Swift calls its types names
        return None
    current = node
    for _ in range(12):  # declarators of C nest: an array of pointers to functions
        following = next(
            (child for name in _NAME_FIELDS if (child := current.child_by_field_name(name))),
            innermost_last(current),
        )
        if following is None or current.type in _QUALIFIED:
            break
        current = following
    if current is not node:
        return current
    return None if node.type in _NAMELESS else next(_identifiers_below(node), None)


def owner_of(node: Node) -> str:
    """Return the type to which Go gives the method `node`: `Mux` of `func (m *Mux[T]) Handle()`."""
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    named = (
        (each.child_by_field_name("type") for each in receiver.named_children) if receiver else ()
    )
    type_ = next(filter(None, named), None)
    while type_ is not None and type_.type != "type_identifier":
        type_ = next((each for each in type_.named_children if not each.is_extra), None)
    return name_of(type_) if type_ is not None else ""


def innermost_last(node: Node) -> Node | None:
    """Return the declarator inside `node`, as `get()` in `&get()`; None if it has none."""
    return node.named_children[-1] if node.type in _INNERMOST_LAST else None


def _elixir_name(node: Node) -> Node:
    while (
        inner := node.child_by_field_name("left") or node.child_by_field_name("target")
    ) is not None:
        node = inner
    return node


def _identifiers_below(node: Node) -> Iterator[Node]:
    """Yield the nodes below `node` that look like names, nearest first."""
    level = node.named_children
    for type_ in _NAME_HOLDERS if node.type in _TYPED else ():
        level = next((child.named_children for child in level if child.type == type_), level)
    for _ in range(3):
        for child in level:
            if _NAME_TYPES.search(child.type):
                yield child
        level = [inner for child in level for inner in child.named_children[:6]]


def name_of(node: Node) -> str:
    """Return a name as people write it (`Foo::bar`), without generics, quotes or sigils."""
    text = _GENERICS.sub("", text_of(node)[: 4 * _MAX_NAME_CHARS])
    if node.type == "computed_property_name":  # JavaScript: `[Symbol.iterator]`
        text = text[1:-1] if _COMPUTED.fullmatch(text) else ""
    text = text.removeprefix("$").strip("'\"`:")
    return text if len(text) <= _MAX_NAME_CHARS and _WRITABLE.fullmatch(text) else ""


def first_line(node: Node) -> str:
    """Return what data begins with, as its name: the key of a pair, without quotes."""
    name = text_of(node)[: 4 * _MAX_NAME_CHARS].partition("\n")[0].strip(" \t\r{}[]<>=:,")
    quoted = _QUOTED.fullmatch(name)
    return (quoted[2] if quoted else name)[:_MAX_NAME_CHARS]


def text_of(node: Node) -> str:
    """Return the text that a node covers."""
    return (node.text or b"").decode("utf-8", "replace")
