"""Finds credentials that have no name, by their place: URLs, headers, command lines."""

from collections.abc import Iterator

from vector_index_mcp.files.secrets.linear import Pattern
from vector_index_mcp.files.secrets.looks import is_mixed, is_password, is_placeholder, is_random

_Q = r"[\"']?"
_WORD = r"[^\s\"'`<>|&;(){}]"
_TYPED = rf"{_Q}({_WORD}{{6,}})"  # on a command line
_LOGINS = (
    r"\b(?:sshpass|mongo\w{0,10}|(?:docker|podman|az|helm|oc|nerdctl)\s(?:registry\s)?login|twine"
    r"|sqlcmd|bcp|7z|zip|unzip)\b"
)
# Group 1 of each of these patterns is a password.
_IN_URLS = (
    r"://[^\s/@\"'`<>:]{0,64}:([^\s/@\"'`<>:]{6,})@[\w.\[-]",
    r"jdbc:oracle:\w{1,8}:\w{1,32}/([^\s/@\"'`<>]{6,})@",
)
_IN_COMMANDS = (
    rf"\bcurl\b[^\n|]*?\s(?:-u\s?|--(?:proxy-)?user[ =]){_Q}[\w.@%-]{{1,64}}:({_WORD}{{6,}})",
    rf"\b(?:mysql|mariadb)\w{{0,10}}\b[^\n|]*?\s-p{_TYPED}",
    rf"{_LOGINS}[^\n|]*?\s-[pP]\s?{_TYPED}",
    rf"\bredis-cli\b[^\n|]*?\s-a\s{_TYPED}",
    rf"-pass(?:in|out|word|wd)?[\s=]{_Q}pass:({_WORD}{{6,}})",
    rf"\bnet use\b[^\n]*?/user:\S{{1,40}}\s({_WORD}{{6,}})",
    rf"\bsmbclient\b[^\n]*?-U\s?{_Q}[\w.\\-]{{1,40}}%({_WORD}{{6,}})",
    rf"\bhtpasswd\s-\w{{0,3}}b\w{{0,3}}\s\S{{1,80}}\s\S{{1,40}}\s{_TYPED}",
    rf"\becho\s(?:-n\s)?{_Q}(?:[\w.-]{{1,32}}:)?({_WORD}{{6,}}?){_Q}\s?\|[^\n]*?"
    r"(?:stdin\b|\bchpasswd\b)",
    rf"(?m)^\s{{0,9}}user\s[\w.@-]{{1,40}}\s({_WORD}{{6,}})$",  # ftp
    # .pgpass
    r"(?m)^[\w.*-]{1,64}:(?:\*|[0-9]{4,5}):[\w*-]{1,64}:[\w*.-]{1,64}:([^\s:]{6,})",
    r"(?i)(?:\bauth\s?=\s?|basic_?auth)\(\s?[\"'][^\"'\n]{1,64}[\"'],\s{0,3}"
    r"[\"']([^\"'\n\s]{6,})[\"']",
)
# Group 1 of each of these patterns is a random key.
_KEYS = (
    r"(?i)authorization[\"'\]]{0,2}[\s:=,>]{0,9}[\"'`]?"
    r"(?:basic|bearer|token|apikey|api-key|digest|bot)\s{1,3}([\w+/=.~-]{8,})",
    r"://([^\s/@\"'`<>:.]{20,})@[\w.-]",
    r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/]{20,})",
    r"discord(?:app)?\.com/api/webhooks/([0-9]{15,20}/[\w-]{50,})",
    r"\.webhook\.office\.com/webhookb2/([\w@/-]{60,})",
    r"(?i)[?&;](?:sig|signature|key|code|sv_sig|x-(?:amz|goog|oss)-(?:signature|security-token))="
    r"([\w%+/=-]{20,})",
)
_SOURCES = (*_IN_URLS, *_IN_COMMANDS, *_KEYS)
_PLACES = tuple(Pattern(source) for source in _SOURCES)
_ANY_PLACE = Pattern("|".join(f"(?:{source})" for source in _SOURCES))
_LEAST_KEY = 16
_LONGEST_JUDGED = 2_000  # so much of a value tells whether it is a secret


def find(text: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of such credentials in `text`."""
    for place in _ANY_PLACE.spans(data):
        for number, pattern in enumerate(_PLACES):
            if span := pattern.group_within(data, *place):
                if _is_secret(text[slice(*span)], number):
                    yield span
                break


def _is_secret(value: str, number: int) -> bool:
    """Return whether `value`, which the pattern with this number found, is a secret."""
    value = value[:_LONGEST_JUDGED]
    if is_placeholder(value):
        return False
    if number < len(_IN_URLS):
        return is_password(value)
    if number < len(_IN_URLS) + len(_IN_COMMANDS):
        return is_password(value) and is_mixed(value)
    return is_random(value, _LEAST_KEY)
