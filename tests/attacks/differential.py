"""Random work on a project, as git and editors do it, and what an index of it has to hold then.

`Work` changes real files, with real git. `expected` is an oracle of its own: `git ls-files`, and
the files as they are. It knows of our own rules only the two that the work meets: what editors
leave behind is not indexed, nor is what a `.vectorindexignore` names.
"""

import ctypes
import fnmatch
import hashlib
import mmap
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

NAMES = ["one.py", "two.py", "note.md", "Data.txt", "three.js", "kept.own", "made.gen"]
FOLDERS = ["", "a", "b", "a/in", "b/in", "a/in/deep", "lib", "lib/gen", "Case"]
BRANCHES = ["main", "red", "green"]
RULES = ["", "*.gen\n", "*.gen\n!made.gen\n", "gen/\n", "in/\n", "/one.py\n", "deep\n*.md\n", "*\n"]
OWN_RULES = ["", "*.own\n", "deep\n", "two.py\n"]
LEFT_BEHIND = ["*~", ".#*", "*.swp"]
"""What editors leave behind, of the built-in list."""
GLOBAL_RULES = ["", "*.txt\n", "three.*\n", "lib\n"]

_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD
_LIBC = ctypes.CDLL(None, use_errno=True)


class Work:
    """Random steps in the project `root`, which becomes a repository with three branches."""

    def __init__(self, root: Path, beside: Path, seed: int) -> None:
        self.root = root
        self.beside = beside
        self.random = random.Random(seed)
        self._count = 0
        self._open: list[tuple[Path, int]] = []
        """Files that somebody writes into without closing them."""
        self._steps: list[Callable[[], str]] = [
            step
            for name in dir(self)
            if name.startswith("_do_") and callable(step := getattr(self, name))
        ]

    def begin(self) -> None:
        """Make the repository."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.beside / "trees").mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        for folder in FOLDERS:
            for name in NAMES[:4]:
                self._write(self.root / folder / name)
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        for branch in BRANCHES[1:]:
            self.git("checkout", "-q", "-b", branch)
            for _ in range(6):
                self._do_save()
            (self.root / f"only-{branch}").mkdir()
            self._write(self.root / f"only-{branch}" / "one.py")
            self.git("add", "-A")
            self.git("commit", "-qm", branch)
        self.git("checkout", "-q", "main")

    def end(self) -> None:
        """Close what is open."""
        for _, descriptor in self._open:
            os.close(descriptor)
        self._open.clear()

    def step(self) -> str:
        """Do something; says what."""
        todo = self.random.choice(self._steps)
        try:
            said = todo()
        except OSError as error:  # what it takes is not there just now
            said = type(error).__name__
        self._forget_broken_repositories()
        self._forget_rules_out_of_sight()
        return f"{todo.__name__[4:]}: {said}"

    def _forget_broken_repositories(self) -> None:
        """Of a submodule that was moved by other means, git says nothing, or something else."""
        for folder in self._folders():
            pointer = folder / ".git"
            if pointer.is_file():
                answer = self._asked("rev-parse", "--show-toplevel", at=folder)
                if answer.stdout.strip() != str(folder.resolve()):
                    pointer.unlink()
        for top in (self.root, *(f for f in self._folders() if (f / ".git").exists())):
            for line in self._asked("ls-files", "--stage", at=top).stdout.splitlines():
                mode, _, path = line.partition("\t")
                if mode.startswith("160000") and not (top / path / ".git").exists():
                    self.git("update-index", "--force-remove", path, at=top)

    def _forget_rules_out_of_sight(self) -> None:
        """What a sparse checkout leaves out git reads from its index; we do not, see `Ignore`."""
        for line in self._asked("ls-files", "-t", "--", "*.gitignore", at=self.root).stdout.split(
            "\n"
        ):
            tag, _, path = line.partition(" ")
            if tag == "S":
                self.git("update-index", "--no-skip-worktree", "--", path)

    def git(self, *arguments: str, at: Path | None = None) -> str:
        """What was done; whether it failed plays no part."""
        done = self._asked(*arguments, at=at or self.root)
        return f"git {' '.join(arguments)} ({done.returncode})"

    def _asked(self, *arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=at,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    # -- what there is ---------------------------------------------------------------------

    def _text(self) -> str:
        self._count += 1
        lines = self.random.randint(1, 30)
        return "".join(f"line {self._count} of {i}\n" for i in range(lines))

    def _same_size(self, path: Path) -> bytes:
        """Another text that is as long as the file's."""
        self._count += 1
        size = path.stat().st_size
        return (f"same {self._count}\n".encode() * (size // 4 + 1))[:size]

    def _write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._text(), encoding="utf-8")

    def _files(self) -> list[Path]:
        found = []
        for here, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if f not in {".git", ".lancedb"}]
            found += [Path(here, name) for name in files if name != ".git"]
        return sorted(path for path in found if not path.is_symlink())

    def _folders(self) -> list[Path]:
        found = []
        for here, folders, _ in os.walk(self.root):
            folders[:] = [f for f in folders if f not in {".git", ".lancedb"}]
            found += [Path(here, name) for name in folders]
        return sorted(path for path in found if not path.is_symlink())

    def _file(self) -> Path:
        files = self._files()
        if not files:
            raise FileNotFoundError
        return self.random.choice(files)

    def _folder(self) -> Path:
        folders = self._folders()
        if not folders:
            raise FileNotFoundError
        return self.random.choice(folders)

    def _place(self) -> Path:
        """Where a file may be."""
        return self.root / self.random.choice(FOLDERS) / self.random.choice(NAMES)

    def _new(self, stem: str) -> Path:
        self._count += 1
        parent = self.random.choice([self.root, *self._folders()])
        return parent / f"{stem}{self._count}"

    def _said(self, *paths: Path) -> str:
        return ", ".join(os.path.relpath(path, self.root) for path in paths)

    # -- editors ---------------------------------------------------------------------------

    def _do_save(self) -> str:
        """Written in place, as VS Code does."""
        path = self._place()
        self._write(path)
        return self._said(path)

    def _do_save_beside_and_rename(self) -> str:
        path = self._file()
        beside = path.with_name(path.name + ".tmp")
        beside.write_text(self._text(), encoding="utf-8")
        beside.replace(path)
        return self._said(path)

    def _do_save_as_vim(self) -> str:
        """With `backupcopy=no`: the old file is renamed, a new one written, the old one deleted."""
        path = self._file()
        text = path.read_bytes()
        swap, backup = path.with_name(f".{path.name}.swp"), path.with_name(path.name + "~")
        swap.write_bytes(b"swap")
        path.rename(backup)
        path.write_bytes(text + self._text().encode())
        backup.unlink()
        swap.unlink()
        return self._said(path)

    def _do_save_as_vim_with_a_copy(self) -> str:
        """With `backupcopy=yes`: a copy is made, the file itself overwritten."""
        path = self._file()
        backup = path.with_name(path.name + "~")
        shutil.copy2(path, backup)
        path.write_bytes(path.read_bytes()[:5] + self._text().encode())
        backup.unlink()
        return self._said(path)

    def _do_save_as_jetbrains(self) -> str:
        path = self._file()
        new, old = (path.with_name(path.name + f"___jb_{what}___") for what in ("tmp", "old"))
        new.write_text(self._text(), encoding="utf-8")
        path.rename(old)
        new.rename(path)
        old.unlink()
        return self._said(path)

    def _do_save_as_emacs(self) -> str:
        path = self._file()
        lock = path.with_name(f".#{path.name}")
        lock.symlink_to("somebody@somewhere.1")
        path.rename(path.with_name(path.name + "~"))
        path.write_text(self._text(), encoding="utf-8")
        lock.unlink()
        return self._said(path)

    def _do_save_without_a_name(self) -> str:
        """Written without a name, then linked into its place."""
        path = self._new("unnamed")
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
        try:
            os.write(descriptor, self._text().encode())
            # A link is only followed by the call that takes folders.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=0, follow_symlinks=True)
        finally:
            os.close(descriptor)
        return self._said(path)

    # -- writing in unusual ways -----------------------------------------------------------

    def _do_append_and_keep_open(self) -> str:
        path = self._file()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, self._text().encode())
        self._open.append((path, descriptor))
        return self._said(path)

    def _do_write_into_what_is_open(self) -> str:
        if not self._open:
            raise FileNotFoundError
        path, descriptor = self.random.choice(self._open)
        os.write(descriptor, self._text().encode())
        return self._said(path)

    def _do_close_what_is_open(self) -> str:
        if not self._open:
            raise FileNotFoundError
        path, descriptor = self._open.pop(self.random.randrange(len(self._open)))
        os.close(descriptor)
        return self._said(path)

    def _do_truncate_by_path(self) -> str:
        path = self._file()
        os.truncate(path, path.stat().st_size // 2)
        return self._said(path)

    def _do_write_through_a_map(self) -> str:
        path = self._file()
        text = self._same_size(path)
        descriptor = os.open(path, os.O_RDWR)
        try:
            mapped = mmap.mmap(descriptor, len(text) or 1)
        except ValueError:  # the file is empty
            return self._said(path)
        finally:
            os.close(descriptor)
        with mapped:
            mapped[: len(text)] = text
        return self._said(path)

    def _do_write_and_put_the_time_back(self) -> str:
        path = self._file()
        status, text = path.stat(), self._same_size(path)
        path.write_bytes(text)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        return self._said(path)

    def _do_copy_with_times(self) -> str:
        path, other = self._file(), self._place()
        other.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, other)
        return self._said(path, other)

    def _do_only_touch(self) -> str:
        path = self._file()
        os.utime(path, ns=(1_000_000_000, self.random.randrange(10**18)))
        return self._said(path)

    def _do_change_the_mode(self) -> str:
        path = self.random.choice([self._file(), self._folder()])
        path.chmod(self.random.choice([0o700, 0o755, 0o777]))
        return self._said(path)

    def _do_write_by_another_name(self) -> str:
        """Two names of one file in the project; only one of them is written by."""
        path, other = self._file(), self._new("linked")
        other.hardlink_to(path)
        path.write_text(self._text(), encoding="utf-8")
        return self._said(path, other)

    # -- files that come and go ------------------------------------------------------------

    def _do_delete(self) -> str:
        path = self._file()
        path.unlink()
        return self._said(path)

    def _do_delete_and_make_again(self) -> str:
        path = self._file()
        path.unlink()
        path.write_text(self._text(), encoding="utf-8")
        return self._said(path)

    def _do_rename(self) -> str:
        path, other = self._file(), self._place()
        other.parent.mkdir(parents=True, exist_ok=True)
        path.rename(other)
        return self._said(path, other)

    def _do_rename_by_case(self) -> str:
        path = self._file()
        other = path.with_name(path.name.swapcase())
        path.rename(other)
        return self._said(path, other)

    def _do_exchange_files(self) -> str:
        return self._exchange(self._file(), self._file())

    def _do_become_a_link_and_back(self) -> str:
        path = self._file()
        aside = path.with_name(path.name + ".aside")
        path.rename(aside)
        path.symlink_to(aside.name)
        if self.random.random() < 0.7:
            path.unlink()
            aside.rename(path)
        return self._said(path)

    # -- folders ---------------------------------------------------------------------------

    def _do_make_deep_folders(self) -> str:
        path = self._new("deep") / "p/q/r/s" / self.random.choice(NAMES)
        self._write(path)
        return self._said(path)

    def _do_delete_a_folder(self) -> str:
        path = self._folder()
        shutil.rmtree(path)
        return self._said(path)

    def _do_rename_a_folder(self) -> str:
        path, other = self._folder(), self._new("moved")
        path.rename(other)
        return self._said(path, other)

    def _do_rename_a_folder_twice(self) -> str:
        """So that the first new name is another folder's when somebody looks."""
        path, other, third = self._folder(), self._new("moved"), self._new("moved")
        path.rename(other)
        self._write(other / "one.py")
        other.rename(third)
        self._write(other / "two.py")
        return self._said(path, other, third)

    def _do_exchange_folders(self) -> str:
        return self._exchange(self._folder(), self._folder())

    def _do_exchange_folders_and_write(self) -> str:
        one, other = self._folder(), self._folder()
        self._write(one / "one.py")
        said = self._exchange(one, other)
        self._write(one / "one.py")
        self._write(other / "two.py")
        return said

    def _do_exchange_folders_by_three_names(self) -> str:
        one, other = self._folder(), self._folder()
        aside = self._new("aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)
        self._write(other / "note.md")
        return self._said(one, other)

    def _do_exchange_a_file_and_a_folder(self) -> str:
        return self._exchange(self._file(), self._folder())

    def _do_move_a_folder_out(self) -> str:
        path = self._folder()
        self._count += 1
        path.rename(self.beside / "trees" / str(self._count))
        return self._said(path)

    def _do_move_a_folder_in(self) -> str:
        trees = sorted((self.beside / "trees").iterdir())
        if not trees:
            raise FileNotFoundError
        tree = self.random.choice(trees)
        self._write(tree / "one.py")
        path = self._new("back")
        tree.rename(path)
        self._write(path / "new/two.py")
        return self._said(path)

    def _do_write_into_what_was_moved_out(self) -> str:
        trees = sorted((self.beside / "trees").iterdir())
        if not trees:
            raise FileNotFoundError
        path = self.random.choice(trees) / "one.py"
        self._write(path)
        return self._said(path)

    def _do_copy_a_folder(self) -> str:
        path, other = self._folder(), self._new("copy")
        if len(self._files()) > 150 or other.is_relative_to(path):
            raise FileExistsError
        shutil.copytree(path, other, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return self._said(path, other)

    def _do_replace_a_folder_by_a_link(self) -> str:
        path, other = self._folder(), self._new("real")
        if other.is_relative_to(path):
            raise FileExistsError
        path.rename(other)
        path.symlink_to(other)
        self._write(other / "one.py")
        if self.random.random() < 0.7:
            path.unlink()
            other.rename(path)
        return self._said(path, other)

    def _do_replace_a_folder_by_a_file(self) -> str:
        path = self._folder()
        shutil.rmtree(path)
        path.write_text(self._text(), encoding="utf-8")
        return self._said(path)

    def _exchange(self, one: Path, other: Path) -> str:
        here, there = os.fsencode(one), os.fsencode(other)
        if _LIBC.renameat2(_HERE, here, _HERE, there, _EXCHANGE):
            raise OSError(ctypes.get_errno(), "exchange")
        return self._said(one, other)

    # -- rules -----------------------------------------------------------------------------

    def _do_write_rules(self) -> str:
        folder = self.random.choice([self.root, *self._folders()])
        path = folder / ".gitignore"
        rules = RULES[:-1] if folder == self.root else RULES  # the last one ignores everything
        path.write_text(self.random.choice(rules), encoding="utf-8")
        return f"{self._said(path)} {path.read_text(encoding='utf-8')!r}"

    def _do_delete_rules(self) -> str:
        found = [path for path in self._files() if path.name.endswith("ignore")]
        for path in found:
            path.unlink()
        return self._said(*found)

    def _do_write_own_rules(self) -> str:
        path = self.random.choice([self.root, *self._folders()]) / ".vectorindexignore"
        path.write_text(self.random.choice(OWN_RULES), encoding="utf-8")
        return f"{self._said(path)} {path.read_text(encoding='utf-8')!r}"

    def _do_write_the_repository_s_excludes(self) -> str:
        path = self.root / ".git/info/exclude"
        path.write_text(self.random.choice(RULES[:-1]), encoding="utf-8")
        return repr(path.read_text(encoding="utf-8"))

    def _do_write_the_user_s_excludes(self) -> str:
        path = Path(os.environ["XDG_CONFIG_HOME"]) / "git/ignore"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.random.choice(GLOBAL_RULES), encoding="utf-8")
        return repr(path.read_text(encoding="utf-8"))

    def _do_name_another_file_of_excludes(self) -> str:
        if self.random.random() < 0.5:
            return self.git("config", "--global", "--unset", "core.excludesFile")
        path = self.beside / f"excludes{self.random.randrange(3)}"
        path.write_text(self.random.choice(GLOBAL_RULES), encoding="utf-8")
        return self.git("config", "--global", "core.excludesFile", str(path))

    # -- git -------------------------------------------------------------------------------

    def _do_add_what_is_ignored(self) -> str:
        return self.git("add", "-f", "--", str(self._file()))

    def _do_track_no_longer(self) -> str:
        return self.git("rm", "-q", "--cached", "--", str(self._file()))

    def _do_commit(self) -> str:
        self.git("add", "-A")
        return self.git("commit", "-qm", str(self._count))

    def _do_checkout(self) -> str:
        return self.git("checkout", "-q", "-f", self.random.choice(BRANCHES))

    def _do_checkout_a_file(self) -> str:
        return self.git("checkout", "-q", self.random.choice(BRANCHES), "--", "a", "one.py")

    def _do_stash(self) -> str:
        return self.git("stash", "-q", *self.random.choice([(), ("-u",), ("-a",)]))

    def _do_stash_pop(self) -> str:
        return self.git("stash", "pop", "-q")

    def _do_rebase(self) -> str:
        said = self.git("rebase", "-q", "--autostash", self.random.choice(BRANCHES))
        self.git("rebase", "--abort")
        return said

    def _do_merge(self) -> str:
        said = self.git("merge", "-q", "--no-edit", self.random.choice(BRANCHES))
        if self.random.random() < 0.5:
            self.git("merge", "--abort")
        return said

    def _do_reset(self) -> str:
        return self.git("reset", "-q", "--hard", self.random.choice(["HEAD", "HEAD~1", "main"]))

    def _do_clean(self) -> str:
        return self.git("clean", "-qfd", *self.random.choice([(), ("-x",)]), "-e", ".lancedb")

    def _do_sparse_checkout(self) -> str:
        if self.random.random() < 0.5:
            return self.git("sparse-checkout", "disable")
        folders = self.random.sample(["a", "b", "lib", "a/in"], 2)
        return self.git("sparse-checkout", "set", *folders)

    def _do_add_a_worktree(self) -> str:
        where = self.random.choice([self.root / "tree", self.beside / "tree"])
        return self.git("worktree", "add", "-q", "-f", "--detach", str(where))

    def _do_remove_a_worktree(self) -> str:
        where = self.random.choice([self.root / "tree", self.beside / "tree"])
        return self.git("worktree", "remove", "--force", str(where))

    def _do_work_in_the_worktree(self) -> str:
        tree = self.root / "tree"
        self._write(tree / "made.gen")
        (tree / ".gitignore").write_text("*.gen\n", encoding="utf-8")
        return self.git("add", "-f", "made.gen", at=tree)

    def _do_begin_a_repository(self) -> str:
        folder = self._folder()
        if any(
            (above / ".git").exists() for above in (folder, *folder.parents) if above != self.root
        ):
            raise FileExistsError
        said = self.git("init", "-q", at=folder)
        (folder / ".git/info/exclude").write_text("two.py\n", encoding="utf-8")
        return f"{said} {self._said(folder)}"

    def _do_end_a_repository(self) -> str:
        found = [folder for folder in self._folders() if (folder / ".git").is_dir()]
        if not found:
            raise FileNotFoundError
        folder = self.random.choice(found)
        shutil.rmtree(folder / ".git")
        return self._said(folder)

    def _do_add_a_submodule(self) -> str:
        source = self.beside / "source"
        if not source.exists():
            self.git("init", "-q", str(source))
            self._write(source / "one.py")
            self.git("add", "-A", at=source)
            self.git("commit", "-qm", "first", at=source)
        return self.git("submodule", "add", "-q", "--force", str(source), "sub")


def expected(root: Path) -> dict[str, str]:
    """By path, the SHA-256 of every file that an index of `root` has to know."""
    hashes = {}
    for path in _listed(root, ""):
        file = root / path
        if _is_file(root, path) and not _is_left_behind(root, path):
            hashes[path] = hashlib.sha256(file.read_bytes()).hexdigest()
    return hashes


def _listed(root: Path, top: str) -> set[str]:
    """What git does not ignore in the repository `top` and in those inside of it.

    What it says of files inside of another repository is left to that one, though they be tracked.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(command, cwd=root / top, capture_output=True, check=True).stdout
    paths, inner = set(), set()
    for name in filter(None, os.fsdecode(answer).split("\0")):
        path = top + name
        if repository := _repository_of(root, top, path):
            inner.add(repository)
        else:
            paths.add(path)
    return paths.union(*(_listed(root, repository) for repository in inner))


def _repository_of(root: Path, top: str, path: str) -> str:
    """The outermost repository below `top` that `path` lies in, with a slash; empty if none."""
    ends = [i for i in range(len(top), len(path) + 1) if path[i : i + 1] in {"/", ""}]
    folders = [path[:end] for end in ends if end > len(top)]
    found = (f + "/" for f in folders if os.path.lexists(root / f / ".git") and _is_folder(root, f))
    return next(found, "")


def _is_folder(root: Path, path: str) -> bool:
    return (root / path).is_dir() and not _is_beyond_a_link(root, path)


def _is_file(root: Path, path: str) -> bool:
    return (root / path).is_file() and not _is_beyond_a_link(root, path)


def _is_beyond_a_link(root: Path, path: str) -> bool:
    parts = path.split("/")
    return any((root / "/".join(parts[: i + 1])).is_symlink() for i in range(len(parts)))


def _is_left_behind(root: Path, path: str) -> bool:
    """Whether rules of ours keep it out of the index."""
    parts = path.split("/")
    if parts[0] == ".lancedb":
        return True
    if any(fnmatch.fnmatchcase(part, rule) for part in parts for rule in LEFT_BEHIND):
        return True
    for depth in range(len(parts)):
        rules = root / "/".join(parts[:depth]) / ".vectorindexignore"
        if rules.is_file() and not rules.is_symlink():
            lines = rules.read_text(encoding="utf-8").split()
            if any(fnmatch.fnmatchcase(part, line) for part in parts[depth:] for line in lines):
                return True
    return False
