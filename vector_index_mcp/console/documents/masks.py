"""Suggests another mask for a collection whose mask matches no document."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from vector_index_mcp.errors import quoted
from vector_index_mcp.files.conversion import CONVERTED
from vector_index_mcp.files.language import is_prose, language_of
from vector_index_mcp.objects import within

_MOST_NAMES = 20_000  # at most this many file names are counted, which takes 0.1 s
_MOST_ENDINGS = 6


def hint(folder: Path, mask: str) -> str:
    """Return lines that say what to do about a collection without documents.

    Args:
        folder: The collection's folder.
        mask: The collection's mask.
    """
    endings = Counter(Path(name).suffix for name in islice(_documents(folder), _MOST_NAMES))
    lines = [f"No document: nothing in {folder} that could be read matches the mask {quoted(mask)}"]
    if not endings:
        lines.append("No file there ends like a document (.md, .txt, .rst, .adoc, .html, .pdf)")
        return "\n".join(lines)
    # By name where numbers are equal: no folder lists its files in the same order everywhere.
    most = sorted(endings.items(), key=lambda item: (-item[1], item[0]))[:_MOST_ENDINGS]
    lines.append(f"There are: {', '.join(f'{count} {ending}' for ending, count in most)}")
    names = [ending.removeprefix(".") for ending, _ in most]
    wanted = f"**/*.{names[0]}" if len(names) == 1 else f"**/*.{{{','.join(names)}}}"
    if wanted != mask:
        lines.append(f"Remove the collection and add it again with --mask {quoted(wanted)}")
    return "\n".join(lines)


def _documents(folder: Path) -> Iterator[str]:
    """Yield the names of the documents, except in hidden folders; follows no links."""
    for _, folders, names in within.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            language = language_of(name)
            if not name.startswith(".") and (is_prose(language) or language in CONVERTED):
                yield name
