"""Where the links of a Markdown text lead, as it says so. Pure."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

_MOST_LINKS = 1_000
_CODE = re.compile(r"`[^`\n]*`")
_WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,300})")
_INLINE = re.compile(r"\]\(\s{0,9}<?([^()<>\s]{1,500}(?:\([^()<>\s]{0,99}\)[^()<>\s]{0,99})?)")
_REFERENCE = re.compile(r" {0,3}\[[^\]\n]{1,300}\]:\s{1,9}<?([^<>\s]{1,500})")
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
        for target in _targets(_CODE.sub("", line)) if "[" in line else ():
            found.setdefault(target)
            if len(found) == _MOST_LINKS:
                return tuple(found)
    return tuple(found)


def _targets(line: str) -> Iterator[str]:
    for match in _WIKI.finditer(line):
        if name := match[1].strip():
            yield f"[[{name}"
    targets = [match[1] for match in _INLINE.finditer(line)]
    if reference := _REFERENCE.match(line):
        targets.append(reference[1])
    for target in targets:
        path = unquote(target.partition("#")[0].partition("?")[0])
        if path and not _SCHEME.match(path) and not path.startswith("//"):
            yield path
