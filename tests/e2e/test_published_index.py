"""`publish` as jobs run it, and services of other machines that fetch what it has published."""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from processes import (
    FAKE_MODEL,
    FAKE_WORKER,
    environment,
    posix_only,
    run,
    session,
    with_import_hook,
)
from writing import put, write

pytestmark = [pytest.mark.long, pytest.mark.anyio]

IS_LONG = "KILLS" in os.environ  # then a job is killed at each of its requests
FILES = {f"part_{i}.py": f"def apple_{i}(value):\n    return value + {i}\n" for i in range(20)}
# Ends the process in the place of the n-th time that a file of a store is written, or read whole.
KILLED = """
import os, signal, sys
at, method = os.environ.get("KILL_AT"), os.environ.get("KILL_IN")
if at is not None:
    from vector_index_mcp.objects import folder
    count, real = [int(at)], getattr(folder.FolderObjects, method)
    def dying(self, *arguments):
        count[0] -= 1
        if count[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, *arguments)
    setattr(folder.FolderObjects, method, dying)
"""


def git(folder, *words):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Machine:
    """A user of a machine: caches, settings and processes of their own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        base = environment(folder, **FAKE_MODEL)
        self.variables = with_import_hook(folder / "hook", FAKE_WORKER + KILLED, base)

    def cloned(self, origin: Path) -> Path:
        target = self.folder / "clone"
        shutil.rmtree(target, ignore_errors=True)
        git(self.folder, "clone", "-q", str(origin), str(target))
        return target

    def run(self, *arguments, **variables):
        variables = self.variables | variables
        return run(*arguments, cwd=self.folder, variables=variables, is_hook_first=False)

    def publish(self, project, store, *options, **variables):
        done = self.run("publish", project, store, "--json", *options, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextmanager
def folder_for_sockets():
    with TemporaryDirectory(prefix="vi") as name:
        yield Path(name).resolve()


@pytest.fixture
def machines():
    """A function that makes machines; sockets need a short path."""
    with folder_for_sockets() as folder:
        yield lambda name: Machine(folder / name)


@pytest.fixture
def origin(tmp_path):
    """The repository that all clone."""
    root = write(tmp_path / "origin", FILES)
    git(root, "init", "-q", "-b", "main")
    commit(root, "first")
    return root


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def commit(root, message):
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)
    return git(root, "rev-parse", "HEAD")


async def fetched(machine, project, store):
    """The status of a service on another machine, once it is done."""
    variables = machine.variables | {"VECTOR_INDEX_SHARED_INDEX": str(store)}
    async with session(project, variables) as served:
        return await served.status_when(
            lambda now: (
                now.status == "WATCHING"
                and now.indexed_chunk_count > 0
                and now.embedded_chunk_count == now.indexed_chunk_count
                and "not compared" not in (now.shared_index or "")
            )
        )


async def test_one_machine_publishes_and_another_one_answers(machines, origin, store):
    ci, laptop = machines("ci"), machines("laptop")
    first = ci.publish(ci.cloned(origin), store)
    assert (first["branch"], first["files"], first["uploaded"] > 0) == ("main", 20, True)
    assert ci.publish(ci.folder / "clone", store)["uploaded"] == 0

    clone = laptop.cloned(origin)
    variables = laptop.variables | {"VECTOR_INDEX_SHARED_INDEX": str(store)}
    async with session(clone, variables) as served:
        found = await served.search("apple_7", 5)
        assert found.results[0].file_path == "part_7.py"
        now = await served.status_when(lambda now: "not compared" not in (now.shared_index or "-"))
        await served.converges("apple_7", "part_7.py")
    assert now.shared_index == f"fetched from branch main at {first['commit'][:12]}"
    assert (now.last_run.files_indexed, now.model.chunks_embedded) == (0, 0)
    assert laptop.run("verify", clone).returncode == 0


async def test_a_job_on_a_new_machine_makes_only_what_has_changed(machines, origin, store):
    first = machines("first")
    first.publish(first.cloned(origin), store)
    put(origin, "part_7.py", "def melon():\n    return 1\n")
    second = machines("second")
    head = commit(origin, "second")
    clone = second.cloned(origin)
    done = second.publish(clone, store)
    assert done["commit"] == head
    log = second.run("status", clone, "--json")
    assert json.loads(log.stdout)["indexed_file_count"] == 20
    # The cache of that machine has the vector of what it has made, and no other.
    laptop = machines("laptop")
    now = await fetched(laptop, laptop.cloned(origin), store)
    assert now.last_run.files_indexed == 0


async def test_an_older_commit_is_not_published_over_a_later_one(machines, origin, store):
    ci = machines("ci")
    old = ci.cloned(origin)
    put(origin, "new.py", "x = 1\n")
    head = commit(origin, "second")
    late = machines("late")
    late.publish(late.cloned(origin), store)
    git(old, "fetch", "-q")
    done = ci.run("publish", old, store)
    assert done.returncode == 0
    assert f"{head[:12]} is published, which is later" in done.stdout
    assert not (old / ".lancedb").exists()


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_job_that_checked_out_before_the_later_commit_was_pushed_leaves_that(
    machines, origin, store, depth
):
    """As jobs check out: one commit, by its number, and no branch."""
    earlier = git(origin, "rev-parse", "HEAD")
    job, late = machines("job"), machines("late")
    clone = job.folder / "clone"
    clone.mkdir()
    git(clone, "init", "-q", "-b", "main")
    git(clone, "remote", "add", "origin", origin.as_uri())
    git(clone, "fetch", "-q", f"--depth={depth}", "origin", earlier)
    git(clone, "reset", "-q", "--hard", earlier)
    for number in range(3):
        put(origin, "new.py", f"x = {number}\n")
        head = commit(origin, f"later {number}")
    late.publish(late.cloned(origin), store)
    done = job.run("publish", clone, store)
    assert done.returncode == 0, done.stderr
    assert f"{head[:12]} is published, which is later" in done.stdout
    assert git(clone, "status", "--porcelain", "--branch") == "## main"


async def test_jobs_at_once_all_succeed(machines, origin, store):
    put(origin, "new.py", "x = 1\n")
    jobs = [machines(f"job{n}") for n in range(2)]
    results = []

    async def publish(job):
        await anyio.to_thread.run_sync(lambda: results.append(job.publish(clones[job], store)))

    clones = {job: job.cloned(origin) for job in jobs}
    async with anyio.create_task_group() as tasks:
        for job in jobs:
            tasks.start_soon(publish, job)
    assert len(results) == 2
    laptop = machines("laptop")
    now = await fetched(laptop, laptop.cloned(origin), store)
    assert now.last_run.files_indexed == 0


@posix_only
@pytest.mark.parametrize("at", range(11) if IS_LONG else [0, 4, 10])
async def test_a_job_that_is_killed_leaves_what_is_published_and_the_next_one_ends_it(
    machines, origin, store, at
):
    ci = machines("ci")
    clone = ci.cloned(origin)
    ci.publish(clone, store)
    put(clone, "part_7.py", "def melon():\n    return 1\n")
    commit(clone, "second")
    killed = ci.run("publish", clone, store, KILL_IN="_write", KILL_AT=str(at))
    assert killed.returncode == -9
    laptop = machines("laptop")
    assert (await fetched(laptop, laptop.cloned(origin), store)).last_run.files_indexed == 0
    assert ci.publish(clone, store)["files"] == 20
    now = await fetched(laptop, laptop.cloned(clone), store)
    assert now.last_run.files_indexed == 0


@posix_only
@pytest.mark.parametrize("at", range(11) if IS_LONG else [0, 5])
async def test_a_fetch_that_is_killed_is_ended_by_the_next_start(machines, origin, store, at):
    ci, laptop = machines("ci"), machines("laptop")
    ci.publish(ci.cloned(origin), store)
    clone = laptop.cloned(origin)
    shared = {"VECTOR_INDEX_SHARED_INDEX": str(store)}
    killed = laptop.run("index", clone, KILL_IN="download", KILL_AT=str(at), **shared)
    assert killed.returncode == -9
    now = await fetched(laptop, clone, store)
    assert now.last_run.files_indexed == 0
    assert not (clone / ".lancedb" / "index.fetched").exists()
    assert laptop.run("verify", clone).returncode == 0


async def test_a_store_that_is_not_there_costs_a_sentence(machines, origin, tmp_path):
    laptop = machines("laptop")
    now = await fetched(laptop, laptop.cloned(origin), tmp_path / "nowhere")
    assert now.shared_index == ("not used: nothing is published there for a branch of this project")
    assert now.last_run.files_indexed == 20


async def test_what_makes_no_sense_is_refused_with_a_reason(machines, origin, store):
    ci = machines("ci")
    clone = ci.cloned(origin)
    git(clone, "checkout", "-q", "--detach")
    detached = ci.run("publish", clone, store)
    assert (detached.returncode, "--branch NAME" in detached.stderr) == (2, True)
    assert ci.publish(clone, store, "--branch", "main")["branch"] == "main"
    assert ci.run("publish", clone, store, "--keep", "0").returncode == 2
    other = ci.run("publish", clone, "ftp://host/x", "--branch", "main")
    assert (other.returncode, "URI like s3://bucket/folder" in other.stderr) == (2, True)
    secret = ci.run("publish", clone, "s3://name:hunter2@bucket/x", "--branch", "main")
    assert (secret.returncode, "not hold a name or password" in secret.stderr) == (2, True)
    assert "hunter2" not in secret.stdout + secret.stderr
    elsewhere = ci.run("publish", clone, store, VECTOR_INDEX_LANCEDB_URI="s3://bucket/index")
    assert (
        elsewhere.returncode,
        "an index on this machine can be published" in elsewhere.stderr,
    ) == (
        2,
        True,
    )
    bytes_alone = ci.run("publish", clone, store, "--branch", "x\udcff")
    assert (bytes_alone.returncode, "characters that cannot be printed" in bytes_alone.stderr) == (
        2,
        True,
    )
    inside = ci.run("publish", clone, clone / "index", "--branch", "main")
    assert (inside.returncode, "would be indexed with it" in inside.stderr) == (2, True)
    assert not (clone / "index").exists()
    put(clone, ".git/info/exclude", "index/\n")
    assert ci.publish(clone, clone / "index", "--branch", "main")["files"] == len(FILES)
    relative = ci.run("index", clone, VECTOR_INDEX_SHARED_INDEX="./here")
    assert (relative.returncode, "the full path of a folder" in relative.stderr) == (2, True)


async def test_what_differs_from_the_commit_is_named(machines, origin, store):
    ci = machines("ci")
    clone = ci.cloned(origin)
    assert ci.publish(clone, store)["problems"] == []
    put(clone, "part_1.py", "draft = 1\n")
    put(clone, "new/two words.py", "draft = 2\n")
    put(clone, "new/picture.png", "no text")  # which is not indexed
    done = ci.run("publish", clone, store)
    assert done.returncode == 0
    named = "part_1.py, new/two words.py"
    assert f"differ from the commit are published as they are: {named}\n" in done.stderr


async def test_whoever_publishes_while_another_process_writes_the_index_is_told_so(
    machines, origin, store
):
    ci = machines("ci")
    clone = ci.cloned(origin)
    async with session(clone, ci.variables) as served:  # in the foreground
        await served.status_when(lambda now: now.status == "WATCHING")
        done = ci.run("publish", clone, store)
        assert (done.returncode, "publish when it has ended" in done.stderr) == (1, True)
    assert ci.run("search", "-C", clone, "apple_7").returncode == 0  # which starts a service
    try:
        done = ci.run("publish", clone, store)
        assert (done.returncode, f"`vector-index-mcp stop {clone}`" in done.stderr) == (1, True)
        assert not store.exists()
    finally:
        assert ci.run("stop", "--all").returncode == 0  # of this machine's


def test_a_job_gives_its_vectors_to_the_team_as_well(machines, origin, store, tmp_path):
    job, vectors = machines("job"), tmp_path / "vectors"
    shared = {"VECTOR_INDEX_SHARED_CACHE": str(vectors)}
    published = job.publish(job.cloned(origin), store, **shared)
    assert published["vectors_shared"] == published["chunks"] == len(FILES)
    assert len([*vectors.rglob("*.pack")]) == 1
    assert job.publish(job.cloned(origin), store, **shared)["vectors_shared"] == 0


def test_a_team_store_that_fails_does_not_fail_the_job(machines, origin, store, tmp_path):
    (tmp_path / "file").touch()
    job, vectors = machines("job"), tmp_path / "file" / "below"
    published = job.publish(job.cloned(origin), store, VECTOR_INDEX_SHARED_CACHE=str(vectors))
    assert published["chunks"] == len(FILES)
    assert "the team's vectors were not written" in published["problems"][0]
