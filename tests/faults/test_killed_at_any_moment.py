"""A process that indexes is killed; whatever it left behind, the next start makes it right."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio.to_thread
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, contents, converged, fresh_contents
from waiting import eventually
from writing import write

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.indexing.role import Role

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

FILES = 150
KILLS = int(os.environ.get("KILLS", "3"))  # of the command
KILLS_PER_MOMENT = max(1, KILLS // 5)
LONGEST_LIFE_SECONDS = 60
TESTS = Path(__file__).parents[1]
STORE = "vector_index_mcp.engine.store"
MOMENTS = {
    "a scan": ("vector_index_mcp.indexing.looking.outlook", "walk"),
    "the commit of texts": (f"{STORE}.store", "Store.replace"),
    "the commit of records": (f"{STORE}.store", "Store.put_records"),
    "the commit of vectors": (f"{STORE}.store", "Store.fill"),
    "maintenance": (f"{STORE}.store", "Store.maintain"),
    "the build of an index": ("lancedb.table", "AsyncTable.create_index"),
    "the swap of generations": (f"{STORE}.index", "Index.swap"),
    "a write to the cache": ("vector_index_mcp.engine.models.cache", "EmbeddingCache.put"),
}
"""What is going on when the process dies: the function that is doing it."""

# Indexes with vectors, which the command has only where there is a model, and kills itself a
# moment after the first call of a function.
KILLED_IN = """
import importlib, os, signal, sys, threading
from pathlib import Path
import anyio
from fakes import FakeEmbedder
from serving import codebase_of, converged

project, module, name, delay = sys.argv[1:]
*parents, function = name.split(".")

def die():
    os.kill(os.getpid(), signal.SIGKILL)

async def index():
    codebase = codebase_of(Path(project), FakeEmbedder())  # imports everything
    from vector_index_mcp.indexing.role import Role
    home = importlib.import_module(module)
    for parent in parents:
        home = getattr(home, parent)
    original = getattr(home, function)

    def deadly(*arguments, **named):
        threading.Timer(float(delay), die).start()
        return original(*arguments, **named)

    setattr(home, function, deadly)
    async with codebase.running(Role.VISITOR):
        while True:  # until it dies
            await codebase.index.trigger(force_reindex=True)
            await converged(codebase)

anyio.run(index)
"""


def environment(folder):
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
        "VECTOR_INDEX_EMBEDDING_MODEL": str(folder / "no-model"),
        "VECTOR_INDEX_EMBEDDING_CACHE_DIR": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
    }


def start(folder, *command):
    return subprocess.Popen(
        [sys.executable, *command],
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def made(folder):
    project = folder / "project"
    project.mkdir()
    write(project, {f"{i % 7}/{i}.py": f"value_{i} = {i}\n" for i in range(FILES)})
    return project


def edit(project, chance):
    """Change some files, make some, delete some: work for the process."""
    for number in chance.sample(range(FILES), FILES // 2):
        path = project / f"{number % 7}/{number}.py"
        if path.exists() and chance.random() < 0.2:
            path.unlink()
        else:
            words = " ".join(chance.choices(["alpha", "beta", "gamma", "delta"], k=200))
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"value_{number} = '''{words}'''\n" * chance.randint(0, 4), "utf-8")


def kill_in_the_middle(project, force, life):
    """Start the command and kill it `life` seconds after its first commit."""
    options = ["--force"] if force else []
    process = start(project.parent, "-m", "vector_index_mcp", "index", str(project), *options)
    before = stamp(project)
    deadline = time.monotonic() + LONGEST_LIFE_SECONDS
    while stamp(project) == before and has_not_ended(process, 0.005):
        assert time.monotonic() < deadline, "it never began to write"
    if has_not_ended(process, life):
        process.kill()
        process.wait()
    assert process.returncode in {0, -signal.SIGKILL}


def kill_during(project, moment, delay):
    """Let a process index everything anew, and die `delay` seconds after a `moment` began."""
    module, name = MOMENTS[moment]
    process = start(project.parent, "-c", KILLED_IN, str(project), module, name, str(delay))
    try:
        assert process.wait(timeout=LONGEST_LIFE_SECONDS) == -signal.SIGKILL
    finally:
        process.kill()


def has_not_ended(process, seconds):
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def stamp(project):
    """Differs as soon as a process has begun to write the index."""
    versions = sorted((project / ".lancedb").glob("*.lance/_versions/*"))
    return [version.name for version in versions]


async def recovered(project, **options):
    """Start again and wait until all is done; returns what the index holds, and the embedder."""
    embedder = FakeEmbedder()

    async def is_ours():
        # A child that was being started when its parent died holds the lock until it has begun.
        codebase = codebase_of(project, embedder, **options)
        async with codebase.running(Role.VISITOR):
            if await codebase.index.is_kept_elsewhere():
                return False
            await converged(codebase)
        assert codebase.index.state.error is None
        return True

    await eventually(is_ours)
    return await contents(project / ".lancedb"), embedder


async def test_after_a_kill_the_next_start_makes_a_fresh_index(tmp_path):
    chance, project = random.Random("lives"), made(tmp_path)
    for turn in range(KILLS):
        life = chance.uniform(0.0, 0.5)
        await anyio.to_thread.run_sync(kill_in_the_middle, project, turn % 3 == 2, life)
        state = tmp_path / "state" / "vector-index-mcp"  # the command's
        kept, embedder = await recovered(project, state_folder=state)
        assert kept == await fresh_contents(project, embedder, tmp_path / f"fresh-{turn}")
        edit(project, chance)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_kill_during(tmp_path, moment):
    chance, project = random.Random(moment), made(tmp_path)
    for turn in range(KILLS_PER_MOMENT):
        delay = chance.uniform(0.0, 0.03)
        await anyio.to_thread.run_sync(kill_during, project, moment, delay)
        cache = tmp_path / f"cache-{turn}"
        if (tmp_path / "cache").exists():
            shutil.copytree(tmp_path / "cache", cache)
        kept, embedder = await recovered(project)
        # Before what is compared with it embeds the same.
        assert cached(cache, await embedder.identity(), embedder.texts) == set()
        assert kept == await fresh_contents(project, embedder, tmp_path / f"fresh-{turn}")
        edit(project, chance)


def cached(folder, model, texts):
    """Which of the embedded `texts` the cache at `folder` has the vectors of, by hash."""
    hashes = {hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in texts}
    cache = EmbeddingCache(folder, 100_000_000)
    found = set(cache.get(model, hashes))
    cache.close()
    return found
