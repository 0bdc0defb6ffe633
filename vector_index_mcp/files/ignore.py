"""Which paths are not looked at: git's rules, exactly, and a list of our own that needs no git.

Layers from weakest to strongest: the built-in list, the user's patterns, git's global excludes
file, `.git/info/exclude`, then for every folder from the top of the repository downwards its
`.gitignore` and `.vectorindexignore`. The strongest layer with an opinion decides, its last line
first. A folder that is ignored is never entered, so nothing below it can be re-included, as in git.
What git tracks is not git's to ignore, and of an ignored folder that holds such files, these are
seen.

What a line means is in `patterns`.
"""

import functools
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vector_index_mcp.files.patterns import Patterns, patterns_of
from vector_index_mcp.files.tracked import NOTHING, Tracked, tracked_below

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
_MOST_LEVELS = 200  # what is done for a folder takes as long as its path


@dataclass(frozen=True, slots=True)
class _Layer:
    """The patterns of one ignore file and how a path is written from its folder's point of view."""

    patterns: Patterns
    strip: int
    """Characters of the root-relative path that lead to a folder below the root."""
    prefix: str
    """Path from a folder above the root to the root, with a trailing slash."""
    is_gits: bool
    """Whether git reads it, too; to what it tracks, these do not apply."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All layers that concern the entries of one folder. Pure."""

    layers: tuple[_Layer, ...] = ()
    is_ignored: bool = False
    """Whether the folder itself is, so that of its entries only what git tracks is seen."""

    def push(
        self, text: str, *, strip: int = 0, prefix: str = "", is_gits: bool = False
    ) -> "Rules":
        """These rules and, stronger, those in `text`."""
        if patterns := patterns_of(text):
            return replace(self, layers=(*self.layers, _Layer(patterns, strip, prefix, is_gits)))
        return self

    def ignore(self, path: str, is_folder: bool, *, is_tracked: bool = False) -> bool:
        """Whether the entry at `path` is ignored, its parents not considered."""
        for layer in reversed(self.layers):
            verdict = layer.patterns.verdict(layer.prefix + path[layer.strip :], is_folder)
            if verdict is not None and not (verdict and is_tracked and layer.is_gits):
                return verdict
        return False


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
        self._tracked: Tracked | None = None  # not read before something is ignored
        self._rules: dict[str, Rules] = {"": self._load(_top_rules(root, patterns), "")}

    def rules_below(self, folder: str) -> Rules:
        """The rules for the entries of `folder` (root-relative; empty for the root)."""
        known = self._rules.get(folder)
        if known is None:
            above = self.rules_below(folder.rpartition("/")[0])
            if not above.is_ignored and above.ignore(folder, True):
                above = replace(above, is_ignored=True)
            known = self._rules[folder] = self._load(above, folder)
        return known

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Whether `path` or a folder it lies in is ignored, or too deep. The root never is."""
        parts = path.split("/") if path else []
        return is_too_deep("/".join(parts if is_folder else parts[:-1])) or any(
            self.ignores_entry("/".join(parts[: i + 1]), is_folder or i + 1 < len(parts))
            for i in range(len(parts))
        )

    def ignores_entry(self, path: str, is_folder: bool) -> bool:
        """Whether the entry at `path` is ignored, given that its folder is not."""
        folder, _, name = path.rpartition("/")
        if name in _NEVER or path in self._excluded:
            return True
        rules = self.rules_below(folder)
        if not rules.is_ignored and not rules.ignore(path, is_folder):
            return False
        return rules.ignore(path, is_folder, is_tracked=True) or not self._is_tracked(
            path, is_folder
        )

    def _is_tracked(self, path: str, is_folder: bool) -> bool:
        if self._tracked is None:
            self._tracked = _tracked(self._root)
        return self._tracked.holds(path, is_folder=is_folder)

    def _load(self, rules: Rules, folder: str) -> Rules:
        strip = len(folder) + 1 if folder else 0
        for name in IGNORE_FILES:
            text = _read_no_link(self._root / folder / name)
            rules = rules.push(text, strip=strip, is_gits=name != OWN_IGNORE_FILE)
        return rules


def is_too_deep(folder: str) -> bool:
    """Whether `folder` lies in more folders than anybody has made on purpose."""
    return folder.count("/") >= _MOST_LEVELS


def concerns_rules(path: str) -> bool:
    """Whether a change of the file at `path` changes which files are ignored."""
    return path.rpartition("/")[2] in IGNORE_FILES


def _top_rules(root: Path, patterns: Iterable[str]) -> Rules:
    rules = Rules().push("\n".join(DEFAULT_PATTERNS)).push("\n".join(patterns))
    for path, folder, may_be_link in _rule_files_around(root):
        text = _read(path) if may_be_link else _read_no_link(path)
        is_gits = path.name != OWN_IGNORE_FILE
        rules = rules.push(text, prefix=_prefix(root, folder), is_gits=is_gits)
    return rules


def _tracked(root: Path) -> Tracked:
    top = _top(root)
    return tracked_below(_git_folder(top / ".git"), _prefix(root, top)) if top else NOTHING


def _top(root: Path) -> Path | None:
    """The folder of the repository that `root` lies in."""
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)


def _rule_files_around(root: Path) -> Iterator[tuple[Path, Path, bool]]:
    """Where rules for the whole project may stand outside of it, the least important first.

    Yields:
        The file, the folder its patterns count from, and whether git follows it as a link.
    """
    top = _top(root)
    if (excludes := _excludes_file(top or root)) is not None:
        yield excludes, top or root, True
    if top is None:
        return
    yield _common_folder(_git_folder(top / ".git")) / "info" / "exclude", top, True
    for folder in reversed(root.parents):
        if folder.is_relative_to(top):
            yield from ((folder / name, folder, False) for name in IGNORE_FILES)


def rule_files(root: Path) -> dict[Path, bool]:
    """The ignore files that hold for the whole project, and whether each one is read."""
    around = list(_rule_files_around(root))
    outside = [path for path, _, may_be_link in around if may_be_link]
    above = [path for path, _, may_be_link in around if not may_be_link]
    inside = [*(root / name for name in IGNORE_FILES), *above]
    inside.sort(key=lambda path: len(path.parts), reverse=True)  # the nearest first
    found = {path: _is_read(path) for path in outside if os.path.lexists(path)}
    found |= {p: _is_read(p) and not p.is_symlink() for p in inside if os.path.lexists(p)}
    return found


def _is_read(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size <= _LARGEST_IGNORE_FILE_BYTES
    except OSError:
        return False


def _prefix(root: Path, folder: Path) -> str:
    return "" if root == folder else root.relative_to(folder).as_posix() + "/"


def _git_folder(dot_git: Path) -> Path:
    """The folder that holds `index`: of a worktree, its own."""
    if dot_git.is_dir():
        return dot_git
    return dot_git.parent / _read(dot_git).partition("gitdir:")[2].strip()


def _common_folder(git_folder: Path) -> Path:
    """The folder that holds `info/exclude`: of a worktree, the main repository's."""
    common = _read(git_folder / "commondir").strip()
    return git_folder / common if common else git_folder


@functools.cache
def _excludes_file(folder: Path) -> Path | None:
    """The user's own excludes file, if any; asked of git once, since that starts a process."""
    try:
        answer = subprocess.run(
            ["git", "config", "--type=path", "--get", "core.excludesFile"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return _config_home() / "git" / "ignore"
    if answer.returncode != 0:  # not set
        return _config_home() / "git" / "ignore"
    name = os.fsdecode(answer.stdout.removesuffix(b"\n"))
    return folder / name if name else None


def _config_home() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME")
    return Path(configured) if configured else Path.home() / ".config"


def _read_no_link(path: Path) -> str:
    """The text of an ignore file in the project, where git follows no links."""
    try:
        return "" if stat.S_ISLNK(path.lstat().st_mode) else _read(path)
    except (OSError, ValueError):
        return ""


def _read(path: Path) -> str:
    """The text of an ignore file; empty if there is none."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_IGNORE_FILE_BYTES:
            return ""
        return path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return ""
