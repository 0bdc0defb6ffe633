"""Folders and what is known of their files, as tests make them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vector_index_mcp.files import scan

NESTED = 1_100  # folders; more than Python's stack has room for


class Stamps(dict):
    """Stamps by key, as `files.scan.Known`."""

    def below(self, key):
        return [each for each in self if not key or each.startswith(f"{key}/")]


def look(folder, ignore, keys, known, *more):
    """`files.scan.look`, with what is known as a dictionary."""
    return scan.look(folder, ignore, keys, Stamps(known), *more)


@contextmanager
def nested_in(folder: Path) -> Iterator[None]:
    """The time in which `folder` holds a nest of folders as deep as `NESTED`."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        for _ in range(NESTED):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(here)
    try:
        yield
    finally:
        subprocess.run(["rm", "-r", folder / "d"], check=True)  # Python's own way down is too short
