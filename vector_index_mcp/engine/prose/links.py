"""Where the links of a Markdown text lead, as it says so. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

MOST_LINKS = 1_000
LONGEST_LINK_CHARS = 1_000

_TICKS = re.compile(r"(`+)")
WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,300})(?:[|#][^\[\]\n]{0,300})?\]\]")
"""A wiki link: its name, and what may follow behind `|` or `#`."""
_PATH = r"[^()<>\s]{1,500}(?:\([^()<>\s]{0,99}\)[^()<>\s]{0,99})?"
_INLINE = re.compile(rf"\]\(\s{{0,9}}(?:<([^<>\n]{{1,500}})>|({_PATH}))")
_REFERENCE = re.compile(
    r" {0,3}\[(?!\^)[^\]\n]{1,300}\]:[ \t]{0,9}(?:<([^<>\n]{1,500})>|([^<>\s]{1,500}))"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:")


def links_in(lines: Iterable[str]) -> tuple[str, ...]:
    """The targets of links to other documents, in order, each once; none to places in the web.

    Args:
        lines: Those of the text that stand outside of fences. What stands in code is no link.

    Returns:
        Names of wiki links as they stand, behind `[[`; paths of other links, decoded, without
        what follows `#` or `?`.
    """
    found: dict[str, None] = {}
    for line in lines:
        for target in _targets(_without_code(line)) if "[" in line else ():
            found.setdefault(target[:LONGEST_LINK_CHARS])
            if len(found) == MOST_LINKS:
                return tuple(found)
    return tuple(found)


def _without_code(line: str) -> str:
    """`line` without what stands between two runs of as many backticks."""
    pieces = _TICKS.split(line)  # every other one is a run
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
