"""Finds the documents that a pattern means: a glob, a list of names with commas, or one name. Pure.

If a document has exactly the name that is given, it is meant, even if the name looks like a
pattern. Patterns are foreign input: their size is limited, and matching never backtracks.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from vector_index_mcp.documents.names import find
from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.uris import SCHEME, key_of, without_quotes
from vector_index_mcp.engine.text.spelling import composed
from vector_index_mcp.errors import QueryError, quoted
from vector_index_mcp.files.glob import expanded
from vector_index_mcp.files.wildmatch import compiled

FindOne = Callable[[str], str | None]
"""Finds the key of the document that a name means."""

_LONGEST_CHARS = 50_000
_LONGEST_GLOB_CHARS = 1_000
_MOST_NAMES = 200
_MOST_ALTERNATIVES = 64
_MOST_WILDCARDS = 100
_MOST_LETTERS = 63  # non-ASCII characters of a glob: `_Alphabet` has no codes for more in a byte
_MOST_COMMAS = 8  # the most commas in one name of a list
_WILD = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class Matched:
    """The documents that a pattern means."""

    keys: tuple[str, ...]
    """The keys without duplicates: of a glob in the order of all keys, of a list in its order."""
    missing: tuple[str, ...] = ()
    """The names of a list, or the single pattern, that mean no document."""
    is_list: bool = False


def matching(
    keys: Sequence[str],
    pattern: str,
    places: Places | None = None,
    find_one: FindOne | None = None,
) -> Matched:
    """Return the documents that `pattern` means.

    Args:
        keys: The keys of all documents.
        pattern: A glob for keys or for paths in a collection, names with commas between them, or
            one name.
        places: The folders of the collections; without them, paths on disk mean nothing.
        find_one: Finds the document for a name that no document has exactly; by default
            `names.find`.

    Raises:
        QueryError: If `pattern` is too long or too complex.
    """
    if len(pattern) > _LONGEST_CHARS:
        raise QueryError(
            f"the pattern has more than {_LONGEST_CHARS} characters; ask for less at once"
        )
    places = places or Places()
    search = _Search(keys, places, find_one or (lambda name: _key_of(keys, name, places)))
    if key := search.by_letters(pattern):
        return Matched((key,))
    pieces = _pieces(pattern)
    if len(pieces) == 1:
        found = search.all_of(pattern)
        return Matched(found, () if found else (pattern,))
    return search.each_of(pieces)


def _key_of(keys: Collection[str], name: str, places: Places) -> str | None:
    found = find(keys, name, places)
    return found.key if found else None


class _Search:
    """The names of all documents, prepared for one pattern."""

    def __init__(self, keys: Sequence[str], places: Places, find_one: FindOne) -> None:
        self._keys = keys
        self._places = places
        self._find_one = find_one
        self._spelled = [composed(key) for key in keys]
        self._by_letters: dict[str, str] = {}
        for key, spelling in zip(keys, self._spelled, strict=True):
            self._by_letters.setdefault(spelling.partition("/")[2], key)
        self._by_letters.update(zip(self._spelled, keys, strict=True))
        self._alternatives_left = _MOST_ALTERNATIVES

    def by_letters(self, name: str) -> str | None:
        """Return the key of the document that has exactly this name; None if there is none."""
        bare = without_quotes(name)
        written = (name, bare, key_of(bare) if bare.startswith(SCHEME) else bare)
        return next(filter(None, (self._by_letters.get(composed(each)) for each in written)), None)

    def all_of(self, piece: str) -> tuple[str, ...]:
        """Return the documents that one name or one glob means."""
        if key := self.by_letters(piece):
            return (key,)
        bare = without_quotes(piece)
        if bare.endswith("/"):
            bare += "**"
        if not _WILD.search(bare):
            found = self._find_one(piece.strip())
            return (found,) if found else ()
        for reading in dict.fromkeys(self._readings(bare)):
            if keys := self._matched(reading):
                return keys
        return ()

    def each_of(self, pieces: Sequence[str]) -> Matched:
        """Return the documents that a list of names and globs means; names may have commas too."""
        if len(pieces) > _MOST_NAMES:
            raise QueryError(
                f"the pattern lists more than {_MOST_NAMES} names; ask for less at once"
            )
        found: dict[str, None] = {}
        missing: list[str] = []
        at = 0
        while at < len(pieces):
            count = self._count_of_name(pieces[at : at + _MOST_COMMAS + 1])
            name = ",".join(pieces[at : at + count]).strip()
            at += count
            keys = self.all_of(name) if name else ()
            found.update(dict.fromkeys(keys))
            if name and not keys:
                missing.append(name)
        return Matched(tuple(found), tuple(missing), is_list=True)

    def _count_of_name(self, pieces: Sequence[str]) -> int:
        """Return how many pieces, from the first on, form one name with commas in it."""
        longest = range(len(pieces), 1, -1)
        return next((n for n in longest if self.by_letters(",".join(pieces[:n]))), 1)

    def _readings(self, glob: str) -> Iterator[str]:
        """Yield the ways to read a glob, the most likely first."""
        if glob.startswith(SCHEME):
            yield key_of(glob)
        if glob.startswith(("/", "~")) and (key := self._places.key_at(glob)):
            yield key
        plain = glob.removeprefix(SCHEME).removeprefix("./").lstrip("/")
        yield plain
        yield plain.replace("[", "\\[").replace("]", "\\]")  # `[slug]` may be a folder
        yield plain.replace("\\", "/")

    def _matched(self, glob: str) -> tuple[str, ...]:
        patterns, alphabet = self._compiled(composed(glob))
        return tuple(
            key
            for key, spelling in zip(self._keys, self._spelled, strict=True)
            if _is_matched(
                patterns, spelling if spelling.isascii() else spelling.translate(alphabet)
            )
        )

    def _compiled(self, glob: str) -> tuple[list[re.Pattern[str]], "_Alphabet"]:
        letters = sorted({ord(char) for char in glob if not char.isascii()})
        alternatives = expanded(glob) if len(glob) <= _LONGEST_GLOB_CHARS else []
        self._alternatives_left -= len(alternatives)
        is_too_much = (
            not alternatives
            or self._alternatives_left < 0
            or len(_WILD.findall(glob)) > _MOST_WILDCARDS
            or len(letters) > _MOST_LETTERS
        )
        if is_too_much:
            raise QueryError(f"the pattern is too complex: {quoted(glob)}; ask for less at once")
        alphabet = _Alphabet(letters)
        texts = [each.translate(alphabet) for each in dict.fromkeys(alternatives)]
        return [compiled(text, is_name=False) for text in texts], alphabet


def _is_matched(patterns: Sequence[re.Pattern[str]], key: str) -> bool:
    path = key[key.find("/") + 1 :]
    return any(each.fullmatch(path) or each.fullmatch(key) for each in patterns)


class _Alphabet(dict[int, int]):
    """Maps each character to a code below 256, since the matcher supports no others.

    The characters in the glob get codes of their own, in order, so that its ranges still work. All
    characters between two of them get the same code, since the glob cannot distinguish them.
    """

    def __init__(self, letters: Sequence[int]) -> None:
        super().__init__()
        self._letters = letters

    def __missing__(self, code: int) -> int:
        if code >= 0x80:
            place = bisect_left(self._letters, code)
            is_named = place < len(self._letters) and self._letters[place] == code
            self[code] = 0x80 + 2 * place + is_named
        else:
            self[code] = code
        return self[code]


def _pieces(pattern: str) -> list[str]:
    """Split a pattern at the commas that are not in braces."""
    pieces, start, depth = [], 0, 0
    for at, char in enumerate(pattern):
        depth = max(depth + (char == "{") - (char == "}"), 0)
        if char == "," and not depth:
            pieces.append(pattern[start:at])
            start = at + 1
    pieces.append(pattern[start:])
    return pieces if depth == 0 else pattern.split(",")
