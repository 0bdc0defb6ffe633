"""Finds private keys between BEGIN and END marks, and the values of Kubernetes' secrets."""

import base64
import binascii
import re
from collections.abc import Iterator

_Span = tuple[int, int]

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY_CHARS = 100_000
_RUN = re.compile(r"(?:\\{1,4}[nrt])+|([A-Za-z0-9+/=]{4,})")
_HEADER = re.compile(r"(?m)(?:^|\\n)[\w-]{3,30}: [^\n\\]{0,200}")
_MOST_HEADERS = 8
_LONG_RUN, _SURE_RUN = 16, 40
_PUTTY = re.compile(r"Private-Lines: ([0-9]{1,3})\s")
_PUTTY_LINE = re.compile(r"\s{0,9}([A-Za-z0-9+/=]{4,200})[ \t\r]{0,9}(?:\n|$)")
_ENCODED_BEGIN = "LS0tLS1CRUdJTi"  # "-----BEGIN " in base64
_ENCODED = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")

_SECRET_KIND = re.compile(
    r"(?m)^[ \t]{0,40}[\"']?kind[\"']?:[ \t]{0,9}[\"']?Secret[\"']?,?[ \t\r]{0,9}$"
)
_DOCUMENT_END = "\n---"
_SECTION = re.compile(r"([ \t-]{0,40})[\"']?(data|stringData)[\"']?:[ \t{]{0,9}$")
_ENTRY = re.compile(
    r"[ \t]{1,60}[\"']?[\w./-]{1,200}[\"']?:[ \t]{1,9}[\"']?([^\s\"'#${}<>|!*&][^\s\"'{}<>]{5,})"
)
_BLOCK_LINE = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}\s{0,3}")
_BASE64_ENTRY = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")


def find(text: str) -> Iterator[_Span]:
    """Yield the spans of such keys and values in `text`."""
    if "PRIVATE KEY" in text:
        yield from _keys(text)
    if _ENCODED_BEGIN in text:
        yield from _encoded_keys(text)
    if "Private-Lines: " in text:
        yield from _putty_keys(text)
    if "Secret" in text and "ata" in text:
        yield from _kubernetes(text)


def _keys(text: str) -> Iterator[_Span]:
    """Yield the body of each key, line by line, without the quotes and commas around the lines."""
    at = text.find("-----BEGIN ")
    while at >= 0:
        begin = _BEGIN.match(text, at)
        start = at = begin.end() if begin else at + len("-----BEGIN ")
        if begin:
            at = text.find("-----", start, start + _LONGEST_KEY_CHARS)
            end = at if at >= 0 else min(len(text), start + _LONGEST_KEY_CHARS)
            yield from _body(text, start, end, is_ended=text.startswith("-----END", end))
            at = end
        at = text.find("-----BEGIN ", at)


def _body(text: str, start: int, end: int, *, is_ended: bool) -> Iterator[_Span]:
    headers = [match.span() for match in _HEADER.finditer(text, start, end)]
    runs = [match.span(1) for match in _RUN.finditer(text, start, end) if match[1]]
    runs = [run for run in runs if not any(a <= run[0] < b for a, b in headers[:_MOST_HEADERS])]
    long = [run for run in runs if run[1] - run[0] >= _LONG_RUN]
    is_key = 2 * sum(b - a for a, b in long) >= sum(b - a for a, b in runs)
    yield from runs if is_key and is_ended else long if is_key else ()
    if not is_key:  # probably code about keys
        yield from (run for run in long if run[1] - run[0] >= _SURE_RUN)


def _encoded_keys(text: str) -> Iterator[_Span]:
    at = text.find(_ENCODED_BEGIN)
    while at >= 0:
        found = _ENCODED.match(text, at)
        if found and b"PRIVATE KEY" in _decoded(found[0][:96]):
            yield found.span()
        at = text.find(_ENCODED_BEGIN, found.end() if found else at + 1)


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded[: len(encoded) // 4 * 4])
    except binascii.Error:
        return b""


def _putty_keys(text: str) -> Iterator[_Span]:
    for match in _PUTTY.finditer(text):
        position = match.end()
        for _ in range(int(match[1])):
            line = _PUTTY_LINE.match(text, position)
            if line is None:
                break
            yield line.span(1)
            position = line.end()


def _kubernetes(text: str) -> Iterator[_Span]:
    """Yield the values of the maps `data` and `stringData` in each document of the kind Secret."""
    position = 0
    for document in text.split(_DOCUMENT_END):
        if _SECRET_KIND.search(document):
            yield from ((position + a, position + b) for a, b in _entries(document))
        position += len(document) + len(_DOCUMENT_END)


def _entries(document: str) -> Iterator[_Span]:
    position, section, indentation = 0, "", 0
    for line in document.split("\n"):
        stripped = line.lstrip()
        indented = len(line) - len(stripped)
        if found := _SECTION.match(line.rstrip("\r")):
            section, indentation = found[2], len(found[1])
        elif stripped and indented <= indentation:
            section = ""
        elif section and (entry := _ENTRY.match(line)):
            if section == "stringData" or _BASE64_ENTRY.fullmatch(entry[1]):
                yield position + entry.start(1), position + entry.end(1)
        elif section and _BLOCK_LINE.fullmatch(stripped):
            yield position + indented, position + len(line)
        position += len(line) + 1
