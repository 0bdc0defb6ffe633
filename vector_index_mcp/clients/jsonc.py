"""Reads JSON with comments and trailing commas, and edits it in place. Pure.

We found no library that adds a member to a text and keeps the rest as it is. So this module finds
the offsets of the members and splices the text.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vector_index_mcp.clients.edits import (
    EditError,
    Path,
    Splice,
    line_of,
    newline_of,
    spliced,
)

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    | (?P<comment>//[^\r\n]*|/\*.*?\*/)
    | (?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
    | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<word>(?:true|false|null)\b)
    | (?P<mark>[{}\[\],:])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_COMMENTS_OF_THE_LINE = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?P<last>[ \t]*//[^\r\n]*)?")
_INDENTED_KEY = re.compile(r'^([ \t]+)"', re.MULTILINE)
_DEFAULT_INDENTATION = "  "
_DEEPEST = 100  # far below Python's recursion limit; no real configuration is nested so deeply


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class _Value:
    start: int
    end: int
    data: Any
    members: "list[_Member]" = field(default_factory=list)
    """The members of an object, in their order; a key may occur twice."""

    def member(self, key: str) -> "_Member | None":
        """Return the member with this key; if there are two, the last, as clients do."""
        return next((m for m in reversed(self.members) if m.key == key), None)


@dataclass(slots=True)
class _Member:
    key: str
    start: int
    value: _Value
    comma: int | None = None
    """The offset of the comma after it."""

    @property
    def end(self) -> int:
        return self.value.end if self.comma is None else self.comma + 1


@dataclass(frozen=True, slots=True)
class Json:
    """The syntax JSON, with the extensions that a client allows."""

    comments: bool = True
    trailing_commas: bool = True

    def read(self, text: str) -> dict[str, Any]:
        """Return the data in the text; an empty text has none.

        Raises:
            EditError: If the text is not JSON, or not an object.
        """
        try:
            # Try the fast parser first: some clients keep megabytes in the file.
            data = json.loads(text, parse_constant=_refused)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
        root = self._parsed(text)
        return root.data if root else {}

    def add(self, text: str, path: Path, value: Any) -> str:
        """Return the text with one more member, and with any missing objects around it."""
        parent = self._parsed(text)
        if parent is None:
            return _new_document(text, _nested(path, value))
        is_inline = False
        for depth, key in enumerate(path[:-1], start=1):
            member = parent.member(key)
            if member is None:
                return _insert(text, parent, key, _nested(path[depth:], value), is_inline)
            parent = _object(text, member)
            is_inline = _indentation(text, member.start) is None
        return _insert(text, parent, path[-1], value, is_inline)

    def replace(self, text: str, path: Path, value: Any) -> str:
        """Return the text with another value of a member."""
        member = self._find(text, path)[1]
        return spliced(text, [Splice(member.value.start, member.value.end, _rendered(value))])

    def remove(self, text: str, path: Path) -> str:
        """Return the text without a member, its comma, and a comment after it on the same line."""
        parent, member = self._find(text, path)
        splices = [_cut(text, parent, member)]
        position = parent.members.index(member)
        if position and member is parent.members[-1] and member.comma is None:
            comma = parent.members[position - 1].comma
            assert comma is not None  # another member follows it
            splices.append(Splice(comma, comma + 1))
        if len(parent.members) == 1:
            inside = (parent.start + 1, parent.end - 1)
            left = text[inside[0] : splices[0].start] + text[splices[0].end : inside[1]]
            if not left.strip():
                splices = [Splice(*inside)]
        return spliced(text, splices)

    def _find(self, text: str, path: Path) -> tuple[_Value, _Member]:
        """Return the object that contains the member at `path`, and the member."""
        parent = self._parsed(text)
        member: _Member | None = None
        for key in path:
            parent = member.value if member else parent
            member = parent.member(key) if parent else None
            if member is None:
                raise EditError(f"the key `{key}` is missing")
        assert parent is not None and member is not None  # a path has at least one key
        return parent, member

    def _parsed(self, text: str) -> _Value | None:
        return _Parser(text, self).document()


class _Parser:
    """Parses a text, token by token."""

    def __init__(self, text: str, dialect: Json) -> None:
        self._text = text
        self._dialect = dialect
        self._tokens = self._significant()
        self._next = 0

    def document(self) -> _Value | None:
        """Return the outermost object; None if the text has nothing but space and comments."""
        if self._tokens[0].kind == "end":
            return None
        root = self._value(0)
        if self._peek().kind != "end":
            self._fail("the end")
        if not isinstance(root.data, dict):
            raise EditError("an object in braces is expected", line_of(self._text, root.start))
        return root

    def _significant(self) -> list[_Token]:
        tokens, at = [], 0
        # `finditer` would be slow: after a token without an end, it tries every later offset.
        while match := _TOKEN.match(self._text, at):
            kind, text, at = match.lastgroup or "", match[0], match.end()
            if kind == "comment" and not self._dialect.comments:
                line = line_of(self._text, match.start())
                raise EditError("this client does not allow comments", line)
            if kind not in {"space", "comment"}:
                tokens.append(_Token(text if kind == "mark" else kind, text, match.start(), at))
        if at != len(self._text):
            strange = self._text[at : at + 20].splitlines()[0]
            raise EditError(f"{strange!r} makes no sense here", line_of(self._text, at))
        return [*tokens, _Token("end", "", at, at)]

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *kinds: str, wanted: str) -> _Token:
        token = self._peek()
        if token.kind not in kinds:
            self._fail(wanted)
        self._next += 1
        return token

    def _fail(self, wanted: str) -> None:
        token = self._peek()
        # What is missing, such as a comma, belongs where the last token ended.
        at = self._tokens[self._next - 1].end if self._next else token.start
        found = "the end of the file" if token.kind == "end" else f"`{token.text[:20]}`"
        raise EditError(f"{wanted} is expected before {found}", line_of(self._text, at))

    def _value(self, depth: int) -> _Value:
        if depth > _DEEPEST:
            raise EditError("it is nested too deeply", line_of(self._text, self._peek().start))
        token = self._take("{", "[", "string", "number", "word", wanted="a value")
        if token.kind == "{":
            return self._object(token.start, depth)
        if token.kind == "[":
            return self._array(token.start, depth)
        if token.kind == "string" and "\\" not in token.text:
            return _Value(token.start, token.end, token.text[1:-1])
        try:
            return _Value(token.start, token.end, json.loads(token.text))
        except ValueError as error:  # Python refuses a number with thousands of digits
            raise EditError(str(error), line_of(self._text, token.start)) from error

    def _object(self, start: int, depth: int) -> _Value:
        members: list[_Member] = []
        while self._goes_on("}", not members or members[-1].comma is not None, bool(members)):
            key = self._take("string", wanted="a key in double quotes, or `}`,")
            self._take(":", wanted="`:`")
            member = _Member(json.loads(key.text), key.start, self._value(depth + 1))
            if self._peek().kind == ",":
                member.comma = self._take(",", wanted="`,`").start
            members.append(member)
        end = self._take("}", wanted="`,` or `}`").end
        return _Value(start, end, {m.key: m.value.data for m in members}, members)

    def _array(self, start: int, depth: int) -> _Value:
        data: list[Any] = []
        has_comma = True
        while self._goes_on("]", has_comma, bool(data)):
            data.append(self._value(depth + 1).data)
            has_comma = self._peek().kind == ","
            self._next += has_comma
        return _Value(start, self._take("]", wanted="`,` or `]`").end, data)

    def _goes_on(self, closing: str, has_comma: bool, has_items: bool) -> bool:
        is_closed = self._peek().kind == closing
        if is_closed and has_comma and has_items and not self._dialect.trailing_commas:
            raise EditError(
                f"this client does not allow a comma before `{closing}`",
                line_of(self._text, self._tokens[self._next - 1].start),
            )
        return has_comma and not is_closed


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# -- where things go -------------------------------------------------------------------------


def _object(text: str, member: _Member) -> _Value:
    if not isinstance(member.value.data, dict):
        line = line_of(text, member.value.start)
        raise EditError(f"the value of `{member.key}` must be an object in braces", line)
    return member.value


def _nested(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _new_document(text: str, value: Any) -> str:
    newline = newline_of(text)
    comments = text.rstrip()
    before = comments + newline if comments else ""
    return before + _rendered(value, "", _DEFAULT_INDENTATION, newline) + newline


def _insert(text: str, parent: _Value, key: str, value: Any, is_inline: bool) -> str:
    """Insert a member at the end of `parent`, formatted like the member before it.

    Args:
        text: The text that `parent` was found in.
        parent: The object to insert into.
        key: The key of the new member.
        value: The value of the new member.
        is_inline: Whether an empty parent stays on one line.

    Returns:
        The text with the new member.
    """
    found = _INDENTED_KEY.search(text)
    unit = found[1] if found else _DEFAULT_INDENTATION
    newline = newline_of(text)
    if not parent.members:
        return spliced(text, [_into_empty(text, parent, (key, value), unit, is_inline)])
    last = parent.members[-1]
    comments = _COMMENTS_OF_THE_LINE.match(text, last.end)
    assert comments is not None  # the pattern also matches an empty text
    indentation = _indentation(text, last.start)
    if indentation is None and comments["last"]:
        indentation = _indentation_of_line(text, parent.start) + unit
    if indentation is None:
        new = " " + _rendered_member(key, value)
    else:
        new = newline + indentation + _rendered_member(key, value, indentation, unit, newline)
    if last.comma is not None:
        return spliced(text, [Splice(comments.end(), comments.end(), new + ",")])
    comma = Splice(last.end, last.end, ",")
    return spliced(text, [comma, Splice(comments.end(), comments.end(), new)])


def _into_empty(
    text: str, parent: _Value, member: tuple[str, Any], unit: str, is_inline: bool
) -> Splice:
    inside = text[parent.start + 1 : parent.end - 1]
    comments = inside.rstrip()
    at = parent.start + 1 + len(comments)
    space = inside[len(comments) :]
    if is_inline and "\n" not in inside:
        return Splice(at, parent.end - 1, " " * bool(comments) + _rendered_member(*member))
    newline = newline_of(text)
    outer = _indentation_of_line(text, parent.start)
    new = newline + outer + unit + _rendered_member(*member, outer + unit, unit, newline)
    return Splice(at, parent.end - 1, new + (space if "\n" in space else newline + outer))


def _cut(text: str, parent: _Value, member: _Member) -> Splice:
    """Return the cut that removes `member`."""
    start, end = member.start, member.end
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] != "\n":
        if text[start - 1] == "{" and member is not parent.members[-1]:
            end += len(text[end:]) - len(text[end:].lstrip(" \t"))
        return Splice(start, end)
    comments = _COMMENTS_OF_THE_LINE.match(text, end)
    assert comments is not None  # the pattern also matches an empty text
    rest = text[comments.end() :].lstrip(" \t")
    if rest.startswith(("\r", "\n")):
        end = comments.end()
    elif _ends_in_comment(text, start):
        return Splice(member.start, end)  # the rest of the line must not end up after `//`
    start -= 1
    return Splice(start - (text[start - 1] == "\r"), end)


def _ends_in_comment(text: str, line_start: int) -> bool:
    """Whether the line before `line_start` ends in a `//` comment."""
    end = len(text[:line_start].removesuffix("\n").removesuffix("\r"))
    tokens = _tokens_of(text[:line_start])
    return any(token[0].startswith("//") and token.end() == end for token in tokens)


def _tokens_of(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of `text`, up to the first character that begins no token.

    `finditer` would go on from there, and try every later offset.
    """
    position = 0
    while token := _TOKEN.match(text, position):
        yield token
        position = token.end()


def _indentation_of_line(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indentation(text: str, offset: int) -> str | None:
    """Return the space before `offset` on its line; None if there is anything else before it."""
    before = text[text.rfind("\n", 0, offset) + 1 : offset]
    return None if before.strip() else before


def _rendered_member(
    key: str, value: Any, indentation: str = "", unit: str = "", newline: str = ""
) -> str:
    return f"{_rendered(key)}: {_rendered(value, indentation, unit, newline)}"


def _rendered(value: Any, indentation: str = "", unit: str = "", newline: str = "") -> str:
    """Return `value` as JSON; unless `newline` is empty, each member of an object gets a line."""
    if not isinstance(value, dict) or not newline:
        return json.dumps(value, ensure_ascii=False)
    inner = indentation + unit
    members = [inner + _rendered_member(k, v, inner, unit, newline) for k, v in value.items()]
    lines = ["{", f",{newline}".join(members), indentation + "}"]
    return newline.join(lines) if members else "{}"
