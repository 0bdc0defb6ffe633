"""A process that indexes is killed; whatever it left behind, the next start makes it right."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio.to_thread
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, contents, converged, fresh_contents, write

from vector_index_mcp.codebase.service import Role

pytestmark = pytest.mark.anyio

FILES = 150
KILLS = 5  # of each kind of process
LONGEST_LIFE_SECONDS = 60
TESTS = Path(__file__).parents[1]
# The same with vectors, which the command has only where there is a model.
WITH_VECTORS = """
import sys
from pathlib import Path
import anyio
from fakes import FakeEmbedder
from serving import codebase_of, converged
from vector_index_mcp.codebase.service import Role

async def index():
    codebase = codebase_of(Path(sys.argv[1]), FakeEmbedder())
    async with codebase.running(Role.VISITOR):
        await codebase.trigger(force_reindex=sys.argv[2] == "force")
        await converged(codebase)

anyio.run(index)
"""


def command(project, kind, force):
    if kind == "with vectors":
        return [sys.executable, "-c", WITH_VECTORS, str(project), "force" if force else "no"]
    options = ["--force"] if force else []
    return [sys.executable, "-m", "vector_index_mcp", "index", str(project), *options]


def environment(folder):
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
        "VECTOR_INDEX_EMBEDDING_MODEL": str(folder / "no-model"),
        "VECTOR_INDEX_EMBEDDING_CACHE_DIR": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
    }


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


def kill_in_the_middle(project, folder, kind, force, life):
    """Start a process and kill it `life` seconds after its first commit."""
    process = subprocess.Popen(
        command(project, kind, force),
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    before = stamp(project)
    deadline = time.monotonic() + LONGEST_LIFE_SECONDS
    while stamp(project) == before and has_not_ended(process, 0.005):
        assert time.monotonic() < deadline, "it never began to write"
    if has_not_ended(process, life):
        process.kill()
        process.wait()
    assert process.returncode in {0, -signal.SIGKILL}


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


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("kind", ["command", "with vectors"])
async def test_after_a_kill_the_next_start_makes_a_fresh_index(tmp_path, kind):
    chance = random.Random(kind)
    project = tmp_path / "project"
    project.mkdir()
    write(project, {f"{i % 7}/{i}.py": f"value_{i} = {i}\n" for i in range(FILES)})
    for turn in range(KILLS):
        force = turn % 3 == 2
        life = chance.uniform(0.0, 0.5)
        await anyio.to_thread.run_sync(kill_in_the_middle, project, tmp_path, kind, force, life)
        embedder = FakeEmbedder()
        codebase = codebase_of(project, embedder)
        async with codebase.running(Role.VISITOR):
            await converged(codebase)
        assert codebase.state.error is None
        kept = await contents(project / ".lancedb")
        assert kept == await fresh_contents(project, embedder, tmp_path / f"fresh-{turn}")
        edit(project, chance)
