"""Reads the name out of a declaration that somebody pastes as a query. Pure.

Of `int main(int argc, char** argv)` or `export async function load(url)`, the name is what is
looked for; keywords, types and parameters are in too many chunks.
"""

import re

_KEYWORDS = frozenset(
    "class const def enum fn func function int interface namespace struct trait type var "
    "void".split()
)
_WORDS = frozenset("fun let proc sub val".split())
"""Keywords that are English as well: a bracket has to follow."""
_MODIFIERS = frozenset(
    "abstract async default export extern final inline internal open override private protected "
    "pub public readonly sealed static unsafe virtual".split()
)
_TYPES = frozenset("auto bool boolean byte char double float long short string unsigned".split())
_NAME = re.compile(r"[*&]*([A-Za-z_$][\w$]*)(?:<[^<>]*>)?")
_TYPE = re.compile(r"[A-Z][\w.]*(?:<[^<>]*>)?[*&?]*(?:\[\])*|[\w:]+[*&]+|\w+_t")
_RECEIVER = re.compile(r"\s*func\s*\([^()]*\)")  # `func (s *Server) Run(ctx)`
_BEHIND = re.compile(r"[{:;=>-]|(?:throws|const|noexcept|override|where)\b")
_END = " \t\n:{;"
_MOST_WORDS = 6
_LONGEST_CHARS = 1_000


def declared_in(text: str) -> str:
    """Return the name that `text` declares, if it is nothing but a declaration; empty if not."""
    text = text.strip()
    if len(text) > _LONGEST_CHARS:
        return ""
    head, bracket, rest = _RECEIVER.sub("func", text, count=1).partition("(")
    *before, last = head.rstrip(_END).split()[: _MOST_WORDS + 1] or [""]
    name = _NAME.fullmatch(last)
    if not before or name is None or len(before) == _MOST_WORDS or not _is_end(head, rest):
        return ""
    known = [w for w in before if w in _KEYWORDS or (bracket and (w in _WORDS or _is_type(w)))]
    is_declared = bool(known) and len(known) + sum(w in _MODIFIERS for w in before) == len(before)
    return name[1] if is_declared else ""


def _is_type(word: str) -> bool:
    return word in _TYPES or _TYPE.fullmatch(word) is not None


def _is_end(head: str, rest: str) -> bool:
    """Whether `rest` is parameters and what may stand behind them, not a part of a sentence."""
    behind = rest.rpartition(")")[2].strip() if ")" in rest else ""
    has_space = bool(rest) and head[-1:].isspace()
    is_body = not behind or behind[-1] == "{" or _BEHIND.match(behind) is not None
    return is_body and not has_space
