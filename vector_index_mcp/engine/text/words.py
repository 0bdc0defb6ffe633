"""Splits identifiers and prose into the words that full-text search compares. Pure.

LanceDB's tokenizers do not split identifiers, so texts and queries are prepared here, by the same
function, and indexed with a tokenizer that only splits at white space. `getUserName`,
`get_user_name`, `get-user-name` and `GET_USER_NAME` all become

    getusername get user name

so that any spelling matches any other: as a whole, which is rare and so counts much in BM25, and by
its parts; of an acronym in the plural (`mergePDFs`) by the singular, too. Words beyond ASCII have
the spelling of the module `spelling`; symbols are words, too.
"""

import re
from collections.abc import Iterator, Set
from functools import lru_cache

from vector_index_mcp.engine.text import scripts
from vector_index_mcp.engine.text.spelling import folded, unified

MAX_WORD_CHARS = 64  # longer runs are hashes, base64 and the like: nobody searches for them

_IDENTIFIERS_KEPT = 16_384  # 4 MB; the cache has nine in ten words of a project
_MOST_JOINED = 32  # words; in a longer query, neighbours are seldom parts of one name
_LONGEST_KEPT_CHARS = 256  # a longer run, such as a paragraph of Chinese, does not come twice

IDENTIFIER = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)*")
"""A name, with its parts: `get_user-name`."""
_SEPARATORS = ".#:/\\"
_SEPARATOR = re.compile(rf"::|[{re.escape(_SEPARATORS)}]")
_PART = re.compile(
    r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+"
)
_ACRONYMS = re.compile(r"[A-Z]{2,}s")

# Words that belong to the grammar of a question, not to its subject.
_STOP_WORDS = frozenset(
    "a an and are as at be by can do does did for from get got has have how i if in into is it its "
    "me my of on or our should show tell that the their them then there these they this to "
    "us was we what when where which who why will with would you your".split()
) - {"get", "if"}  # these two are also code


def words(text: str) -> list[str]:
    """Return the words of `text` in order, with repeats: identifiers whole and in parts."""
    return spelled_out(text).split()


def spelled_out(text: str) -> str:
    """Return the words of `text`, as `words` does, in one string with spaces between them."""
    if text.isascii():  # a faster way to the same result
        return " ".join(filter(None, map(_words_of, IDENTIFIER.findall(text))))
    return " ".join(filter(None, map(_words_of_run, _runs_in(text).findall(text))))


def has_words(text: str) -> bool:
    """Return whether `text` has any words."""
    return any(_words_in(run[0], is_asked=True) for run in _runs_in(text).finditer(text))


def query_words(query: str) -> list[str]:
    """Return the distinct words of a query, followed by joined neighbours.

    Stop words are left out of a sentence. Neighbouring words are also joined, so that "user name"
    matches `userName`.
    """
    plain = _plain_words(query)
    joinable = [_joinable(word) for word in plain] if len(plain) <= _MOST_JOINED else []
    together = [
        "".join(words_of_pair)
        for size in (2, 3)
        for words_of_pair in zip(*(joinable[start:] for start in range(size)), strict=False)
        if all(words_of_pair)
    ]
    named = [word for word in together if len(word) <= MAX_WORD_CHARS]
    return list(dict.fromkeys(_asked_in(plain) + named))


def asked_words(query: str) -> list[str]:
    """Return the words of a query without stop words, in order, with repeats."""
    return _asked_in(_plain_words(query))


def _plain_words(query: str) -> list[str]:
    """Split a query at spaces; keep stop words only if it has no other words."""
    spoken = [word for raw in query.split() if (word := raw.strip("?!.,;:\"'"))]
    return [word for word in spoken if folded(word) not in _STOP_WORDS] or spoken


def _asked_in(plain: list[str]) -> list[str]:
    text = " ".join(plain)
    return [w for run in _runs_in(text).findall(text) for w in _words_in(run, is_asked=True)]


def places(text: str, wanted: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each identifier in `text` that has one of the words `wanted`."""
    for match in _runs_in(text).finditer(text):
        if not wanted.isdisjoint(_words_of_run(match[0]).split()):
            yield match.span()


def joined(identifier: str) -> str:
    """Return `identifier` as one word, the same for all its spellings."""
    if identifier.isascii():
        return "".join(_PART.findall(identifier)).lower()
    return "".join(scripts.parts(unified(identifier))).casefold()


def parts_of(identifier: str) -> list[str]:
    """Return the parts of an identifier, as they are written."""
    if identifier.isascii():
        return _PART.findall(identifier)
    return scripts.parts(unified(identifier))


def without_ending(name: str) -> str:
    """Return a file's name without its last ending: `user.service` of `user.service.ts`.

    A name that begins with a dot, such as `.eslintrc`, is no ending.
    """
    plain = name.lstrip(".")
    return plain.rpartition(".")[0] or plain


def last_name(symbol: str) -> str:
    """Return the last part of a qualified name: `bar` of `Foo::bar`, `Foo.bar` and `foo#bar`."""
    return _SEPARATOR.split(symbol)[-1] or symbol


def owner_of(symbol: str) -> str:
    """Return what stands before the last part of a qualified name; empty if nothing does."""
    return symbol.removesuffix(last_name(symbol)).rstrip(_SEPARATORS)


def _runs_in(text: str) -> re.Pattern[str]:
    return IDENTIFIER if text.isascii() else scripts.runs()


def _words_of_run(run: str) -> str:
    return _words_of(run) if len(run) <= _LONGEST_KEPT_CHARS else " ".join(_words_in(run))


@lru_cache(maxsize=_IDENTIFIERS_KEPT)
def _words_of(identifier: str) -> str:
    """Return an identifier's words in one string: most callers only write them down."""
    return " ".join(_words_in(identifier))


def _words_in(run: str, *, is_asked: bool = False) -> list[str]:
    """Return the words of an identifier, or of a run between two separators."""
    if run.isascii():
        parts = _PART.findall(run)
        found = _named([part.lower() for part in parts], is_asked=is_asked)
        return found + [part[:-1].lower() for part in parts if _ACRONYMS.fullmatch(part)]
    pieces = map(scripts.parts, scripts.pieces(unified(run)))
    return [
        word
        for parts in pieces
        for word in _named([part.casefold() for part in parts], is_asked=is_asked)
    ]


def _named(parts: list[str], *, is_asked: bool) -> list[str]:
    """Return the words of the identifier that has these parts."""
    whole = "".join(parts)
    found = [whole] if len(parts) > 1 and len(whole) <= MAX_WORD_CHARS else []
    for part in parts:
        if not part.isascii() and scripts.is_unspaced(part):
            found += _pairs(part, is_asked=is_asked)
        elif len(part) <= MAX_WORD_CHARS:
            found.append(part)
    return found


def _pairs(run: str, *, is_asked: bool) -> list[str]:
    """Return an unspaced run as overlapping pairs of characters.

    For a text, single characters that may be words are added. For a query they are not: only a
    query of one character searches for it.
    """
    if len(run) == 1:
        return [run]
    pairs = [run[index : index + 2] for index in range(len(run) - 1)]
    return pairs if is_asked else pairs + scripts.words_alone(run)


def _joinable(word: str) -> str:
    """Return `word` as a part of a joined name; empty if it cannot be one."""
    plain = folded(word)
    is_word = plain.isalnum() and (plain.isascii() or not scripts.is_unspaced(plain))
    return plain if is_word else ""
