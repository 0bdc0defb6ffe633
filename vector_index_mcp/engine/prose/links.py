"""Finds the targets of the links in a Markdown text. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

MOST_LINKS = 1_000
LONGEST_LINK_CHARS = 1_000

_TICKS = re.compile(r"(`+)")
WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,300})(?:[|#][^\[\]\n]{0,300})?\]\]")
"""A wiki link: the name of its target, and an optional part after `|` or `#`."""
_PATH = r"[^()<>\s]{1,500}(?:\([^()<>\s]{0,99}\)[^()<>\s]{0,99})?"
_INLINE = re.compile(rf"\]\(\s{{0,9}}(?:<([^<>\n]{{1,500}})>|({_PATH}))")
_REFERENCE = re.compile(
    r" {0,3}\[(?!\^)[^\]\n]{1,300}\]:[ \t]{0,9}(?:<([^<>\n]{1,500})>|([^<>\s]{1,500}))"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:")


def links_in(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the targets of links to other documents, in order, each once; no links to the web.

    Args:
        lines: The lines of the text outside of fenced code. Links in inline code are ignored.

    Returns:
        For a wiki link, `[[` and the name as it is written; for another link, the decoded path
        without `#` or `?` and what follows.
    """
    found: dict[str, None] = {}
    for line in lines:
        for target in _targets(_without_code(line)) if "[" in line else ():
            found.setdefault(target[:LONGEST_LINK_CHARS])
            if len(found) == MOST_LINKS:
                return tuple(found)
    return tuple(found)


def _without_code(line: str) -> str:
    """Return `line` without inline code, which stands between equal runs of backticks."""
    pieces = _TICKS.split(line)  # every other piece is a run of backticks
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index in range(len(pieces) - 2, 0, -2):
        places[pieces[index]].append(index)
    kept, index = [pieces[0]], 1
    while index < len(pieces):
        same = places[pieces[index]]
        while same and same[-1] <= index:
            same.pop()
        index = same[-1] if same else index
        kept.append(pieces[index + 1])
        index += 2
    return "`".join(kept)


def _targets(line: str) -> Iterator[str]:
    references = filter(None, [_REFERENCE.match(line)])
    matches = [*WIKI.finditer(line), *_INLINE.finditer(line), *references]
    for match in sorted(matches, key=re.Match.start):
        if match.re is WIKI:
            if name := match[1].rstrip("\\").strip():  # in tables, `|` follows a backslash
                yield f"[[{name}"
            continue
        target = match[1] or match[2]
        path = unquote(target.partition("#")[0].partition("?")[0]).strip()
        if path and not _SCHEME.match(target) and not target.startswith("//"):
            yield path
