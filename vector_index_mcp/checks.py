"""Checks of the arguments that a client sends; the issues they find are worded as zod does. Pure.

These arguments follow the contract of a program that validated them with zod (version 3). A value
may have several issues, each with its code, path and message, and with its keys in zod's order.
Numbers and lengths count as in JavaScript: text in UTF-16 code units, 3.0 as a whole number.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

# A list of a million wrong items has a million issues; more than these help nobody.
MOST_ISSUES = 100
BLANKS = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
r"""The characters that JavaScript counts as blank, in `\s` and in `trim`."""

_ABSENT: Final = object()
_MOST_SHOWN = 200  # characters of a client's text that an issue repeats
_NOT_UNICODE = "Text is not valid Unicode"

Schema = dict[str, Any]
Issue = dict[str, Any]
Path = tuple[str | int, ...]
Refinement = tuple[Callable[[str], bool], str]
"""A condition on a text, and the message of the issue if the text does not meet it."""


class Issues:
    """The issues of a value, in the order in which they were found; at most `MOST_ISSUES`."""

    def __init__(self) -> None:
        self.found: list[Issue] = []
        self.dropped: list[Path] = []
        """The paths of fields that an object does not have; they are no issues."""

    @property
    def is_full(self) -> bool:
        """Whether no more issues are collected."""
        return len(self.found) >= MOST_ISSUES

    def add(self, issue: Issue) -> None:
        """Keep `issue`, if there is room for it."""
        if not self.is_full:
            self.found.append(issue)


class Check(Protocol):
    """A requirement on a value."""

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """Return the value as it is to be used; do not use it if this added to `issues`."""

    def schema(self) -> Schema:
        """The same requirement as JSON Schema, as far as that can express it."""


class Pattern(NamedTuple):
    """A pattern that a text must match."""

    written: str
    """The pattern in JavaScript's syntax, for the schema."""
    matches: Callable[[str], object]
    """Returns something true for a text that matches."""
    message: str


@dataclass(frozen=True)
class Text:
    """A text of `least` to `most` UTF-16 code units."""

    least: int = 0
    most: int | None = None
    too_short: str = ""
    """The message for a text that is too short; empty for zod's own. Likewise `too_long`."""
    too_long: str = ""
    pattern: Pattern | None = None
    refinements: tuple[Refinement, ...] = ()
    is_trimmed: bool = False
    """Whether `check` strips surrounding blanks, after all checks."""

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`."""
        if not isinstance(value, str):
            issues.add(_wrong_type(value, "string", path))
            return value
        length = len(value.encode("utf-16-le", "surrogatepass")) // 2
        if length < self.least:
            message = self.too_short or f"String must contain at least {self.least} character(s)"
            issues.add(_too_small(self.least, "string", message, path))
        if self.most is not None and length > self.most:
            message = self.too_long or f"String must contain at most {self.most} character(s)"
            issues.add(_too_big(self.most, "string", message, path))
        if self.pattern and not self.pattern.matches(value):
            issues.add(_mismatch(self.pattern.message, path))
        for holds, message in (*self.refinements, (_is_unicode, _NOT_UNICODE)):
            if not holds(value):
                issues.add({"code": "custom", "message": message, "path": [*path]})
        return value.strip(BLANKS) if self.is_trimmed else value

    def schema(self) -> Schema:
        """See `Check`."""
        found: Schema = {"type": "string"}
        if self.least:
            found["minLength"] = self.least
        if self.most is not None:
            found["maxLength"] = self.most
        if self.pattern:
            found["pattern"] = self.pattern.written
        return found


@dataclass(frozen=True)
class WholeNumber:
    """A number without a fraction, from `minimum` to `maximum`."""

    minimum: int
    maximum: int | None = None
    is_inclusive: bool = True
    """Whether the minimum itself is allowed."""

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            issues.add(_wrong_type(value, "number", path))
            return value
        is_whole = _is_whole(value)
        if not is_whole:
            issues.add(_fraction(path))
        if value < self.minimum or (value == self.minimum and not self.is_inclusive):
            least = f"{'or equal to ' if self.is_inclusive else ''}{self.minimum}"
            message = f"Number must be greater than {least}"
            small = _too_small(self.minimum, "number", message, path)
            issues.add({**small, "inclusive": self.is_inclusive})
        if self.maximum is not None and value > self.maximum:
            message = f"Number must be less than or equal to {self.maximum}"
            issues.add(_too_big(self.maximum, "number", message, path))
        return int(value) if is_whole else value

    def schema(self) -> Schema:
        """See `Check`."""
        minimum = "minimum" if self.is_inclusive else "exclusiveMinimum"
        found: Schema = {"type": "integer", minimum: self.minimum}
        if self.maximum is not None:
            found["maximum"] = self.maximum
        return found


class Boolean:
    """True or false."""

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`."""
        if not isinstance(value, bool):
            issues.add(_wrong_type(value, "boolean", path))
        return value

    def schema(self) -> Schema:
        """See `Check`."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    options: tuple[str, ...]

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`."""
        if not isinstance(value, str):
            issues.add(self._wrong_type(value, path))
        elif value not in self.options:
            issues.add(self._unknown(shown(value), path))
        return value

    def _wrong_type(self, value: Any, path: Path) -> Issue:
        issue = _wrong_type(value, self._listed, path)
        return {key: issue[key] for key in ("expected", "received", "code", "path", "message")}

    def _unknown(self, value: str, path: Path) -> Issue:
        return {
            "received": value,
            "code": "invalid_enum_value",
            "options": [*self.options],
            "path": [*path],
            "message": f"Invalid enum value. Expected {self._listed}, received '{value}'",
        }

    @property
    def _listed(self) -> str:
        return " | ".join(f"'{option}'" for option in self.options)

    def schema(self) -> Schema:
        """See `Check`."""
        return {"type": "string", "enum": [*self.options]}


@dataclass(frozen=True)
class ListOf:
    """A list of `least` to `most` items."""

    items: Check
    least: int = 0
    most: int | None = None
    too_long: str = ""
    """The message for a list that is too long; empty for zod's own."""

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`."""
        if not isinstance(value, list):
            issues.add(_wrong_type(value, "array", path))
            return value
        if len(value) < self.least:
            message = f"Array must contain at least {self.least} element(s)"
            issues.add(_too_small(self.least, "array", message, path))
        if self.most is not None and len(value) > self.most:
            message = self.too_long or f"Array must contain at most {self.most} element(s)"
            issues.add(_too_big(self.most, "array", message, path))
        cleaned = []
        for number, item in enumerate(value):
            if issues.is_full:
                break
            cleaned.append(self.items.check(item, (*path, number), issues))
        return cleaned

    def schema(self) -> Schema:
        """See `Check`."""
        found: Schema = {"type": "array", "items": self.items.schema()}
        if self.least:
            found["minItems"] = self.least
        if self.most is not None:
            found["maxItems"] = self.most
        return found


@dataclass(frozen=True)
class Field:
    """A value in an object, by name."""

    check: Check
    description: str = ""
    is_required: bool = True
    default: Any = None
    """The value of an optional field that is left out; None: the result lacks the field, too."""
    stand_in: str | None = None
    """The field that is used if this one is left out. One of the two is required."""

    def schema(self) -> Schema:
        """The schema of the value, with the default and the description."""
        found = self.check.schema()
        if self.default is not None:
            found["default"] = self.default
        return {**found, "description": self.description} if self.description else found


@dataclass(frozen=True)
class Object:
    """An object with these fields. `check` drops all other fields."""

    fields: Mapping[str, Field]

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`. The value of a stand-in is returned under the name of its field."""
        if not isinstance(value, dict):
            issues.add(_wrong_type(value, "object", path))
            return value
        cleaned: dict[str, Any] = {}
        unknown = islice((key for key in value if key not in self.fields), MOST_ISSUES)
        issues.dropped += ((*path, name) for name in unknown)
        for name, field in self.fields.items():
            if name in value or (field.is_required and field.stand_in not in value):
                found = field.check.check(value.get(name, _ABSENT), (*path, name), issues)
                cleaned[name] = found
            elif field.default is not None:
                cleaned[name] = field.default
        for name, field in self.fields.items():
            if field.stand_in in cleaned:
                taken = cleaned.pop(field.stand_in)
                cleaned.setdefault(name, taken)
        return cleaned

    def schema(self) -> Schema:
        """See `Check`."""
        found: Schema = {
            "type": "object",
            "properties": {name: field.schema() for name, field in self.fields.items()},
        }
        required = [
            n for n, field in self.fields.items() if field.is_required and not field.stand_in
        ]
        if required:
            found["required"] = required
        return {**found, "additionalProperties": False}


@dataclass(frozen=True)
class TextOr:
    """An object, or a text that stands for the object with this text as its field `name`."""

    name: str
    text: Text
    object: Object

    def check(self, value: Any, path: Path, issues: Issues) -> Any:
        """See `Check`. For a value that is neither, the issue says that an object was expected."""
        if isinstance(value, str):
            return {self.name: self.text.check(value, path, issues)}
        return self.object.check(value, path, issues)

    def schema(self) -> Schema:
        """See `Check`."""
        return {"anyOf": [self.text.schema(), self.object.schema()]}


def shown(text: str) -> str:
    """The beginning of a client's text, as far as an issue may repeat it."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _wrong_type(value: Any, expected: str, path: Path) -> Issue:
    received = kind_of(value)
    is_absent = received == "undefined"
    return {
        "code": "invalid_type",
        "expected": expected,
        "received": received,
        "path": [*path],
        "message": "Required" if is_absent else f"Expected {expected}, received {received}",
    }


def _fraction(path: Path) -> Issue:
    return {
        "code": "invalid_type",
        "expected": "integer",
        "received": "float",
        "message": "Expected integer, received float",
        "path": [*path],
    }


def _mismatch(message: str, path: Path) -> Issue:
    wrong = {"validation": "regex", "code": "invalid_string"}
    return {**wrong, "message": message, "path": [*path]}


def _too_small(minimum: int, kind: str, message: str, path: Path) -> Issue:
    return {"code": "too_small", "minimum": minimum, **_of_size(kind, message, path)}


def _too_big(maximum: int, kind: str, message: str, path: Path) -> Issue:
    return {"code": "too_big", "maximum": maximum, **_of_size(kind, message, path)}


def _of_size(kind: str, message: str, path: Path) -> Issue:
    sized = {"type": kind, "inclusive": True, "exact": False}
    return {**sized, "message": message, "path": [*path]}


def kind_of(value: object) -> str:
    """The type of a value, as zod names it."""
    if value is _ABSENT:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _is_whole(value: int | float) -> bool:
    """Whether this is a whole number in JavaScript, where larger numbers are `Infinity`."""
    return value.is_integer() if isinstance(value, float) else abs(value) <= sys.float_info.max


def _is_unicode(text: str) -> bool:
    """Whether `text` can be encoded in UTF-8; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
