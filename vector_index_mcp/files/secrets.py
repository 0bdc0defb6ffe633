"""What must not be read, stored or shown: files that hold keys, and credentials in other files.

Own rules, because the detector at hand, detect-secrets 1.5.0 (2024), takes 3.4 s of processor time
for a megabyte of source, seven times as long as reading and cutting it; these take 0.03 s. They
know the formats that providers publish, keys between their marks, passwords in URLs, and values
of names like `api_key` that look drawn by lot. What they miss is indexed like any text.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase

_SECRET_NAMES = (
    ".env .env.* *.env .envrc *.pem *.key *.p8 *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.asc.key "
    "id_rsa id_dsa id_ecdsa id_ed25519 .netrc _netrc .npmrc .pypirc .pgpass .htpasswd "
    ".git-credentials .dockercfg .boto .s3cfg credentials credentials.json secrets.json "
    "secrets.yml secrets.yaml service-account*.json *.tfstate *.tfstate.backup"
).split()
_SECRET_EXCEPTIONS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.example.env")
_STARTS_WITH_KEY = re.compile(r"\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")

_MASK = "*"
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_LEAST_ENTROPY = 3.0  # bits a character; English words have 2 to 2.8, random hex digits over 3.3
_PLACEHOLDER = re.compile(
    r"(?i)^(.)\1*$|[<>{}$%]|example|sample|placeholder|dummy|change|your|test|fake|xxx|password"
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One format. Its group 1, or all of it where there is none, is the secret."""

    anchors: tuple[str, ...]
    """One of these stands in every match: looking for them first is a hundred times faster."""
    pattern: re.Pattern[str]
    is_guess: bool = False
    """Whether a match still has to look like a secret."""


def _rule(anchors: str, pattern: str, *, is_guess: bool = False) -> _Rule:
    return _Rule(tuple(anchors.split()), re.compile(pattern), is_guess)


_RULES = (
    _rule("PRIVATE", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----([^-]+)(?=-----END|\Z)"),
    _rule("AKIA ASIA", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    _rule("ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b"),
    _rule("github_pat_", r"\bgithub_pat_\w{22,255}\b"),
    _rule("glpat-", r"\bglpat-[\w-]{20,}"),
    _rule("xox", r"\bxox[abeoprs]-(?:\d+-)+[\w-]{10,}"),
    _rule("hooks.slack.com", r"hooks\.slack\.com/services/(T\w{6,}/B\w{6,}/\w{16,})"),
    _rule("_live_", r"\b[sr]k_live_[0-9a-zA-Z]{16,}\b"),
    _rule("whsec_", r"\bwhsec_[0-9a-zA-Z+/]{24,}"),
    _rule("AIza", r"\bAIza[\w-]{35}(?![\w-])"),
    _rule("GOCSPX-", r"\bGOCSPX-[\w-]{28}(?![\w-])"),
    _rule("sk-", r"\bsk-(?:ant-|proj-|svcacct-)[\w-]{20,}|\bsk-\w{20}T3BlbkFJ\w{20}\b"),
    _rule("hf_", r"\bhf_[A-Za-z]{34}\b"),
    _rule("npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _rule("pypi-AgE", r"\bpypi-AgE[\w-]{50,}"),
    _rule("SG.", r"\bSG\.[\w-]{22}\.[\w-]{43}(?![\w-])"),
    _rule("dop_v1_", r"\bdop_v1_[0-9a-f]{64}\b"),
    _rule("shpat_ shpss_", r"\bshp(?:at|ss)_[0-9a-fA-F]{32}\b"),
    _rule(":AA", r"\b\d{8,10}:AA[\w-]{33}(?![\w-])"),
    _rule("eyJ", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{16,}"),
    _rule("AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    _rule("://", r"://[^\s:/@\"'`<>]{1,64}:([^\s:/@\"'`<>]{6,64})@[\w.-]", is_guess=True),
)
# What is assigned to names whose values are secrets: `stripe_api_key = "..."`. The value is looked
# for first: names are frequent, and a search that ignores case is slow.
_ASSIGNED = re.compile(r"[:=>]\s*[\"']([\w+/.=~!@#^&*-]{16,200})[\"']")
_NAME_BEFORE = re.compile(
    r"(?i)(?:password|passwd|secret|token|(?:api|access|secret|private|account|auth)[_-]?key)"
    r"[\"']?\s*[:=]?$"
)
_LONGEST_NAME = 40


def is_secret(key: str) -> bool:
    """Whether a file of this name usually holds keys or passwords."""
    name = key.rsplit("/", 1)[-1].lower()
    if any(fnmatchcase(name, pattern) for pattern in _SECRET_EXCEPTIONS):
        return False
    return any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES)


def is_key(text: str) -> bool:
    """Whether `text` is a private key from its beginning on."""
    return bool(_STARTS_WITH_KEY.match(text))


def masked(text: str) -> tuple[str, int]:
    """`text` with every credential replaced by asterisks, and how many there were.

    Nothing moves: the lines and the length stay as they are.
    """
    spans = []
    for rule in _RULES:
        if any(anchor in text for anchor in rule.anchors):
            spans += [_span(match) for match in rule.pattern.finditer(text) if _counts(rule, match)]
    spans += [_span(match) for match in _ASSIGNED.finditer(text) if _is_secret_value(text, match)]
    return _without(text, _merged(spans))


def _counts(rule: _Rule, match: re.Match[str]) -> bool:
    return not rule.is_guess or not _PLACEHOLDER.search(match[1])


def _span(match: re.Match[str]) -> tuple[int, int]:
    return match.span(1 if match.re.groups else 0)


def _is_secret_value(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - _LONGEST_NAME) : match.start()]
    return _looks_random(match[1]) and bool(_NAME_BEFORE.search(before))


def _looks_random(value: str) -> bool:
    """Whether `value` is no word, path, expression or placeholder."""
    if (
        _PLACEHOLDER.search(value)
        or not re.search(r"\d", value)
        or not re.search(r"[A-Za-z]", value)
    ):
        return False
    counts = Counter(value).values()
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
    return entropy >= _LEAST_ENTROPY


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """`spans` in order, without those that begin inside another."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return apart


def _without(text: str, spans: list[tuple[int, int]]) -> tuple[str, int]:
    pieces, position = [], 0
    for start, end in spans:
        pieces += [text[position:start], re.sub(r"\S", _MASK, text[start:end])]
        position = end
    return "".join([*pieces, text[position:]]), len(spans)
