"""Every pattern of the package, and texts that keep a backtracking matcher busy with it.

A pattern is found by what it is, not by a list: `re.Pattern` objects in the modules, and literal
patterns given to functions of `re`. The texts are made from the pattern itself: each loop in it is
entered, gone round as often as the text is long, and left where nothing can match.
"""

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import vector_index_mcp

PACKAGE = Path(vector_index_mcp.__file__).parent
FUNCTIONS = {
    "compile",
    "match",
    "search",
    "fullmatch",
    "split",
    "findall",
    "finditer",
    "sub",
    "subn",
}
METHODS = FUNCTIONS - {"compile"}
DEFAULT_METHODS = frozenset({"search", "finditer"})


class Use(NamedTuple):
    """A pattern and how it is applied."""

    where: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def uses() -> list[Use]:
    """Every pattern in the package."""
    return _of_package()[0]


def compiled_elsewhere() -> set[tuple[str, str]]:
    """(module, function) of each call of `re` in a function with a pattern that is no literal."""
    return _of_package()[1]


@functools.cache
def _of_package() -> tuple[list[Use], set[tuple[str, str]]]:
    """Both at once, since to parse the package takes seconds."""
    found: dict[tuple[str, str | bytes], Use] = {}
    elsewhere: set[tuple[str, str]] = set()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        elsewhere |= {(place, name) for name in _functions_that_compile(tree)}
        if path.name != "__main__.py":
            name = ".".join(("vector_index_mcp", *path.relative_to(PACKAGE).with_suffix("").parts))
            module = importlib.import_module(name.removesuffix(".__init__"))
            for use in (*_of_globals(module, tree), *_of_calls(module.__name__, tree)):
                found.setdefault((use.where.partition(":")[0], use.pattern.pattern), use)
    return list(found.values()), elsewhere


def _functions_that_compile(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            _function_of_re(call) and not _literal_of(call) for call in ast.walk(function)
        ):
            yield function.name


def _of_globals(module: Any, tree: ast.Module) -> Iterator[Use]:
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in METHODS
        ):
            methods.setdefault(node.value.id, set()).add(node.attr)
    for name, value in vars(module).items():
        for pattern in _patterns_in(value, 3):
            used = frozenset(methods.get(name, ())) or DEFAULT_METHODS
            yield Use(f"{module.__name__}:{name}", pattern, used)


def _patterns_in(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        for inner in value.values():
            yield from _patterns_in(inner, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for inner in value:
            yield from _patterns_in(inner, depth - 1)


def _of_calls(module: str, tree: ast.Module) -> Iterator[Use]:
    for call in ast.walk(tree):
        function, literal = _function_of_re(call), _literal_of(call)
        if function and literal:
            used = DEFAULT_METHODS if function == "compile" else frozenset({function})
            yield Use(f"{module}:{literal!r}", re.compile(literal), used)


def _function_of_re(call: ast.AST) -> str:
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return ""
    owner = call.func.value
    is_re = isinstance(owner, ast.Name) and owner.id == "re" and call.func.attr in FUNCTIONS
    return call.func.attr if is_re else ""


def _literal_of(call: ast.AST) -> Any:
    """The pattern that is written in the call. One with flags is found as a global."""
    if not isinstance(call, ast.Call) or not call.args:
        return None
    first = call.args[0]
    has_flags = _function_of_re(call) == "compile" and len(call.args) > 1
    return first.value if isinstance(first, ast.Constant) and not has_flags else None


def attacks(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """(beginning, what is repeated, end) of texts that are hard for `pattern`."""
    text = (
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    )
    tree = parser.parse(text, pattern.flags & ~re.UNICODE)
    found: dict[tuple[str, str], None] = {}
    for before, body in _loops(tree, ""):
        for repeated in {body, before + body, body * 2, before or body}:
            found[before, repeated] = None
            found["", repeated] = None
    whole = _sample(tree)
    for end in range(1, min(len(whole), 40) + 1):
        found["", whole[:end]] = None
    ends = ("", "\0", "!", "\n", "a", " ")
    return [(before, body, end) for before, body in found if body for end in ends]


def _loops(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """What leads to each loop, and what it goes round on."""
    for kind, value in tree:
        for inner, count in _parts_of(kind, value):
            if count > 1:
                for body in _samples(inner):
                    yield before, body
            yield from _loops(inner, before)
        before += _sample([(kind, value)])


def _parts_of(kind: Any, value: Any) -> list[tuple[Any, int]]:
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [(value[2], int(value[1]))]
    if kind is sre.SUBPATTERN:
        return [(value[3], 1)]
    if kind is sre.ATOMIC_GROUP:
        return [(value, 1)]
    if kind is sre.BRANCH:
        return [(branch, 1) for branch in value[1]]
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return [(value[1], 1)]
    return []


def _samples(tree: Any) -> set[str]:
    """Several texts that `tree` matches."""
    items = list(tree)
    if len(items) == 1 and items[0][0] is sre.IN:
        members = _members(items[0][1])
        return {*members[:2], *[char for char in members if not char.isalnum()][:3]}
    if len(items) == 1 and items[0][0] is sre.BRANCH:
        return {_sample(branch) for branch in items[0][1][1]}
    return {_sample(items)}


def _sample(tree: Any) -> str:
    """A text that `tree` matches, or nearly so."""
    return "".join(_sample_of(kind, value) for kind, value in tree)


def _sample_of(kind: Any, value: Any) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is sre.ANY:
        return "a"
    if kind is sre.IN:
        return _members(value)[0]
    if kind is sre.BRANCH:
        return _sample(value[1][0])
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _sample(value[2]) * max(int(value[0]), 1)
    return "".join(
        _sample(inner) for inner, _ in _parts_of(kind, value) if kind is not sre.ASSERT_NOT
    )


def _members(items: Any) -> list[str]:
    """Some characters of a class, letters first."""
    probes = "aAb0_- \t\n=:/.*+#\"'`<>()[]{}|\\,;!?@$%^&~é中" + "".join(map(chr, range(33, 127)))
    matches = re.compile(_class_text(items), re.DOTALL)
    return [char for char in dict.fromkeys(probes) if matches.fullmatch(char)] or ["\x01"]


def _class_text(items: Any) -> str:
    names = {
        sre.CATEGORY_DIGIT: r"\d",
        sre.CATEGORY_NOT_DIGIT: r"\D",
        sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S",
        sre.CATEGORY_WORD: r"\w",
        sre.CATEGORY_NOT_WORD: r"\W",
    }
    text = ""
    for kind, value in items:
        if kind is sre.NEGATE:
            text += "^"
        elif kind is sre.LITERAL:
            text += re.escape(chr(value))
        elif kind is sre.RANGE:
            text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            text += names[value]
    return f"[{text}]"
