"""Random work of git and editors under a running service, compared with an oracle of its own.

No scan looks for what events did not tell: every change has to be an event, or to follow from one.
`STEPS=5000` runs more, `SEED` another sequence; `make soak` does.
"""

import os
import sys
from contextlib import contextmanager

import anyio
import anyio.to_thread
import differential
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, contents
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.indexing import freshness

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="what Linux tells"),
]

STEPS = int(os.environ.get("STEPS", "150"))
SEED = int(os.environ.get("SEED", "1"))
MOST_STEPS_AT_ONCE = 6


@contextmanager
def a_user(home):
    """The time in which git and we obey the settings below `home` and no others."""
    settings = "[user]\nname = ada\nemail = ada@example.org\n[core]\nhooksPath = /dev/null\n"
    home.mkdir()
    (home / "gitconfig").write_text(settings, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


async def has_seen_everything(codebase, root, number):
    """Wait until all events so far are read, and what follows from them is done.

    The kernel keeps one queue for all watches: what is told of a file written now was told last.
    """
    sentinel = f"{number}.sentinel"  # which no rule is about
    (root / sentinel).write_text(f"{number}\n", encoding="utf-8")

    async def is_done():
        indexer = codebase.index.indexer
        is_seen = indexer.live.ledger.get(sentinel) is not None
        return is_seen and indexer.runs.current is None and not indexer.pending_path_count

    await eventually(is_done)
    (root / sentinel).unlink()

    async def is_gone():
        indexer = codebase.index.indexer
        is_seen = indexer.live.ledger.get(sentinel) is None
        return is_seen and indexer.runs.current is None and not indexer.pending_path_count

    await eventually(is_gone)


async def differences(codebase, root):
    """What the index says otherwise than the files do."""
    wanted = await anyio.to_thread.run_sync(differential.expected, root)
    rows, records = await contents(codebase.index.uri)
    hashes = {key: record.content_hash for key, record in records.items()}
    found = [f"missing: {path}" for path in wanted.keys() - hashes.keys()]
    found += [f"too much: {path}" for path in hashes.keys() - wanted.keys()]
    found += [f"old: {p}" for p in wanted.keys() & hashes.keys() if wanted[p] != hashes[p]]
    if not found:
        for row in rows.values():
            path, first, last = row["file_path"], row["start_line"], row["end_line"]
            lines = (root / path).read_text(encoding="utf-8").splitlines(keepends=True)
            if row["extracted_text_chunk"].strip() not in "".join(lines[first - 1 : last]):
                found.append(f"not in its lines: {path}:{first}-{last}")
        counted = {key: record.chunk_count for key, record in records.items()}
        for row in rows.values():
            counted[row["file_path"]] -= 1
        found += [f"chunks lost: {path}" for path, count in counted.items() if count]
    return sorted(found)


@pytest.mark.timeout(60 + 2 * STEPS)
async def test_nothing_that_git_and_editors_do_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(freshness, "SWEEP_LEAST_SECONDS", 3_600.0, raising=False)
    root = tmp_path / "project"
    with a_user(tmp_path / "home"):
        work = differential.Work(root, tmp_path / "beside", SEED)
        await anyio.to_thread.run_sync(work.begin)
        embedder = FakeEmbedder()
        embedder.absent = "no model here"
        # Not in the project, where `git stash --all` takes it away and brings it back.
        uri = str(tmp_path / "index")
        codebase = codebase_of(root, embedder, uri=uri, chunk_max_chars=200)
        try:
            async with codebase.running():
                await follow(codebase, root, work)
        finally:
            work.end()


async def follow(codebase, root, work):
    run = await codebase.index.catching_up()
    with anyio.fail_after(PATIENCE_SECONDS):
        await run.finished.wait()
    done, former = 0, []
    while done < STEPS:
        count = work.random.randint(1, MOST_STEPS_AT_ONCE)
        steps = [await anyio.to_thread.run_sync(work.step) for _ in range(count)]
        done += count
        await has_seen_everything(codebase, root, done)
        found = await differences(codebase, root)
        assert not found, f"seed {SEED}, step {done}: {found} after {steps}; before: {former}"
        assert codebase.index.state.error is None
        former = steps
