"""Finds the kind of a file (test, example, generated, …) from its path, by convention. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, TypeAlias, cast

Kind: TypeAlias = Literal["code", "docs", "config", "tests"]
"""The kinds that a search can be limited to; each file is of exactly one of these."""
_IN_ORDER: tuple[Kind, ...] = ("tests", "docs", "config")

TEST = "test"
EXAMPLE = "example"
DOCS = "docs"
GENERATED = "generated"
VENDORED = "vendored"
DEPRECATED = "deprecated"
DECLARATIONS = "declarations"
BARREL = "barrel"
DATA = "data"

_BY_PATH = {
    TEST: re.compile(
        r"(^|/)(tests?|testing|x?t|specs?|__(tests|mocks|fixtures|snapshots)__|e2e|fixtures?|mocks?"
        r"|(?i:tests?[._-]?(cases?|data|fixtures?|helpers?|suites?|support|utils?))|cypress"
        r"|benchmarks?|benches|androidTest|\w+[._-]tests?|[\w.]*[._-]Tests?|\w*[a-z]Tests?|Tests?)/"
        r"|(^|/)(test_[^/]*|tests\.\w+|conftest\.py|[^/]*[._-](tests?|specs?|bench|stories)\.[^/]+)$"
        r"|[a-z\d](Tests?|Specs?|TestCase)\.\w+$"
    ),
    EXAMPLE: re.compile(
        r"(^|/)(examples?|samples?|demos?|tutorials?|playgrounds?|cookbook)/", re.IGNORECASE
    ),
    VENDORED: re.compile(
        r"(^|/)(vendor|vendored|_vendor|third[-_]?party|node_modules|externals?|extern|deps|Pods)/"
        # Libraries that a program of another language hands to browsers.
        r"|(^|/)(static|public|assets|www|htdocs|webroot|media)/([^/]+/){0,8}(jquery|underscore|lodash"
        r"|backbone|handlebars|mustache|modernizr|angular|knockout|mootools|codemirror|tinymce|ckeditor"
        r"|select2|swagger-ui|mathjax|katex|htmx|d3|vue|react|react-dom)"
        r"([.-][^/]*)?\.(m?js|css)$",
        re.IGNORECASE,
    ),
    GENERATED: re.compile(
        r"(^|/)(generated|__generated__|dist|build|autogen)/"
        r"|[._](pb|pb2|pb2_grpc|g|gen|generated|designer|min|umd)\.\w+$|_pb\.\w+$|\.(lock|map|snap)$"
        r"|(^|/)(package-lock|pnpm-lock|yarn)\.\w+$",
        re.IGNORECASE,
    ),
    DEPRECATED: re.compile(
        r"(^|[/_.-])(deprecated|legacy|obsolete|compat|old)([/_.-]|$)", re.IGNORECASE
    ),
    DECLARATIONS: re.compile(r"\.d\.[mc]?ts$|\.pyi$"),
    BARREL: re.compile(r"(^|/)(__init__\.py|index\.[mc]?[jt]sx?|mod\.rs|__main__\.py)$"),
    DOCS: re.compile(
        r"(^|/)((docs?|documentation)([_-](src|sources?|examples?|snippets?))?/"
        r"|(changelogs?|changes|history|news)$)",
        re.IGNORECASE,
    ),
}
_BY_LANGUAGE = {
    **dict.fromkeys("markdown rst asciidoc org latex text".split(), DOCS),
    **dict.fromkeys(
        "json yaml toml ini xml csv diff other html css scss cmake make batch".split(), DATA
    ),
}
_DOCS_LANGUAGES = tuple(name for name, kind in _BY_LANGUAGE.items() if kind == DOCS)
_CONFIG_LANGUAGES = ("json", "yaml", "toml", "ini", "xml", "cmake", "make", "dockerfile")
_ASKED_BY = {
    TEST: "test tests tested testing testcase spec specs fixture fixtures mock mocks benchmark "
    "benchmarks",
    EXAMPLE: "example examples sample samples demo demos tutorial usage",
    DOCS: "docs doc documentation documented readme changelog guide manual tutorial changes "
    "release notes",
    GENERATED: "generated protobuf lockfile lock",
    VENDORED: "vendor vendored third-party thirdparty",
    DEPRECATED: "deprecated deprecation legacy obsolete compat compatibility old",
    DECLARATIONS: "declaration declarations typings stub stubs types",
    DATA: "config configuration settings json yaml toml xml css html style styles stylesheet "
    "makefile cmake build workflow pipeline dependencies",
}
_ASKING = {kind: frozenset(words.split()) for kind, words in _ASKED_BY.items()}
_BEFORE_TESTS = frozenset(
    "a all and any are do does existing find functional how integration is list me regression show "
    "the there unit what where which".split()
)
_AFTER_TESTS = frozenset(("about", "against", "covering", "for", "of"))
_FEW_WORDS = 3


@lru_cache(maxsize=8_192)
def kinds_of(path: str, language: str) -> frozenset[str]:
    """Return the kinds of the file at `path`; none for ordinary code, sometimes several."""
    kinds = {kind for kind, pattern in _BY_PATH.items() if pattern.search(path)}
    if language in _BY_LANGUAGE and not (language == "other" and _may_be_script(path)):
        kinds.add(_BY_LANGUAGE[language])
    return frozenset(kinds)


def _may_be_script(path: str) -> bool:
    """Return whether a file has a name like `bin/deploy`; not one like `LICENSE` or `.npmrc`."""
    name = path.rpartition("/")[2]
    return "." not in name and not name.isupper()


def patterns_of(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the path patterns and the languages of a `Kind`; a file that fits any of them has it.

    Tests take precedence over docs, and docs over configuration. Code is everything else.
    """
    if kind == "tests":
        return (_BY_PATH[TEST].pattern,), ()
    if kind == "docs":
        return (f"(?i:{_BY_PATH[DOCS].pattern})",), _DOCS_LANGUAGES
    return (), _CONFIG_LANGUAGES if kind == "config" else ()


def before(kind: str) -> tuple[Kind, ...]:
    """Return the kinds that take precedence over `kind`; a file has the first kind that it fits."""
    return _IN_ORDER if kind == "code" else _IN_ORDER[: _IN_ORDER.index(cast("Kind", kind))]


def kinds_asked_for(words: Sequence[str]) -> frozenset[str]:
    """Return the kinds of files that a query of these lower-case words, in order, asks for.

    A word for tests seldom asks for tests ("stop at the first test that fails"): of 42 labelled
    questions with one, 35 look for code. So the query must be short, or name tests first, or name
    what is tested: "tests for retries".
    """
    kinds = frozenset(kind for kind, asking in _ASKING.items() if not asking.isdisjoint(words))
    return kinds if _asks_for_tests(words) else kinds - {TEST}


def names_tests(words: Iterable[str]) -> bool:
    """Return whether a word for tests is among the lower-case `words`."""
    return not _ASKING[TEST].isdisjoint(words)


def _asks_for_tests(words: Sequence[str]) -> bool:
    first = next((word for word in words if word not in _BEFORE_TESTS), "")
    return (
        len(words) <= _FEW_WORDS
        or first in _ASKING[TEST]
        or any(a in _ASKING[TEST] and b in _AFTER_TESTS for a, b in pairwise(words))
    )
