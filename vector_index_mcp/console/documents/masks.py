"""Which documents lie in a folder, beside a mask that takes none of them."""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from vector_index_mcp.files.conversion import CONVERTED
from vector_index_mcp.files.glob import shown
from vector_index_mcp.files.language import is_prose, language_of

_MOST_NAMES = 20_000  # of files that are looked at; 0.1 s
_MOST_ENDINGS = 6


def hint(folder: Path, mask: str) -> str:
    """What to do about a collection that has no document; several lines.

    Args:
        folder: That of the collection.
        mask: That of the collection.
    """
    endings = Counter(Path(name).suffix for name in islice(_documents(folder), _MOST_NAMES))
    lines = [f"No document: nothing in {folder} that could be read matches the mask {shown(mask)}"]
    if not endings:
        lines.append("No file there ends like a document (.md, .txt, .rst, .adoc, .html, .pdf)")
        return "\n".join(lines)
    most = endings.most_common(_MOST_ENDINGS)
    lines.append(f"There are: {', '.join(f'{count} {ending}' for ending, count in most)}")
    names = [ending.removeprefix(".") for ending, _ in most]
    wanted = f"**/*.{names[0]}" if len(names) == 1 else f"**/*.{{{','.join(names)}}}"
    if wanted != mask:
        lines.append(f"Remove the collection and add it again with --mask {shown(wanted)}")
    return "\n".join(lines)


def _documents(folder: Path) -> Iterator[str]:
    """The names of the documents, without those in hidden folders; no link is followed."""
    for _, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            language = language_of(name)
            if not name.startswith(".") and (is_prose(language) or language in CONVERTED):
                yield name
