"""Identifiers and prose as the words full-text search compares. Pure.

LanceDB's tokenizers do not split identifiers, so texts and queries are prepared here, by the same
function, and indexed with a tokenizer that only splits at white space. `getUserName`,
`get_user_name`, `get-user-name` and `GET_USER_NAME` all become

    getusername get user name

so that any spelling meets any other, as a whole (rare, therefore heavy in BM25) and by its parts.
"""

import re
from collections.abc import Iterator, Set
from functools import lru_cache

MAX_WORD_CHARS = 64  # longer runs are hashes, base64 and the like: nobody searches for them

_IDENTIFIERS_KEPT = 16_384  # 4 MB; of a project's words, nine in ten have just been met

_IDENTIFIER = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)*")
_SEPARATOR = re.compile(r"::|[.#:/\\]")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
# Scripts written without spaces: a run is cut into pairs of characters, the usual remedy.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")

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
    return " ".join(filter(None, map(_words_of, _IDENTIFIER.findall(text))))


def query_words(query: str) -> list[str]:
    """The distinct words of a query, most telling first.

    Stop words are left out of a sentence, and neighbours are also joined, so that "user name"
    meets `userName`.
    """
    spoken = [word for raw in query.split() if (word := raw.strip("?!.,;:\"'"))]
    plain = [word for word in spoken if word.lower() not in _STOP_WORDS]
    plain = plain or spoken
    together = [
        "".join(words_of_pair)
        for size in (2, 3)
        for words_of_pair in zip(*(plain[start:] for start in range(size)), strict=False)
        if all(word.isalnum() and word.isascii() for word in words_of_pair)
    ]
    found = words(" ".join(plain)) + [
        word.lower() for word in together if len(word) <= MAX_WORD_CHARS
    ]
    return list(dict.fromkeys(found))


def places(text: str, wanted: Set[str]) -> Iterator[tuple[int, int]]:
    """Where in `text` identifiers stand that have one of the words `wanted`: (start, end)."""
    for match in _IDENTIFIER.finditer(text):
        if not wanted.isdisjoint(_words_of(match[0]).split()):
            yield match.span()


def joined(identifier: str) -> str:
    """`identifier` as one word, the same for all its spellings."""
    return "".join(_PART.findall(identifier)).lower()


def last_name(symbol: str) -> str:
    """The name itself of a qualified one: `bar` of `Foo::bar`, `Foo.bar` and `foo#bar`."""
    return _SEPARATOR.split(symbol)[-1] or symbol


@lru_cache(maxsize=_IDENTIFIERS_KEPT)
def _words_of(identifier: str) -> str:
    """Its words, with a space between any two. As one string, since most are only written down."""
    parts = [part.lower() for part in _PART.findall(identifier)]
    whole = "".join(parts)
    found = [whole] if len(parts) > 1 and len(whole) <= MAX_WORD_CHARS else []
    for part in parts:
        if _UNSPACED.fullmatch(part):
            found += _pairs(part)
        elif len(part) <= MAX_WORD_CHARS:
            found.append(part)
    return " ".join(found)


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for index in range(len(run) - 1):
        yield run[index : index + 2]
