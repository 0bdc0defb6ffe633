"""What goes wrong inside LanceDB comes out as our errors, and the index survives it."""

import random
import shutil

import anyio
import pytest
from documents import document

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.faults import translated
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.types import FileRecord, Holding
from vector_index_mcp.errors import DamagedIndexError, Problem, StorageError, StoreError


class RustPanic(BaseException):
    """Named like what a panic inside lance reaches Python as."""


class PanicException(BaseException):
    """Named like what a panic inside pyo3 reaches Python as."""


REBUILD = Problem.INDEX_DAMAGED
FAULTS = [
    (
        RuntimeError("lance error: LanceError(IO): No space left on device (os error 28)"),
        StorageError,
        "free some space",
    ),
    (
        RuntimeError("lance error: Read-only file system (os error 30)"),
        StorageError,
        Problem.INDEX_UNWRITABLE,
    ),
    (
        PermissionError(13, "Permission denied", "/index"),
        StorageError,
        Problem.INDEX_UNWRITABLE,
    ),
    (RuntimeError("Too many open files (os error 24)"), StorageError, "ulimit -n"),
    (RuntimeError("lance error: File too large (os error 27)"), StorageError, "ulimit -f"),
    (RuntimeError("Disk quota exceeded (os error 122)"), StorageError, "free some space"),
    (
        RuntimeError("Failed to create temp dir: No such file (os error 2) at path /gone/.tmp1"),
        StorageError,
        "TMPDIR",
    ),
    (ValueError("Table 'chunks' was not found"), DamagedIndexError, REBUILD),
    (
        RuntimeError("lance error: Not found: index/chunks.lance/data/1.lance"),
        DamagedIndexError,
        REBUILD,
    ),
    (RuntimeError("Invalid range 0..0 for object of size 0 bytes"), DamagedIndexError, REBUILD),
    (RuntimeError("lance error: file size is too small"), DamagedIndexError, REBUILD),
    (RuntimeError("failed to decode Protobuf message"), DamagedIndexError, REBUILD),
    (RuntimeError("failed to fill whole buffer"), DamagedIndexError, REBUILD),
    (RuntimeError("Parser error: Arrow file lacks its footer"), DamagedIndexError, REBUILD),
    (RuntimeError("Invalid UTF8 sequence at string index 0"), DamagedIndexError, REBUILD),
    (RuntimeError("Io error: invalid seek to an overflowing position"), DamagedIndexError, REBUILD),
    (RuntimeError("Tail read position 39 is outside file of size 5"), DamagedIndexError, REBUILD),
    (RuntimeError('task 2 panicked with message "the offset"'), DamagedIndexError, REBUILD),
    (RuntimeError("Is a directory (os error 21)"), DamagedIndexError, REBUILD),
    (
        RuntimeError('task 2 panicked with message "Os { code: 24, kind: Uncategorized }"'),
        StorageError,
        "ulimit -n",
    ),
    (RuntimeError("Commit conflict for version 698"), StoreError, REBUILD),
    (ValueError("something about a schema"), StoreError, REBUILD),
    (OSError("Input/output error"), StoreError, REBUILD),
    (RustPanic("index out of bounds"), DamagedIndexError, REBUILD),
    (PanicException("called unwrap on a None"), DamagedIndexError, REBUILD),
    (
        RustPanic(
            "Failed to build tokio runtime: Os { code: 24, kind: Uncategorized, "
            'message: "Too many open files" }'
        ),
        StorageError,
        "ulimit -n",
    ),
    (
        PanicException(
            "OS can't spawn worker thread: Os { code: 11, kind: WouldBlock, message: \"Resource "
            'temporarily unavailable" }'
        ),
        StorageError,
        "lacks memory or processes",
    ),
]


@pytest.mark.parametrize(("fault", "kind", "remedy"), FAULTS, ids=lambda value: str(value)[:30])
def test_a_fault_becomes_our_error_with_its_cause_and_a_remedy_or_a_problem(fault, kind, remedy):
    with pytest.raises(StoreError) as caught, translated("writing"):
        raise fault
    assert type(caught.value) is kind
    assert str(caught.value).startswith("writing the index failed")
    if isinstance(remedy, Problem):
        assert caught.value.problem is remedy
    else:
        assert (caught.value.problem, remedy in str(caught.value)) == (None, True)
    assert caught.value.__cause__ is fault


def test_what_only_the_authors_of_a_library_need_is_left_out():
    with pytest.raises(StoreError) as caught, translated("reading"):
        raise RuntimeError(
            "lance error: LanceError(IO): Generic LocalFileSystem error: failed to fill whole "
            "buffer, /rustc/2d8144b7/library/core/src/ops/function.rs:250:5"
        )
    assert str(caught.value) == "reading the index failed: failed to fill whole buffer"


def test_the_words_of_a_projects_path_are_no_sign_of_damage():
    names = ("/srv/corrupt magic/.lancedb", "/proc/self/fd/7")
    with pytest.raises(StoreError) as caught, translated("reading", names[0], known_as=names[1]):
        raise RuntimeError("lance error: odd: proc/self/fd/7/chunks.lance")
    assert type(caught.value) is StoreError
    assert str(caught.value).endswith("odd: srv/corrupt magic/.lancedb/chunks.lance")


def test_a_long_message_is_told_in_one_short_line():
    with pytest.raises(StoreError) as caught, translated("reading"):
        raise RuntimeError("lance error:\n\n  " + "very long\n" * 500)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "other", [KeyError("x"), TypeError("x"), KeyboardInterrupt(), SystemExit(1)]
)
def test_what_is_not_a_fault_of_the_store_passes_unchanged(other):
    with pytest.raises(type(other)) as caught, translated("writing"):
        raise other
    assert caught.value is other


@pytest.mark.anyio
async def test_a_disk_that_takes_no_more_files_is_not_said_to_lack_space_alone(small_disk):
    index = await Index.create(str(small_disk / "index"), Manifest(owner="/p", chunker="lines-1"))
    used = sum(1 for _ in small_disk.rglob("*")) + 1
    await anyio.run_process(["mount", "-o", f"remount,nr_inodes={used}", str(small_disk)])
    with pytest.raises(StoreError, match=r"is full; .*delete files .*df -i"):
        await index.store.replace([document("a", "word one", "word two")], 1, {})
    index.close()


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_full_disk_is_named_and_leaves_the_index_as_it_was(small_disk):
    index = await Index.create(str(small_disk / "index"), Manifest(owner="/p", chunker="lines-1"))
    store = index.store
    stored = document("a", "word one", "word two")
    await store.replace([stored], 1, {})
    await store.put_records([FileRecord("a", (1, 2, 3), "hash", 2, "indexed", "")])
    before = await store.holdings(), await store.records()
    noise = random.Random(1)
    large = document("b", *(noise.randbytes(5_000).hex() for _ in range(80)))

    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    filler.write_bytes(b"\0" * (free - 300_000))
    with pytest.raises(StoreError, match="the disk is full; free some space") as caught:
        await store.replace([large], 2, {})
    assert not isinstance(caught.value, DamagedIndexError)
    assert (await store.holdings(), await store.records()) == before
    assert len(await store.matching(["word"], 5)) == 2

    filler.write_bytes(b"\0" * (filler.stat().st_size + shutil.disk_usage(small_disk).free))
    for attempt in (
        store.replace([stored], 3, {}),
        store.put_records([FileRecord("c", (1, 2, 3), "", 0, "skipped", "why")]),
        store.delete(["a"]),
        store.set_dimension(4),
        store.maintain(),
        index.adopt("/elsewhere"),
    ):
        with pytest.raises(StoreError, match="the disk is full; free some space"):
            await attempt
    assert (await store.holdings(), await store.records()) == before

    filler.unlink()
    await store.replace([large], 4, {})
    assert await store.holdings() == {"a": Holding("hash", 2, 2), "b": Holding("hash", 80, 80)}
    await store.maintain()
    await index.adopt("/elsewhere")
    index.close()
    again = await Index.open(index.uri)
    assert again.manifest.owner == "/elsewhere"
    assert await again.store.count() == 82
    again.close()
