"""Takes the README's picture: the page of a real project, with the real model, in Chromium.

Usage: PYTHONPATH=tests/e2e python docs/screenshot.py PROJECT PICTURE.png

It takes minutes, unless VECTOR_INDEX_EMBEDDING_CACHE_DIR names a cache that has the vectors.
"""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

import anyio
from chromium import browser
from processes import Place, place_of

NAME = "vector-index-mcp"
CACHE = "VECTOR_INDEX_EMBEDDING_CACHE_DIR"
ASKED_BEFORE = ["how are changed files noticed", "RecentQueries", "what happens after a kill"]
ASKED = "where are credentials masked"
WIDTH, HEIGHT = 1280, 840
EMBEDDING_SECONDS = 900.0


def main() -> None:
    """Copy what git tracks of the project to a place of its own, and show it there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("picture", type=Path)
    parsed = parser.parse_args()
    cache = {CACHE: os.environ[CACHE]} if CACHE in os.environ else {}
    with place_of({}, **cache) as place:
        place.project = place.folder / NAME
        copy_tracked(parsed.project, place.project)
        parsed.picture.write_bytes(anyio.run(picture_of, place))


def copy_tracked(project: Path, target: Path) -> None:
    """Copy the files that git tracks and that are still there."""
    command = ["git", "-C", str(project), "ls-files", "-z"]
    names = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (project / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(project / name, target / name)


async def picture_of(place: Place) -> bytes:
    """The page with the answer to a question, as PNG."""
    link = (await place.run("ui", place.project, "--no-open")).stdout.strip()
    async with browser() as chromium:
        tab = await chromium.tab()
        await tab.resize(WIDTH, HEIGHT)
        await tab.use_scheme("light")
        await tab.open(link)
        is_done = "document.querySelector('#state-words')?.textContent === 'up to date'"
        await tab.until(is_done, EMBEDDING_SECONDS)
        for query in ASKED_BEFORE:
            await place.run("search", place.project, query)
        await tab.type(ASKED)
        await tab.until("document.querySelector('#summary')?.textContent.includes('by meaning')")
        await tab.until(f"document.querySelector('#recent a')?.textContent === '{ASKED}'")
        # Where the copy lies tells a reader nothing.
        await tab.value(f"document.querySelector('#location').textContent = '~/{NAME}'")
        return await tab.screenshot()


if __name__ == "__main__":
    main()
