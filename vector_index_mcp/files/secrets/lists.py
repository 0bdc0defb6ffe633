"""Finds secret values in lists and maps: in brackets, as lines of YAML, as texts of several lines.

A name such as `api_keys` or `passwords` stands before them.
"""

import re
from collections.abc import Iterable, Iterator

from vector_index_mcp.files.secrets.values import Name, Value, is_secret, name_at, value_at

_Span = tuple[int, int]

_QUOTE = r"(?:\\{0,3}[\"'`]|&quot;)"
_CALL = r"(?:array|set|frozenset|list|tuple|vec!|(?:List|Set|Arrays)\.\w{2,6}|(?:set|list|array)Of)"
_BRACKET = re.compile(  # behind a type, as in `[]string{`, or a call, as in `set([`
    rf"{_QUOTE}?[\])}}]{{0,2}}(?:[ \t]{{0,9}}:[ \t]{{0,9}}[\w.<>&?|\[\], ]{{1,30}})?"
    r"[ \t]{0,40}(?:[:?|+!]{0,2}={1,3}>?|:=?)[ \t]{0,40}(?:\r?\n[ \t]{1,40})?"
    rf"(?:{_CALL}[\[(]|(?:new \w{{1,20}}(?:\[\])? ?|(?:map)?\[\w{{0,9}}\]\w{{1,20}}|@)?[\[({{])"
    r"[\[({]?"
)
_KEY = r"(?:[\"'][\w.@/ -]{1,60}[\"']|[\w.@/-]{1,60})"
_COMMENT = r"(?:(?:#|//)[^\n]{0,200}\n\s{0,80})?"
_ITEM = re.compile(rf"\s{{0,80}}{_COMMENT}({_KEY}[ \t]{{0,9}}(?::|=>|=)[ \t]{{0,9}})?")
_BEHIND_ITEM = re.compile(rf"{_QUOTE}?(?:\s{{0,40}},|[ \t]{{0,9}}\r?\n)")
_HEAD_OF_LINES = re.compile(
    rf"{_QUOTE}?:[ \t]{{0,9}}(?:[!&][\w!]{{1,30}}[ \t]{{0,9}})?"
    r"(?:([|>])[-+0-9]{0,2})?[ \t]{0,9}(?:#[^\n]{0,200})?\r?(?=\n)"
)
_NO_ITEMS = r"(?:\n[ \t]{0,80}(?:#[^\n]{0,200})?\r?(?=\n)){0,20}"  # blank lines, comments
_LINE = re.compile(rf"{_NO_ITEMS}\n([ \t]{{0,80}})(-[ \t]{{1,9}})?({_KEY}:[ \t]{{1,9}})?(?=\S)")
_END_OF_LINE = re.compile(r"[^\n]{0,300}(?=\n|\Z)")
_LINE_OF_TEXT = re.compile(
    r"(?:\r?\n[ \t]{0,80}(?=\r?\n)){0,20}\r?\n([ \t]{0,80})([^\s][^\r\n]{0,20000})"
)
_INDENTATION = re.compile(r"[ \t]{0,80}")
_LONGEST_BEFORE_NAME = 200
# Keys whose values say what a secret is, or where it lies, and are none.
_ABOUT = re.compile(
    r"[\"']?(?:name|id|type|kind|pattern|format|description|title|source|target|file|path|key_?name"
    r"|secret_?name|sha\d{1,3}|md5|digest|checksum)[\"']?[ \t:=>]{1,20}",
    re.IGNORECASE,
)


def find(text: str, names: Iterable[_Span]) -> Iterator[_Span]:
    """Yield the spans of the secret values in the lists of `text` that have such names."""
    read_until = 0  # each list is read once, whatever names stand in it
    for start, end in names:
        name = name_at(text, start, end) if start >= read_until else None
        if name is None:
            continue
        for value in _items(text, start, end, name):
            read_until = value.end
            if is_secret(text, value, name):
                yield value.start, value.end


def _items(text: str, start: int, end: int, name: Name) -> Iterator[Value]:
    """Yield the values in the list or map that is assigned to the name, if it is one."""
    if bracket := _BRACKET.match(text, end):
        yield from _in_brackets(text, bracket.end(), name)
    elif head := _HEAD_OF_LINES.match(text, end):
        line = text.rfind("\n", max(0, start - _LONGEST_BEFORE_NAME), start) + 1
        indentation = len(_INDENTATION.match(text, line)[0])  # type: ignore[index]
        if head[1]:
            yield from _in_text(text, head.end(), indentation)
        else:
            yield from _in_lines(text, head.end(), indentation, name)


def _in_brackets(text: str, position: int, name: Name) -> Iterator[Value]:
    """Yield what stands in quotes; after a plural, what has a key or is bare, too.

    After a singular, a map tells of one value: its type, its pattern, its description. And a list
    of a password has its rules, as in `'password' => ['required', 'min:8']`.
    """
    while (item := _ITEM.match(text, position)) and (value := value_at(text, item.end())):
        if not name.are_many and (name.is_password or item[1] or not value.is_literal):
            return
        if not (item[1] and _ABOUT.fullmatch(item[1])):
            yield value
        behind = _BEHIND_ITEM.match(text, value.end)
        if behind is None:
            return
        position = behind.end()


def _in_lines(text: str, position: int, indentation: int, name: Name) -> Iterator[Value]:
    """Yield what follows a dash; after a plural, what follows a key, too."""
    while line := _LINE.match(text, position):
        space, dash, key = line.groups()
        value = value_at(text, line.end())
        is_within = len(space) > indentation or (dash and len(space) == indentation)
        is_item = name.are_many and (dash or key)
        if not is_within or not (is_item or (dash and not name.is_password)):
            return
        if value is not None and not (key and _ABOUT.fullmatch(key)):
            yield value._replace(is_literal=value.is_literal or not key)
        behind = _END_OF_LINE.match(text, value.end if value is not None else line.end())
        if behind is None:
            return
        position = behind.end()


def _in_text(text: str, position: int, indentation: int) -> Iterator[Value]:
    """Yield each line that is further to the right than the name."""
    while (line := _LINE_OF_TEXT.match(text, position)) and len(line[1]) > indentation:
        yield Value(*line.span(2), is_literal=True)
        position = line.end()
