"""What a query asks for, as far as its wording tells. Pure."""

import re
from dataclasses import dataclass
from functools import cached_property

from vector_index_mcp.engine.kinds import kinds_asked_for
from vector_index_mcp.engine.texts import symbol_word
from vector_index_mcp.engine.words import joined, last_name, query_words, words

_TOKEN = re.compile(r"[^\s,;!?()\[\]{}\"'`]+")
_QUOTED = re.compile(r"\"([^\"]{2,})\"|'([^']{2,})'(?!\w)|`([^`]{2,})`")
_PATH = re.compile(r"[\w.@+-]*(/[\w.@+-]+)*/?[\w@+-]*\.[A-Za-z]\w{0,9}|[\w.@+-]+(/[\w.@+-]+)+")
_UP_TO_ROOT = re.compile(r"^(\.{0,2}/)+")
_CODE_LIKE = re.compile(
    r"\w_\w|^_+\w|[a-z\d][A-Z]|[A-Z]{2,}[a-z]|::|\w\.\w|\w[#/\\]\w|->|^[A-Z][a-z]+[A-Z]|^[$@]\w"
)
_ABOUT_SYMBOLS = frozenset(
    "a an and class classes component const constant constructor declaration declared def defined "
    "definition enum find fn func function functions hook implementation implemented in interface "
    "is macro method methods module namespace object of property protocol script source struct "
    "symbol the trait type typedef variable where".split()
)
"""Words beside which an identifier still is all that is asked for."""


@dataclass(frozen=True)
class Query:
    """A query, taken apart."""

    text: str

    @cached_property
    def tokens(self) -> list[str]:
        """Its words as typed, without punctuation."""
        return [token.rstrip(".:") for token in _TOKEN.findall(self.text) if token.rstrip(".:")]

    @cached_property
    def words(self) -> list[str]:
        """The words that are compared with those of a chunk, distinct."""
        return query_words(self.text)

    @cached_property
    def subject(self) -> list[str]:
        """`words` without the joined neighbours: each idea once."""
        known = set(words(self.text))
        return [word for word in self.words if word in known]

    @cached_property
    def identifiers(self) -> list[str]:
        """The tokens that look like code; a single word is taken for an identifier."""
        if len(self._telling) == 1:
            return self._telling
        return [token for token in self._telling if _CODE_LIKE.search(token)]

    @cached_property
    def _telling(self) -> list[str]:
        """The tokens that may be part of a name: no words about names, no paths."""
        return [t for t in self.tokens if t.lower() not in _ABOUT_SYMBOLS and "/" not in t]

    @cached_property
    def symbols(self) -> frozenset[str]:
        """`identifiers` in the one spelling in which definitions are compared."""
        return frozenset(filter(None, (joined(last_name(token)) for token in self.identifiers)))

    @cached_property
    def is_symbol(self) -> bool:
        """Whether it asks where an identifier is defined, and nothing else."""
        return bool(self.symbols) and len(self.identifiers) == len(self._telling) <= 3

    @cached_property
    def matched(self) -> list[str]:
        """What full-text search is asked for."""
        return [*self.words, *map(symbol_word, sorted(self.symbols))]

    @cached_property
    def paths(self) -> list[str]:
        """The tokens that name a file: with an extension, or with folders before it."""
        return [_UP_TO_ROOT.sub("", token) for token in self.tokens if _PATH.fullmatch(token)]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of files it asks for."""
        return kinds_asked_for(frozenset(word.lower() for word in self.tokens))

    @cached_property
    def phrases(self) -> list[str]:
        """What stands in quotes."""
        return [next(filter(None, groups)) for groups in _QUOTED.findall(self.text)]
