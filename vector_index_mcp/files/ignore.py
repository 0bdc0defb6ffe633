"""Which paths are not looked at: git's rules, exactly, and a list of our own that needs no git.

Layers from weakest to strongest: the built-in list, the user's patterns, git's global excludes
file, `.git/info/exclude`, then for every folder from the top of the repository downwards its
`.gitignore` and `.vectorindexignore`. The strongest layer with an opinion decides, its last line
first. A folder that is ignored is never entered, so nothing below it can be re-included, as in git.

pathspec compiles the patterns; the deciding is ours, because its matchers also let a pattern match
through a parent folder, which git does only by not entering it.
"""

import functools
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

OWN_IGNORE_FILE = ".vectorindexignore"
IGNORE_FILES = (".gitignore", OWN_IGNORE_FILE)

# Never entered, whatever the rules say: histories, not sources.
_NEVER = frozenset({".git", ".hg", ".svn", ".jj", ".lancedb"})

# Only what is unmistakable: `build`, `dist`, `target` and `vendor` hold sources in many projects,
# and where they do not, the project's .gitignore says so.
DEFAULT_PATTERNS = """
node_modules/ bower_components/ jspm_packages/ __pycache__/ .venv/ venv/ .tox/ .nox/ .eggs/
*.egg-info/ site-packages/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .hypothesis/ .ipynb_checkpoints/
.gradle/ .terraform/ .idea/ .vs/ .next/ .nuxt/ .svelte-kit/ .parcel-cache/ .turbo/ .cache/ htmlcov/
.nyc_output/ .dart_tool/ .bundle/ DerivedData/ Pods/ .stack-work/ elm-stuff/ .bloop/ .metals/
*.min.js *.min.css *.js.map *.css.map *.pyc *.pyo *.class *.o *.obj *.a *.lib *.so *.dylib *.dll
*.exe *.wasm *.jar *.war *.whl *.zip *.gz *.bz2 *.xz *.zst *.7z *.rar *.tar *.tgz *.iso *.dmg
*.png *.jpg *.jpeg *.gif *.webp *.avif *.ico *.bmp *.tiff *.psd *.mp3 *.mp4 *.mov *.avi *.webm *.wav
*.ogg *.flac *.woff *.woff2 *.ttf *.otf *.eot *.pdf *.doc *.docx *.xls *.xlsx *.ppt *.pptx
*.db *.sqlite *.sqlite3 *.parquet *.arrow *.npy *.npz *.pt *.pth *.onnx *.safetensors *.pkl *.h5
*.log *.swp *.swo *~ .#* .DS_Store Thumbs.db
package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock Cargo.lock poetry.lock
uv.lock pdm.lock Pipfile.lock Gemfile.lock composer.lock go.sum flake.lock mix.lock pubspec.lock
""".split()

_LARGEST_IGNORE_FILE_BYTES = 1_000_000
_GIT_TIMEOUT_SECONDS = 5

# (whether a match means ignored, the pattern, whether it carries pathspec's mark of a folder)
_Rule = tuple[bool, re.Pattern[str], bool]
_FOLDER_MARK = "ps_d"


@functools.lru_cache(maxsize=4096)
def compile_rules(text: str) -> tuple[_Rule, ...]:
    """The rules in one ignore file's text, strongest (last line) first."""
    rules: list[_Rule] = []
    for line in text.split("\n"):  # not splitlines: to git, a form feed is part of a name
        try:  # one at a time: a line that is no pattern must not cost the others
            patterns = GitIgnoreSpec.from_lines([line]).patterns
        except (ValueError, re.error):
            continue
        rules += [
            (pattern.include, pattern.regex, _FOLDER_MARK in pattern.regex.groupindex)
            for pattern in patterns
            if pattern.include is not None and pattern.regex is not None
        ]
    return tuple(reversed(rules))


@dataclass(frozen=True, slots=True)
class _Layer:
    """The rules of one ignore file and how a path is written from its folder's point of view."""

    rules: tuple[_Rule, ...]
    strip: int
    """Characters of the root-relative path that lead to a folder below the root."""
    prefix: str
    """Path from a folder above the root to the root, with a trailing slash."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All layers that concern the entries of one folder. Pure."""

    layers: tuple[_Layer, ...] = ()

    def push(self, text: str, *, strip: int = 0, prefix: str = "") -> "Rules":
        """These rules and, stronger, those in `text`."""
        rules = compile_rules(text)
        return Rules((*self.layers, _Layer(rules, strip, prefix))) if rules else self

    def ignore(self, path: str, is_folder: bool) -> bool:
        """Whether the entry at `path` is ignored, its parents not considered."""
        for layer in reversed(self.layers):
            name = layer.prefix + path[layer.strip :]
            for ignored, regex, marked in layer.rules:
                if _matches(regex, marked, name, is_folder):
                    return ignored
        return False


def _matches(regex: re.Pattern[str], marked: bool, name: str, is_folder: bool) -> bool:
    """Whether the pattern names this very entry, not a folder it lies in."""
    match = regex.search(name)
    if match is not None and (not marked or match.group(_FOLDER_MARK) is None):
        return True
    if not (is_folder and marked):
        return False
    return any(m.end(_FOLDER_MARK) == len(name) + 1 for m in regex.finditer(name + "/"))


class Ignore:
    """The rules of the project at `root`, read from its ignore files as folders are met.

    A snapshot: an ignore file edited after its folder was met is not seen; make a new one.
    """

    def __init__(
        self, root: Path, patterns: Iterable[str] = (), excluded_folders: Iterable[str] = ()
    ) -> None:
        """Prepare the layers that hold for the whole project.

        Args:
            root: The project.
            patterns: More patterns, in .gitignore syntax.
            excluded_folders: Root-relative paths of folders that are never entered.
        """
        self._root = root
        self._excluded = frozenset(excluded_folders)
        self._rules: dict[str, Rules] = {"": self._load(_top_rules(root, patterns), "")}

    def rules_below(self, folder: str) -> Rules:
        """The rules for the entries of `folder` (root-relative; empty for the root)."""
        known = self._rules.get(folder)
        if known is None:
            parent = folder.rpartition("/")[0]
            known = self._rules[folder] = self._load(self.rules_below(parent), folder)
        return known

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Whether `path` or a folder it lies in is ignored. The root itself never is."""
        parts = path.split("/") if path else []
        return any(
            self.ignores_entry("/".join(parts[: i + 1]), is_folder or i + 1 < len(parts))
            for i in range(len(parts))
        )

    def ignores_entry(self, path: str, is_folder: bool) -> bool:
        """Whether the entry at `path` is ignored, given that its folder is not."""
        folder, _, name = path.rpartition("/")
        if name in _NEVER or path in self._excluded:
            return True
        return self.rules_below(folder).ignore(path, is_folder)

    def _load(self, rules: Rules, folder: str) -> Rules:
        strip = len(folder) + 1 if folder else 0
        for name in IGNORE_FILES:
            rules = rules.push(_read(self._root / folder / name), strip=strip)
        return rules


def concerns_rules(path: str) -> bool:
    """Whether a change of the file at `path` changes which files are ignored."""
    return path.rpartition("/")[2] in IGNORE_FILES


def _top_rules(root: Path, patterns: Iterable[str]) -> Rules:
    rules = Rules().push("\n".join(DEFAULT_PATTERNS)).push("\n".join(patterns))
    rules = rules.push(_read(_global_excludes()))
    top = next((f for f in (root, *root.parents) if (f / ".git").exists()), None)
    if top is None:
        return rules
    prefix = _prefix(root, top)
    rules = rules.push(_read(_git_folder(top / ".git") / "info" / "exclude"), prefix=prefix)
    above = [folder for folder in reversed(root.parents) if folder.is_relative_to(top)]
    for folder in above:
        for name in IGNORE_FILES:
            rules = rules.push(_read(folder / name), prefix=_prefix(root, folder))
    return rules


def _prefix(root: Path, folder: Path) -> str:
    return "" if root == folder else root.relative_to(folder).as_posix() + "/"


def _git_folder(dot_git: Path) -> Path:
    """The folder that holds `info/exclude`: of a worktree, the main repository's."""
    if dot_git.is_dir():
        return dot_git
    target = _read(dot_git).partition("gitdir:")[2].strip()
    folder = dot_git.parent / target
    common = _read(folder / "commondir").strip()
    return folder / common if common else folder


@functools.cache
def _global_excludes() -> Path:
    """The user's own excludes file; asked of git once, since that starts a process."""
    try:
        answer = subprocess.run(
            ["git", "config", "--global", "--type=path", "--get", "core.excludesFile"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        answer = ""
    return Path(answer) if answer else _config_home() / "git" / "ignore"


def _config_home() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME")
    return Path(configured) if configured else Path.home() / ".config"


def _read(path: Path) -> str:
    """The text of an ignore file; empty if there is none."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_IGNORE_FILE_BYTES:
            return ""
        return path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return ""
