"""Checks the machine: installed packages, processor, limits and disks."""

import ctypes
import math
import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path

from vector_index_mcp import __version__
from vector_index_mcp.doctor.finding import Case, Finding, failed, ok, warning
from vector_index_mcp.errors import counted
from vector_index_mcp.files.folder import absence_of
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.mounts import file_system_of, silent_file_system
from vector_index_mcp.files.scan import walk

PACKAGES = ("lancedb", "pyarrow", "mcp", "torch", "sentence-transformers")
_X86 = {"x86_64", "amd64"}
_NEEDED_FEATURES = {"avx2", "fma"}  # what LanceDB's wheels are compiled for
_CPU_INFO = Path("/proc/cpuinfo")
_INOTIFY = Path("/proc/sys/fs/inotify")
_WATCHES_TIGHT_SHARE = 0.5  # the limit counts the watches of all programs of the user
_FEW_DESCRIPTORS, _TOO_FEW_DESCRIPTORS = 256, 64  # an idle service has 22 to 30 open (measured)
_SCAN_SECONDS = 2  # between two scans, if a scan takes less than 0.1 s (`indexing.freshness`)
_LITTLE_BYTES, _TOO_LITTLE_BYTES = 1_000_000_000, 100_000_000
_FEW_FILES = 1_000  # an index has some hundreds


def versions(case: Case) -> Finding:
    """Check whether the packages that the program needs are installed."""
    found = [f"vector-index-mcp {__version__}", f"Python {platform.python_version()}"]
    missing = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        return failed(
            f"not installed: {', '.join(missing)} ({', '.join(found)})",
            "install the program again: pip install --force-reinstall vector-index-mcp",
        )
    return ok(", ".join(found))


def processor(case: Case) -> Finding:
    """Check whether LanceDB runs on this processor; without AVX2 or FMA it crashes."""
    kind = platform.machine()
    if kind.lower() not in _X86 or not _CPU_INFO.is_file():
        return ok(f"{kind}, {os.cpu_count()} processors")
    return runs_lancedb(kind, _CPU_INFO.read_text("utf-8", "replace"))


def runs_lancedb(kind: str, cpu_info: str) -> Finding:
    """Check whether LanceDB runs on an x86 processor, by the text of /proc/cpuinfo."""
    flags = next((line for line in cpu_info.splitlines() if line.startswith("flags")), "")
    missing = _NEEDED_FEATURES - set(flags.partition(":")[2].split())
    if missing:
        return failed(
            f"{kind} without {' and '.join(sorted(missing))}, which LanceDB needs",
            "use a machine with a processor of 2013 or later; in a virtual machine, choose the CPU "
            "type `host`",
        )
    return ok(f"{kind} with {' and '.join(sorted(_NEEDED_FEATURES))}, {os.cpu_count()} processors")


def file_system(case: Case) -> Finding:
    """Check whether the file systems of the indexed folders report every change."""
    kinds: dict[str, None] = {}
    for folder in case.subject.folders():
        if kind := silent_file_system(folder.path):
            return scanned(kind, case.settings.rescan_seconds)
        kinds[file_system_of(folder.path) or "of a kind that the system does not show"] = None
    return ok(", ".join(kinds) or "nothing is indexed")


def scanned(kind: str, rescan_seconds: int) -> Finding:
    """The finding for a file system that does not report changes of other machines."""
    return warning(
        f"{kind} does not report changes that other machines make; scans find them, every "
        f"{_SCAN_SECONDS} s in a small project, less often in a large one, but at least every "
        f"{rescan_seconds} s",
        "set VECTOR_INDEX_RESCAN_SECONDS lower if that is too rare for a large project",
    )


def watches(case: Case) -> Finding:
    """Check whether all indexed folders can be watched."""
    present = [folder for folder in case.subject.folders() if absence_of(folder) is None]
    trees = [walk(folder, Ignore(folder)) for folder in present]
    folders = sum(tree.folders + 1 for tree in trees)  # `folders` does not count the top one
    files = sum(len(tree.files) for tree in trees)
    seen = f"{counted(files, 'file')} in {counted(folders, 'folder')}"
    if not sys.platform.startswith("linux"):
        return ok(seen)
    limit = int((_INOTIFY / "max_user_watches").read_text("ascii"))
    return enough_watches(seen, folders, limit, may_begin=_may_begin_to_watch())


def enough_watches(seen: str, folders: int, limit: int, *, may_begin: bool) -> Finding:
    """Check whether so many folders can be watched.

    Args:
        seen: The number of files and folders, in words.
        folders: The number of folders.
        limit: How many watches the user may have.
        may_begin: Whether the system allows another watcher (inotify instance) at all.
    """
    if not may_begin:
        return failed(
            f"{seen}; the system's limit of watchers is reached",
            "sudo sysctl fs.inotify.max_user_instances=512; until then changes are found by scans",
        )
    words = f"{seen}; the system lets you watch {limit:,} (fs.inotify.max_user_watches)"
    remedy = f"sudo sysctl fs.inotify.max_user_watches={max(4 * folders, 524_288)}"
    if folders > limit:
        return failed(words, f"{remedy}; until then changes are found by scans")
    if folders > _WATCHES_TIGHT_SHARE * limit:
        return warning(f"{words}, all your programs together", remedy)
    return ok(words)


def _may_begin_to_watch() -> bool:
    descriptor = ctypes.CDLL(None).inotify_init1(0)
    if descriptor >= 0:
        os.close(descriptor)
    return bool(descriptor >= 0)


def descriptors(case: Case) -> Finding:
    """Check whether a process may have enough files open."""
    if sys.platform == "win32":
        return ok("not limited")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return ok("not limited")
    words = f"a process may have {soft:,} open"
    remedy = f"ulimit -n {4_096 if hard < 0 else min(4_096, hard)}, where clients are started"
    if soft < _TOO_FEW_DESCRIPTORS:
        return failed(words, remedy)
    return warning(words, remedy) if soft < _FEW_DESCRIPTORS else ok(words)


def disk(case: Case) -> Finding:
    """Check whether there is room for the index and the cache."""
    folders = [case.cache_folder, *([case.index_folder] if case.index_folder else [])]
    free, folder = min((shutil.disk_usage(existing(f)).free, f) for f in folders)
    words = f"{free / 1e9:,.1f} GB free for {folder}"
    place = case.subject.remedies.place
    remedy = f"free some space, or set {place} and VECTOR_INDEX_EMBEDDING_CACHE_DIR"
    if free < _TOO_LITTLE_BYTES:
        return failed(words, remedy)
    for folder in folders:
        if _files_left(existing(folder)) < _FEW_FILES:
            return warning(
                f"the disk of {folder} has hardly room for more files (`df -i`)",
                remedy.replace("free some space", "delete files there"),
            )
    return warning(words, remedy) if free < _LITTLE_BYTES else ok(words)


def _files_left(folder: Path) -> float:
    """How many files may still be made; some file systems have no limit, or tell none."""
    if not hasattr(os, "statvfs"):
        return math.inf
    status = os.statvfs(folder)
    return status.f_favail if status.f_files else math.inf


def existing(path: Path) -> Path:
    """`path` if it exists, otherwise the nearest folder above it that does."""
    return next(place for place in (path, *path.parents) if os.path.exists(place))
