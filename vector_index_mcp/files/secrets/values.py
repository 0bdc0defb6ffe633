"""Finds secret values by the names that they are assigned to, such as `password` or `api_key`."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vector_index_mcp.files.secrets.linear import Pattern
from vector_index_mcp.files.secrets.looks import (
    is_mixed,
    is_name_of_parts,
    is_numbered_word,
    is_password,
    is_phrase,
    is_placeholder,
    is_random,
    is_scrambled,
    is_turning,
)

_PASSWORDS = (
    r"passw(?:or)?d|passwort|kennwort|pass_?phrase|contrasena|senha|mot[ _]?de[ _]?passe"
    r"|(?:require|store|key|user|root|db|master|admin|sign|become|ssh)_?pass|pass|pwd|pw|psk"
    r"|identified\s{1,9}(?:with\s{1,9}\w{1,40}\s{1,9})?by|securestring|snmp-server\s{1,9}community"
)
_KEYS = (
    r"secret|token|credential|(?:api|app|access|private|account|auth|encryption|encrypt|signing|sign"
    r"|master|client|admin|deploy|shared|shared[_-]?access|storage|service|subscription|functions"
    r"|session|cookie|hmac|jwt|aes|crypto|license|integration|write|webhook|application|secure_auth"
    r"|logged_in|nonce|auth)[\s_.-]?(?:key|salt|secret|token)|\bauth\b|_auth\b"
)
_SUFFIXES = (
    r"value|val|data|base|base64|b64|hex|secret|token|key|pass|password|prod|production|dev|staging"
    r"|live|main|root|admin|user|ro|rw|read|write|primary|secondary|default|old|new|raw|plain|text"
    r"|string|str|v?[0-9]{1,3}|access[_-]?key"
)
NAME = Pattern(rf"(?i)(?:{_PASSWORDS}|{_KEYS})(?:[_.-]?(?:{_SUFFIXES}))*s?\b")
_PASSWORD_NAME = re.compile(rf"(?i)(?:{_PASSWORDS})")

# The text between a name and its value.
_QUOTE = r"(?:\\{0,3}[\"'`]|&quot;)"
_ASSIGNED = re.compile(
    rf"(?:{_QUOTE}?[\])}}]{{0,2}}(?:[ \t]{{0,9}}:[ \t]{{0,9}}[\w.<>&?|\[\] ]{{1,30}}"
    rf"|\[\w{{0,8}}\]|[ \t]{{1,9}}[\w.*\[\]]{{1,20}})?[ \t]{{0,40}}(?:[:?|+!]{{0,2}}={{1,3}}>?)"
    rf"|{_QUOTE}?(?:[\])}}]{{0,2}}\*{{0,2}}[ \t]{{0,40}}:=?\*{{0,2}}|[\]}}]{{0,2}}[ \t]{{0,40}}->))"
    r"[ \t]{0,40}"
    r"(?:\r?\n[ \t]{1,40}(?=[\"']))?"
)
_PAIRED = re.compile(  # name="…" value="…", name: …, value: …
    rf"{_QUOTE}?(?:[\s,]{{1,40}}[\w:]{{1,20}}=[\"'][^\"'<>\n]{{0,40}}[\"']){{0,2}}[\s,]{{1,40}}"
    rf"{_QUOTE}?(?:[Vv]alue|VALUE){_QUOTE}?\s{{0,3}}[:=]\s{{0,3}}"
    rf"|{_QUOTE}?\s?\{{[^{{}}]{{0,200}}?\bdefault\s{{0,9}}=\s{{0,9}}"
)
_ELEMENT = re.compile(  # <name>…, <x name="name">…, <x>name</x><y>…
    r"(?:>|[\"'][^<>\n]{0,60}(?<!/)>|</[\w:.-]{1,40}>\s{0,40}<[\w:.-]{1,40}>)"
    r"\s{0,40}(?:<(?:value|Value|!\[CDATA)[>\[]\s{0,40})?"
)
_ARGUMENT = re.compile(r"[\"']\s{0,3},\s{0,9}(?=[\"'])|\(\s{0,3}(?=[\"'])")
_SPACE = re.compile(r"[\"']?[ \t]{1,20}(?:[57] |(?=[^\s=:]))(?:\\\r?\n\s{0,40})?")
# The value itself.
_OPENING = re.compile(r"(?:[NLbru@]{1,2}(?=[\"']))?(\\{0,3}[\"'`]|&quot;)")
_IN_TRIPLE_QUOTES = re.compile(
    r"[bru]{0,2}(\"\"\"|''')\s{0,80}([^\s\"'][^\"'\n]{0,2000}+)\s{0,80}\1"
)
_BARE = re.compile(r"[^\s\"'`<>,;&(){}\[\]\\]{1,400}")
# What goes on behind a `&`, which begins neither an entity nor the next field of a URL.
_MORE = re.compile(
    r"(?:&(?:amp;)?(?!(?:lt|gt|quot|apos|nbsp|#\w{1,8});|[\w.-]{1,40}=)[^\s\"'`<>,;&=(){}\[\]\\]{1,100}){1,8}"
)
_STRONG = "**"  # around strong text in Markdown
_SIGNS = frozenset("!#$%^~@?")  # which stand between no operands
_IN_ELEMENT = re.compile(r"\s{0,40}([^<>\s][^<>\n]{0,400}?)\s{0,40}(?:\]\]>)?<")
# What goes on behind a value that is longer than what is looked at: session tokens have 1,000
# characters and more, certificates several thousand.
_REST = re.compile(r"[^\s\"'`<>,;&(){}\[\]\\]{0,20000}")
_LONGEST_VALUE = 20_000
_LONGEST_JUDGED = 2_000  # so much of a value tells whether it is a secret
# How many characters of values are looked at for each one of the text, beyond the first ones: where
# names stand in the values of other names, one after the other, each is looked at many times.
_MOST_JUDGED, _FIRST_JUDGED = 3, 4_000
_LONGEST_SETTING = 200
# A comment may stand behind it. A bracket in the next line would end a list of arguments or fields.
_BEHIND_SETTING = re.compile(r"[ \t]{0,40}(?:[ \t]#[^\n]{0,200})?\r?(?:\n(?!\s{0,80}[)}\]])|\Z)")
_SETTING = re.compile(r"[ \t]{0,40}(?:export |set |- )?[\w.-]{1,80}(?:=|:[ \t]{1,9})")
_LONGEST_SHORT_NAME = 4
_LONGEST_WORD_BEFORE = 14
_OTHER_TOKENS = tuple(  # words before "token" or "key" that make it no secret
    "public publickey next page paging continuation lock change sync cursor starting idempotency "
    "cancellation clientrequest".split()
)
_LEAST_KEY, _LEAST_MIXED_KEY = 16, 8
_LEAST_DIGITS = 6
_ADDRESS = re.compile(r"0x[0-9A-Fa-f]{40}")  # of a contract, such as a token of Ethereum
_ENCODED = "base64:"  # how Laravel begins its keys


class Name(NamedTuple):
    """What a name says of its value."""

    is_password: bool
    """Whether it is a password; otherwise it is a key or token."""
    is_short: bool
    """Whether the name may be a word of its own, such as `pass`."""
    are_many: bool
    """Whether it is a plural."""


class Value(NamedTuple):
    """Where a value stands, without its quotes."""

    start: int
    end: int
    is_literal: bool
    """Whether it is in quotes, or the text of an element."""
    is_likely: bool = True
    """Whether it is assigned to the name; otherwise it only stands beside the name."""


def find(text: str, names: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the secret values in `text`, where such names stand."""
    masked_until, judged = 0, 0
    for start, end in names:
        if start < masked_until or judged > _FIRST_JUDGED + _MOST_JUDGED * start:
            continue
        name = name_at(text, start, end)
        if name is None:
            continue
        for value in _values(text, end):
            judged += min(value.end - value.start, _LONGEST_JUDGED)
            if (value.is_likely or not name.is_short) and is_secret(text, value, name):
                masked_until = value.end
                if not value.is_literal:
                    masked_until = _REST.match(text, value.end).end()  # type: ignore[union-attr]
                yield value.start, masked_until
                break


def name_at(text: str, start: int, end: int) -> Name | None:
    """Return what kind of name stands there; None if it is only a part of another word."""
    password = _PASSWORD_NAME.match(text, start, end)
    is_short = password is not None and password.end() - start <= _LONGEST_SHORT_NAME
    are_many = text[end - 1] in "sS" and text[end - 2] not in "sS"
    name = Name(password is not None, is_short, are_many)
    return None if _is_other_name(text, start, name) else name


def _is_other_name(text: str, start: int, name: Name) -> bool:
    """Return whether the name is part of another word: `bypass`, `nextPageToken`."""
    before = text[max(0, start - _LONGEST_WORD_BEFORE) : start]
    if before.endswith("::"):  # a type
        return True
    if not name.is_password:
        return before.lower().rstrip("_-. ").endswith(_OTHER_TOKENS)
    if not name.is_short or not before[-1:].isalpha():
        return False
    return not (text[start].isupper() and before[-1].islower())


def _values(text: str, end: int) -> Iterator[Value]:
    """Yield the possible values of the name that ends at `end`, the likeliest first."""
    for separator in (_ASSIGNED, _PAIRED):
        if (match := separator.match(text, end)) and (value := value_at(text, match.end())):
            yield value
    if (match := _ELEMENT.match(text, end)) and (found := _IN_ELEMENT.match(text, match.end())):
        yield Value(*found.span(1), is_literal=True)
    for separator in (_ARGUMENT, _SPACE):
        if (match := separator.match(text, end)) and (value := value_at(text, match.end())):
            yield value._replace(is_likely=False)


def value_at(text: str, position: int) -> Value | None:
    """Return what may be a value there, in quotes or bare; None for an expression."""
    if tripled := _IN_TRIPLE_QUOTES.match(text, position):
        return Value(*tripled.span(2), is_literal=True)
    opening = _OPENING.match(text, position)
    if opening is None:
        bare = _BARE.match(text, position)
        if bare is None or text[bare.end() : bare.end() + 1] in {"(", "[", "{"}:
            return None  # an expression
        end = _end_of(text, bare)
        if text.endswith(_STRONG, position, end):
            end -= len(_STRONG)
        return Value(bare.start(), end, is_literal=False)
    start, quote = opening.end(), opening[1]
    end = text.find(quote, start, start + _LONGEST_VALUE)
    if end < 0 or text.find("\n", start, end) >= 0:
        return None
    return Value(start, end, is_literal=True)


def _end_of(text: str, bare: re.Match[str]) -> int:
    """Return where an unquoted value ends: behind its `&`, if it is no other operand or command."""
    more = _MORE.match(text, bare.end())
    if more is None:
        return bare.end()
    is_sure = is_mixed(bare[0]) or not _SIGNS.isdisjoint(more[0])
    return more.end() if is_sure else bare.end()


def is_secret(text: str, value: Value, name: Name) -> bool:
    """Return whether the value of such a name is a credential."""
    written = text[value.start : min(value.end, value.start + _LONGEST_JUDGED)]
    written = written.removeprefix(_ENCODED)
    if is_placeholder(written):
        return False
    if not name.is_password and _ADDRESS.fullmatch(written):
        return False
    if name.is_password:
        if written.isdecimal():
            return not name.is_short and _is_number_for_password(text, value)
        if value.is_literal and (value.is_likely or is_phrase(written)):
            return is_password(written)
        return is_mixed(written) or (
            is_numbered_word(written) and value.is_likely and _is_setting(text, value)
        )
    if is_phrase(written):
        return value.is_literal
    if is_random(written, _LEAST_KEY):
        return True
    if value.is_likely and is_scrambled(written):
        return True
    is_long_enough = len(written) >= _LEAST_MIXED_KEY and not written.isalnum()
    is_name = is_name_of_parts(written)
    return value.is_likely and is_long_enough and not is_name and is_turning(written)


def _is_number_for_password(text: str, value: Value) -> bool:
    """Return whether digits stand where a password stands, not a length or a number of them."""
    if not value.is_likely or value.end - value.start < _LEAST_DIGITS:
        return False
    return value.is_literal or _is_setting(text, value)


def _is_setting(text: str, value: Value) -> bool:
    """Return whether a line is nothing but a name and an unquoted value, as in YAML and shells.

    In code, such a value would be another name.
    """
    start = text.rfind("\n", max(0, value.start - _LONGEST_SETTING), value.start) + 1
    is_alone = _SETTING.fullmatch(text, start, value.start) is not None
    return is_alone and _BEHIND_SETTING.match(text, value.end) is not None
