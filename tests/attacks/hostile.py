"""Repositories that mean harm, made by chance, and what of the user's they must leave alone.

Everything is made of a seed: the same one makes the same repository.
"""

import ctypes
import hashlib
import json
import os
import random
import socket
import stat
import struct
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

HONEST = {
    "apple.py": "def apple(value):\n    return value + 1\n",
    "sub/banana.md": "# Banana\n\nYellow, and worth a search.\n",
}
WORD_CHARS = 20
TERABYTE = 1 << 40
_IN_ACCESS, _IN_MODIFY, _IN_OPEN, _IN_CREATE, _IN_DELETE = 0x1, 0x2, 0x20, 0x100, 0x200
_IN_NONBLOCK = 0x800
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 20


# -- what belongs to the user ------------------------------------------------------------------


@dataclass
class Canaries:
    """Folders of the user's own.

    `sealed` may not even be opened. What lies in `named` may be opened by those whom git's own
    settings send there, but it may not be told to anybody.
    """

    folder: Path
    words: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """Those that a link may lead to."""

    @property
    def sealed(self) -> Path:
        return self.folder / "sealed"

    @property
    def named(self) -> Path:
        return self.folder / "named"

    def plant(self, chance: random.Random) -> "Canaries":
        """Make them, with a word in each file that stands nowhere else."""
        for name in ("notes.py", "config.json", "AGENTS.md", ".bashrc", "deep/er/key.py"):
            self._write(self.sealed / name, chance)
        for name in ("excludes", "include.cfg", "repo.git/index", "repo.git/info/exclude"):
            self._write(self.named / name, chance)
        (self.named / "repo.git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        (self.named / "repo.git/config").write_text("[core]\n", encoding="utf-8")
        (self.sealed / "index").mkdir()
        self._write(self.sealed / "index/chunks.lance/data/1.lance", chance)
        os.mkfifo(self.sealed / "pipe")
        (self.sealed / ".bashrc").chmod(0o600)
        return self

    def _write(self, path: Path, chance: random.Random) -> None:
        word = "".join(chance.choices("bcdfghjklmnpqrstvwxz", k=WORD_CHARS))
        self.words.append(word)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {word} pelican\n{word} = 1\n", encoding="utf-8")
        if path.is_relative_to(self.sealed):
            self.files.append(path)

    def told_in(self, content: bytes) -> list[str]:
        """Which of their words `content` tells."""
        return [word for word in self.words if word.encode() in content]


def state_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every entry below `folder`: kind, mode, size, time and content."""
    found: dict[str, tuple[object, ...]] = {}
    for here, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(here, name)  # noqa: PTH118 - names that are no text
            key = os.fsdecode(os.path.relpath(path, os.fsencode(folder)))
            with suppress(OSError):
                found[key] = _state(path)
    return found


def _state(path: bytes) -> tuple[object, ...]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.fspath(os.readlink(path)))  # noqa: PTH115 - as above
    if not stat.S_ISREG(status.st_mode):
        return (stat.S_IFMT(status.st_mode), status.st_mode)
    if status.st_size > _READ_BYTES:
        return ("large", status.st_mode, status.st_size, status.st_mtime_ns)
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        content = hashlib.sha256(file.read()).hexdigest()
    return ("file", status.st_mode, status.st_size, status.st_mtime_ns, content)


class Opens:
    """Tells who opens what below a folder, or makes or removes something there."""

    def __init__(self, folder: Path) -> None:
        """Watch `folder` and every folder in it."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(_IN_NONBLOCK)
        assert self._descriptor >= 0, "no inotify instance is left"
        self._folders: dict[int, Path] = {}
        mask = _IN_ACCESS | _IN_MODIFY | _IN_OPEN | _IN_CREATE | _IN_DELETE
        for path in (folder, *(p for p in sorted(folder.rglob("*")) if p.is_dir())):
            number = libc.inotify_add_watch(self._descriptor, os.fsencode(path), mask)
            assert number >= 0, f"cannot watch {path}"
            self._folders[number] = path
        self.seen()  # of adding the watches themselves

    def seen(self) -> list[str]:
        """What was opened since the last call."""
        found = []
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, _READ_BYTES):
                found += self._paths(data)
        return sorted(set(found))

    def _paths(self, data: bytes) -> Iterable[str]:
        position = 0
        while position < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, position)
            position += _EVENT.size
            name = data[position : position + length].rstrip(b"\0")
            position += length
            yield f"{self._folders.get(number, '?')}/{os.fsdecode(name)} ({mask & 0xFFF:#x})"

    def close(self) -> None:
        os.close(self._descriptor)


# -- what a repository may bring along ---------------------------------------------------------


@dataclass
class Making:
    """A repository that is being made."""

    root: Path
    canaries: Canaries
    chance: random.Random

    def below(self, name: str) -> Path:
        """A path of this name in the root or in a new folder."""
        place = self.root
        for _ in range(self.chance.randrange(3)):
            place /= self.chance.choice(["a", "b", "src", "lib"])
        place.mkdir(parents=True, exist_ok=True)
        return place / name

    def write(self, name: str, text: str) -> None:
        """Make a file; never one that is there, which may be a link."""
        with self.below(name).open("x", encoding="utf-8") as file:
            file.write(text)

    def canary(self) -> Path:
        return self.chance.choice(self.canaries.files)

    def some(self, *choices: object) -> object:
        return self.chance.choice(choices)

    def link(self, path: Path, target: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(str(target))


Ingredient = Callable[[Making], None]


def links_to_files(making: Making) -> None:
    making.link(making.below("notes.py"), making.canary())
    making.link(making.below("hop1.py"), "hop2.py")
    with suppress(FileExistsError):
        making.link(making.root / "hop2.py", making.canary())


def links_to_folders(making: Making) -> None:
    making.link(making.below("vendor"), making.canaries.sealed)
    making.link(making.below("up"), making.some("..", "../..", "/", "."))
    making.link(making.below("dots"), os.path.relpath(making.canaries.sealed, making.root))


def loops(making: Making) -> None:
    making.link(making.below("round"), "round")
    making.link(making.root / "ping", "pong")
    making.link(making.root / "pong", "ping")


def links_to_devices(making: Making) -> None:
    places = ["/proc/self/environ", "/dev/zero", "/dev/tty", "/proc/kmsg", "/proc", "/sys"]
    for number, place in enumerate(making.chance.sample(places, 3)):
        making.link(making.below(f"device{number}.py"), place)


def things_that_are_no_files(making: Making) -> None:
    os.mkfifo(making.below("pipe.py"))
    making.link(making.below("pipelink.py"), making.canaries.sealed / "pipe")
    here = Path.cwd()
    listener = socket.socket(socket.AF_UNIX)
    try:  # its path may be longer than an address
        os.chdir(making.root)
        listener.bind("listening.py")
    finally:
        os.chdir(here)
        listener.close()


def an_index(making: Making) -> None:
    """`.lancedb` as anything but an index of ours."""
    place = making.root / ".lancedb"
    kind = making.some("link", "file", "pipe", "folder", "dangling", "links", "locks")
    if kind == "link":
        making.link(place, making.canaries.sealed / "index")
    elif kind == "dangling":
        making.link(place, making.canaries.sealed / "made-by-us")
    elif kind == "file":
        place.write_text("not a folder\n", encoding="utf-8")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        _folder_of_an_index(making, place, str(kind))


def _folder_of_an_index(making: Making, place: Path, kind: str) -> None:
    place.mkdir()
    for name in ("chunks", "files", "manifest"):
        table = place / f"{name}.lance"
        if kind == "links":
            making.link(table, making.canaries.sealed / "index/chunks.lance")
        else:
            (table / "_versions").mkdir(parents=True)
            (table / "_versions/1.manifest").write_bytes(making.chance.randbytes(300))
    for name in ("index.lock", "writer.lock", "owner.json", ".gitignore"):
        if kind == "locks":
            making.link(place / name, making.canary())
        elif making.chance.random() < 0.5:
            (place / name).write_bytes(making.chance.randbytes(100))


def slow_patterns(making: Making) -> None:
    star = "a*" * 40 + "b"
    lines = [star, "**/" * 60 + "x", "[" * 300, "!" + star, "{a," * 200, "z" + "*" * 5_000, "\\"]
    making.chance.shuffle(lines)
    for name in (".gitignore", ".vectorindexignore"):
        making.write(name, "\n".join(lines) + "\n")
    making.write("a" * 200 + ".py", "cherry = 1\n")


def links_as_ignore_files(making: Making) -> None:
    for name in (".gitignore", ".vectorindexignore", ".gitattributes"):
        making.link(making.below(name), making.some("/dev/zero", making.canary(), "."))


def git_settings(making: Making) -> None:
    """A repository whose settings run commands and name files elsewhere."""
    if os.path.lexists(making.root / ".git"):
        return  # it may lead elsewhere
    subprocess.run(["git", "init", "-q", str(making.root)], check=True, capture_output=True)
    harm = f"touch {making.canaries.sealed}/ran"
    named = making.canaries.named
    config = making.root / ".git/config"
    with config.open("a", encoding="utf-8") as file:
        file.write(
            f'[core]\n\tfsmonitor = "{harm}"\n\tsshCommand = "{harm}"\n\tpager = "{harm}"\n'
            f"\texcludesFile = {making.some(named / 'excludes', '/dev/zero', named)}\n"
            f"\thooksPath = {making.root}/hooks\n"
            f"[include]\n\tpath = {making.some(named / 'include.cfg', '/dev/zero', 'config')}\n"
            f'[alias]\n\tconfig = "!{harm}"\n\tls-files = "!{harm}"\n'
        )
    for hook in ("post-index-change", "pre-commit", "post-checkout"):
        path = making.root / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{harm}\n", encoding="utf-8")
        path.chmod(0o755)
    (making.root / ".git/index").write_bytes(b"DIRC" + making.chance.randbytes(500))


def git_elsewhere(making: Making) -> None:
    """`.git` as a pointer out of the project, or as something that is no pointer."""
    place = making.root / ".git"
    kind = making.some("pointer", "link", "pipe", "endless", "itself")
    if kind == "link":
        making.link(place, making.canaries.named / "repo.git")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        target = {"pointer": making.canaries.named / "repo.git", "endless": "/dev", "itself": "."}
        place.write_text(f"gitdir: {target[str(kind)]}\n", encoding="utf-8")


def odd_names(making: Making) -> None:
    names = [
        "two\nlines.py",
        "\x1b[2J\x1b]0;owned\x07.py",
        "\u202egnp.py",
        "n" * 252 + ".py",
        os.fsdecode(b"\xff\xfe.py"),
        "--help.py",
        "[id].py",
        "{{name}}.py",
        " .py",
        "<script>alert(1)</script>.py"[:8] + "b.py",
        "CON.py",
        "e\u0301.py",
    ]
    for name in making.chance.sample(names, 8):
        making.write(name, "durian = 'of an odd name'\n")


def odd_sizes(making: Making) -> None:
    with making.below("sparse.py").open("xb") as file:
        file.truncate(int(str(making.some(TERABYTE, 1 << 31, 1 << 20))))
    making.write("line.py", "fig = '" + "x" * 900_000 + "'\n")
    making.below("zero.py").touch()
    making.below("noise.py").write_bytes(making.chance.randbytes(3_000))


def deep_folders(making: Making) -> None:
    here = os.open(making.root, os.O_RDONLY)
    try:
        for _ in range(making.chance.randrange(100, 900)):
            with suppress(FileExistsError):
                os.mkdir("deep", dir_fd=here)
            inner = os.open("deep", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        made = os.open("grape.py", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here)
        os.write(made, b"grape = 1\n")
        os.close(made)
    finally:
        os.close(here)


def credentials(making: Making) -> None:
    lines = ["AWS_SECRET_ACCESS_KEY=" + "k" * 40, "-eyJ" * 20_000, "password: hunter2hunter2"]
    making.write("settings.yaml", "\n".join(lines) + "\n")
    making.write("id_rsa", "-----BEGIN RSA PRIVATE KEY-----\nabc\n")


CONFIGURATIONS = (
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".zed/settings.json",
    "opencode.json",
    "AGENTS.md",
    "CLAUDE.md",
)


def configurations(making: Making) -> None:
    """What `install` would write into, as links, folders and nonsense."""
    for name in making.chance.sample(CONFIGURATIONS, 5):
        path = making.root / name
        kind = making.some("link", "folder above", "dangling", "nonsense", "folder", "pipe")
        if kind == "folder above" and path.parent != making.root:
            making.link(path.parent, making.canaries.sealed)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "dangling":
            making.link(path, making.canaries.sealed / "made-by-install")
        elif kind == "nonsense":
            path.write_text(json.dumps({"mcpServers": [1, {"a": None}]}), encoding="utf-8")
        else:
            making.link(path, making.canary())


def files_that_break_parsers(making: Making) -> None:
    """Only for a program that parses in children with limits."""
    making.write("Test.kt", "class A\n@Test")
    making.write("words.go", "%w(" * 15_000)
    making.write("arrows.c", "x=>" * 10_000)


INGREDIENTS: tuple[Ingredient, ...] = (
    links_to_files,
    links_to_folders,
    loops,
    links_to_devices,
    things_that_are_no_files,
    an_index,
    slow_patterns,
    links_as_ignore_files,
    git_settings,
    git_elsewhere,
    odd_names,
    odd_sizes,
    deep_folders,
    credentials,
    configurations,
)


def repository(
    root: Path, canaries: Canaries, chance: random.Random, extra: tuple[Ingredient, ...] = ()
) -> list[str]:
    """Make a hostile repository at `root`; returns what it consists of."""
    for name, text in HONEST.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    chosen = chance.sample(INGREDIENTS, chance.randint(5, len(INGREDIENTS)))
    making = Making(root, canaries, chance)
    for ingredient in (*chosen, *extra):
        with suppress(FileExistsError, NotADirectoryError, OSError):  # two want the same name
            ingredient(making)
    return [ingredient.__name__ for ingredient in (*chosen, *extra)]


def harm_meanwhile(making: Making) -> None:
    """Change the repository while somebody looks at it: exchange, replace, forbid."""
    chance = making.chance
    place = making.below(f"live{chance.randrange(5)}.py")
    if place.is_symlink():  # nothing of the below may follow it
        place.unlink()
    acts: list[Callable[[], object]] = [
        partial(place.write_text, f"honey_{chance.randrange(9)} = 1\n" * 9, encoding="utf-8"),
        partial(place.unlink, missing_ok=True),
        partial(place.symlink_to, making.canary()),
        partial(place.symlink_to, making.canaries.sealed),
        partial(place.mkdir),
        partial(place.chmod, 0o000),
        partial((making.root / "sub").rename, making.root / "sub-away"),
        partial((making.root / "sub").symlink_to, making.canaries.sealed),
        partial((making.root / "sub").unlink, missing_ok=True),
        partial((making.root / "sub-away").rename, making.root / "sub"),
    ]
    with suppress(OSError, NotImplementedError):
        chance.choice(acts)()
