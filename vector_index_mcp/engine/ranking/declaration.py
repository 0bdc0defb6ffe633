"""Reads the name out of a declaration that somebody pastes as a query. Pure.

Of `int main(int argc, char** argv)` or `export async function load(url)`, the name is what is
looked for; keywords, types and parameters are in too many chunks. Without brackets, such words may
be English (`default type conversion`), and are left alone.
"""

import re

_KEYWORDS = frozenset("def fn fun func function proc sub void int".split())
_MODIFIERS = frozenset(
    "abstract async const constexpr default export extern fileprivate final inline internal local "
    "mutating open operator override private protected pub public readonly sealed static suspend "
    "synchronized unsafe virtual".split()
)
_KINDS = frozenset({"struct", "enum"})  # before a type of C
_TYPES = frozenset(
    "auto bool boolean byte char decimal double float long short string unsigned".split()
)
# `run`, `self.run`, `Cart::add`, `parse<T>`.
_NAME = re.compile(r"[*&]*((?:[A-Za-z_$][\w$]*(?:::|[.:]))*[A-Za-z_$][\w$]*)(?:<[^<>]*>)?")
# `char*`, `size_t`, `int[]`, `List<String>`, `std::vector<int>`.
_TYPE = re.compile(r"[\w:]+[*&]+|\w+_t|\w+(?:\[\])+|[\w.:]+<[\w<>,:.*&?\[\]]*>[*&?]*(?:\[\])*")
_NAMED_TYPE = re.compile(r"[A-Z]\w*")  # or the first word of a sentence
_PARAMETER = re.compile(
    r"(?:^|,)\s*(?:[A-Z]\w*|int|long|bool|char|double|float)[>\]*&?]*\s+[*&$]?\w"
)
_BEFORE_NAME = re.compile(r"func\s?\([^()]*\)|pub\([^()]*\)")  # `func (s *Server) Run(ctx)`
_ASSIGNED = re.compile(
    r"(?:export )?(?:const|let|var) ([\w$]+) ?= ?(?:async )?(?:function\b|\([^()]*\) ?=>|\w+ ?=>)"
)
_BEHIND = re.compile(r"[-{:;=>]|(?:throws|const|noexcept|override|where|do)\b")
_PLURAL = re.compile(r"\(e?s\)")  # `sub folder(s)`
_ENTRIES = frozenset({"int main", "void main"})  # which people type without brackets
_MOST_WORDS = 6
_LONGEST_CHARS = 1_000


def declared_in(text: str) -> str:
    """Return the name that `text` declares, if it is nothing but a declaration; empty if not."""
    text = text.strip()
    if text in _ENTRIES:
        return "main"
    if len(text) > _LONGEST_CHARS or _PLURAL.search(text):
        return ""
    if assigned := _ASSIGNED.match(text):
        return assigned[1]
    is_of_go = text.startswith("func")
    if before := _BEFORE_NAME.match(text):
        text = f"{before[0].partition('(')[0]}{text[before.end() :]}"
    head, bracket, rest = text.partition("(")
    *words, last = head.replace(", ", ",").split() or [""]  # `Map<String, Item> group(`
    name = _NAME.fullmatch(last)
    if not (bracket and words and name) or len(words) >= _MOST_WORDS:
        return ""
    if head[-1].isspace() or not _is_end(rest, is_of_go):  # `retry (see below)` is prose
        return ""
    return name[1] if _are_of_declaration(words, rest) else ""


def _are_of_declaration(before: list[str], parameters: str) -> bool:
    others = [word for word in before if word not in _MODIFIERS and word not in _KINDS]
    sure = [w for w in others if w in _KEYWORDS or w in _TYPES or _TYPE.fullmatch(w)]
    if len(sure) == len(others):
        return bool(sure)
    is_typed = len(others) < len(before) or _PARAMETER.search(parameters.partition(")")[0])
    return bool(is_typed) and len(others) == 1 and _is_named_type(others[0], before)


def _is_named_type(word: str, before: list[str]) -> bool:
    return _NAMED_TYPE.fullmatch(word) is not None or before[0] in _KINDS


def _is_end(rest: str, is_of_go: bool) -> bool:
    """Whether `rest` is parameters and what may stand behind them, not a part of a sentence."""
    behind = rest.rpartition(")")[2].strip() if ")" in rest else ""
    if not behind or behind[-1] == "{" or _BEHIND.match(behind):
        return True
    return is_of_go and " " not in behind  # the type of the result
