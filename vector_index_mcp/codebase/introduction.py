"""Answers a question about the project as a whole: with the file that introduces or licenses it.

"What is this project for" has no word of its own to look for, and the words of an introduction are
about its subject. So whatever says "project" or "for" would be found instead.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from vector_index_mcp.codebase.lead import led
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Hit
from vector_index_mcp.indexing.ledger import Ledger

_ASKING = frozenset(
    "about describe explain introduce introduction overview purpose summarize summary what".split()
)
_WHOLE = frozenset("codebase library project repo".split())
_WHOLE_IF_THIS = _WHOLE | frozenset(
    "app application crate framework gem package program repository software tool".split()
)
"""Without "this", these may mean a part of the project."""
AROUND = _ASKING | frozenset(
    "a all an are briefly code do does for give good in is it main me of our please s short show "
    "tell that the this to us use used whole you your".split()
)
_LICENSED = frozenset("licence licences license licensed licenses licensing".split())
"""Words of a question that say nothing of what it is about."""
_AROUND_LICENSE = AROUND | frozenset(
    "distributed have how open or published released software source terms under we which".split()
)
_OF_PACKAGE = re.compile(r"doc\.go|(src/)?lib\.rs", re.IGNORECASE)
_INTRODUCTION = re.compile(
    r"(\.github/|docs?/)?readme(\.(md|mdx|markdown|rst|adoc|asciidoc|org|txt))?"
    rf"|{_OF_PACKAGE.pattern}",
    re.IGNORECASE,
)
_DESCRIBES = re.compile(r"^(?://!|/\*!|(?://|/\*)?\s{0,9}Package \w)", re.MULTILINE)
"""How the comments of Rust and Go begin that describe a package."""
_LICENSE = re.compile(
    r"(licen[cs]e|copying)(-[\w-]{1,30})?(\.(md|txt|rst|adoc|html))?|copying\.(lib|lesser)",
    re.IGNORECASE,
)
# Tags, the text of links and images, addresses, headings, and directives of reStructuredText: a
# beginning may be nothing else.
_DECORATION = re.compile(
    r"<[^<>]*>|!?\[[^\[\]]*\]|\bhttps?://\S+|^#.*$|^\.\. .*(?:\n[ \t]+\S.*)*", re.MULTILINE
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_WORDS = 3
_BEGINNING = 4  # chunks
# Measured by benchmarks/introductions.py: of 506 READMEs of npm packages, what is chosen of 463
# (92 %; of the first chunks alone 88 %) has half of the words of the package's own description.
# Licenses: not measured.
_LIKELY = 0.92
_LIKELY_OF_CODE = 0.5  # not measured
_NAME = "introduction"  # in explanations


def introducing(query: Query) -> re.Pattern[str] | None:
    """Return a pattern of the paths that answer a question about the whole; None for others."""
    if asks_for_whole(query):
        return _INTRODUCTION
    return _LICENSE if _asks_for_license(query) else None


def _asks_for_license(query: Query) -> bool:
    said = {token.lower() for token in query.tokens}
    about = said - _AROUND_LICENSE - _LICENSED
    is_sentence = len(said) > 1  # `license` alone is a word to search for
    return is_sentence and bool(said & _LICENSED) and about <= _WHOLE


def asks_for_whole(query: Query) -> bool:
    """Whether a query is about the project as a whole, and about nothing else."""
    said = {token.lower() for token in query.tokens}
    if len(said) < 2 or not said & _ASKING:
        return False
    about = said - AROUND
    if not about:
        return {"what", "this"} <= said
    return about <= (_WHOLE_IF_THIS if "this" in said else _WHOLE)


async def introduced(
    hits: Sequence[Hit], limit: int, store: Store, ledger: Ledger, paths: re.Pattern[str]
) -> list[Hit] | None:
    """Return `hits` behind the beginning of the file that answers a question about the whole.

    Args:
        hits: What the search has found, best first.
        limit: How many hits at most.
        store: The store that was searched.
        ledger: What is known of the project's files.
        paths: A pattern of the paths of such files; the topmost is taken, and a README first.

    Returns:
        At most `limit` hits; None if there is no such file.

    Raises:
        StoreError: If the index cannot be read.
    """
    known = filter(paths.fullmatch, ledger.keys())
    for key in sorted(known, key=_rank_of):
        rows = (await store.rows([key])).get(key, [])
        chunks = [chunk for chunk, _ in rows]
        is_code = _is_of_package(key)
        if is_code:  # it may have a license alone
            chunks = [chunk for chunk in chunks if _DESCRIBES.search(chunk.text)]
        if chunks:
            first = chunks[beginning_of([chunk.text for chunk in chunks])]
            others = [chunk for chunk in chunks if chunk is not first]
            likely = _LIKELY_OF_CODE if is_code else _LIKELY
            return led([(first, others)], hits, limit, name=_NAME, likely=likely)
    return None


def _is_of_package(key: str) -> bool:
    return _OF_PACKAGE.fullmatch(key) is not None


def _rank_of(key: str) -> tuple[bool, int, int, str]:
    return _is_of_package(key), len(PurePosixPath(key).parts), len(key), key


def beginning_of(texts: Sequence[str]) -> int:
    """Return the index of the first chunk that has a sentence, and not only a title and badges."""
    for index, text in enumerate(texts[:_BEGINNING]):
        if len(_WORD.findall(_DECORATION.sub(" ", text))) >= _LEAST_WORDS:
            return index
    return 0
