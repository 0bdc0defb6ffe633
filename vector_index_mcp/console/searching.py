"""The grammar of the command `search`."""

import argparse
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.codebase.limits import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TOP_K,
    LARGEST_OFFSET,
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
    MAX_TOKENS,
    TOP_K,
)
from vector_index_mcp.engine.ranking.pattern import pattern_of

NAMED_TWICE = "the project is named twice: leave out PATH, or --project"
MEANT = {
    **dict.fromkeys(("--file", "--folder", "--dir", "--include", "-g"), "--glob"),
    **dict.fromkeys(("-n", "-k", "-m", "--limit", "--count", "--max-results"), "--top-k"),
    **dict.fromkeys(("-t", "--type"), "--language"),
    **dict.fromkeys(("-e", "-P", "--regexp", "--pattern"), "--regex"),
}
"""Its options by what the MCP tool, our other commands and other search programs call them."""
# A shell may pass bytes that are not UTF-8; as `?`, they would be wildcards of a glob.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_BEGINNINGS_OF_PATHS = ("~", "./", "../")
_IN_OPTIONS = (
    ("similar_to names ", "--similar-to names "),
    ("the code in similar_to ", "the code in --similar-to "),
    ("path='", "--glob '"),
    ('path="', '--glob "'),
    ("or filter by path instead", "or limit it by --glob instead"),
    (" fit max_tokens", " fit --max-tokens"),
    ("(see get_status)", "(see `status`)"),
)
"""How messages of the MCP tool name its arguments, and how the command line names them."""


def in_options(message: str) -> str:
    """Return a message of the MCP tool, with command line options in place of its arguments."""
    for argument, option in _IN_OPTIONS:
        message = message.replace(argument, option)
    return message


@dataclass(frozen=True, slots=True)
class Search:
    """The arguments and options of the command `search`."""

    query: str
    top_k: int
    glob: str
    language: str
    max_tokens: int
    folder: str
    """The project's folder as it was typed: printed paths begin with it."""
    format: str
    """`text`, `json` or `grep`."""
    color: str
    """`auto`, `always` or `never`."""
    kind: str = ""
    similar_to: str = ""
    regex: bool = False
    is_full: bool = False
    """Whether a terminal shows all lines of each hit."""
    starts_none: bool = False
    """Whether to search in this process if no service runs, instead of starting one."""
    explain: bool = False
    """Whether each hit shows how its rank and score came about."""
    is_whole: bool = False
    """Whether all results are wanted that can be had, page by page."""

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "Search":
        """Return the search that the parsed options describe.

        Who wants lines as grep writes them wants whole texts, and all that matches an expression.
        """
        is_grep = parsed.format == "grep"
        is_pattern = is_grep and (parsed.regex or pattern_of(parsed.query) is not None)
        return cls(
            query=parsed.query,
            top_k=parsed.top_k or (TOP_K[1] if is_pattern else DEFAULT_TOP_K),
            glob=parsed.glob,
            language=parsed.language,
            max_tokens=parsed.max_tokens or (MAX_TOKENS[1] if is_grep else DEFAULT_MAX_TOKENS),
            folder=parsed.path,
            format=parsed.format,
            color=parsed.color,
            kind=parsed.kind,
            similar_to=parsed.similar_to,
            regex=parsed.regex,
            is_full=parsed.full,
            starts_none=parsed.no_service,
            explain=parsed.explain,
            is_whole=is_pattern and parsed.top_k is None,
        )

    @property
    def offsets(self) -> range:
        """How many results stand before each page; a page has `top_k` of them."""
        return range(0, LARGEST_OFFSET + 1 if self.is_whole else 1, self.top_k)

    @property
    def most(self) -> int:
        """How many results there are at most."""
        return len(self.offsets) * self.top_k

    @property
    def arguments(self) -> dict[str, Any]:
        """The search as the fields of `codebase.arguments.ExplainedArguments`."""
        return {
            "query": self.query,
            "top_k": self.top_k,
            "path": self.glob,
            "language": self.language,
            "max_tokens": self.max_tokens,
            "kind": self.kind or None,
            "similar_to": self.similar_to,
            "regex": self.regex,
            "explain": self.explain,
        }


def add_options(search: argparse.ArgumentParser) -> None:
    """Add the arguments and options of `search`."""
    _add_query(search)
    search.add_argument(
        "-C", "--project", dest="path", metavar="PATH", help="the project's folder, as an option"
    )
    search.add_argument(
        "--top-k",
        type=_number(*TOP_K),
        metavar="N",
        help="how many results, 1 to 100 (5; as many as 500 to grep for an expression)",
    )
    _add_limits(search)
    search.add_argument(
        "--max-tokens",
        type=_number(*MAX_TOKENS),
        metavar="N",
        help="about how long the answer may be, in tokens (8000; grep's lines: 100000)",
    )
    search.add_argument(
        "--format",
        choices=("text", "json", "grep"),
        default="text",
        help="text for people; json: what the MCP tool returns if verbose; grep: path:line:text "
        "for editors, the best line of each result, or all lines that match a regular expression",
    )
    search.add_argument(
        "--json", dest="format", action="store_const", const="json", help="short for --format json"
    )
    search.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto (the default): on a terminal, unless NO_COLOR is set",
    )
    search.add_argument(
        "--full",
        action="store_true",
        help="on a terminal, show all lines of each result, even if the best scrolls away",
    )
    search.add_argument(
        "--explain",
        action="store_true",
        help="below each result, show how its rank and its score came about",
    )
    search.add_argument(
        "--no-service",
        action="store_true",
        help="start no background service; if none runs, search in this process, which loads the "
        "model each time",
    )


def _add_query(search: argparse.ArgumentParser) -> None:
    """Add the query and what it is."""
    search.add_argument(
        "words",
        type=_text(LONGEST_QUERY_CHARS),
        nargs="*",
        metavar="QUERY",
        help="a question, an identifier, or both; before it the project's folder, if it is not "
        "the one you are in",
    )
    search.add_argument(
        "-E",
        "--regex",
        action="store_true",
        help="QUERY is a regular expression in Rust's syntax; without this, what looks like one is "
        "taken for one",
    )


def _add_limits(search: argparse.ArgumentParser) -> None:
    """Add the options that limit a search to part of the project."""
    search.add_argument(
        "--glob",
        "--path",  # as the tool's argument is called
        type=_text(LONGEST_PATH_CHARS),
        default="",
        metavar="GLOB",
        help='only this file or folder, or files that match it: "src", "src/**", "*.py"',
    )
    search.add_argument(
        "--language",
        type=_text(LONGEST_LANGUAGE_CHARS),
        default="",
        metavar="NAME",
        help="only files in this language: python",
    )
    search.add_argument(
        "--kind",
        choices=("code", "docs", "config", "tests"),
        default="",
        help="only files of this kind",
    )
    search.add_argument(
        "--similar-to",
        type=_text(LONGEST_PATH_CHARS),
        default="",
        metavar="PATH:LINE",
        help="find code similar to the code at this line; a query is then optional",
    )


def with_late_words(parsed: argparse.Namespace, extra: list[str]) -> list[str]:
    """Add words that stand behind an option, where argparse takes none; return what is no word."""
    at = extra.index("--") if "--" in extra else len(extra)
    if any(word.startswith("-") for word in extra[:at]):
        return extra
    words = [*extra[:at], *extra[at + 1 :]]
    try:
        parsed.words = [*parsed.words, *map(_text(LONGEST_QUERY_CHARS), words)]
    except argparse.ArgumentTypeError as error:
        parsed.grammar.error(f"argument QUERY: {error}")
    return []


def part_words(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """Split the words into the query and the project's folder, which may stand before it.

    Sets `parsed.query` and `parsed.path`; exits with a usage error if the words make no sense.
    """
    *path, query = parsed.words or [""]
    if query and not path and parsed.path is None and parsed.similar_to and os.path.isdir(query):
        path, query = [query], ""  # a sample needs no query
    if len(path) > 1 and all(map(os.path.isdir, path)):
        parser.error(f"search one project at a time: search {path[0]!a} {query!a}")
    if len(path) > 1 or (path and parsed.path is not None and _is_no_path(path[0])):
        parser.error(f"put the query into quotes: search {' '.join(parsed.words)!a}")
    if path and parsed.path is not None:
        parser.error(NAMED_TWICE)
    if path and os.path.isdir(query) and not os.path.lexists(path[0]):
        parser.error(f"the project's folder stands before the query: search {query!a} {path[0]!a}")
    if path and len(query.split()) == 1 and _is_no_path(path[0]):
        words = " ".join(parsed.words)
        parser.error(f"put the query into quotes: search {words!a} ({path[0]!a} is no folder)")
    if not query.strip() and not parsed.similar_to.strip():
        parser.error("the query is empty; say what to look for")
    parsed.query, parsed.path = query, path[0] if path else parsed.path


def _is_no_path(word: str) -> bool:
    """Whether a word is no folder that exists, and is not written like a path."""
    is_written_so = word.startswith(_BEGINNINGS_OF_PATHS) or os.path.isabs(word)  # noqa: PTH117
    return bool(word) and not is_written_so and not os.path.isdir(word)


def _number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {lowest} to {highest}")
        return int(text)

    return parse


def _text(longest: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if len(text) > longest:
            raise argparse.ArgumentTypeError(
                f"the text has {len(text):,} characters; {longest:,} is the most"
            )
        return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)

    return parse
