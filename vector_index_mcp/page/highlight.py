"""Code as coloured spans: which class each piece has and whether it is what was asked for. Pure.

Only here is Pygments known. What comes out is data, not HTML, and its pieces joined are the text.
"""

from collections.abc import Iterator, Set
from functools import lru_cache
from itertools import groupby

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, String, _TokenType
from pygments.util import ClassNotFound

from vector_index_mcp.engine.words import places

Span = tuple[str, str, int]
"""(class, text, 1 if it is what was asked for); the class is a letter of the style sheet, or none.
"""

_LONGEST_CHARS = 20_000  # as long as a chunk may be; what is longer stays plain
# The first that a token's type is part of.
_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "c"),
    (String, "s"),
    (Number, "n"),
    (Literal, "s"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Namespace, "f"),
    (Name.Decorator, "d"),
    (Name.Attribute, "d"),
    (Name.Builtin, "b"),
    (Name.Exception, "b"),
    (Name.Tag, "k"),
    (Generic.Heading, "f"),
    (Generic.Subheading, "f"),
    (Generic.Strong, "f"),
    (Generic.Deleted, "k"),
    (Generic.Inserted, "s"),
)
# Where our name of a language is none of Pygments'.
_NAMES = {
    "asciidoc": "text",
    "assembly": "gas",
    "astro": "html",
    "batch": "bat",
    "cuda": "cuda",
    "glsl": "glsl",
    "lisp": "common-lisp",
    "notebook": "json",
    "objc": "objective-c",
    "other": "text",
    "proto": "protobuf",
    "svelte": "html",
    "vue": "html",
}


def spans(text: str, language: str, wanted: Set[str]) -> list[Span]:
    """`text` in pieces.

    Args:
        text: Part of a file.
        language: The file's language, in the words of `files.language`.
        wanted: The words that were asked for, as `engine.words` makes them.
    """
    marked = _characters_in(places(text, wanted)) if wanted else frozenset()
    position = 0
    pieces: list[Span] = []
    for name, piece in _tokens(text, language):
        inside = range(position, position + len(piece))
        for is_marked, run in groupby(inside, marked.__contains__):
            indices = list(run)
            pieces.append((name, text[indices[0] : indices[-1] + 1], int(is_marked)))
        position += len(piece)
    return _merged(pieces)


def _characters_in(ranges: Iterator[tuple[int, int]]) -> frozenset[int]:
    return frozenset(index for start, end in ranges for index in range(start, end))


def _tokens(text: str, language: str) -> Iterator[tuple[str, str]]:
    """(class, text) of each token; the whole text as one where a lexer loses any of it."""
    # A chunk of PHP seldom holds the tag that its file begins with.
    lexer = _lexer(_NAMES.get(language, language), startinline="<?" not in text)
    if lexer is None or len(text) > _LONGEST_CHARS:
        return iter([("", text)])
    # Not get_tokens: it changes line ends and adds one.
    tokens = [(kind, piece) for _, kind, piece in lexer.get_tokens_unprocessed(text)]
    if "".join(piece for _, piece in tokens) != text:
        return iter([("", text)])
    return ((_class_of(kind), piece) for kind, piece in tokens)


@lru_cache(maxsize=64)
def _lexer(name: str, *, startinline: bool) -> Lexer | None:
    try:
        return get_lexer_by_name(name, startinline=startinline)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _class_of(kind: _TokenType) -> str:
    return next((letter for parent, letter in _CLASSES if kind in parent), "")


def _merged(pieces: list[Span]) -> list[Span]:
    """Neighbours of one look as one."""
    runs = groupby(pieces, key=lambda piece: (piece[0], piece[2]))
    return [(name, "".join(p[1] for p in run), mark) for (name, mark), run in runs]
