"""Vectors that a team shares: real folders and buckets, several writers and readers, and liars."""

import logging
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256

import anyio
import anyio.to_thread
import numpy as np
import pytest
from between import proxy_before
from buckets import bucket_server, variables
from fakes import FakeEmbedder
from folders import nested_in
from serving import codebase_of, converged
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import text, wire
from vector_index_mcp.engine.models import packs as layout
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Index, Store
from vector_index_mcp.errors import EmbeddingError, Problem, StorageError
from vector_index_mcp.indexing.vectors import given as vectors_given
from vector_index_mcp.indexing.vectors import packs as kept_packs
from vector_index_mcp.indexing.vectors import team as team_vectors
from vector_index_mcp.indexing.vectors.given import share_vectors, tidy
from vector_index_mcp.indexing.vectors.packs import Packs
from vector_index_mcp.indexing.vectors.team import TeamPlace, TeamVectors
from vector_index_mcp.objects.opening import opened

pytestmark = [pytest.mark.long, pytest.mark.anyio]

FILES = 300
DAY = 86_400
NAMES = {f"m{n}.py": f"def name_{n}(): return {n}\n" for n in range(FILES)}


@pytest.fixture(scope="module")
def server():
    with bucket_server() as server:
        yield server


@pytest.fixture(params=["folder", "bucket"])
def uri(request, tmp_path, monkeypatch):
    if request.param == "folder":
        return str(tmp_path / "team")
    server = request.getfixturevalue("server")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return f"{server.new_bucket()}/team"


@pytest.fixture
def folder_uri(tmp_path):
    return str(tmp_path / "team")


def machine(tmp_path, name, files=NAMES):
    """A project on a machine of its own: its caches lie beside it."""
    return write(tmp_path / name / "project", files)


def place_of(root, uri):
    return TeamPlace(uri, root.parent / "team of others")


@asynccontextmanager
async def indexing(root, uri, embedder=None):
    """The service of a project that reads the team's vectors at `uri`, while it runs."""
    embedder = embedder or FakeEmbedder()
    codebase = codebase_of(root, embedder, team=place_of(root, uri))
    async with codebase.running():
        yield codebase


async def complete(root, uri, embedder=None):
    """Have a project indexed with the team's vectors; its embedder, and what the status says."""
    embedder = embedder or FakeEmbedder()
    async with indexing(root, uri, embedder) as codebase:
        await converged(codebase)
        ledger = codebase.index.ledger
        assert ledger.unembedded_count == 0
        return embedder, await wire.index_status(codebase)


async def share(root, uri):
    index = await Index.open(str(root / ".lancedb"))
    try:
        return await share_vectors(index, place_of(root, uri))
    finally:
        index.close()


async def shared(tmp_path, uri, files=NAMES, name="job"):
    """A store with the vectors of a project that a job has indexed."""
    root = machine(tmp_path, name, files)
    await complete(root, uri)
    return await share(root, uri)


async def vectors_in(root):
    """The vectors that an index holds, by chunk."""
    index = await Index.open(str(root / ".lancedb"))
    try:
        found = await index.store.contents.hashes()
        return await index.store.contents.vectors(list(found))
    finally:
        index.close()


def least_cosine(one, other):
    """How near two sets of vectors are at least; rounded, they are not exactly of unit length."""
    pairs = [(one[key], other[key]) for key in other]
    return min(a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs)


async def own_vectors(tmp_path, files=NAMES):
    """The vectors of a machine that nobody shares anything with."""
    root = machine(tmp_path, "alone", files)
    codebase = codebase_of(root, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
    return await vectors_in(root)


def model():
    return FakeEmbedder()._identity


async def packs_in(uri, tmp_path, look="look"):
    packs = Packs(opened(uri), model(), tmp_path / look)
    await packs.look()
    return packs


def pause_until(embedder, condition):
    """Have the model make nothing but samples until `condition` holds."""
    embed = embedder.embed

    async def waiting(texts, *, are_queries=False):
        if len(texts) != 8:
            await eventually(condition)
        return await embed(texts, are_queries=are_queries)

    embedder.embed = waiting


# -- given and taken -------------------------------------------------------------------------


async def test_what_a_job_has_shared_is_not_embedded_again(tmp_path, uri):
    given = await shared(tmp_path, uri)
    assert (given.written, given.known, given.packs) == (FILES, 0, 1)

    laptop = machine(tmp_path, "laptop")
    embedder = FakeEmbedder()
    embedder.is_at_hand = True  # so that vectors are looked for while texts are read
    async with indexing(laptop, uri, embedder) as codebase:
        team = codebase.index.cached_embedder.team
        pause_until(embedder, lambda: team.deliveries)
        await converged(codebase)
        status = await wire.index_status(codebase)

    assert len(embedder.texts) < FILES / 4
    assert f"{uri}: 3" in status.model.team_vectors
    assert "vectors used of 1 pack (3 requests" in status.model.team_vectors
    assert "team's vectors:" in text.of_status(status)
    mine, own = await vectors_in(laptop), await own_vectors(tmp_path)
    assert mine.keys() == own.keys()
    assert least_cosine(mine, own) > 0.999_99


MORE = {f"more{n}.py": f"def more_{n}(): pass\n" for n in range(100)}


@asynccontextmanager
async def laptop_that_has_the_pack(tmp_path, uri, embedder):
    """A service that has read a pack which holds vectors of more files than there are yet."""
    embedder.is_at_hand = True
    root = machine(tmp_path, "laptop")
    async with indexing(root, uri, embedder) as codebase:
        pause_until(embedder, lambda: codebase.index.cached_embedder.team.deliveries)
        await converged(codebase)
        embedder.texts.clear()
        yield codebase


async def test_what_lies_here_whole_is_committed_with_its_text(tmp_path, uri, monkeypatch):
    await shared(tmp_path, uri, {**NAMES, **MORE})
    embedder = FakeEmbedder()
    async with laptop_that_has_the_pack(tmp_path, uri, embedder) as codebase:

        async def fill(*_):
            raise AssertionError("a vector came after its text")

        monkeypatch.setattr(Store, "fill", fill)
        monkeypatch.setattr(team_vectors, "_FEWEST", 1)  # whatever is committed at once
        run = await codebase.index.trigger(force_reindex=False)
        await run.finished.wait()
        write(codebase.root, MORE)
        run = await codebase.index.trigger(force_reindex=False)
        await run.finished.wait()
        assert codebase.index.ledger.chunk_count == FILES + len(MORE)
        assert codebase.index.ledger.unembedded_count == 0
        await eventually(lambda: len(embedder.texts) >= 2)  # compared, a little later


async def test_a_lie_in_what_lies_here_is_noticed_a_little_later(tmp_path, folder_uri):
    await shared(tmp_path, folder_uri, {**NAMES, **MORE})
    embedder = FakeEmbedder()
    async with laptop_that_has_the_pack(tmp_path, folder_uri, embedder) as codebase:
        rewrite(tmp_path / "laptop", lambda numbers: np.roll(numbers, 1, axis=0))
        write(codebase.root, MORE)
        team = codebase.index.cached_embedder.team
        await eventually(lambda: "switched off" in team.notice)


async def test_only_what_nobody_has_is_written(tmp_path, uri):
    await shared(tmp_path, uri)
    more = {f"new{n}.py": f"def new_{n}(): pass\n" for n in range(40)}
    given = await shared(tmp_path, uri, {**NAMES, **more}, "later")
    assert (given.written, given.known, given.packs) == (40, FILES, 1)
    again = await share(tmp_path / "later" / "project", uri)
    assert (again.written, again.known, again.packs) == (0, FILES + 40, 0)


async def test_no_text_and_no_path_is_in_a_store(tmp_path, folder_uri):
    await shared(tmp_path, folder_uri)
    [pack] = (tmp_path / "team").rglob("*.pack")
    assert b"name_" not in pack.read_bytes()
    assert len(pack.read_bytes()) == 64 + FILES * (32 + 2 * 64)


async def test_three_jobs_write_while_two_machines_read(tmp_path, uri):
    jobs = [machine(tmp_path, f"job{n}") for n in range(3)]
    readers = [machine(tmp_path, f"reader{n}") for n in range(2)]
    for job in jobs:
        await complete(job, uri)
    own = await own_vectors(tmp_path)
    async with anyio.create_task_group() as tasks:
        for job in jobs:
            tasks.start_soon(share, job, uri)
        for reader in readers:
            tasks.start_soon(complete, reader, uri)
    for reader in readers:
        mine = await vectors_in(reader)
        assert mine.keys() == own.keys()
        assert least_cosine(mine, own) > 0.999_99
    packs = await packs_in(uri, tmp_path)
    assert 1 <= len(packs.listed) <= 3
    for listed in packs.listed.values():
        assert (await packs.all_of(listed)).keys() == own.keys()


async def test_a_saved_file_asks_nobody(tmp_path, folder_uri):
    root = machine(tmp_path, "laptop", {"a.py": "def alone(): pass\n"})
    embedder, status = await complete(root, folder_uri)
    assert len(embedder.texts) == 1
    assert status.model.team_vectors == f"{folder_uri}: not asked yet"


async def test_without_a_store_the_status_says_nothing_of_it(tmp_path):
    codebase = codebase_of(machine(tmp_path, "alone", {"a.py": "x = 1\n"}), FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        status = await wire.index_status(codebase)
    assert status.model.team_vectors is None
    assert "team" not in text.of_status(status)


# -- what is read of it ----------------------------------------------------------------------


async def test_hashes_are_read_once_and_a_wanted_pack_is_read_once(tmp_path, uri):
    await shared(tmp_path, uri)
    packs = await packs_in(uri, tmp_path)
    [listed] = packs.listed.values()
    assert (packs.requests, packs.bytes_read) == (2, listed.shape.keys_end)
    hashes = list(await own_vectors(tmp_path))
    rows = await packs.rows_of(listed, hashes)
    assert len(await packs.vectors(listed, rows)) == FILES
    assert packs.requests == 3

    later = await packs_in(uri, tmp_path)
    assert len(await later.vectors(listed, rows)) == FILES
    assert (later.requests, later.bytes_read) == (1, 0)  # the listing


async def test_few_of_a_large_pack_are_read_in_parts(tmp_path, uri, monkeypatch):
    monkeypatch.setattr(layout, "_BYTES_OF_A_REQUEST", 256)
    await shared(tmp_path, uri)
    packs = await packs_in(uri, tmp_path)
    [listed] = packs.listed.values()
    hashes = layout.hashes_in(await packs._store.part(entry_of(packs), 0, 10**6), listed.shape)
    rows = await packs.rows_of(listed, [hashes[7], hashes[250]])
    before = packs.bytes_read
    found = await packs.vectors(listed, rows)
    assert found.keys() == {hashes[7], hashes[250]}
    assert packs.bytes_read - before == 2 * 64 * 2
    for _ in range(200):  # little by little it would cost more than all of it
        await packs.vectors(listed, rows)
    assert packs.bytes_read - before < 2 * listed.shape.size


def entry_of(packs):
    [name] = packs.listed
    return packs._prefix + name


async def test_a_pack_that_is_removed_meanwhile_is_only_missing(tmp_path, uri):
    await shared(tmp_path, uri)
    packs = await packs_in(uri, tmp_path)
    [listed] = packs.listed.values()
    rows = await packs.rows_of(listed, list(await own_vectors(tmp_path)))
    await packs.delete([listed.name])
    assert await packs.vectors(listed, rows) == {}
    await packs.look()
    assert packs.listed == {}


async def test_what_is_kept_here_is_bounded(tmp_path, folder_uri, monkeypatch):
    await shared(tmp_path, folder_uri)
    packs = await packs_in(folder_uri, tmp_path)
    [listed] = packs.listed.values()
    monkeypatch.setattr(kept_packs, "_MOST_BYTES_KEPT", 100)
    await packs.look()
    await packs.look()
    assert packs.listed
    assert await packs.rows_of(listed, list(await own_vectors(tmp_path)))  # read anew


async def test_files_that_are_none_of_ours_are_passed_over(tmp_path, folder_uri):
    await shared(tmp_path, folder_uri)
    folder = next((tmp_path / "team").rglob("*.pack")).parent
    good = next(folder.glob("*.pack")).read_bytes()
    names = iter(f"{n:032x}.pack" for n in range(100))
    for garbage in (b"", b"x" * len(good), good[:-1], good + b"x", b"x" + good[1:], good[:64]):
        (folder / next(names)).write_bytes(garbage)
    (folder / "notes.txt").write_bytes(good)
    (folder / "deep").mkdir()
    (folder / "deep" / next(names)).write_bytes(good)
    packs = await packs_in(folder_uri, tmp_path)
    assert len(packs.listed) == 1
    before = packs.requests
    await packs.look()
    assert packs.requests == before + 1  # the listing; nothing that was none is read again


# -- liars -----------------------------------------------------------------------------------


def rewrite(folder, change):
    """Have somebody write other vectors under the same hashes."""
    [path] = folder.rglob("*.pack")
    data = path.read_bytes()
    shape = layout.size_fits(len(data), model())
    numbers = np.frombuffer(data[shape.keys_end :], "<f2").reshape(shape.rows, -1)
    path.write_bytes(data[: shape.keys_end] + change(numbers).astype("<f2").tobytes())


async def test_a_pack_with_vectors_under_wrong_hashes_is_noticed(tmp_path, folder_uri, caplog):
    await shared(tmp_path, folder_uri)
    rewrite(tmp_path / "team", lambda numbers: np.roll(numbers, 1, axis=0))
    laptop = machine(tmp_path, "laptop")
    with caplog.at_level(logging.WARNING):
        async with indexing(laptop, folder_uri) as codebase:
            team = codebase.index.cached_embedder.team
            await converged(codebase)
            await eventually(lambda: team._problem)
            status = await wire.index_status(codebase)
    assert "switched off: the pack" in status.model.team_vectors
    assert "switched off" in caplog.text
    mine, own = await vectors_in(laptop), await own_vectors(tmp_path)
    assert least_cosine(mine, own) > 0.999_99


@pytest.mark.parametrize(
    "change",
    [lambda numbers: numbers * np.nan, lambda numbers: numbers * 0, lambda numbers: numbers * 9],
    ids=["nan", "zero", "long"],
)
async def test_vectors_that_make_no_sense_are_missing(tmp_path, folder_uri, change):
    await shared(tmp_path, folder_uri)
    rewrite(tmp_path / "team", change)
    laptop = machine(tmp_path, "laptop")
    embedder, _ = await complete(laptop, folder_uri)
    assert len(embedder.texts) == FILES
    mine, own = await vectors_in(laptop), await own_vectors(tmp_path)
    assert least_cosine(mine, own) > 0.999_99


async def test_nothing_is_used_before_it_was_compared(tmp_path, folder_uri):
    await shared(tmp_path, folder_uri)
    embedder = FakeEmbedder()
    embedder.is_at_hand = True
    embedder.hold()
    async with indexing(machine(tmp_path, "laptop"), folder_uri, embedder) as codebase:
        team = codebase.index.cached_embedder.team
        await eventually(lambda: embedder.calls)  # the sample, or the first chunks
        await eventually(lambda: team._packs and team._packs.requests == 3)
        assert team.deliveries == 0
        embedder.release()
        await converged(codebase)


async def test_without_the_model_samples_wait_to_be_compared(tmp_path):
    place = TeamPlace(str(tmp_path / "team"), tmp_path / "here")
    team = TeamVectors(place, EmbeddingCache(tmp_path / "cache", 1_000_000))
    team.want(model(), {})
    team._samples = [(model(), name, np.zeros(8, "<f4"), None) for name in "abc"]
    asked = []

    async def makes(_, samples):
        asked.extend(text for text, _ in samples)
        if len(asked) == 2:
            raise EmbeddingError("the model is missing for a moment")
        return True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(team.read_forever, makes)
        team._is_wanted.set()
        await eventually(lambda: len(asked) == 2 and not team._is_wanted.is_set())
        team._is_wanted.set()
        await eventually(lambda: asked == ["a", "b", "b", "c"])
        tasks.cancel_scope.cancel()
    assert not team._samples


# -- stores that fail ------------------------------------------------------------------------


async def test_a_silent_server_delays_nothing(tmp_path, monkeypatch):
    """All is embedded while a request hangs that will never be answered."""
    embedder, alone = FakeEmbedder(), FakeEmbedder()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, value in variables(silent.getsockname()[1]).items():
            monkeypatch.setenv(name, value)
        laptop = machine(tmp_path, "laptop")
        async with indexing(laptop, "s3://team/x", embedder) as codebase:
            team = codebase.index.cached_embedder.team
            connection, _ = await anyio.to_thread.run_sync(silent.accept)
            with connection:
                await converged(codebase)
                assert not team._problem  # nobody has given up to wait, because nobody waits
    codebase = codebase_of(machine(tmp_path, "alone"), alone)
    async with codebase.running():
        await converged(codebase)
    assert len(embedder.texts) == FILES
    assert embedder.calls == alone.calls


async def test_a_model_that_is_exchanged_while_the_store_is_asked_ends_nothing(
    tmp_path, server, monkeypatch
):
    with proxy_before(server.port) as proxy:
        for name, value in variables(proxy.port).items():
            monkeypatch.setenv(name, value)
        uri = f"{server.new_bucket()}/team"
        held = proxy.hold("GET", "list-type")
        place = TeamPlace(uri, tmp_path / "here")
        team = TeamVectors(place, EmbeddingCache(tmp_path / "cache", 1_000_000))
        texts = {sha256(text.encode()).hexdigest(): text for text in NAMES.values()}

        async def never(model, samples):
            raise AssertionError("nothing is there to be compared")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team.read_forever, never)
            team.want(model(), texts)
            assert await anyio.to_thread.run_sync(held.reached.wait, 30)
            team.want(replace(model(), digest="cd" * 32), texts)
            held.release()
            await eventually(lambda: not any(map(team.may_have, texts)))
            assert proxy.count("cd" * 32)
            tasks.cancel_scope.cancel()


async def test_a_store_that_fails_is_left_alone_and_said(tmp_path, folder_uri, monkeypatch, caplog):
    asked = []

    async def look(packs):
        asked.append(packs)
        raise StorageError("it does not answer", Problem.STORE_SILENT)

    monkeypatch.setattr(Packs, "look", look)
    laptop = machine(tmp_path, "laptop")
    with caplog.at_level(logging.WARNING):
        async with indexing(laptop, folder_uri) as codebase:
            await converged(codebase)
            await eventually(lambda: asked)
            write(laptop, {f"more{n}.py": f"def more_{n}(): pass\n" for n in range(50)})
            await eventually(lambda: codebase.index.ledger.chunk_count == FILES + 50)
            await converged(codebase)
            status = await wire.index_status(codebase)
    assert "left alone for 5 min: it does not answer; check AWS" in status.model.team_vectors
    assert caplog.text.count("left alone") == len(asked) == 1


# -- kept few --------------------------------------------------------------------------------


def some_vectors():
    hashes = [sha256(str(n).encode()).hexdigest() for n in range(64)]
    return dict(zip(hashes, np.eye(64, dtype="<f4"), strict=True))


async def test_many_small_packs_become_one_and_go_a_day_later(tmp_path, uri):
    packs = await packs_in(uri, tmp_path)
    rows = some_vectors()
    items = list(rows.items())
    for start in range(0, 60, 3):
        await packs.add(dict(items[start : start + 3]))
    now = max(listed.modified for listed in (await packs_in(uri, tmp_path)).listed.values())

    await tidy(packs, now)
    assert sorted(shape.rows for shape in await shapes(uri, tmp_path)) == [3] * 20 + [60]
    await tidy(packs, now)
    assert len(await shapes(uri, tmp_path)) == 21
    await tidy(packs, now + DAY + 60)
    [shape] = await shapes(uri, tmp_path)
    assert shape.rows == 60


@pytest.mark.parametrize("spoilt", [slice(None), slice(0, None, 3), slice(0, 1)])
async def test_vectors_that_make_no_sense_are_not_merged_again_and_again(tmp_path, uri, spoilt):
    packs = await packs_in(uri, tmp_path)
    rows = [(key, vector.copy()) for key, vector in some_vectors().items()]
    for _, vector in rows[spoilt]:
        vector[:] = 0
    for start in range(0, 60, 3):
        await packs.add(dict(rows[start : start + 3]))
    now = max(listed.modified for listed in (await packs_in(uri, tmp_path)).listed.values())
    sizes = []
    for _ in range(3):
        await tidy(packs, now)
        sizes.append(sorted(shape.rows for shape in await shapes(uri, tmp_path)))
    assert sizes[0] == sizes[1] == sizes[2]
    assert sum(sizes[0]) == 60 + (57 if spoilt == slice(0, 1) else 0)


async def shapes(uri, tmp_path):
    return [listed.shape for listed in (await packs_in(uri, tmp_path)).listed.values()]


async def test_of_packs_that_are_alike_one_is_left_however_many_tidy_up(tmp_path, uri):
    rows = some_vectors()
    everybody = [await packs_in(uri, tmp_path, f"look{n}") for n in range(3)]
    for packs in everybody:
        await packs.add(rows)
    now = max(listed.modified for listed in (await packs_in(uri, tmp_path)).listed.values())
    async with anyio.create_task_group() as tasks:
        for packs in everybody:
            tasks.start_soon(tidy, packs, now + DAY + 60)
    assert [shape.rows for shape in await shapes(uri, tmp_path)] == [64]


async def test_where_nothing_can_be_kept_here_nothing_is_removed_there(tmp_path, folder_uri):
    (tmp_path / "look").write_text("a file where a folder should be")
    packs = await packs_in(folder_uri, tmp_path)
    await packs.add(some_vectors())
    await tidy(packs, time.time() + 2 * DAY)
    assert [shape.rows for shape in await shapes(folder_uri, tmp_path)] == [64]


async def test_a_key_that_may_not_delete_still_shares(tmp_path, folder_uri, monkeypatch, caplog):
    async def refuse(packs, now):
        raise StorageError("the key may not do this there")

    monkeypatch.setattr(vectors_given, "tidy", refuse)
    with caplog.at_level(logging.WARNING):
        given = await shared(tmp_path, folder_uri)
    assert given.written == FILES
    assert "could not be tidied up" in caplog.text


async def test_an_error_that_nobody_foresaw_switches_the_store_off_and_ends_nothing(
    tmp_path, folder_uri, monkeypatch
):
    async def fails(*_):
        raise ZeroDivisionError("of this program")

    monkeypatch.setattr(Packs, "look", fails)
    async with indexing(machine(tmp_path, "laptop"), folder_uri) as codebase:
        await converged(codebase)
        await eventually(lambda: not codebase.index.cached_embedder.team.is_used)
        status = await wire.index_status(codebase)
    assert "switched off: an error of this program (ZeroDivisionError)" in status.model.team_vectors


async def test_a_nest_of_folders_in_the_store_ends_nothing(tmp_path, folder_uri):
    await shared(tmp_path, folder_uri)
    with nested_in(next((tmp_path / "team").rglob("*.pack")).parent):
        _, status = await complete(machine(tmp_path, "laptop"), folder_uri)
    assert "nested more than 200 levels deep" in status.model.team_vectors
