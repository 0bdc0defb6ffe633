"""Which paths are not looked at: git's rules, exactly, and a list of our own that needs no git.

Layers from weakest to strongest: the built-in list, the user's patterns, git's global excludes
file, `.git/info/exclude`, then for every folder from the top of the repository downwards its
`.gitignore` and `.vectorindexignore`. The strongest layer with an opinion decides, its last line
first. An ignored folder is not entered, so nothing below it can be re-included, as in git. But what
git tracks is not git's to ignore: of an ignored folder that holds such files, these are seen. A
repository inside of another has rules and tracked files of its own. One thing differs: an ignore
file that a sparse checkout leaves out is no rule here, while git reads it from its index.

What a line means is in `patterns`.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vector_index_mcp.files import repository
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.patterns import Patterns, patterns_of
from vector_index_mcp.files.tracked import NOTHING, Tracked, tracked_below

OWN_IGNORE_FILE = ".vectorindexignore"
IGNORE_FILES = (".gitignore", OWN_IGNORE_FILE)

_CONCERNS_RULES = frozenset({*IGNORE_FILES, ".git"})

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

RULES = ".git/"
"""What is reported in place of a path when something outside of the folder that rules come from
may have changed; no file has this path."""

_LARGEST_IGNORE_FILE_BYTES = 1_000_000
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
    top: str = ""
    """The folder of the repository, root-relative; empty also if that is above the root."""
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
    """The rules of one folder, read from its ignore files as the folders in it are met.

    A snapshot: an ignore file edited after its folder was met is not seen; make a new one.
    """

    def __init__(self, folder: Folder) -> None:
        """Prepare the layers that hold for the whole folder."""
        self._root = folder.path
        self._excluded = frozenset(folder.selection.excluded_folders)
        self._mask = _mask_of(folder)
        self._tracked: dict[str, Tracked] = {}  # by repository, once something in it is ignored
        # By repository below the root, complete or not, what git said there when all of it was
        # looked at last.
        self._inner: dict[str, Rules] = {}
        self._rules: dict[str, Rules] = {"": self._load(_top_rules(folder), "")}

    def rules_below(self, folder: str) -> Rules:
        """The rules for the entries of `folder` (root-relative; empty for the root)."""
        known = self._rules.get(folder)
        if known is None:
            above = self.rules_below(folder.rpartition("/")[0])
            if not above.is_ignored and above.ignore(folder, True):
                above = replace(above, is_ignored=True)
            if os.path.lexists(self._root / folder / ".git"):
                if repository.is_top(self._root / folder):
                    above = self._of_repository(above, folder)
                self._inner.setdefault(folder, above)
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
        if not is_folder and self._mask is not None and not self._mask.verdict(path, False):
            return True
        rules = self.rules_below(folder)
        if not rules.is_ignored and not rules.ignore(path, is_folder):
            return False
        if rules.ignore(path, is_folder, is_tracked=True):
            return True
        inside = path[len(rules.top) + 1 :] if rules.top else path
        return not self._tracked_in(rules.top).holds(inside, is_folder=is_folder)

    def is_outdated_by(self, newer: "Ignore", *, in_repositories: bool = False) -> bool:
        """Whether rules from outside of the project differ, or what git tracks, since last asked.

        Args:
            newer: The rules as they are now; reads git's index.
            in_repositories: Whether to look into the repositories below the root, too.
        """
        if self._rules[""] != newer._rules[""]:
            return True
        asked = list(self._tracked.items())
        if any(not tracked.is_same(newer._tracked_in(top)) for top, tracked in asked):
            return True
        inner = list(self._inner.items())
        if not in_repositories:
            newer._inner |= dict(inner)
            return False
        return any(rules != newer._rules_at(top) for top, rules in inner)

    def _rules_at(self, top: str) -> Rules | None:
        """What git says at the top of a repository below the root; None if there is none."""
        self.rules_below(top)
        return self._inner.get(top)

    @property
    def repositories(self) -> list[str]:
        """The repositories below the root that were met so far."""
        return list(self._inner)

    def sources(self) -> list[Path]:
        """The files outside of what is walked that these rules come from, there or not."""
        top = repository.top_of(self._root)
        found = [path for path, _, _ in _rule_files_around(self._root)]
        found += repository.settings_of(self._root)
        tops = [self._root / inner for inner in self._inner]
        for each in tops if top is None else [top, *tops]:
            found += repository.git_files_of(each)
        # An excludes file is often a link into a folder that is kept elsewhere.
        return list(dict.fromkeys([*found, *(Path(os.path.realpath(path)) for path in found)]))

    def _tracked_in(self, top: str) -> Tracked:
        known = self._tracked.get(top)
        if known is None:
            known = self._tracked[top] = _tracked(self._root / top)
        return known

    def _of_repository(self, rules: Rules, folder: str) -> Rules:
        """The rules at the top of another repository: ours, but for those of git's here."""
        layers = tuple(layer for layer in rules.layers if not layer.is_gits)
        rules = Rules(layers, folder)
        # Not what this repository's configuration names: that would be a process for each.
        excludes = repository.excludes_file(repository.top_of(self._root) or self._root)
        for path in (excludes, repository.exclude_of(self._root / folder)):
            if path is not None:
                rules = rules.push(_read(path), strip=len(folder) + 1, is_gits=True)
        return rules

    def _load(self, rules: Rules, folder: str) -> Rules:
        strip = len(folder) + 1 if folder else 0
        for name in IGNORE_FILES:
            text = _read_no_link(self._root / folder / name)
            rules = rules.push(text, strip=strip, is_gits=name != OWN_IGNORE_FILE)
        return rules


def _mask_of(folder: Folder) -> Patterns | None:
    """What files of the folder have to match; None if there is no mask."""
    if not folder.selection.mask:
        return None
    from vector_index_mcp.files.glob import expanded  # 10 ms that a child seldom needs

    return patterns_of("\n".join(expanded(folder.selection.mask)))


def is_too_deep(folder: str) -> bool:
    """Whether `folder` lies in more folders than anybody has made on purpose."""
    return folder.count("/") >= _MOST_LEVELS


def concerns_rules(path: str) -> bool:
    """Whether a change of the file at `path` changes which files are ignored.

    A repository that comes or goes brings rules of its own, or takes them with it.
    """
    return path.rpartition("/")[2] in _CONCERNS_RULES


def _top_rules(folder: Folder) -> Rules:
    root = folder.path
    rules = Rules().push("\n".join(DEFAULT_PATTERNS))
    rules = rules.push("\n".join(folder.selection.patterns))
    for path, origin, may_be_link in _rule_files_around(root):
        text = _read(path) if may_be_link else _read_no_link(path)
        is_gits = path.name != OWN_IGNORE_FILE
        rules = rules.push(text, prefix=_prefix(root, origin), is_gits=is_gits)
    return rules


def _tracked(root: Path) -> Tracked:
    top = repository.top_of(root)
    return tracked_below(repository.index_of(top), _prefix(root, top)) if top else NOTHING


def _rule_files_around(root: Path) -> Iterator[tuple[Path, Path, bool]]:
    """Where rules for the whole project may stand outside of it, the least important first.

    Yields:
        The file, the folder its patterns count from, and whether git follows it as a link.
    """
    top = repository.top_of(root)
    if (excludes := repository.excludes_file(top or root)) is not None:
        yield excludes, top or root, True
    if top is None:
        return
    yield repository.exclude_of(top), top, True
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
    found |= {p: not p.is_symlink() and _is_read(p) for p in inside if os.path.lexists(p)}
    return found


def _is_read(path: Path) -> bool:
    if not os.path.isfile(path):  # opening a pipe waits for whoever writes to it
        return False
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size <= _LARGEST_IGNORE_FILE_BYTES
    except OSError:
        return False


def _prefix(root: Path, folder: Path) -> str:
    return "" if root == folder else root.relative_to(folder).as_posix() + "/"


def _read_no_link(path: Path) -> str:
    """The text of an ignore file in the project, where git follows no links."""
    try:
        return "" if stat.S_ISLNK(path.lstat().st_mode) else _read(path)
    except (OSError, ValueError):
        return ""


def _read(path: Path) -> str:
    """The text of an ignore file; empty if there is none."""
    return repository.text_of(path, _LARGEST_IGNORE_FILE_BYTES)
