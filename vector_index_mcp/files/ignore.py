"""Decides which paths are ignored: by git's rules, exactly, and by a list of our own.

The rules come in layers, from weakest to strongest: the built-in list, the user's patterns, git's
global excludes file, `.git/info/exclude`, and then, for every folder from the top of the repository
downwards, its `.gitignore` and `.vectorindexignore`. The strongest layer with a matching line
decides; in a layer, the last matching line. As in git, an ignored folder is not entered, so nothing
below it can be re-included. But git's rules do not apply to files that git tracks: these are seen
even in an ignored folder. A repository inside another has its own rules and tracked files. If the
setting `core.ignorecase` is true, `BUILD/` in one of these files means `build/` as well.

One thing differs from git: an ignore file that a sparse checkout leaves out is not read here, while
git reads it from its index. The module `patterns` knows what a line means.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vector_index_mcp.files import repository
from vector_index_mcp.files.conversion import CONVERTED
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.glob import expanded
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.patterns import MOST_COMPILED_CHARS, Patterns, patterns_of
from vector_index_mcp.files.plain import content_of
from vector_index_mcp.files.tracked import NOTHING, Tracked, tracked_below
from vector_index_mcp.files.users import may_decide

OWN_IGNORE_FILE = ".vectorindexignore"
IGNORE_FILES = (".gitignore", OWN_IGNORE_FILE)

_CONCERNS_RULES = frozenset({*IGNORE_FILES, ".git"})

# Never entered, whatever the rules are: these hold histories and indexes, not sources.
_NEVER = frozenset({".git", ".hg", ".svn", ".jj", ".lancedb"})

# Only unmistakable names. `build`, `dist`, `target` and `vendor` hold sources in many projects;
# where they do not, the project's .gitignore lists them.
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
"""Reported instead of a path when rules from outside of the folder may have changed. No file has
this path."""

SETTINGS = ".git/config"
"""Stands for all settings of git where they cannot be read."""
DISOBEYED = (
    "not obeyed: what it excludes is indexed; make it a file that can be read, of at most 1 MB, "
    "and of 2 MB together with those above it"
)
"""What is wrong with an ignore file of `Ignore.disobeyed`."""
UNKNOWN = (
    "not obeyed: git does not tell its settings ({}), so what your core.excludesFile excludes may "
    "be indexed; correct them"
)
"""What is wrong with git's settings there."""

_LARGEST_IGNORE_FILE_BYTES = 1_000_000
_MOST_LEVELS = 200  # of nested folders; the work for a folder grows with the length of its path


@dataclass(frozen=True, slots=True)
class _Layer:
    """The patterns of one ignore file, and how to make paths relative to the file's folder."""

    patterns: Patterns
    strip: int
    """For a folder below the root: how many characters to cut off a root-relative path."""
    prefix: str
    """For a folder above the root: the path from there to the root, with a trailing slash."""
    is_gits: bool
    """Whether git reads the file as well; such patterns do not apply to files that git tracks."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All layers that apply to the entries of one folder. Pure."""

    layers: tuple[_Layer, ...] = ()
    top: str = ""
    """The repository's folder, root-relative; empty if it is the root or above it."""
    folds_case: bool = False
    """Whether the case of ASCII letters does not count in the patterns that are added."""
    is_ignored: bool = False
    """Whether the folder itself is ignored; of its entries, only files that git tracks are seen."""

    def push(
        self, text: str, *, strip: int = 0, prefix: str = "", is_gits: bool = False
    ) -> "Rules":
        """Return these rules with the rules in `text` as the strongest layer."""
        if patterns := patterns_of(text, folds_case=self.folds_case):
            return replace(self, layers=(*self.layers, _Layer(patterns, strip, prefix, is_gits)))
        return self

    def cost(self) -> int:
        """Return the memory cost of the compiled rules; see `Patterns.cost`."""
        return sum(layer.patterns.cost() for layer in self.layers)

    def ignore(self, path: str, is_folder: bool, *, is_tracked: bool = False) -> bool:
        """Return whether the entry at `path` is ignored, without regard to the folders above it."""
        for layer in reversed(self.layers):
            verdict = layer.patterns.verdict(layer.prefix + path[layer.strip :], is_folder)
            if verdict is not None and not (verdict and is_tracked and layer.is_gits):
                return verdict
        return False


class Ignore:
    """The rules of one folder; the ignore files in it are read when their folders are reached.

    This is a snapshot: it does not see later edits of an ignore file that it has read.
    """

    def __init__(self, folder: Folder) -> None:
        """Prepare the layers that apply to the whole folder."""
        self._root = folder.path
        self._excluded = frozenset(folder.selection.excluded_folders)
        self._mask = _mask_of(folder)
        self._tracked: dict[str, Tracked] = {}  # by repository, once something in it is ignored
        # By repository below the root, complete or not: the rules at its top when the whole folder
        # was last checked.
        self._inner: dict[str, Rules] = {}
        self.disobeyed: dict[str, str] = {}
        """The ignore files met so far that git may obey and this does not, and why."""
        top = repository.top_of(self._root)
        told = repository.told(top or self._root)
        self._rules: dict[str, Rules] = {"": self._load(_top_rules(folder, top, told), "")}
        if told.fault:
            self.disobeyed[SETTINGS] = UNKNOWN.format(told.fault)

    def rules_below(self, folder: str) -> Rules:
        """Return the rules for the entries of `folder` (root-relative; empty for the root)."""
        known = self._rules.get(folder)
        if known is None:
            above = self.rules_below(folder.rpartition("/")[0])
            if not above.is_ignored and above.ignore(folder, True):
                above = replace(above, is_ignored=True)
            top, git = self._root / folder, self._root / folder / ".git"
            if os.path.lexists(git):
                if repository.is_top(top) and may_decide((top, git), self._root):
                    above = self._of_repository(above, folder)
                self._inner.setdefault(folder, above)
            known = self._rules[folder] = self._load(above, folder)
        return known

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        """Return whether `path` or a folder above it is ignored, or too deep; never the root."""
        parts = path.split("/") if path else []
        return is_too_deep("/".join(parts if is_folder else parts[:-1])) or any(
            self.ignores_entry("/".join(parts[: i + 1]), is_folder or i + 1 < len(parts))
            for i in range(len(parts))
        )

    def ignores_entry(self, path: str, is_folder: bool) -> bool:
        """Return whether the entry at `path` is ignored, given that its folder is not."""
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
        """Return whether rules from outside the project, or the files that git tracks, changed.

        Args:
            newer: The rules as they are now; this reads git's index.
            in_repositories: Whether to check the repositories below the root as well.
        """
        faults = (ignore.disobeyed.get(SETTINGS) for ignore in (self, newer))
        if self._rules[""] != newer._rules[""] or len({*faults}) > 1:
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
        """Return the rules at the top of a repository below the root; None if there is none."""
        self.rules_below(top)
        return self._inner.get(top)

    @property
    def repositories(self) -> list[str]:
        """The repositories below the root that were found so far."""
        return list(self._inner)

    def sources(self) -> list[Path]:
        """Return the files outside of the walked folders that rules come from, existing or not."""
        top = repository.top_of(self._root)
        excludes = repository.told(top or self._root).excludes_file
        found = [path for path, _, _ in _rule_files_around(self._root, top, excludes)]
        found += repository.settings_of(self._root)
        inner = [self._root / each for each in list(self._inner)]  # other threads add some
        # One that is no repository yet may become one.
        for each in [*repository.marked_above(self._root), *inner]:
            found += repository.git_files_of(each)
        # An excludes file is often a link to a file elsewhere.
        return list(dict.fromkeys([*found, *(Path(os.path.realpath(path)) for path in found)]))

    def _tracked_in(self, top: str) -> Tracked:
        known = self._tracked.get(top)
        if known is None:
            folds_case = self._rules[""].folds_case
            known = self._tracked[top] = _tracked(self._root / top, folds_case)
        return known

    def _of_repository(self, rules: Rules, folder: str) -> Rules:
        """Return the rules at the top of an inner repository: its git rules replace ours of git."""
        layers = tuple(layer for layer in rules.layers if not layer.is_gits)
        rules = replace(rules, layers=layers, top=folder)
        # The settings are those of the outer repository: asking each inner one starts a process.
        told = repository.told(repository.top_of(self._root) or self._root)
        for path in (told.excludes_file, repository.exclude_of(self._root / folder)):
            if path is not None:
                rules = rules.push(_read(path), strip=len(folder) + 1, is_gits=True)
        return rules

    def _load(self, rules: Rules, folder: str) -> Rules:
        strip = len(folder) + 1 if folder else 0
        for name in IGNORE_FILES:
            text = _read_no_link(self._root / folder / name)
            more = rules.push(text or "", strip=strip, is_gits=name != OWN_IGNORE_FILE)
            # Beyond that the rules of a folder would push each other out at each question.
            if text is None or more.cost() > MOST_COMPILED_CHARS:
                self.disobeyed[f"{folder}/{name}" if folder else name] = DISOBEYED
            else:
                rules = more
        return rules


def _mask_of(folder: Folder) -> Patterns | None:
    """Return the patterns that files of the folder must match; None if there is no mask."""
    if not folder.selection.mask:
        return None
    return patterns_of("\n".join(expanded(folder.selection.mask)))


def is_too_deep(folder: str) -> bool:
    """Return whether `folder` is nested more deeply than anybody would do on purpose."""
    return folder.count("/") >= _MOST_LEVELS


def concerns_rules(path: str) -> bool:
    """Return whether a change of the file at `path` may change which files are ignored.

    That includes `.git`: a repository has its own rules.
    """
    return path.rpartition("/")[2] in _CONCERNS_RULES


def _usual_patterns(folder: Folder) -> Iterator[str]:
    """The default patterns without those of files that are wanted in this folder all the same.

    These are the files to convert, and those whose ending the folder's mask names.
    """
    masks = tuple(expanded(folder.selection.mask))
    for pattern in DEFAULT_PATTERNS:
        ending = pattern.removeprefix("*")
        is_of_files = pattern.startswith("*.") and not pattern.endswith("/")
        is_named = any(mask.endswith(ending) for mask in masks)
        is_converted = folder.reading.converts and language_of(ending) in CONVERTED
        if not (is_of_files and (is_named or is_converted)):
            yield pattern


def _top_rules(folder: Folder, top: Path | None, told: repository.Told) -> Rules:
    root = folder.path
    rules = Rules().push("\n".join(_usual_patterns(folder)))
    rules = rules.push("\n".join(folder.selection.patterns))
    rules = replace(rules, folds_case=told.ignores_case)
    for path, origin, may_be_link in _rule_files_around(root, top, told.excludes_file):
        text = _read(path) if may_be_link else _read_no_link(path) or ""
        is_gits = path.name != OWN_IGNORE_FILE
        rules = rules.push(text, prefix=_prefix(root, origin), is_gits=is_gits)
    return rules


def _tracked(root: Path, folds_case: bool) -> Tracked:
    top = repository.top_of(root)
    if top is None:
        return NOTHING
    index, prefix = repository.index_of(top), _prefix(root, top)
    return tracked_below(index, prefix, folds_case=folds_case)


def _rule_files_around(
    root: Path, top: Path | None, excludes: Path | None
) -> Iterator[tuple[Path, Path, bool]]:
    """Yield the files outside of the project that may have rules for all of it, weakest first.

    Args:
        root: The project's folder.
        top: The top of the repository that it lies in; None if it lies in none.
        excludes: The user's own excludes file; None if there is none.

    Yields:
        The file, the folder that its patterns are relative to, and whether git follows links there.
    """
    if excludes is not None:
        yield excludes, top or root, True
    if top is None:
        return
    yield repository.exclude_of(top), top, True
    for folder in reversed(root.parents):
        if folder.is_relative_to(top):
            yield from ((folder / name, folder, False) for name in IGNORE_FILES)


def rule_files(root: Path) -> dict[Path, bool]:
    """Return the existing ignore files for the whole project, and whether each one is read."""
    top = repository.top_of(root)
    around = list(_rule_files_around(root, top, repository.told(top or root).excludes_file))
    outside = [path for path, _, may_be_link in around if may_be_link]
    above = [path for path, _, may_be_link in around if not may_be_link]
    inside = [*(root / name for name in IGNORE_FILES), *above]
    inside.sort(key=lambda path: len(path.parts), reverse=True)  # the nearest first
    found = {path: _is_read(path) for path in outside if os.path.lexists(path)}
    found |= {p: not p.is_symlink() and _is_read(p) for p in inside if os.path.lexists(p)}
    return found


def _is_read(path: Path) -> bool:
    """Whether an ignore file is obeyed: it can be read, and is not too large."""
    try:
        content_of(path, _LARGEST_IGNORE_FILE_BYTES)
    except (OSError, ValueError):
        return False
    return True


def _prefix(root: Path, folder: Path) -> str:
    return "" if root == folder else root.relative_to(folder).as_posix() + "/"


def _read_no_link(path: Path) -> str | None:
    """Return the text of an ignore file in the project, where git follows no links.

    Returns:
        An empty text if there is none, or a link; None if it is too large or cannot be read.
    """
    try:
        data = content_of(path, _LARGEST_IGNORE_FILE_BYTES, follows_links=False)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError:  # nothing is known of what lies in a folder that may not be entered
        return None if os.path.lexists(path) else ""
    return data.decode("utf-8-sig", "surrogateescape")


def _read(path: Path) -> str:
    """Return the text of an ignore file; empty if there is none."""
    return repository.text_of(path, _LARGEST_IGNORE_FILE_BYTES)
