"""The sources the quality benchmark searches: released packages, fetched once and kept.

PyPI is asked for the source distribution (`pip download` would build it first), npm through
`npm pack`. Both follow the user's own configuration of pip and npm.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LABELS = Path(__file__).parent / "labels"
_JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True, slots=True)
class Corpus:
    """One package whose sources are searched."""

    name: str
    origin: str
    """`pypi` or `npm`."""
    package: str
    version: str
    folders: tuple[str, ...] = ()
    """Which folders of the package are taken; all of them when empty."""


CORPORA = (
    Corpus("flask", "pypi", "flask", "3.1.2"),
    Corpus("httpx", "pypi", "httpx", "0.28.1"),
    Corpus("rich", "pypi", "rich", "14.1.0"),
    Corpus("celery", "pypi", "celery", "5.5.3"),
    Corpus("scrapy", "pypi", "scrapy", "2.13.3"),
    Corpus("jpype", "pypi", "jpype1", "1.6.0", ("native", "jpype", "test", "doc")),
    Corpus("pythonnet", "pypi", "pythonnet", "3.0.5"),
    Corpus("pybind11", "pypi", "pybind11", "3.0.1"),
    Corpus("zstandard", "pypi", "zstandard", "0.25.0", ("c-ext", "rust-ext", "tests", "zstandard")),
    Corpus("tokenizers", "pypi", "tokenizers", "0.22.1"),
    Corpus("wandb-core", "pypi", "wandb", "0.22.2", ("core/cmd", "core/internal", "core/pkg")),
    Corpus("lua", "pypi", "lupa", "2.5", ("third-party/lua54", "third-party/luajit21/src/jit")),
    Corpus("fastify", "npm", "fastify", "5.6.1"),
    Corpus("rxjs", "npm", "rxjs", "7.8.2", ("src",)),
    Corpus("zod", "npm", "zod", "4.1.12", ("src",)),
    Corpus("redux", "npm", "redux", "5.0.1", ("src",)),
    Corpus("preact", "npm", "preact", "10.27.2", ("src", "compat", "debug", "hooks")),
    Corpus("svelte", "npm", "svelte", "5.39.11", ("src",)),
    Corpus("capacitor-ios", "npm", "@capacitor/ios", "7.4.3"),
    Corpus("capacitor-android", "npm", "@capacitor/android", "7.4.3"),
    Corpus(
        "expo-modules-core",
        "npm",
        "expo-modules-core",
        "3.0.21",
        ("android", "ios", "common", "src"),
    ),
    Corpus("bats", "npm", "bats", "1.12.0"),
    Corpus("block-library", "npm", "@wordpress/block-library", "9.32.0", ("src",)),
)


def labels_of(corpus: Corpus) -> list[dict[str, Any]]:
    """The labelled queries of `corpus`."""
    found: list[dict[str, Any]] = json.loads(
        (LABELS / f"{corpus.name}.json").read_text(encoding="utf-8")
    )
    return found


def fetch(corpus: Corpus, folder: Path) -> Path:
    """The unpacked sources of `corpus` below `folder`; fetched if they are not there yet."""
    target = folder / f"{corpus.name}-{corpus.version}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        archive = _from_pypi(corpus) if corpus.origin == "pypi" else _from_npm(corpus, temporary)
        packed = Path(temporary, "archive.tar.gz")
        packed.write_bytes(archive)
        unpacked = Path(temporary, "unpacked")
        with tarfile.open(packed) as tar:
            tar.extractall(unpacked, filter="data")
        [top] = unpacked.iterdir()
        chosen = Path(temporary, "chosen")
        for name in corpus.folders or (".",):
            shutil.copytree(top / name, chosen / name, symlinks=True, dirs_exist_ok=True)
        shutil.move(chosen, target)
    return target


def _from_pypi(corpus: Corpus) -> bytes:
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    configured = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    page = f"{(configured or 'https://pypi.org/simple').rstrip('/')}/{corpus.package}/"
    pattern = re.compile(
        rf"{re.escape(corpus.package).replace('-', '[-_]')}-{re.escape(corpus.version)}\.tar\.gz",
        re.IGNORECASE,
    )
    request = urllib.request.Request(page, headers={"Accept": f"{_JSON}, text/html;q=0.1"})
    with urllib.request.urlopen(request) as response:
        body = response.read().decode()
    if body.lstrip().startswith("{"):
        files = json.loads(body)["files"]
        links = [f"{f['url']}#sha256={f['hashes']['sha256']}" for f in files]
    else:
        links = re.findall(r'href="([^"]+)"', body)
    link = next(link for link in links if pattern.search(link))
    url, _, checksum = urllib.parse.urljoin(page, link).partition("#sha256=")
    with urllib.request.urlopen(url) as response:
        archive: bytes = response.read()
    if checksum and hashlib.sha256(archive).hexdigest() != checksum:
        raise ValueError(f"{corpus.package} {corpus.version} did not arrive as it was sent")
    return archive


def _from_npm(corpus: Corpus, folder: str) -> bytes:
    command = ["npm", "pack", "--silent", f"{corpus.package}@{corpus.version}"]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return Path(folder, packed.stdout.strip().splitlines()[-1]).read_bytes()
