"""Measures how often the chunk that introduces a project says what it is for.

    python benchmarks/introductions.py --folder DIR

DIR is a `node_modules`, as npm makes it, with some hundred packages. Each package has a description
of its own in `package.json`, which the chunk is compared with.

It prints in how many READMEs at least half of the description's words, as stems, stand in the
chunk that `codebase/introduction` chooses, and in the first one. `_LOGIT` there is the logit of
the former.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from vector_index_mcp.codebase.introduction import beginning_of
from vector_index_mcp.engine.chunk.cut import chunk_text
from vector_index_mcp.engine.prose.stems import asked_stems, stems_of

CHUNK_CHARS = 1_200
FEWEST_STEMS = 3  # of a description that says something


def packages(folder: Path) -> Iterator[tuple[frozenset[str], list[str]]]:
    """The stems of each package's description, and the chunks of its README."""
    for manifest in sorted([*folder.glob("*/package.json"), *folder.glob("@*/*/package.json")]):
        description = json.loads(manifest.read_text(encoding="utf-8")).get("description")
        stems = frozenset(asked_stems(description if isinstance(description, str) else ""))
        readmes = [each for each in manifest.parent.iterdir() if each.name.lower() == "readme.md"]
        if len(stems) < FEWEST_STEMS or not readmes:
            continue
        text = readmes[0].read_text(encoding="utf-8", errors="replace")
        if texts := [chunk.text for chunk in chunk_text(text, "markdown", CHUNK_CHARS)]:
            yield stems, texts


def says(text: str, stems: frozenset[str]) -> bool:
    """Whether a chunk has half of the stems."""
    return 2 * len(stems.intersection(stems_of(text))) >= len(stems)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="a node_modules")
    found = [(stems, texts) for stems, texts in packages(parser.parse_args().folder)]
    if not found:
        parser.error("no package there has a description and a README")
    chosen = sum(says(texts[beginning_of(texts)], stems) for stems, texts in found)
    first = sum(says(texts[0], stems) for stems, texts in found)
    print(f"{len(found)} READMEs")
    print(f"what the chosen chunk says: {chosen} ({chosen / len(found):.0%})")
    print(f"what the first chunk says:  {first} ({first / len(found):.0%})")


if __name__ == "__main__":
    main()
