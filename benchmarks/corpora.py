"""The sources the quality benchmark searches: released packages, fetched once and kept.

PyPI is asked for the source distribution (`pip download` would build it first), npm through
`npm pack`, Debian through `apt-get source`, which needs its source packages (`deb-src`) in the list
of sources. All follow the user's own configuration.
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
from pathlib import Path
from typing import Any

from packages import Corpus

LABELS = Path(__file__).parent / "labels"
_JSON = "application/vnd.pypi.simple.v1+json"


def labels_of(corpus: Corpus) -> list[dict[str, Any]]:
    """The labelled queries of `corpus` that it answers."""
    return [label for label in _all_labels_of(corpus) if label["files"]]


def unanswered_by(corpus: Corpus) -> list[str]:
    """Queries that somebody might ask of `corpus`, and that nothing in it answers."""
    return [label["query"] for label in _all_labels_of(corpus) if not label["files"]]


def _all_labels_of(corpus: Corpus) -> list[dict[str, Any]]:
    written = (LABELS / f"{corpus.name}.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(written)
    return found


def fetch(corpus: Corpus, folder: Path) -> Path:
    """The unpacked sources of `corpus` below `folder`; fetched if they are not there yet."""
    target = folder / f"{corpus.name}-{corpus.version}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        archive = _ORIGINS[corpus.origin](corpus, temporary)
        packed = Path(temporary, "archive.tar.gz")
        packed.write_bytes(archive)
        unpacked = Path(temporary, "unpacked")
        with tarfile.open(packed) as tar:
            tar.extractall(unpacked, filter="data")
        tops = list(unpacked.iterdir())
        top = tops[0] if len(tops) == 1 else unpacked
        chosen = Path(temporary, "chosen")
        for name in corpus.folders or (".",):
            shutil.copytree(top / name, chosen / name, symlinks=True, dirs_exist_ok=True)
        shutil.move(chosen, target)
    return target


def _from_pypi(corpus: Corpus, _: str) -> bytes:
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


def _from_debian(corpus: Corpus, folder: str) -> bytes:
    """What the package's authors have released; of a package that is Debian's own, all of it."""
    source = f"{corpus.package}={corpus.version}"
    command = ["apt-get", "source", "--tar-only", "--only-source", "-qq", source]
    subprocess.run(command, cwd=folder, check=True)
    packed = [*Path(folder).glob("*.tar.*")]
    released = [path for path in packed if ".orig.tar." in path.name] or packed
    return released[0].read_bytes()


_ORIGINS = {"pypi": _from_pypi, "npm": _from_npm, "debian": _from_debian}
