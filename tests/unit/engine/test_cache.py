"""The embedding cache remembers, stays bounded, and never costs more than time."""

import os
import random
import sqlite3
import subprocess
import sys
import threading
import zlib
from hashlib import sha256

import numpy as np
import pytest
from drawn import examples
from waiting import PATIENCE_SECONDS

from vector_index_mcp.engine.models import cache as cache_module
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.types import ModelIdentity

MODEL = ModelIdentity("model", "ab" * 32, 8)
OTHER_MODEL = ModelIdentity("model", "cd" * 32, 8)
FILE = "embeddings-1.sqlite3"
ENOUGH = 100_000_000


def key(text):
    return sha256(str(text).encode()).hexdigest()


def vectors(texts, dimension=8):
    return {
        key(text): np.full(dimension, number, dtype="f4") for number, text in enumerate(texts, 1)
    }


@pytest.fixture
def opened():
    """Make caches that are closed at the end."""
    caches = []

    def make(folder, max_bytes=ENOUGH):
        caches.append(EmbeddingCache(folder, max_bytes))
        return caches[-1]

    yield make
    for cache in caches:
        cache.close()


def rows(folder, query, *values):
    """What a query of the cache's file answers, for a look from outside."""
    connection = sqlite3.connect(folder / FILE)
    try:
        with connection:
            return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def test_what_was_put_is_got_and_nothing_else(tmp_path, opened):
    cache = opened(tmp_path)
    known = vectors("abc")
    cache.put(MODEL, known)
    found = cache.get(MODEL, [key("a"), key("c"), key("z"), key("a")])
    assert set(found) == {key("a"), key("c")}
    for name, vector in found.items():
        assert vector.dtype == np.float32
        np.testing.assert_array_equal(vector, known[name])


def test_what_is_removed_is_gone_for_its_model_alone(tmp_path, opened):
    cache = opened(tmp_path)
    for model in (MODEL, OTHER_MODEL):
        cache.put(model, vectors("abc"))
    cache.remove(MODEL, [key("a"), key("c"), key("nowhere")])
    assert cache.get(MODEL, vectors("abc")).keys() == {key("b")}
    assert cache.get(OTHER_MODEL, vectors("abc")).keys() == vectors("abc").keys()


def test_what_was_put_outlives_the_process_that_put_it(tmp_path, opened):
    first = opened(tmp_path)
    first.put(MODEL, vectors("a"))
    first.close()
    assert set(opened(tmp_path).get(MODEL, [key("a")])) == {key("a")}


def test_a_closed_cache_opens_again_when_used(tmp_path, opened):
    cache = opened(tmp_path)
    cache.close()
    cache.put(MODEL, vectors("a"))
    cache.close()
    assert set(cache.get(MODEL, [key("a")])) == {key("a")}


def test_the_vectors_of_another_model_are_not_found(tmp_path, opened):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("a"))
    assert cache.get(OTHER_MODEL, [key("a")]) == {}


def test_a_vector_put_again_replaces_the_first(tmp_path, opened):
    cache = opened(tmp_path)
    cache.put(MODEL, {key("a"): np.zeros(8, "f4")})
    cache.put(MODEL, {key("a"): np.ones(8, "f4")})
    np.testing.assert_array_equal(cache.get(MODEL, [key("a")])[key("a")], np.ones(8, "f4"))


def test_a_vector_of_another_length_is_not_found(tmp_path, opened):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("a", dimension=4))
    assert cache.get(MODEL, [key("a")]) == {}


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1700])
def test_any_number_of_vectors_is_got_at_once(tmp_path, opened, count):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors(range(count)))
    assert len(cache.get(MODEL, map(key, range(count + 3)))) == count


@pytest.mark.parametrize("per_put", [1, 10, 200])
def test_the_vectors_take_no_more_than_the_bound(tmp_path, opened, per_put):
    bound = 200_000
    cache = opened(tmp_path, bound)
    for start in range(0, 1000, per_put):
        batch = range(start, start + per_put)
        cache.put(MODEL, vectors(batch, dimension=384))
    stored = rows(tmp_path, "SELECT count(*), sum(length(vector)) FROM vectors")
    assert 0 < stored[0][1] <= bound
    assert stored[0][0] > 10


def test_one_batch_larger_than_the_bound_does_not_stay_whole(tmp_path, opened):
    bound = 200_000
    cache = opened(tmp_path, bound)
    cache.put(MODEL, vectors(range(1000), dimension=384))
    assert rows(tmp_path, "SELECT sum(length(vector)) FROM vectors")[0][0] <= bound


def test_the_longest_unused_vectors_are_dropped_first(tmp_path, opened):
    cache = opened(tmp_path, 200_000)
    model = ModelIdentity("model", MODEL.digest, 384)
    cache.put(model, vectors(range(60), dimension=384))
    rows(tmp_path, "UPDATE vectors SET used = used - 30")
    still_used = list(map(key, range(20)))
    assert len(cache.get(model, still_used)) == 20
    for added in range(1000, 1300):
        cache.put(model, vectors([added], dimension=384))
        if len(rows(tmp_path, "SELECT chunk FROM vectors")) < 61 + added - 1000:
            break
    else:
        pytest.fail("nothing was ever dropped")
    assert len(cache.get(model, still_used)) == 20
    assert len(cache.get(model, map(key, range(1000, added + 1)))) == 1 + added - 1000


@pytest.mark.slow
def test_vectors_used_under_a_clock_that_was_ahead_are_dropped_in_their_turn(tmp_path, opened):
    cache = opened(tmp_path, 400_000)
    model = ModelIdentity("model", MODEL.digest, 384)
    cache.put(model, vectors(range(2000), dimension=384))
    ((left,),) = rows(tmp_path, "SELECT count(*) FROM vectors")
    rows(tmp_path, "UPDATE vectors SET used = used + 3650")
    cache.put(model, vectors(range(5000, 7000), dimension=384))  # the clock is right again
    ((today,),) = rows(tmp_path, "SELECT DISTINCT used FROM vectors")
    rows(tmp_path, "UPDATE vectors SET used = used - 1")
    cache.put(model, vectors(range(9000, 9000 + left), dimension=384))
    assert len(cache.get(model, map(key, range(9000, 9000 + left)))) > left / 2
    assert rows(tmp_path, f"SELECT count(*) FROM vectors WHERE used > {today}") == [(0,)]


def test_a_use_counts_as_of_its_day(tmp_path, opened):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("ab"))
    ((today,),) = rows(tmp_path, "SELECT DISTINCT used FROM vectors")
    rows(tmp_path, "UPDATE vectors SET used = 3")
    cache.get(MODEL, [key("a")])
    days = dict(rows(tmp_path, "SELECT chunk, used FROM vectors"))
    assert {chunk.hex(): day for chunk, day in days.items()} == {key("a"): today, key("b"): 3}


@pytest.fixture
def other(tmp_path):
    """The connection of another process to the cache."""
    connection = sqlite3.connect(tmp_path / FILE, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()


def test_a_get_waits_for_nobody_who_writes_and_the_next_one_is_noted(tmp_path, opened, other):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("ab"))
    other.execute("UPDATE vectors SET used = 3")
    other.execute("BEGIN IMMEDIATE")
    assert set(cache.get(MODEL, [key("a"), key("b")])) == {key("a"), key("b")}
    assert rows(tmp_path, "SELECT DISTINCT used FROM vectors") == [(3,)]
    other.execute("COMMIT")
    assert set(cache.get(MODEL, [key("a"), key("b")])) == {key("a"), key("b")}
    assert rows(tmp_path, "SELECT count(*) FROM vectors WHERE used = 3") == [(0,)]


def test_a_get_does_not_wait_for_a_put_that_waits(tmp_path, opened, other, monkeypatch):
    monkeypatch.setattr(cache_module, "_WAIT_TO_WRITE_SECONDS", PATIENCE_SECONDS)
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("ab"))
    other.execute("BEGIN IMMEDIATE")
    put = threading.Thread(target=cache.put, args=(MODEL, vectors("cd")))
    put.start()
    try:
        assert set(cache.get(MODEL, [key("a")])) == {key("a")}
        assert put.is_alive()
    finally:
        other.execute("COMMIT")
        put.join()
    assert len(cache.get(MODEL, [key("c"), key("d")])) == 2


def test_a_file_that_a_get_finds_damaged_is_left_by_the_next_put_as_well(tmp_path, opened, other):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors(range(200)))
    other.executescript("DROP TABLE vectors; CREATE TABLE vectors (chunk, model, vector)")
    assert cache.get(MODEL, [key(1)]) == {}
    cache.put(MODEL, vectors("ab"))
    assert set(cache.get(MODEL, [key("a"), key("b")])) == {key("a"), key("b")}
    assert rows(tmp_path, "SELECT count(*) FROM vectors") == [(2,)]


DAMAGES = {
    "not a database": lambda path: path.write_bytes(b"this is not a database file" * 100),
    "overwritten from the first page on": lambda path: path.write_bytes(
        path.read_bytes()[:100] + b"\xff" * (path.stat().st_size - 100)
    ),
    "cut off": lambda path: os.truncate(path, 5000),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_replaced(tmp_path, opened, damage):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors(range(200)))
    cache.close()
    damage(tmp_path / FILE)
    cache.get(MODEL, map(key, range(200)))
    cache.put(MODEL, vectors("ab"))
    cache.put(MODEL, vectors("ab"))
    assert set(cache.get(MODEL, [key("a"), key("b")])) == {key("a"), key("b")}


OTHER_USER = """
import sys
from pathlib import Path
import numpy as np
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.types import ModelIdentity

cache = EmbeddingCache(Path(sys.argv[1]), 100_000_000)
model = ModelIdentity("model", "ef" * 32, 384)
for line in sys.stdin:
    start = 1000 * int(line)
    cache.put(model, {f"{start + n:064x}": np.ones(384, "f4") for n in range(200)})
    print("put", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there no open file can be removed")
def test_a_damaged_file_is_replaced_while_another_process_goes_on_using_it(tmp_path, opened):
    cache, file = opened(tmp_path), tmp_path / FILE
    command = [sys.executable, "-c", OTHER_USER, tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:

        def others_put(number):
            other.stdin.write(f"{number}\n")
            other.stdin.flush()
            assert other.stdout.readline() == "put\n"

        others_put(1)
        rows(tmp_path, "PRAGMA wal_checkpoint(full)")
        with file.open("r+b") as damaged:
            damaged.seek(32_768)
            damaged.write(b"\xff" * 131_072)
        cache.put(MODEL, vectors("ab"))  # finds the damage
        others_put(2)
        cache.put(MODEL, vectors("ab"))
        others_put(3)
        assert set(cache.get(MODEL, [key("a"), key("b")])) == {key("a"), key("b")}
        other.stdin.close()


STRANGE_ROWS = {
    "a text": "UPDATE vectors SET vector = 'abc'",
    "a text that is no Unicode": "UPDATE vectors SET vector = CAST(vector AS TEXT)",
    "a number": "UPDATE vectors SET vector = 7",
    "too short": "UPDATE vectors SET vector = substr(vector, 1, 20)",
    "nothing": "UPDATE vectors SET vector = x''",
    "without its last byte": "UPDATE vectors SET vector = substr(vector, 1, length(vector) - 1)",
    "of another chunk": "UPDATE vectors SET vector = (SELECT max(vector) FROM vectors)",
    "of another table": "DROP TABLE vectors; CREATE TABLE vectors (used, chunk)",
    "of a table with more columns": "ALTER TABLE vectors ADD COLUMN more",
}


@pytest.mark.parametrize("damage", STRANGE_ROWS.values(), ids=STRANGE_ROWS)
def test_what_is_no_vector_of_ours_is_not_found_and_bars_none(tmp_path, opened, damage):
    cache, known = opened(tmp_path), vectors("abcd")
    cache.put(MODEL, known)
    cache.close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.executescript(damage)
    connection.close()
    for name, vector in cache.get(MODEL, known).items():
        np.testing.assert_array_equal(vector, known[name])
    cache.put(MODEL, known)
    cache.put(MODEL, known)
    assert cache.get(MODEL, known).keys() == known.keys()


@pytest.mark.parametrize("seed", range(examples(120)))
def test_no_damage_anywhere_makes_a_wrong_vector(tmp_path, opened, seed):
    randomly, known = random.Random(seed), vectors(range(60), dimension=384)
    model = ModelIdentity("model", MODEL.digest, 384)
    cache = opened(tmp_path)
    cache.put(model, known)
    cache.close()
    content = bytearray((tmp_path / FILE).read_bytes())
    start, length = randomly.randrange(len(content)), randomly.choice([1, 20, 2_000])
    content[start : start + length] = randomly.randbytes(len(content[start : start + length]))
    (tmp_path / FILE).write_bytes(content)
    for _ in range(3):
        for name, vector in cache.get(model, known).items():
            np.testing.assert_array_equal(vector, known[name])
        cache.put(model, known)
    assert cache.get(model, known).keys() == known.keys()


def test_a_vector_of_an_older_version_is_found(tmp_path, opened):
    cache, numbers = opened(tmp_path), np.full(8, 0.1, "<f4")
    cache.put(MODEL, vectors("a"))
    digest, chunk = bytes.fromhex(MODEL.digest), bytes.fromhex(key("a"))
    checksum = zlib.crc32(numbers.tobytes(), zlib.crc32(digest + chunk)).to_bytes(4, "big")
    rows(tmp_path, "UPDATE vectors SET vector = ?", numbers.tobytes() + checksum)
    np.testing.assert_array_equal(cache.get(MODEL, [key("a")])[key("a")], numbers)


def test_an_empty_file_is_a_cache_that_is_still_empty(tmp_path, opened):
    (tmp_path / FILE).touch()
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("a"))
    assert set(cache.get(MODEL, [key("a")])) == {key("a")}


def _below_a_file(tmp_path):
    (tmp_path / "file").touch()
    return tmp_path / "file" / "cache"


def _with_a_folder_in_the_place_of_its_file(tmp_path):
    (tmp_path / FILE).mkdir()
    return tmp_path


@pytest.mark.parametrize("folder_of", [_below_a_file, _with_a_folder_in_the_place_of_its_file])
def test_a_folder_that_cannot_be_used_is_harmless(tmp_path, opened, caplog, folder_of):
    cache = opened(folder_of(tmp_path))
    cache.put(MODEL, vectors("a"))
    assert cache.get(MODEL, [key("a")]) == {}
    assert "the embedding cache" in caplog.text


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_damaged_file_in_a_read_only_folder_is_harmless(tmp_path, opened):
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / FILE).write_bytes(b"this is not a database file" * 100)
    folder.chmod(0o500)
    try:
        cache = opened(folder)
        cache.put(MODEL, vectors("a"))
        assert cache.get(MODEL, [key("a")]) == {}
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("max_bytes", [0, -1])
def test_a_bound_of_zero_turns_it_off(tmp_path, opened, max_bytes):
    cache = opened(tmp_path / "cache", max_bytes)
    cache.put(MODEL, vectors("a"))
    assert cache.get(MODEL, [key("a")]) == {}
    assert not (tmp_path / "cache").exists()


def test_making_one_touches_no_file(tmp_path, opened):
    opened(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_the_cache_is_for_the_users_eyes_only(tmp_path, opened):
    before = os.umask(0)
    try:
        opened(tmp_path / "cache").put(MODEL, vectors("a"))
    finally:
        os.umask(before)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "cache").iterdir()}
    assert modes[FILE] == 0o600
    assert set(modes.values()) == {0o600}


PUT_MANY = """
import sys
from pathlib import Path
from hashlib import sha256
import numpy as np
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.types import ModelIdentity

name, folder = sys.argv[1:]
cache = EmbeddingCache(Path(folder), 100_000_000)
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
for number in range(200):
    text = f"{name}{number}"
    vector = np.full(8, number, "f4")
    cache.put(ModelIdentity("m", "ab" * 32, 8), {sha256(text.encode()).hexdigest(): vector})
cache.close()
"""


def put_many_at_once(folder, names):
    """Let one process for each of `names` put 200 vectors, all beginning at the same moment."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", PUT_MANY, name, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
    finally:
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=60)
    assert {writer.returncode for writer in writers} == {0}
    return [key(f"{name}{number}") for name in names for number in range(200)]


@pytest.mark.slow
def test_two_processes_write_one_cache_at_once(tmp_path, opened):
    cache = opened(tmp_path)
    cache.put(MODEL, vectors("z"))
    expected = put_many_at_once(tmp_path, "ab")
    assert set(cache.get(MODEL, expected)) == set(expected)


@pytest.mark.slow
def test_processes_that_create_the_cache_at_once_lose_nothing(tmp_path, opened):
    expected = put_many_at_once(tmp_path, "abcd")
    assert set(opened(tmp_path).get(MODEL, expected)) == set(expected)


@pytest.mark.slow
def test_the_bound_is_spent_on_vectors(tmp_path, opened):
    cache = opened(tmp_path, 4_000_000)
    for start in range(0, 3000, 100):
        cache.put(MODEL, vectors(range(start, start + 100), dimension=384))
    ((size,),) = rows(tmp_path, "SELECT sum(length(vector)) FROM vectors")
    assert 1_600_000 < size <= 4_000_000
