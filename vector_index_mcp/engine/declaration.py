"""Reads the name out of a declaration that somebody pastes as a query. Pure.

Of `int main(int argc, char** argv)` or `export async function load(url)`, the name is what is
looked for; keywords, types and parameters are in too many chunks. Without brackets, such words may
be English (`default type conversion`), and are left alone.
"""

import re

_KEYWORDS = frozenset("def fn fun func function proc sub void int".split())
_MODIFIERS = frozenset(
    "abstract async const default export extern final inline internal open override private "
    "protected pub public readonly sealed static unsafe virtual".split()
)
_TYPES = frozenset("auto bool boolean byte char double float long short string unsigned".split())
_NAME = re.compile(r"[*&]*([A-Za-z_$][\w$]*)(?:<[^<>]*>)?")
_TYPE = re.compile(r"[\w:]+[*&]+|\w+_t|[A-Z][\w.]*(?:<[^<>]*>[*&?]*(?:\[\])*|[*&?]+|(?:\[\])+)")
_NAMED_TYPE = re.compile(r"[A-Z]\w*")  # or the first word of a sentence
_PARAMETER = re.compile(r"[\w>\]*&?]\s+[*&$]?\w")  # `Request request`
_RECEIVER = re.compile(r"func\s?\([^()]*\)")  # `func (s *Server) Run(ctx)`
_BEHIND = re.compile(r"[{:;=>-]|(?:throws|const|noexcept|override|where)\b")
_ENTRIES = frozenset({"int main", "void main"})
_MOST_WORDS = 6
_LONGEST_CHARS = 1_000


def declared_in(text: str) -> str:
    """Return the name that `text` declares, if it is nothing but a declaration; empty if not."""
    text = text.strip()
    if text in _ENTRIES:
        return "main"
    if len(text) > _LONGEST_CHARS:
        return ""
    if receiver := _RECEIVER.match(text):
        text = f"func{text[receiver.end() :]}"
    head, bracket, rest = text.partition("(")
    *before, last = head.split()[: _MOST_WORDS + 1] or [""]
    name = _NAME.fullmatch(last)
    if not (bracket and before and name) or len(before) == _MOST_WORDS:
        return ""
    if head[-1].isspace() or not _is_end(rest):
        return ""
    return name[1] if _are_of_declaration(before, rest) else ""


def _are_of_declaration(before: list[str], parameters: str) -> bool:
    others = [word for word in before if word not in _MODIFIERS]
    sure = [w for w in others if w in _KEYWORDS or w in _TYPES or _TYPE.fullmatch(w)]
    if len(sure) == len(others):
        return bool(sure)
    is_typed = len(others) < len(before) or _PARAMETER.search(parameters.partition(")")[0])
    return bool(is_typed) and len(others) == 1 and _NAMED_TYPE.fullmatch(others[0]) is not None


def _is_end(rest: str) -> bool:
    """Whether `rest` is parameters and what may stand behind them, not a part of a sentence."""
    behind = rest.rpartition(")")[2].strip() if ")" in rest else ""
    return not behind or behind[-1] == "{" or _BEHIND.match(behind) is not None
