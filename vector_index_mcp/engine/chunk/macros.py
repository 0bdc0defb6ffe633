"""Names functions that a macro of C, C++ or Objective-C defines: `TEST(Parser, ReadsNumbers) {`.

Without the preprocessor, the parser takes the macro's name for that of the function, or finds no
function at all. So it reads a plain head of a function in the place of the macro. Pure.
"""

import re

_ARGUMENTS = r"\((?:[^;{}\"()]|\([^;{}\"()]{0,200}\)|\"[^\"\n]{0,200}\"){1,400}\)"
# A macro at the start of a line, its arguments, perhaps those of a benchmark, and a body. Indented,
# it is a loop, as `LIST_FOREACH(…) {`; `NS_ENUM(NSInteger) {` begins an enumeration.
_HEAD = re.compile(
    rf"^(?:static[ \t]{{1,9}})?((?!\w+_(?:ENUM|OPTIONS)\()[A-Z][A-Z0-9_]{{2,60}})({_ARGUMENTS})"
    rf"(?:{_ARGUMENTS})?\s{{0,80}}\{{",
    re.MULTILINE,
)
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_END_OF_NAME = re.compile(r",|:(?!:)|\Z")
_TYPE_WORDS = frozenset({"struct", "class", "enum", "union", "void", "int"})
_OF_TWO = re.compile(r"\w*TEST(?:_[FP])?|BENCHMARK\w*_F|\w+_METHOD")
"""Macros that name a function by two arguments, the group first, as gtest and PHP's source do."""
_END_OF_TYPE = re.compile(r"[\w*&>)]\Z")
_NO_CODE = ("*", "#", "@")


def expanded(text: str) -> tuple[str, dict[str, str]]:
    """Replace the macros that begin functions with heads that a parser understands.

    Returns:
        The text, with as many lines as before, and the names of these functions, by the names that
        they have in it. A group stands before its function: `Parser::ReadsNumbers`.
    """
    names: dict[str, str] = {}

    def head(found: re.Match[str]) -> str:
        name = _name(found[1], found[2][1:-1])
        if not name or _goes_on(text, found.start()):
            return found[0]
        stand_in = f"defined_by_macro_{len(names)}"
        names[stand_in] = name
        lines = "\n" * found[0].count("\n")
        return f"void {stand_in}(void){lines}{{"

    return _HEAD.sub(head, text), names


def _name(macro: str, arguments: str) -> str:
    """Return the name of the function; empty if the arguments do not begin with a name."""
    first = _NAME.match(arguments)
    if first is None or first[1] in _TYPE_WORDS:
        return ""
    group, _, second = arguments.partition(",")
    function = _NAME.fullmatch(second)
    if _OF_TWO.fullmatch(macro):
        if function and _NAME.fullmatch(group):
            return f"{first[1]}::{function[1]}"
        if second.lstrip().startswith('"'):  # as Catch2 has it: a fixture, and what is tested
            return ""
    return first[1] if _END_OF_NAME.match(arguments, first.end()) else ""


def _goes_on(text: str, start: int) -> bool:
    """Whether the line before goes on: the text of a macro, or the type that a function returns."""
    line = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].strip()
    if line.endswith("\\"):
        return True
    line = line.partition("//")[0].rstrip()
    return _END_OF_TYPE.search(line) is not None and not line.startswith(_NO_CODE)
