"""Runs `git pull` before an update, as the user would, but no program of the repository's choice.

A collection may come from somebody else, with its `.git` folder. The user's own settings apply; of
the repository's, only those that are known to be harmless: others may make git run programs or
write elsewhere, and there is no pull.
"""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from vector_index_mcp.files import repository
from vector_index_mcp.files.plain import content_of
from vector_index_mcp.objects import within
from vector_index_mcp.processes import children, git

# A folder of the files that looks like a bare repository is not taken for one: git would follow its
# settings.
_GIT = (
    "git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
    "-c", "safe.bareRepository=explicit", "-C",
)  # fmt: skip
_PULL = ("pull", "--ff-only", "--no-rebase", "--no-autostash", "--no-recurse-submodules")
# What git does by itself afterwards could run programs, too: `gc.recentObjectsHook`.
_NOTHING_AFTERWARDS = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
_SETTINGS = ("config", "--list", "--show-scope", "--null")
_SCOPES_OF_THE_REPOSITORY = frozenset({"local", "worktree"})
# Settings that cannot make a pull run a program, or read or write anything outside of the
# repository: what git, its clients and git-lfs write by themselves, and what people often set. The
# command line above overrides some of them, and `_reason_not_to` looks at core.worktree. git lists
# them in lower case, except for what stands between two dots.
_HARMLESS = re.compile(
    r"core\.(?:repositoryformatversion|bare|filemode|ignorecase|autocrlf|eol|safecrlf|symlinks"
    r"|precomposeunicode|logallrefupdates|sparsecheckout|sparsecheckoutcone|longpaths|quotepath"
    r"|untrackedcache|trustctime|checkstat|preloadindex|fscache|splitindex|commitgraph"
    r"|multipackindex|compression|bigfilethreshold|abbrev|hidedotfiles|whitespace|commentchar"
    r"|sharedrepository|excludesfile|worktree|hookspath|fsmonitor|editor|pager)|http\.[^\n]*\.extraheader"
    r"|remote\.[^\n]*\.(?:url|pushurl|push|tagopt|prune|mirror\nfalse|promisor"
    r"|fetch\n(?:\^[^\n]+|\+?[^\n:]+:refs/remotes/[^\n]+|\+?refs/tags/\*:refs/tags/\*)"
    r"|partialclonefilter|skipdefaultupdate|skipfetchall|followremotehead|gh-resolved)"
    r"|remote\.pushdefault|url\.[^\n]*\.(?:insteadof|pushinsteadof)"
    r"|branch\.[^\n]*\.(?:remote|pushremote|merge|rebase|description"
    r"|vscode-[a-z-]+|gh-[a-z-]+|github-[a-z-]+)|branch\.(?:autosetupmerge|autosetuprebase)"
    r"|extensions\.(?:partialclone|worktreeconfig|objectformat|compatobjectformat|noop"
    r"|preciousobjects|relativeworktrees|refstorage\n(?:files|reftable))"
    r"|submodule\.[^\n]*\.(?:url|active|branch|ignore|update\n(?:checkout|rebase|merge|none))"
    r"|submodule\.(?:active|recurse)|(?:user|author|committer)\.(?:name|email|signingkey|useconfigonly)"
    r"|pull\.(?:rebase|ff)|merge\.(?:autostash|conflictstyle|ff|stat)|rebase\.[a-z]+"
    r"|push\.(?:default|autosetupremote|followtags)|gitflow\.[^\n]*|status\.[a-z]+"
    r"|fetch\.(?:prune|parallel|recursesubmodules|writecommitgraph|unpacklimit)"
    r"|http\.postbuffer|transfer\.fsckobjects"
    r"|(?:init\.defaultbranch|rerere\.enabled|commit\.gpgsign|tag\.gpgsign|protocol\.version)"
    r"|gc\.(?:auto|autodetach|autopacklimit)|maintenance\.(?:auto|strategy)"
    r"|index\.(?:version|threads|sparse|skiphash)|feature\.(?:manyfiles|experimental)"
    r"|lfs\.(?:repositoryformatversion|[^\n]*\.(?:access|locksverify))"
    r"|credential\.(?:[^\n]*\.)?(?:username|usehttppath)"
    r"|(?:alias|color|gui|advice)\.[^\n]*|include\.path|includeif\.[^\n]*\.path"
)
_MOST_NAMED = 5
_ONLY_READ = frozenset({"hooks", "info", "config", "description", "branches"})
"""What a pull does not write of git's folder; people link it to their own."""
_LONGEST_PATH_BYTES = 10_000
_PULL_SECONDS = 300.0
_LONGEST_ANSWER_CHARS = 2_000
_LONGEST_ANSWER_BYTES = 4 * _LONGEST_ANSWER_CHARS
_LONGEST_SETTINGS_BYTES = 1_000_000


async def pull(folder: Path) -> str:
    """Run `git pull` in `folder`; return its output, or nothing if there is no repository.

    It only fast-forwards: it merges, moves and stashes nothing of the user's, runs no hooks, and
    asks nobody for a password.
    """
    top = await anyio.to_thread.run_sync(repository.top_of, folder)
    if top is None:
        return ""
    try:
        with anyio.fail_after(_PULL_SECONDS):
            if reason := await _reason_not_to(top):
                return reason
            output = await _output_of(
                [*_GIT, str(top), *_NOTHING_AFTERWARDS, *_PULL], _LONGEST_ANSWER_BYTES
            )
    except FileNotFoundError:
        return "git is not installed; install it, or update without --pull"
    except TimeoutError:
        return f"git pull was stopped after {_PULL_SECONDS:.0f} s"
    except OSError as error:
        return f"git pull failed ({error})"
    return output.decode("utf-8", "replace").strip()[:_LONGEST_ANSWER_CHARS]


async def _reason_not_to(top: Path) -> str:
    """Return why git must not pull in a repository; empty if it may."""
    by_yourself = "; if you trust it, run `git pull` there yourself"
    answer = await _answer_of([*_GIT, str(top), *_SETTINGS])
    if len(answer) >= _LONGEST_SETTINGS_BYTES:
        return f"git pull was not run: the repository has too many settings{by_yourself}"
    *parts, _ = answer.decode("utf-8", "replace").split("\0")
    settings = [
        setting
        for scope, setting in zip(parts[::2], parts[1::2], strict=False)
        if scope in _SCOPES_OF_THE_REPOSITORY
    ]
    found = sorted({each.partition("\n")[0] for each in settings if not _is_harmless(each)})
    if found:
        more = ", …" if len(found) > _MOST_NAMED else ""
        return (
            "git pull was not run: settings of the repository may run programs, or write files "
            f"elsewhere ({', '.join(found[:_MOST_NAMED])}{more}); remove them with "
            "`git config --unset`, or, if you trust them, run `git pull` there yourself"
        )
    # `core.worktree` may name any folder.
    place = await _path_of(top, "--show-toplevel")
    if place and place.is_absolute() and not await anyio.to_thread.run_sync(_is_same, place, top):
        return f"git pull was not run: the repository writes its files to {place}{by_yourself}"
    own, common = await _path_of(top, "--git-dir"), await _path_of(top, "--git-common-dir")
    if own is None or common is None:
        return ""
    # A submodule's repository names its files by that setting, which was looked at above.
    names_files = any(each.startswith("core.worktree\n") for each in settings)
    odd = await anyio.to_thread.run_sync(_odd_way, top, top / own, top / common, names_files)
    return f"git pull was not run: {odd}{by_yourself}" if odd else ""


async def _path_of(top: Path, which: str) -> Path | None:
    """Return what `git rev-parse` says of a repository's place; None if it does not know."""
    said = await _answer_of([*_GIT, str(top), "rev-parse", which])
    return Path(os.fsdecode(said.removesuffix(b"\n"))) if said else None


def _odd_way(top: Path, own: Path, common: Path, names_files: bool) -> str:
    """Return what leads git out of the repository, which would write there; empty if nothing does.

    Args:
        top: The folder of the files.
        own: The folder of git that belongs to it.
        common: The folder of git that it shares with other worktrees; often the same one.
        names_files: Whether the repository names the folder of its files itself.
    """
    entry = top / ".git"
    if entry.is_symlink():
        return f"{entry} is a link"
    if entry.is_file() and not (names_files or _points_to(own / "gitdir", entry)):
        return f"{entry} names the repository {own}, which does not name it"
    for folder in {own, common}:
        for place, folders, names in within.walk(folder):
            inside = Path(place).relative_to(folder).parts
            written = (Path(place, name) for name in names if inside or name not in _ONLY_READ)
            if linked := next((path for path in written if path.is_symlink()), None):
                return f"{linked} is a link"
            folders[:] = [name for name in folders if _is_written_to((*inside, name))]
    return ""


def _is_written_to(inside: tuple[str, ...]) -> bool:
    """Return whether git writes to what may lie in this folder of its own already."""
    return inside[0] in {"refs", "logs"} or inside == ("objects",)


def _points_to(file: Path, place: Path) -> bool:
    """Return whether a file has nothing but the path of a place."""
    try:
        named = os.fsdecode(content_of(file, _LONGEST_PATH_BYTES).strip())
    except OSError:
        return False
    return _is_same(os.path.join(file.parent, named), place)  # noqa: PTH118 - may be absolute


def _is_harmless(setting: str) -> bool:
    """Return whether a setting, its name and its value on lines of their own, may stay."""
    name = setting.partition("\n")[0]
    return any(_HARMLESS.fullmatch(each) for each in (name, setting))


def _is_same(place: str | Path, top: Path) -> bool:
    return os.path.realpath(place) == os.path.realpath(top)


async def _answer_of(command: Sequence[str]) -> bytes:
    """Run git for what a program reads; warnings would be taken for a part of it.

    Raises:
        OSError: If the system starts no process.
    """
    return await _output_of(command, _LONGEST_SETTINGS_BYTES, errors=subprocess.DEVNULL)


async def _output_of(
    command: Sequence[str], most: int, *, errors: int = subprocess.STDOUT
) -> bytes:
    """Run git and return the start of its output; if cancelled, end all that it has started.

    Raises:
        OSError: If the system starts no process.
    """
    # It leads a session of its own: without a terminal, git cannot ask for a password.
    process = await children.started(
        command, git.environment(), stdin=subprocess.DEVNULL, stderr=errors
    )
    async with process:
        assert process.stdout is not None
        try:
            said = b""
            async for piece in process.stdout:  # a remote may send any amount
                said = (said + piece)[:most]
            await process.wait()
        except BaseException:
            _end_group_of(process)
            raise
    return said


def _end_group_of(process: anyio.abc.Process) -> None:
    if os.name != "posix":
        return  # closing it ends it, alone
    # macOS forbids it if nothing of the group runs any more.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
