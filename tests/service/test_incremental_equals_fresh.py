"""The property that matters most: however an index came about, it is what a fresh one would be."""

import shutil

import pytest
from drawn import examples
from fakes import FakeEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import codebase_of, contents, converged, fresh_contents, without_time
from waiting import eventually

from vector_index_mcp.indexing.role import Role

pytestmark = pytest.mark.anyio

FOLDERS = ["a", "a/b", "lib"]  # few, so that edits meet each other
NAMES = ["one.py", "note.md", "b", "keep.log"]
PATHS = sorted(set(NAMES) | {f"{f}/{n}" for f in FOLDERS for n in NAMES})
LONG = "".join(f"def function_{i}(value):\n    return value + {i}\n\n" for i in range(60))
TEXTS = [
    b"",
    b"  \n\n",
    b"alpha = 1\n",
    b"alpha = 2\n",  # as long as the one before
    b"the quick brown fox\n" * 3,
    LONG.encode(),
    LONG.replace("value", "other").encode(),
    b"\x00\x01binary\xff" * 20,
    "umlaut \xe4 in Latin-1\n".encode("latin-1"),
    b"-----BEGIN PRIVATE KEY-----\n",
]
RULES = [
    "",
    "*.py\n",
    "a/\n",
    "/a\n",
    "b\n",
    "*.md\n!note.md\n",
    "!keep.log\n",
    "lib/\n!lib/\n",
    "*\n!*/\n!*.py\n",
    "\\\n[\n",
]

write_file = st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(TEXTS))
write_rules = st.tuples(
    st.just("write"),
    st.sampled_from([".gitignore", "a/.gitignore", "a/b/.gitignore", ".vectorindexignore"]),
    st.sampled_from(RULES).map(str.encode),
)
delete = st.tuples(st.just("delete"), st.sampled_from(PATHS + FOLDERS + [".gitignore"]))
rename = st.tuples(
    st.just("rename"), st.sampled_from(PATHS + FOLDERS), st.sampled_from(PATHS + FOLDERS)
)
make_folder = st.tuples(st.just("folder"), st.sampled_from(FOLDERS + ["a/one.py"]))
link = st.tuples(st.just("link"), st.sampled_from(PATHS), st.sampled_from(PATHS + FOLDERS))
edit = st.one_of(write_file, write_file, write_file, write_rules, delete, rename, make_folder, link)
scripts = st.lists(st.lists(edit, min_size=3, max_size=8), min_size=2, max_size=4)


def clear(path):
    """Make room at `path`."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def make_parents(root, path):
    """Folders above `path`, in place of files that are in the way; which paths changed."""
    changed = []
    for folder in reversed(path.relative_to(root).parents[:-1]):
        here = root / folder
        if here.is_symlink() or not here.is_dir():
            clear(here)
            here.mkdir()
            changed.append(folder.as_posix())
    return changed


def apply(root, action, path, *more):
    """Do one edit; returns the paths that a watcher would name."""
    target = root / path
    if action == "delete":
        clear(target)
        return [path]
    if action == "rename":
        other = root / more[0]
        if not target.exists() or other.is_relative_to(target) or target.is_relative_to(other):
            return []
        changed = make_parents(root, other)
        clear(other)
        if not target.exists():  # it lay in the way
            return [path, more[0], *changed]
        target.rename(other)
        return [path, more[0], *changed]
    changed = make_parents(root, target)
    if action == "write":
        if target.is_symlink() or target.is_dir():
            clear(target)
        target.write_bytes(more[0])
    elif action == "folder" and (target.is_symlink() or not target.is_dir()):
        clear(target)
        target.mkdir()
    elif action == "link":
        clear(target)
        target.symlink_to(root / more[0])
    return [path, *changed]


async def have_looked_at(codebase, paths):
    """Wait until the codebase has indexed what lies at `paths`, and embedded it."""
    indexer = codebase.index.indexer
    indexer.look_again(paths)

    async def has_looked():
        return indexer.pending_path_count == 0

    await eventually(has_looked)
    await converged(codebase)


@pytest.mark.long
@settings(max_examples=examples(20))
@given(scripts=scripts)
async def test_an_index_kept_up_to_date_equals_one_built_from_scratch(tmp_path_factory, scripts):
    root = tmp_path_factory.mktemp("edits") / "project"
    root.mkdir()
    for number, path in enumerate(PATHS):
        if path not in FOLDERS and not (root / path).exists():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(TEXTS[number % len(TEXTS)])
    codebase = codebase_of(root, FakeEmbedder(), quiet_seconds=0.0, chunk_max_chars=200)
    async with codebase.running(Role.VISITOR):  # without a watcher: what is told is all it knows
        await converged(codebase)
        for script in scripts:
            touched = [path for step in script for path in apply(root, *step)]
            await have_looked_at(codebase, touched)
        assert codebase.index.state.error is None
        assert codebase.index.ledger.unembedded_count == 0
    kept = await contents(root / ".lancedb")
    fresh = await fresh_contents(root, FakeEmbedder(), root.parent / "fresh", chunk_max_chars=200)
    assert without_time(kept) == without_time(fresh)
