"""An index on object storage is right, whoever writes there, and however they are stopped."""

import os
import random
import shutil
import signal
import time

import anyio
import pytest
from between import proxy_before
from buckets import bucket_server, variables
from fakes import FakeEmbedder
from machine import SECONDS, expire_soon, hurry, machine
from serving import (
    call,
    codebase_of,
    contents,
    converged,
    differences,
    failing_call,
    found,
    fresh_contents,
    in_error,
    serving,
    settled,
    status_of,
    without_time,
)
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.engine.store import Index, reach, tables
from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.indexing.place import Remote
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.objects.opening import opened

pytestmark = [pytest.mark.long, pytest.mark.anyio]

FILES = {f"part/module_{n}.py": f"def apple_{n}():\n    return {n}\n" for n in range(5)}
STORM_SECONDS = float(os.environ.get("STORM_SECONDS", "6"))
SEED = int(os.environ.get("SEED", "1"))


@pytest.fixture(scope="module")
def server():
    with bucket_server() as server:
        yield server


@pytest.fixture
def proxy(server):
    with proxy_before(server.port) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    hurry(monkeypatch.setattr)


@pytest.fixture
def machine_of(monkeypatch):
    """Starts machines, whose leases this process takes over as soon as they expire.

    Without them, its own lease lasts as long as in use: on a busy machine it would be lost.
    """
    expire_soon(monkeypatch.setattr)
    return machine


@pytest.fixture
def reached(monkeypatch):
    """A function that leads this process to a port."""

    def lead(port):
        for name, value in variables(port).items():
            monkeypatch.setenv(name, value)
        tables._session.cache_clear()  # it keeps what it has read of the variables

    return lead


@pytest.fixture
def uri(server, reached):
    reached(server.port)
    return f"{server.new_bucket()}/some/index"


@pytest.fixture
def folders(tmp_path):
    """The projects of two machines, alike, with a state folder each."""
    return [write(tmp_path / name / "project", FILES) for name in ("one", "two")]


def of_team(root, uri, **options):
    return codebase_of(root, FakeEmbedder(), uri=uri, remote=Remote(owner="team"), **options)


def environment(port):
    return {**os.environ, **variables(port)}


async def is_like_fresh(uri, root):
    """The index holds what one does that is made now, on this machine."""
    place = root.parent / f"fresh {time.monotonic_ns()}"
    fresh = await fresh_contents(root, FakeEmbedder(), place)
    assert differences(without_time(await contents(uri)), without_time(fresh)) == []


async def test_an_empty_prefix_becomes_an_index_which_another_start_finds(folders, uri):
    for _ in range(2):
        async with serving(codebase_of(folders[0], FakeEmbedder(), uri=uri)) as client:
            status = await settled(client)
            assert (await found(client, "apple_3"))[0] == "part/module_3.py"
    assert (status["last_run"]["kind"], status["last_run"]["files_read"]) == ("start", 0)
    await is_like_fresh(uri, folders[0])


async def test_changes_are_followed_and_a_rebuild_replaces_the_tables(folders, uri):
    root = folders[0]
    async with serving(codebase_of(root, FakeEmbedder(), uri=uri)) as client:
        await settled(client)
        write(root, {"new.py": "banana = 1\n"})
        (root / "part/module_0.py").unlink()

        async def is_followed():
            await settled(client)
            return await _finds(client, "banana", "new.py")

        await eventually(is_followed)
        await call(client, "trigger_index", force_reindex=True)
        await settled(client)
    await is_like_fresh(uri, root)


async def test_another_project_of_the_same_prefix_is_refused_and_changes_nothing(folders, uri):
    mine, other = folders
    async with codebase_of(mine, FakeEmbedder(), uri=uri).running(Role.VISITOR):
        pass
    codebase = codebase_of(mine, FakeEmbedder(), uri=uri)
    async with codebase.running():
        await converged(codebase)
    write(other, {"other.py": "orange = 1\n"})
    before, lease = await contents(uri), await opened(uri).get("writer.json", 10_000)
    async with serving(codebase_of(other, FakeEmbedder(), uri=uri)) as client:
        status = await in_error(client)
        assert "belongs to the owner" in status["error_message"]
        assert "VECTOR_INDEX_REMOTE_OWNER" in status["error_message"]
        assert "VECTOR_INDEX_LANCEDB_URI" in status["error_message"]
        assert (await found(client, "apple_3"))[0] == "part/module_3.py"
        assert "belongs to the owner" in await failing_call(
            client, "trigger_index", force_reindex=True
        )
    assert await contents(uri) == before
    assert (await opened(uri).get("writer.json", 10_000)).tag == lease.tag


async def test_a_project_that_is_moved_keeps_its_index_and_its_copy_is_another(folders, uri):
    root = folders[0]
    async with serving(codebase_of(root, FakeEmbedder(), uri=uri)) as client:
        await settled(client)
    shutil.copytree(root, root.parent / "copy")
    async with serving(codebase_of(root.parent / "copy", FakeEmbedder(), uri=uri)) as client:
        await in_error(client)
    root.rename(root.parent / "moved")
    async with serving(codebase_of(root.parent / "moved", FakeEmbedder(), uri=uri)) as client:
        assert (await settled(client))["last_run"]["files_read"] == 0


async def test_a_name_that_two_machines_share_makes_them_one_owner_in_turns(
    folders, uri, server, machine_of
):
    mine, other = folders
    with machine_of(other, uri, "team", environment(server.port)) as writer:
        await writer.says(is_settled=True)
        async with serving(of_team(mine, uri)) as reader:
            await eventually(lambda: _is_writer(reader, False))
            assert (await found(reader, "apple_3"))[0] == "part/module_3.py"
            assert "keeps this index" in await failing_call(reader, "trigger_index")
            for root in folders:
                write(root, {"new.py": "banana = 1\n"})
            await eventually(lambda: _finds(reader, "banana", "new.py"))
            await writer.end()
            await eventually(lambda: _is_writer(reader, True))
            await settled(reader)
    await is_like_fresh(uri, mine)


async def test_another_process_of_this_machine_is_named_as_that(folders, uri):
    async with serving(codebase_of(folders[0], FakeEmbedder(), uri=uri)) as client:
        await settled(client)
        async with serving(codebase_of(folders[0], FakeEmbedder(), uri=uri)) as other:
            said = await failing_call(other, "trigger_index")
            assert "another process of this machine keeps this index" in said


async def _is_writer(client, wanted):
    status = await status_of(client)
    return status["is_writer"] is wanted and status["status"] == "WATCHING"


async def test_who_is_stopped_in_the_middle_of_a_commit_does_not_finish_it(
    folders, uri, server, proxy, machine_of
):
    mine, other = folders
    with machine_of(mine, uri, "team", environment(proxy.port)) as stopped:
        await stopped.says(is_settled=True)
        held = proxy.hold("PUT", r"chunks_\d+\.lance/_versions/")
        write(mine, {"late.py": "late = 1\n"})
        assert await anyio.to_thread.run_sync(held.reached.wait, 30)
        stopped.send(signal.SIGSTOP)
        codebase = of_team(other, uri)
        async with serving(codebase) as client:
            await eventually(lambda: _is_writer(client, True))
            write(other, {"new.py": "banana = 1\n"})
            await eventually(lambda: _finds(client, "banana", "new.py"))
            held.release()  # the commit arrives; then its writer wakes up and tries again
            stopped.send(signal.SIGCONT)
            await stopped.says(is_writer=False, state="WATCHING")
            await quiet(proxy, ".lance/")
            await settled(client)
            await is_like_fresh(uri, other)
        await stopped.says(is_settled=True)  # its turn comes again, in which it writes
    await is_like_fresh(uri, mine)


async def quiet(proxy, part):
    """Wait until nothing has been asked for a while; what does not come sets no event."""
    while True:
        before = proxy.count(part)
        with anyio.move_on_after(0.7):
            await anyio.sleep_forever()
        if proxy.count(part) == before:
            return


async def _finds(client, query, file):
    return (await found(client, query))[:1] == [file]


async def test_who_is_stopped_in_the_middle_of_a_swap_replaces_nothing(
    folders, uri, proxy, machine_of
):
    """A rebuild ends with the commit of the manifest, which names the new tables."""
    mine, other = folders
    with machine_of(mine, uri, "team", environment(proxy.port)) as stopped:
        await stopped.says(is_settled=True)
        held = proxy.hold("PUT", r"manifest\.lance/_versions/")
        stopped.send(signal.SIGUSR1)  # force_reindex
        assert await anyio.to_thread.run_sync(held.reached.wait, 30)
        stopped.send(signal.SIGSTOP)
        async with serving(of_team(other, uri)) as client:
            await eventually(lambda: _is_writer(client, True))
            held.release()
            stopped.send(signal.SIGCONT)
            await stopped.says(is_writer=False, state="WATCHING")
            await quiet(proxy, ".lance/")
            write(other, {"new.py": "banana = 1\n"})
            await eventually(lambda: _finds(client, "banana", "new.py"))
            await settled(client)
    await is_like_fresh(uri, other)


async def test_machines_that_are_stopped_at_random_leave_an_index_like_a_fresh_one(
    folders, uri, server, machine_of
):
    chance = random.Random(SEED)
    port = server.port
    with (
        machine_of(folders[0], uri, "team", environment(port)) as one,
        machine_of(folders[1], uri, "team", environment(port)) as two,
    ):
        await eventually(lambda: one.now and two.now)
        await eventually(lambda: one.now["is_writer"] or two.now["is_writer"])
        turns, until, number = 0, time.monotonic() + STORM_SECONDS, 0
        while time.monotonic() < until:
            writer = one if one.now["is_writer"] else two
            for _ in range(chance.randrange(1, 6)):
                number += 1
                name = f"part/module_{chance.randrange(12)}.py"
                text = f"value_{number} = {number}\n" * chance.randrange(1, 40)
                for root in folders:  # both get the same, or each would be right in its own way
                    write(root, {name: text})
                await anyio.sleep(chance.random() * 0.3)
            writer.send(signal.SIGSTOP)
            await anyio.sleep(chance.choice([0.1, 2 * SECONDS, 4 * SECONDS]))
            writer.send(signal.SIGCONT)
            turns += 1
        assert turns
        await eventually(lambda: one.now["is_writer"] is not two.now["is_writer"])
        ends, stays = (one, two) if one.now["is_writer"] else (two, one)
        stays_in = folders[stays is two]
        await ends.end()
        for root in folders:
            write(root, {"last.py": "last = 1\n"})
        await eventually(lambda: _holds(uri, "last.py"))  # so it has all that was saved before
        await stays.says(is_settled=True)
    await is_like_fresh(uri, stays_in)  # times of files are those of the last to compare them


async def _holds(uri, key):
    index = await Index.open(uri)
    try:
        return bool(await index.store.rows([key]))
    finally:
        index.close()


async def test_who_is_stopped_while_it_fences_undoes_nothing(
    folders, uri, server, proxy, machine_of
):
    """Nothing refuses the restoring of a version: it may arrive in another machine's turn."""
    mine, other = folders
    with machine_of(mine, uri, "team", environment(server.port)) as first:
        await first.says(is_settled=True)
        await first.end()
    held = proxy.hold("PUT", r"chunks_\d+\.lance/_versions/")
    with machine_of(mine, uri, "team", environment(proxy.port)) as stopped:
        assert await anyio.to_thread.run_sync(held.reached.wait, 30)
        stopped.send(signal.SIGSTOP)
        async with serving(of_team(other, uri)) as client:
            await eventually(lambda: _is_writer(client, True))
            write(other, {"new.py": "banana = 1\n"})
            await eventually(lambda: _finds(client, "banana", "new.py"))
            await settled(client)
            held.release()
            stopped.send(signal.SIGCONT)
            await stopped.says(is_writer=False, state="WATCHING")
            # It has fenced out the other, late, and may be the first to take the lease again.
            await stopped.end()
            await eventually(lambda: _is_complete(client))
    await is_like_fresh(uri, other)


async def _is_complete(client):
    result = await client.call_tool("trigger_index", {})
    return not result.is_error and result.structured_content["complete"]


@pytest.fixture
async def kept(folders, uri):
    """An index that a machine has made and left."""
    codebase = of_team(folders[0], uri)
    async with codebase.running():
        await converged(codebase)
    return folders[0]


def refuse_to_write(proxy, answer=(403, "<Error><Code>AccessDenied</Code></Error>")):
    proxy.refused, proxy.answer = ("PUT", "POST", "DELETE"), answer


async def test_with_a_key_that_may_only_read_the_index_is_read_and_nothing_is_tried_for_ever(
    kept, uri, proxy, reached
):
    refuse_to_write(proxy)
    reached(proxy.port)
    write(kept, {"new.py": "banana = 1\n"})
    before = await contents(uri)
    async with serving(of_team(kept, uri)) as client:
        result = await call(client, "search_index", query="apple_3")
        assert result["results"][0]["file_path"] == "part/module_3.py"
        assert "the key may not do this there" in result["note"]
        status = await status_of(client)
        assert (status["status"], status["error_message"]) == ("WATCHING", None)
        assert "may not do this" in status["index_writer"]
        assert "may not do this" in await failing_call(client, "trigger_index")
    visitor = of_team(kept, uri)
    async with visitor.running(Role.VISITOR):
        with pytest.raises(StorageError, match="may not do this") as raised:
            await visitor.index.trigger(force_reindex=False)
        assert raised.value.problem is Problem.STORE_FORBIDS
        assert (await visitor.search("apple_3", 1)).hits
    assert await contents(uri) == before


async def test_a_server_that_never_answers_keeps_nobody_waiting(
    kept, uri, proxy, reached, monkeypatch
):
    reached(proxy.port)
    async with serving(of_team(kept, uri)) as client:
        await settled(client)
        with monkeypatch.context() as impatient:
            impatient.setattr(reach, "_SECONDS", dict.fromkeys(reach._SECONDS, 2.0))
            proxy.is_silent = True
            told = await failing_call(client, "search_index", query="apple_3")
            assert "does not answer" in told
            status = await eventually(lambda: _is_in_error_by(client, "not"))
            assert "force_reindex" not in status["error_message"]
        proxy.let_talk()
        await settled(client)
        await eventually(lambda: _answers(client))


async def test_a_search_that_is_cut_off_keeps_no_later_one_waiting(kept, uri, proxy, reached):
    reached(proxy.port)
    index = await Index.open(uri)
    held = proxy.hold("GET", r"\.lance|_indices")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.store.matching, ["appl"], 5)
        assert await anyio.to_thread.run_sync(held.reached.wait, 30)
        tasks.cancel_scope.cancel()
    held.release()
    with anyio.fail_after(PATIENCE_SECONDS):
        assert await index.store.matching(["appl"], 5)
    index.close()


async def _answers(client):
    return not (await client.call_tool("search_index", {"query": "apple_3"})).is_error


async def _is_in_error_by(client, words):
    status = await status_of(client)
    return words in (status["error_message"] or "") and status


async def test_no_key_is_shown_whatever_the_server_quotes(
    kept, uri, proxy, reached, monkeypatch, caplog
):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-of-a-test")
    refuse_to_write(proxy, (400, "Bad {headers}"))
    proxy.refused = ("GET", "PUT", "POST", "DELETE", "HEAD")
    reached(proxy.port)
    async with serving(of_team(kept, uri)) as client:
        status = await in_error(client)
        said = await failing_call(client, "search_index", query="apple_3")
    for text in (str(status), said, caplog.text):
        assert "a-token-of-a-test" not in text
        assert "a-secret-of-a-test" not in text
        assert "Credential=" not in text


async def test_what_looks_damaged_is_opened_again_and_built_anew_only_if_somebody_wants_that(
    kept, uri
):
    objects = opened(uri)
    manifests = [e.name for e in await objects.entries("manifest.lance/data/")]
    [table] = {e.name.partition("/")[0] for e in await objects.entries() if "chunks" in e.name}
    data = [entry.name for entry in await objects.entries(f"{table}/data/")]
    await objects.delete(data)
    codebase = of_team(kept, uri)
    async with serving(codebase) as client:
        status = await in_error(client)
        assert "it is opened again by itself" in status["error_message"]
        with anyio.CancelScope() as gives_up:  # whoever wanted it anew, and does no more
            gives_up.cancel()
            await codebase.index._keeper.try_now(anew=True)
        assert not codebase.index._keeper.opener.is_anew
        left = {entry.name for entry in await objects.entries()}
        assert manifests[0] in left
        assert {table} == {name.partition("/")[0] for name in left if "chunks" in name}
        await call(client, "trigger_index", force_reindex=True)
        await settled(client)
    await is_like_fresh(uri, kept)
