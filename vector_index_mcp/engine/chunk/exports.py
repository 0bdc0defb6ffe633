"""What a module of JavaScript exports by assignment: `exports.x = 1`, `module.exports = {x: 1}`."""

from tree_sitter import Node

from vector_index_mcp.engine.chunk.naming import text_of

_EXPORTS = frozenset({"exports", "module.exports"})


def is_no_export(node: Node) -> bool:
    """Return whether `node` is an assignment or a pair that does not define what a module exports.

    What only passes on a definition, as `exports.x = x` does, or declares one, is none.
    """
    if node.type == "pair":
        name, value = node.child_by_field_name("key"), node.child_by_field_name("value")
        holder = node.parent and node.parent.parent
        target = holder.child_by_field_name("left") if holder is not None else None
    elif node.type == "assignment_expression":
        left, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        target = left.child_by_field_name("object") if left is not None else None
        name = left.child_by_field_name("property") if left is not None else None
    else:
        return False
    if name is None or value is None or target is None or text_of(target) not in _EXPORTS:
        return True
    if value.type == "identifier":
        return text_of(name).strip("'\"") == text_of(value)
    # `exports.a = exports.b = void 0` is how the compiler of TypeScript begins.
    return value.type == "assignment_expression" or text_of(value).startswith("void ")
