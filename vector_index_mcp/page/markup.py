"""Turns Markdown into a tree of elements, which the browser builds without parsing HTML. Pure.

The tree has only the elements below, and HTML in a text stays text. So nothing in a document can
run or load, or look like the page itself.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from vector_index_mcp.engine.prose.links import WIKI
from vector_index_mcp.page import highlight

Node: TypeAlias = str | dict[str, Any]
"""A text, or an element with its `tag`, its `children` and other values.

A link has `href` (to the web), `key` (to a document) or `fragment` (to a heading, also with `key`).
A block has `line`, the line of the file where it begins. A heading has a `name`.
"""

MOST_CHARS = 100_000
"""The longest text that is parsed; the slowest that we found, with many brackets, takes 2 s."""
_MOST_PLAIN_CHARS = 1_000_000
_MOST_CELLS = 20_000  # in all tables of a text together
_CELLS = "cells"
_DEEPEST = 60  # the deepest nesting; deeper elements are left out, but their text is kept
_OPENED = {
    "paragraph_open",
    "bullet_list_open",
    "ordered_list_open",
    "list_item_open",
    "blockquote_open",
    "em_open",
    "strong_open",
    "s_open",
    "table_open",
    "thead_open",
    "tbody_open",
    "tr_open",
    "th_open",
    "td_open",
    "heading_open",
}
_WIKI = "wiki"
_OF_THE_WEB = ("http://", "https://", "mailto:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:")
_NOT_IN_NAMES = re.compile(r"[^\w\- ]")


def rendered(text: str, target: Callable[[str], str], first_line: int = 1) -> list[Node]:
    """Return the elements of a text.

    Args:
        text: Markdown, of at most `MOST_CHARS` characters.
        target: Returns the key of the document that a link leads to, empty if there is none. It
            takes a path, or `[[` and the name of a wiki link.
        first_line: The number of the text's first line in the file.
    """
    builder = _Builder(target, first_line)
    builder.add(_MARKDOWN.parse(text, {}))
    return builder.nodes


def shown(
    text: str, target: Callable[[str], str], first_line: int = 1, *, is_plain: bool = False
) -> tuple[list[Node], int]:
    """Return the elements of a text of any length, and how many of its characters are left out.

    Args:
        text: Markdown; the part after `MOST_CHARS` characters is shown as plain text.
        target: As for `rendered`.
        first_line: As for `rendered`.
        is_plain: Whether the text is not Markdown.
    """
    end = 0 if is_plain else len(text)
    if end > MOST_CHARS:
        end = text.rfind("\n", 0, MOST_CHARS) + 1
    nodes = rendered(text[:end], target, first_line) if end else []
    if rest := text[end : end + _MOST_PLAIN_CHARS]:
        nodes.append({"tag": "pre", "kind": "plain", "spans": [("", rest, 0)]})
    return nodes, max(len(text) - end - _MOST_PLAIN_CHARS, 0)


def _wiki(state: StateInline, silent: bool) -> bool:
    """Parse wiki links: `[[name]]`, `[[name|words]]`, `[[name#heading]]`; a rule of markdown-it."""
    match = WIKI.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    if not silent:
        token = state.push(_WIKI, "", 0)
        inner = match[0][2:-2]
        token.content = inner.partition("|")[2] or inner
        token.meta = {"name": match[1].rstrip("\\").strip()}
        token.meta["fragment"] = inner.partition("|")[0].partition("#")[2]
    state.pos = match.end()
    return True


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse tables by the rule of markdown-it, up to a number of cells; the rest stays text.

    That rule makes a cell for every column of every row, even of empty rows: a page of vertical
    bars would become millions of cells.
    """
    columns = 1 + state.src.count("|", state.bMarks[start], state.eMarks[start])
    left = _MOST_CELLS - state.env.get(_CELLS, 0)
    most_rows = 2 + max(left // columns, 0)  # the two header rows have only the cells in the text
    is_one = table(state, start, min(end, start + most_rows), silent)
    if is_one and not silent:
        state.env[_CELLS] = _MOST_CELLS - left + columns * (state.line - start)
    return is_one


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", _WIKI, _wiki)
    return parser


_MARKDOWN = _parser()


class _Builder:
    def __init__(self, target: Callable[[str], str], first_line: int) -> None:
        self.nodes: list[Node] = []
        self._open: list[dict[str, Any]] = [{"children": self.nodes}]
        self._target, self._first_line = target, first_line

    def add(self, tokens: Iterable[Token]) -> None:
        """Add the elements of `tokens` to the innermost open element."""
        for token in tokens:
            if token.type == "inline":
                self.add(token.children or ())
            elif token.nesting > 0:
                self._begin(token)
            elif token.nesting < 0:
                self._end(token)
            else:
                self._put(self._leaf(token))

    def _begin(self, token: Token) -> None:
        here = self._open[-1]
        node = None if token.hidden or len(self._open) > _DEEPEST else self._element(token)
        if node is not None:
            self._put(node)
        self._open.append(node or here)

    def _end(self, token: Token) -> None:
        node = self._open.pop()
        if token.type == "heading_close" and "children" in node:
            node["name"] = name_of(_text_of(node["children"]))

    def _put(self, node: Node | None) -> None:
        if node is not None:
            self._open[-1]["children"].append(node)

    def _element(self, token: Token) -> dict[str, Any] | None:
        if token.type == "link_open":
            return self._link(str(token.attrs.get("href", ""))) | {"children": []}
        if token.type not in _OPENED:
            return None
        node: dict[str, Any] = {"tag": token.tag, "children": []}
        if token.map is not None:
            node["line"] = self._first_line + token.map[0]
        if "start" in token.attrs:
            node["start"] = token.attrs["start"]
        if align := str(token.attrs.get("style", "")).partition("text-align:")[2]:
            node["align"] = align
        return node

    def _leaf(self, token: Token) -> Node | None:
        kind = token.type
        if kind in {"text", "text_special"}:
            return token.content
        if kind == "softbreak":
            return " "
        if kind in {"hardbreak", "hr"}:
            return {"tag": token.tag, "children": []}
        if kind == "code_inline":
            return {"tag": "code", "children": [token.content]}
        if kind in {"fence", "code_block"}:
            language = token.info.strip().partition(" ")[0].lower()
            spans = highlight.spans(token.content.rstrip("\n"), language, frozenset())
            line = self._first_line + (token.map[0] if token.map else 0)
            return {"tag": "pre", "spans": spans, "line": line}
        if kind == "image":
            words = token.content or str(token.attrs.get("src", ""))
            return {"tag": "span", "kind": "image", "children": [words]}
        if kind == _WIKI:
            link = self._to(f"[[{token.meta['name']}", token.meta["fragment"])
            return link | {"children": [token.content]}
        return token.content or None

    def _link(self, href: str) -> dict[str, Any]:
        if href.startswith(_OF_THE_WEB):
            return {"tag": "a", "href": href}
        path, _, fragment = href.partition("#")
        path = unquote(path.partition("?")[0])
        if not path:
            return {"tag": "a", "fragment": name_of(unquote(fragment))}
        if _SCHEME.match(path) or path.startswith("//"):
            return {"tag": "span"}
        return self._to(path, unquote(fragment))

    def _to(self, link: str, fragment: str) -> dict[str, Any]:
        key = self._target(link)
        if not key:
            return {"tag": "span", "kind": "dead"}
        return {"tag": "a", "key": key} | ({"fragment": name_of(fragment)} if fragment else {})


def _text_of(nodes: Sequence[Node]) -> str:
    parts = (n if isinstance(n, str) else _text_of(n.get("children", ())) for n in nodes)
    return "".join(parts)


def name_of(heading: str) -> str:
    """Return the name by which links refer to a heading, in the form of GitHub."""
    return _NOT_IN_NAMES.sub("", heading.strip().lower()).replace(" ", "-")
