"""Analyses a query: its words, identifiers, paths and quoted phrases. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from vector_index_mcp.engine.kinds import kinds_asked_for, names_tests
from vector_index_mcp.engine.ranking.declaration import declared_in
from vector_index_mcp.engine.ranking.pattern import Pattern, pattern_of, pattern_wanted
from vector_index_mcp.engine.text import scripts
from vector_index_mcp.engine.text.fields import symbol_word
from vector_index_mcp.engine.text.spelling import composed
from vector_index_mcp.engine.text.words import joined, last_name, owner_of, query_words, words

# Somebody may paste a log. These limit how much of a query is searched for and compared with each
# candidate. In 100,000 chunks, a search for 128 words takes 1.5 times as long as one for three
# words; a search for 4,096 words takes 70 times as long.
_MOST_WORDS = 96
_MOST_SYMBOLS = 32
_MOST_PATHS = 32
_MOST_PARTS_OF_NAME = 6
_ASKS = re.compile(r"\s*(?:how|where|what|which|who|when|why)\b", re.IGNORECASE)
_SHORTEST_UNSPACED = 6  # characters of a sentence; fewer may be a name
_MOST_AROUND_A_WORD = 4  # words of a query that is about the one in quotes
_MOST_PHRASES = 16
_LONGEST_NAME_CHARS = 256

_QUOTES = "\"'`“”‘’«»「」『』"
_TOKEN = re.compile(rf"[^\s,;!?|()\[\]{{}}、。，；！？（）【】《》{_QUOTES}]+")
_QUOTED = re.compile(
    r"\"([^\"]{2,})\"|(?<!\w)'([^']{2,})'(?!\w)|`([^`]{2,})`"
    r"|“([^“”]{2,})”|‘([^‘’]{2,})’(?!\w)|«([^«»]{2,})»|「([^「」]{2,})」"
)
_PATH = re.compile(r"[\w.@+/~%=$\u0080-\U0010ffff-]+")
# Paths of some frameworks: `pages/[id].tsx`, `(group)/+page.svelte`, `{{name}}/a.py`.
_PATH_WITH_BRACKETS = re.compile(r"[\w.@+/~%=$\[\](){}\u0080-\U0010ffff-]+")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}$")
_LINES = re.compile(r"(:\d{1,9}([:-]\d{1,9}){0,2}|#L\d{1,9}(-L?\d{1,9})?)$")
_UP_TO_ROOT = re.compile(r"^(\.{0,2}/)+")
_CODE_LIKE = re.compile(
    r"\w_\w|^_+\w|[a-z\d][A-Z]|[A-Z]{2}[a-z]|::|\w\.\w|\w[#/\\]\w|->|^[A-Z][a-z]+[A-Z]|^[$@]\w"
)
_RELEASE = re.compile(r"v?\d{1,5}(?:\.\d{1,5}){2,3}")  # `HTTP 1.1` is a subject
_MOST_RELEASES = 16
_LONGEST_QUESTION = 40  # words; a longer query is a log or a sample of code
_ABOUT_SYMBOLS = frozenset(
    "a an and class classes component const constant constructor declaration declared def defined "
    "definition enum find fn func function functions hook implementation implemented in interface "
    "is macro method methods module namespace object of property protocol script source struct "
    "symbol the trait type typedef variable where".split()
)
"""Words around an identifier that do not change the query: it still asks for its definition."""


@dataclass(frozen=True)
class Query:
    """A query and its parts."""

    text: str
    is_regex: bool | None = None
    """Whether it is a regular expression; None if that is to be seen from the text."""

    @cached_property
    def pattern(self) -> Pattern | None:
        """The regular expression that the query is, or may be; None if it is text."""
        if self.is_regex is None:
            return pattern_of(self.text)
        return pattern_wanted(self.text) if self.is_regex else None

    def as_answered(self, *, is_pattern: bool) -> "Query":
        """Return the query as it was understood: what may be an expression is one, or text."""
        is_text = self.pattern is not None and not (is_pattern or self.pattern.is_sure)
        return Query(self.text, is_regex=False) if is_text else self

    @cached_property
    def plain(self) -> str:
        """The text without the signs of a regular expression."""
        return self.pattern.plain if self.pattern else self.text

    @cached_property
    def tokens(self) -> list[str]:
        """The distinct words as typed, without punctuation."""
        tokens = (token.rstrip(".:") for token in _TOKEN.findall(self.plain))
        return list(dict.fromkeys(filter(None, tokens)))

    @cached_property
    def words(self) -> list[str]:
        """The distinct words that are compared with those of a chunk."""
        return _most_specific(query_words(self.plain), _MOST_WORDS)

    @cached_property
    def subject(self) -> list[str]:
        """`words` without the joined neighbours, so that each word counts once."""
        known = set(words(self.plain))
        return [word for word in self.words if word in known]

    @cached_property
    def compounds(self) -> frozenset[str]:
        """The words of `subject` that are several in one: `username` of `user_name`."""
        names = (words(token) for token in self.tokens if len(token) <= _LONGEST_NAME_CHARS)
        return frozenset(
            word
            for named in names
            for at, word in enumerate(named)
            if _is_made_of(word, islice(named, at + 1, None))
        )

    @cached_property
    def identifiers(self) -> list[str]:
        """The tokens that look like code; a query of a single word is taken for an identifier.

        A word beside a path, such as "explain src/app.py", is none.
        """
        if len(self._telling) == 1 and self._is_alone(self._telling[0]):
            return self._telling
        return [token for token in self._telling if _CODE_LIKE.search(token)]

    def _is_alone(self, token: str) -> bool:
        """Return whether a token is all that the query says, and one word."""
        if token.isascii():
            return not self.paths or bool(declared_in(self.plain))
        # More is a sentence in a script that has no spaces between words.
        unspaced = sum(map(len, filter(scripts.is_unspaced, scripts.parts(token))))
        return unspaced < _SHORTEST_UNSPACED

    @cached_property
    def spellings(self) -> frozenset[str]:
        """The last names of `identifiers` (`bar` of `Foo.bar`), as typed."""
        return frozenset(composed(last_name(token)) for token in self.identifiers)

    @cached_property
    def _telling(self) -> list[str]:
        """The tokens that may be names: neither paths nor words like `function` or `the`.

        Of a pasted declaration, only the name that it declares.
        """
        if declared := declared_in(self.plain):
            return [declared]
        names = (t for t in self.tokens if len(t) <= _LONGEST_NAME_CHARS and "/" not in t)
        return [name for name in names if name.lower() not in _ABOUT_SYMBOLS]

    @cached_property
    def symbols(self) -> frozenset[str]:
        """The last names of `identifiers`, in the spelling in which definitions are compared."""
        return frozenset(filter(None, (joined(last_name(token)) for token in self.identifiers)))

    @cached_property
    def spelled_out(self) -> frozenset[str]:
        """The names that the query may be, in plain words: `getuser` of "get user"; mostly none.

        They are spelled as in `symbols`. "get user function" may be `getUserFunction` as well.
        """
        if self.identifiers or self.asks or len(self.tokens) > _MOST_PARTS_OF_NAME:
            return frozenset()
        ways = (self._telling, self.tokens)
        names = (joined(" ".join(words)) for words in ways if len(words) > 1)
        return frozenset(filter(None, names))

    @cached_property
    def owners(self) -> frozenset[str]:
        """What stands before the last names of `identifiers`, spelled as in `symbols`."""
        owners = filter(None, map(owner_of, self.identifiers))
        return frozenset(filter(None, (joined(last_name(owner)) for owner in owners)))

    @cached_property
    def is_symbol(self) -> bool:
        """Whether the query asks for the definition of identifiers and nothing else."""
        return bool(self.symbols) and len(self.identifiers) == len(self._telling) <= 3

    @cached_property
    def is_question(self) -> bool:
        """Whether the query describes something in words, without identifiers, paths or quotes.

        Nor has it the number of a release, nor is it a regular expression.
        """
        if len(self.subject) > _LONGEST_QUESTION or self.pattern is not None:
            return False
        return not (self.is_symbol or self.paths or self.phrases or self.versions)

    @cached_property
    def asks(self) -> bool:
        """Whether the query begins with a word that asks, such as `how`."""
        return _ASKS.match(self.text) is not None

    @cached_property
    def matched(self) -> list[str]:
        """The words for full-text search: `words`, and the words of definitions."""
        symbols = _most_specific(sorted(self.symbols | self.spelled_out), _MOST_SYMBOLS)
        return [*self.words, *map(symbol_word, symbols)]

    @cached_property
    def paths(self) -> list[str]:
        """The paths in the query: names with an extension, or with folders before them."""
        named = filter(_names_file, _paths(self.plain))
        below = (_UP_TO_ROOT.sub("", composed(path)) for path in named)
        return _both_ends(list(dict.fromkeys(filter(None, below))), _MOST_PATHS)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of files that the query asks for."""
        return kinds_asked_for(self._lowered)

    @cached_property
    def names_tests(self) -> bool:
        """Whether the query has a word for tests; `kinds` tells whether it asks for them."""
        return names_tests(self._lowered)

    @cached_property
    def _lowered(self) -> list[str]:
        return [token.lower() for token in self.tokens]

    @cached_property
    def versions(self) -> list[str]:
        """The numbers of releases: their parts stand in too many texts to tell anything."""
        found = (token for token in self.tokens if _RELEASE.fullmatch(token))
        return [token.removeprefix("v") for token in islice(found, _MOST_RELEASES)]

    @cached_property
    def phrases(self) -> list[str]:
        """The phrases in quotes.

        Among many others, one word in quotes is a value that a program has put into a message, or
        what a sentence talks about: it is no more than any other word.
        """
        found = [next(filter(None, groups)) for groups in _QUOTED.findall(self.text)]
        if len(_QUOTED.sub(" ", self.text).split()) > _MOST_AROUND_A_WORD:
            found = [phrase for phrase in found if len(phrase.split()) > 1]
        return _both_ends(found, _MOST_PHRASES)


def _is_made_of(word: str, parts: Iterable[str]) -> bool:
    """Return whether the first of `parts`, two or more, are `word` together."""
    length = 0
    for part in parts:
        if not word.startswith(part, length) or len(part) == len(word):
            return False
        length += len(part)
        if length == len(word):
            return True
    return False


def _most_specific(words: list[str], most: int) -> list[str]:
    """Return at most `most` of `words`, in order: the longest, because they are the rarest.

    Words with digits are dropped first: in a log they are times, addresses and hashes.
    """
    if len(words) <= most:
        return words
    specific = sorted(words, key=lambda word: (any(map(str.isdigit, word)), -len(word)))
    kept = frozenset(specific[:most])
    return [word for word in words if word in kept]


def _both_ends(found: list[str], most: int) -> list[str]:
    """Return at most `most` items: the first and the last ones, which matter most in a log."""
    if len(found) <= most:
        return found
    return found[: most // 2] + found[-(most // 2) :]


def _paths(text: str) -> Iterator[str]:
    """Yield whatever may be a path, in any notation."""
    for spoken in dict.fromkeys(text.split()):
        whole = _LINES.sub("", spoken.strip(f"{_QUOTES}.,;:!?"))
        if _is_path_with_brackets(whole):
            yield whole
            continue
        for token in _TOKEN.findall(spoken):
            path = _LINES.sub("", token.rstrip(".:"))
            slashed = path.replace("\\", "/")
            # Without an extension, `Some\Name` is a namespace.
            if _PATH.fullmatch(slashed) and (slashed == path or _EXTENSION.search(path)):
                yield slashed


def _is_path_with_brackets(word: str) -> bool:
    has_pairs = all(word.count(left) == word.count(right) for left, right in ("[]", "()", "{}"))
    is_path = _EXTENSION.search(word) and _PATH_WITH_BRACKETS.fullmatch(word)
    return bool(is_path and has_pairs and not _PATH.fullmatch(word))


def _names_file(path: str) -> bool:
    folders, _, name = path.rpartition("/")
    if "//" in path or not name:
        return False
    return bool(_EXTENSION.search(name)) or bool(folders and not path.startswith("/"))
