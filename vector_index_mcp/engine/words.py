"""Identifiers and prose as the words full-text search compares. Pure.

LanceDB's tokenizers do not split identifiers, so texts and queries are prepared here, by the same
function, and indexed with a tokenizer that only splits at white space. `getUserName`,
`get_user_name`, `get-user-name` and `GET_USER_NAME` all become

    getusername get user name

so that any spelling meets any other, as a whole (rare, therefore heavy in BM25) and by its parts.
Beyond ASCII, words are those of the spelling in which `spelling` has them; symbols are words, too.
"""

import re
from collections.abc import Iterator, Set
from functools import lru_cache

from vector_index_mcp.engine import scripts
from vector_index_mcp.engine.spelling import folded, unified

MAX_WORD_CHARS = 64  # longer runs are hashes, base64 and the like: nobody searches for them

_IDENTIFIERS_KEPT = 16_384  # 4 MB; of a project's words, nine in ten have just been met
_MOST_JOINED = 32  # what is longer is no question, and its neighbours are seldom one name
_LONGEST_KEPT_CHARS = 256  # a paragraph of Chinese is one run, and never met again

_IDENTIFIER = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)*")
_SEPARATOR = re.compile(r"::|[.#:/\\]")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")

# Words that carry the grammar of a question, not its subject.
_STOP_WORDS = frozenset(
    "a an and are as at be by can do does did for from get got has have how i if in into is it its "
    "me my of on or our should show tell that the their them then there these they this to "
    "us was we what when where which who why will with would you your".split()
) - {"get", "if"}  # these two are also code


def words(text: str) -> list[str]:
    """The words of `text` in reading order, with repeats: identifiers whole and in parts."""
    return spelled_out(text).split()


def spelled_out(text: str) -> str:
    """The words of `text`, as `words` has them, with a space between any two."""
    if text.isascii():  # the rest would do as well, but slower
        return " ".join(filter(None, map(_words_of, _IDENTIFIER.findall(text))))
    return " ".join(filter(None, map(_words_of_run, _runs_in(text).findall(text))))


def has_words(text: str) -> bool:
    """Whether `text` has any."""
    return any(_words_in(run[0], is_asked=True) for run in _runs_in(text).finditer(text))


def query_words(query: str) -> list[str]:
    """The distinct words of a query, the most specific first.

    Stop words are left out of a sentence, and neighbours are also joined, so that "user name"
    meets `userName`.
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
    """The words of a query without stop words, in its order, with repeats."""
    return _asked_in(_plain_words(query))


def _plain_words(query: str) -> list[str]:
    """What stands between the spaces of a query, but stop words only if there is nothing else."""
    spoken = [word for raw in query.split() if (word := raw.strip("?!.,;:\"'"))]
    return [word for word in spoken if folded(word) not in _STOP_WORDS] or spoken


def _asked_in(plain: list[str]) -> list[str]:
    text = " ".join(plain)
    return [w for run in _runs_in(text).findall(text) for w in _words_in(run, is_asked=True)]


def places(text: str, wanted: Set[str]) -> Iterator[tuple[int, int]]:
    """Where in `text` identifiers stand that have one of the words `wanted`: (start, end)."""
    for match in _runs_in(text).finditer(text):
        if not wanted.isdisjoint(_words_of_run(match[0]).split()):
            yield match.span()


def joined(identifier: str) -> str:
    """`identifier` as one word, the same for all its spellings."""
    if identifier.isascii():
        return "".join(_PART.findall(identifier)).lower()
    return "".join(scripts.parts(unified(identifier))).casefold()


def last_name(symbol: str) -> str:
    """The name itself of a qualified one: `bar` of `Foo::bar`, `Foo.bar` and `foo#bar`."""
    return _SEPARATOR.split(symbol)[-1] or symbol


def _runs_in(text: str) -> re.Pattern[str]:
    return _IDENTIFIER if text.isascii() else scripts.runs()


def _words_of_run(run: str) -> str:
    return _words_of(run) if len(run) <= _LONGEST_KEPT_CHARS else " ".join(_words_in(run))


@lru_cache(maxsize=_IDENTIFIERS_KEPT)
def _words_of(identifier: str) -> str:
    """Its words, with a space between any two. As one string, since most are only written down."""
    return " ".join(_words_in(identifier))


def _words_in(run: str, *, is_asked: bool = False) -> list[str]:
    """The words of an identifier, or of all that stands between two separators."""
    if run.isascii():
        return _named([part.lower() for part in _PART.findall(run)], is_asked=is_asked)
    pieces = map(scripts.parts, scripts.pieces(unified(run)))
    return [
        word
        for parts in pieces
        for word in _named([part.casefold() for part in parts], is_asked=is_asked)
    ]


def _named(parts: list[str], *, is_asked: bool) -> list[str]:
    """The words of the identifier that has these parts."""
    whole = "".join(parts)
    found = [whole] if len(parts) > 1 and len(whole) <= MAX_WORD_CHARS else []
    for part in parts:
        if not part.isascii() and scripts.is_unspaced(part):
            found += _pairs(part, is_asked=is_asked)
        elif len(part) <= MAX_WORD_CHARS:
            found.append(part)
    return found


def _pairs(run: str, *, is_asked: bool) -> list[str]:
    """A run without spaces as pairs of characters; one character alone must be asked for alone."""
    if len(run) == 1:
        return [run]
    pairs = [run[index : index + 2] for index in range(len(run) - 1)]
    return pairs if is_asked else pairs + scripts.words_alone(run)


def _joinable(word: str) -> str:
    """`word` as it can be part of a joined name; empty if it cannot."""
    plain = folded(word)
    is_word = plain.isalnum() and (plain.isascii() or not scripts.is_unspaced(plain))
    return plain if is_word else ""
