"""Splits code into pieces, each with the class of its colour: comment, string, keyword, ... Pure.

This is no library's lexer, since those are not safe for hostile code: their patterns hold the
interpreter's lock while they match, and 600 characters can keep one busy for longer than anybody
waits (Pygments 2.21: a heredoc in PHP; in half of the lexers, 5,000 characters take a second). Here
each language is described by its few marks for comments and strings, and each character is looked
at once.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

COMMENT, STRING, NUMBER, KEYWORD = "c", "s", "n", "k"
NAME, ATTRIBUTE, BUILTIN, PLAIN = "f", "d", "b", ""
"""NAME: a name where it is defined, or a heading. ATTRIBUTE: a decorator, an attribute or a key.
BUILTIN: true, self, …"""

# Patterns of comments and strings, each by a short name. An unfinished one ends with the text. The
# quantifiers are possessive (`++`), so there is no backtracking: each character is looked at once.
_COMMENTS = {
    "//": r"//[^\n]*+",
    "#": r"(?<![\w$&])\#[^\n]*+",
    "--": r"--[^\n]*+",
    ";": r";[^\n]*+",
    "%": r"%[^\n]*+",
    "!": r"![^\n]*+",
    "rem": r"(?i:\brem\b)[^\n]*+|::[^\n]*+",
    '"': r'(?m:^\s{0,40}"[^\n]*+)',
    "/*": r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?",
    "<!": r"<!--(?:[^-]++|-(?!->))*+(?:-->)?",
    "{-": r"\{-(?:[^-]++|-(?!\}))*+(?:-\})?",
    "(*": r"\(\*(?:[^*]++|\*(?!\)))*+(?:\*\))?",
    "[[": r"--\[\[(?:[^\]]++|\](?!\]))*+(?:\]\])?",
    "<#": r"<\#(?:[^\#]++|\#(?!>))*+(?:\#>)?",
    "{": r"\{[^}]*+\}?",
}
_STRINGS = {
    '"': r'"(?:[^"\\\n]++|\\.)*+"?',
    "'": r"'(?:[^'\\\n]++|\\.)*+'?",
    "c": r"'(?:[^'\\\n]|\\[^\n]{1,9}?)'",  # one character; other quotes begin no string there
    "`": r"`(?:[^`\\]++|\\.)*+`?",
    '"""': r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?',
    "'''": r"'''(?:[^'\\]++|\\.|'(?!''))*+(?:''')?",
}
_OTHERS = (
    r"(?P<n>\b[0-9](?:[\w.])*+)|(?P<d>@[^\W\d]\w*+)|(?P<t></?[A-Za-z][\w:.-]*+)|(?P<w>[^\W\d]\w*+)"
)
_KEY = re.compile(r"[ \t]{0,20}[:=](?!=)")

# The names of each language's comments and of its strings.
_LANGUAGES = {
    **dict.fromkeys("javascript typescript tsx go".split(), ("/* //", "\" ' `")),
    **dict.fromkeys("kotlin scala swift dart groovy".split(), ("/* //", "\"\"\" ''' \" '")),
    **dict.fromkeys(
        "java c cpp csharp objc solidity cuda glsl proto scss d".split(), ("/* //", "\" '")
    ),
    **dict.fromkeys("rust zig verilog".split(), ("/* //", '" c')),
    "php": ("/* // #", "\" ' `"),
    "css": ("/*", "\" '"),
    "terraform": ("/* // #", '"'),
    "nix": ("/* #", '"'),
    **dict.fromkeys("python notebook julia elixir nim".split(), ("#", "\"\"\" ''' \" '")),
    **dict.fromkeys(
        "ruby perl r bash fish cmake make dockerfile yaml toml".split(), ("#", "\" ' `")
    ),
    "powershell": ("<# #", "\" '"),
    "graphql": ("#", '""" "'),
    "lua": ("[[ --", "\" '"),
    "sql": ("/* --", "' \" `"),
    "haskell": ("{- --", '" c'),
    "vhdl": ("--", '" c'),
    **dict.fromkeys("clojure lisp scheme".split(), (";", '"')),
    "assembly": ("/* // ; #", "\" '"),
    "ini": ("; #", '"'),
    "erlang": ("%", "\" '"),
    "latex": ("%", ""),
    "ocaml": ("(*", '" c'),
    "fsharp": ("(* //", '""" " c'),
    "pascal": ("{ (* //", "'"),
    "fortran": ("!", "\" '"),
    "vim": ('"', "'"),
    "batch": ("rem", '"'),
    "json": ("/* //", '"'),
    **dict.fromkeys("html vue svelte astro".split(), ("<! /* //", "\" '")),
    "xml": ("<!", "\" '"),
    **dict.fromkeys("markdown rst asciidoc org".split(), ("<!", "`")),
    "diff": ("", ""),
}
_BY_LINE = {  # the class of a whole line, by how the line begins
    "markdown": (
        (NAME, r"\#{1,6} [^\n]*+"),
        (KEYWORD, r"(?:```|~~~)[^\n]*+"),
        (ATTRIBUTE, r"[-*>] "),
    ),
    "asciidoc": ((NAME, r"={1,6} [^\n]*+"), (KEYWORD, r"(?:----|====)[^\n]*+")),
    "org": ((NAME, r"\*{1,9} [^\n]*+"), (KEYWORD, r"\#\+[^\n]*+")),
    "rst": ((KEYWORD, r"\.\. [^\n]*+"), (NAME, r"(?:===|---|~~~)[^\n]*+")),
    "diff": (
        (NAME, r"(?:diff |index |\+\+\+|---|@@)[^\n]*+"),
        (STRING, r"\+[^\n]*+"),
        (KEYWORD, r"-[^\n]*+"),
    ),
}
_MARKUP = frozenset("html vue svelte astro xml tsx javascript".split())
_WITH_KEYS = frozenset("json yaml toml ini css scss terraform nix".split())
_PROSE = frozenset("markdown rst asciidoc org diff latex".split())
_DEFINING = frozenset(
    "class contract def defmodule defn defmacro enum extension fn fun func function impl interface "
    "message mod module namespace object package protocol record rpc service struct sub trait type "
    "typedef union".split()
)
_KEYWORDS = _DEFINING | frozenset(
    "abstract alias and as assert async auto await begin bool boolean break by byte case catch "
    "chan char companion const constexpr continue crate declare default defer del delete "
    "deriving do done double dyn elif else elseif elsif end endif ensure esac except explicit "
    "export extends extern fallthrough fi final finally float for foreach foreign from global "
    "go goto guard if implements import in include infix inline instance instanceof int "
    "internal into is keyof lambda lazy let local long loop macro match mut mutable native new "
    "nonlocal not of open operator or out override pass private property protected pub public "
    "raise readonly rec ref register repeat require rescue return sealed select set short "
    "signed sizeof static string super switch synchronized template then throw throws trait "
    "transient try typename typeof unless unsafe unsigned until use using val var virtual void "
    "volatile when where while with yield".split()
)
_WITH_BRACES = frozenset(
    "c cpp csharp dart go java javascript objc php rust swift tsx typescript".split()
)
_NAMES_WITH_BRACES = frozenset(
    "begin def defn del deriving done elsif end ensure esac fi message pass raise rescue rpc "
    "service sub then unless until".split()
)
"""Keywords of other languages, which are names in those with braces."""
_SQL_KEYWORDS = frozenset(
    "add all alter and as asc begin between by case column commit create delete desc distinct drop "
    "else end exists foreign from group having in index inner insert into is join key left like "
    "limit not null on or order outer primary references returning right rollback select set table "
    "then trigger union unique update using values view when where with".split()
)
_BUILTINS = frozenset(
    "true false null nil none undefined self this cls nan infinity print println printf len range "
    "str list dict tuple map vec option some ok err result array object string number".split()
)

_CONSTANTS = frozenset("true false null nil none undefined".split())


def pieces(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield (class, text) of each piece; all pieces together are `text`.

    The text of an unknown language is one plain piece.
    """
    pattern = _pattern(language)
    position, is_defined = 0, False
    for match in pattern.finditer(text) if pattern else ():
        kind, found = match.lastgroup or "", match[0]
        if kind == "w":
            name = found
            kind = NAME if is_defined else _class_of(name, language, text, match.end())
            is_defined = kind == KEYWORD and name in _DEFINING
        elif kind == "t":
            kind = KEYWORD if language in _MARKUP else PLAIN
        elif kind == STRING and language in _WITH_KEYS and _KEY.match(text, match.end()):
            kind = ATTRIBUTE
        if match.start() > position:
            yield PLAIN, text[position : match.start()]
        yield kind.rstrip("_0123456789"), found
        position = match.end()
    if position < len(text):
        yield PLAIN, text[position:]


def _class_of(word: str, language: str, text: str, end: int) -> str:
    if language in _PROSE:
        return PLAIN
    if language in _WITH_KEYS:
        if _KEY.match(text, end):
            return ATTRIBUTE
        return BUILTIN if word in _BUILTINS else PLAIN
    if language == "sql":
        return KEYWORD if word.lower() in _SQL_KEYWORDS else PLAIN
    if word in _KEYWORDS and not (language in _WITH_BRACES and word in _NAMES_WITH_BRACES):
        return KEYWORD
    return BUILTIN if word in _BUILTINS or word.lower() in _CONSTANTS else PLAIN


@lru_cache(maxsize=128)
def _pattern(language: str) -> re.Pattern[str] | None:
    """The pattern that finds the pieces to colour; None for an unknown language."""
    if language not in _LANGUAGES:
        return None
    comments, strings = _LANGUAGES[language]
    choices = [
        f"(?P<{kind}_{number}>(?m:^){line})" if kind else ""
        for number, (kind, line) in enumerate(_BY_LINE.get(language, ()))
    ]
    for kind, table, names in (("c", _COMMENTS, comments), ("s", _STRINGS, strings)):
        if names:
            choices.append(f"(?P<{kind}>{'|'.join(table[name] for name in names.split())})")
    return re.compile("|".join([*choices, _OTHERS]), re.DOTALL)
