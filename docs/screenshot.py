"""Takes the README's pictures of a real project with the real model: the page, and a terminal.

Usage: PYTHONPATH=tests:tests/e2e python docs/screenshot.py PROJECT FOLDER

They are made in Chromium, into FOLDER/page.png and FOLDER/terminal.png. It takes minutes, unless
VECTOR_INDEX_EMBEDDING_CACHE_DIR names a cache that has the vectors. The questions are about httpx,
of which `pip download --no-binary :all: --no-deps httpx` brings the source; others can be asked.
"""

import argparse
import base64
import os
import shutil
import struct
import subprocess
import zlib
from functools import partial
from io import StringIO
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
from chromium import Tab, browser
from processes import Place, place_of, run
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

CACHE = "VECTOR_INDEX_EMBEDDING_CACHE_DIR"
BEFORE = ["how is a timeout configured", "DigestAuth", "DigestAuth", "parse content type charset"]
ASKED = "where are redirects followed"
ASKED_THERE = "how is the charset of a response guessed"
WIDTH, HEIGHT = 1280, 840
COLUMNS = 100
THEME = TerminalTheme(
    (27, 27, 29),
    (240, 240, 240),
    [(0, 0, 0), (255, 123, 114), (126, 211, 133), (230, 192, 104)]
    + [(121, 176, 255), (210, 153, 240), (103, 205, 204), (216, 216, 216)],
)
MOST_COLOURS = 256  # what a byte can name
EMBEDDING_SECONDS = 900.0
TERMINAL = """<!doctype html>
<meta charset="utf-8">
<style>
html {{ background: {background}; color: {foreground}; }}
body {{ display: inline-block; margin: 0; padding: 20px 24px; }}
pre {{ margin: 0; font: 14px/20px "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
</style>
<pre>{code}</pre>
"""
PIXELS = """
(async () => {
  const bytes = Uint8Array.from(atob("%s"), (character) => character.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes]));
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const data = canvas.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < data.length; at += 9999) text += String.fromCharCode(...data.subarray(at, at + 9999));
  return [image.width, image.height, btoa(text)];
})()
"""  # noqa: E501 - JavaScript


def main() -> None:
    """Copy the project to a place of its own, and show it there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ask", default=ASKED)
    parser.add_argument("--ask-there", default=ASKED_THERE, help="the same of the terminal")
    parser.add_argument("--before", action="append", help="a query that was asked before")
    parsed = parser.parse_args()
    cache = {CACHE: os.environ[CACHE]} if CACHE in os.environ else {}
    with place_of({}, **cache) as place:
        place.project = place.folder / parsed.project.resolve().name
        copy(parsed.project, place.project)
        asked = parsed.ask, parsed.ask_there
        take = partial(pictures_of, place, asked, parsed.before or BEFORE)
        for name, picture in anyio.run(take).items():
            (parsed.folder / name).write_bytes(picture)


def copy(project: Path, target: Path) -> None:
    """Copy the files that git tracks and that are still there; all of a folder without git."""
    if not (project / ".git").exists():
        shutil.copytree(project, target)
        return
    command = ["git", "-C", str(project), "ls-files", "-z"]
    names = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (project / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(project / name, target / name)


async def pictures_of(place: Place, asked: tuple[str, str], before: list[str]) -> dict[str, bytes]:
    """The page, and then a terminal, each with the answer to a question: PNG by names of files."""
    link = (await place.run("ui", place.project, "--no-open")).stdout.strip()
    async with browser() as chromium:
        tab = await chromium.tab()
        await show_page(tab, place, link, asked[0], before)
        page = await small(tab)
        await tab.close()
        tab = await chromium.tab()
        await show_terminal(tab, place, asked[1])
        return {"page.png": page, "terminal.png": await small(tab)}


async def show_page(tab: Tab, place: Place, link: str, asked: str, before: list[str]) -> None:
    """The page with the answer."""
    await tab.resize(WIDTH, HEIGHT)
    await tab.use_scheme("light")
    await tab.open(link)
    is_done = "document.querySelector('#state-words')?.textContent === 'up to date'"
    await tab.until(is_done, EMBEDDING_SECONDS)
    for query in before:
        await place.run("search", place.project, query)
    await tab.type(asked)
    await tab.until("document.querySelector('#summary')?.textContent.includes('by meaning')")
    await tab.until(f"document.querySelector('#recent a')?.textContent === {asked!r}")
    # Where the copy lies tells a reader nothing.
    await tab.value(f"document.querySelector('#location').textContent = '~/{place.project.name}'")


async def show_terminal(tab: Tab, place: Place, asked: str) -> None:
    """What the command prints on a terminal, beneath the line that somebody has written."""
    command = ["search", asked, "--top-k", "1", "--color", "always"]
    start = partial(run, *command, cwd=place.project, variables=place.variables)
    ran = await anyio.to_thread.run_sync(start)
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor")
    console.print(Text(f'$ vector-index-mcp search "{asked}" --top-k 1', style="bold"))
    console.print(Text.from_ansi(ran.stdout.rstrip()))
    html = console.export_html(theme=THEME, code_format=TERMINAL, inline_styles=True)
    shown = place.folder / "terminal.html"
    shown.write_text(html, encoding="utf-8")
    await tab.open(shown.as_uri())
    await tab.until("document.querySelector('pre')")
    size = "(({ width, height }) => [width, height])(document.body.getBoundingClientRect())"
    await tab.resize(*map(round, await tab.value(size)))


async def small(tab: Tab) -> bytes:
    """A picture of `tab` as PNG of few colours; each other colour becomes one that is near."""
    picture = base64.b64encode(await tab.screenshot()).decode()
    await tab.open("about:blank")  # where a script may do what it likes
    await tab.until("location.href === 'about:blank'")
    width, height, pixels = await tab.value(PIXELS % picture)
    packed = np.frombuffer(base64.b64decode(pixels), "<u4") & 0xFFFFFF
    colours, places, counts = np.unique(packed, return_inverse=True, return_counts=True)
    parts = colours.view("u1").reshape(-1, 4)[:, :3]
    kept = parts[np.argsort(-counts, kind="stable")[:MOST_COLOURS]]
    distance = ((parts[:, None].astype(int) - kept[None]) ** 2).sum(axis=-1)
    rows = distance.argmin(axis=1).astype("u1")[places].reshape(height, width)
    lines = np.pad(rows, ((0, 0), (1, 0)))  # each begins with the number of its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = {b"IHDR": header, b"PLTE": kept.tobytes(), b"IDAT": zlib.compress(lines.tobytes(), 9)}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in (chunks | {b"IEND": b""}).items()
    )


if __name__ == "__main__":
    main()
