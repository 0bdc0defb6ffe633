"""A store of notes: made, asked by an MCP client in memory, and looked at with git."""

import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from functools import partial

from serving import serving as serving_of_any_set
from serving import spoken_to as spoken_to_any_set
from waiting import PATIENCE_SECONDS
from writing import put

from vector_index_mcp.notes.remedies import REMEDIES
from vector_index_mcp.notes.service import Notes
from vector_index_mcp.notes.store.disk import Change, Disk
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.writer import Plan, Writer
from vector_index_mcp.serving import sets
from vector_index_mcp.serving.lazily import Retrying

OURS = "Knowledge MCP Server <knowledge-mcp@localhost>"
ANN = "Ann <ann@example.org>"
"""Who git says is at this machine, once `settings_of_ann` are its settings."""
OWN = ".git/vector-index-mcp"
"""Where the program keeps what belongs to no history."""
_LOCKED = "index.lock': File exists"


# -- served ----------------------------------------------------------------------------------


def notes_of(folder, store=None):
    """The notes in `store`, or the folder of that name; they cannot be searched by meaning."""

    async def load():
        raise AssertionError("nobody searches by meaning here")

    return Notes(store or folder / "store", folder / "state", Retrying(load), REMEDIES)


def serving(notes, mode="legacy"):
    """A client of `notes`, which run meanwhile."""
    return serving_of_any_set(notes, mode, sets.NOTES)


def spoken_to(notes):
    """Asks `notes`, which run meanwhile, in plain JSON-RPC: for a method, the whole answer."""
    return spoken_to_any_set(notes, sets.NOTES)


async def answered(client, tool, **arguments):
    """What a tool says, be it an error of the contract."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error
    [content] = result.content
    answer = json.loads(content.text)
    assert result.structured_content == answer
    return answer


async def done(client, tool, **arguments):
    """What a tool says that is expected to succeed."""
    answer = await answered(client, tool, **arguments)
    assert answer.pop("success"), answer
    return answer


# -- written without a service ---------------------------------------------------------------


@contextmanager
def writer_of(folder):
    """The one who writes the store of `folder`, without a service around."""
    disk = Disk(folder / "store")
    writer = Writer(disk, Repository(disk, folder / "state"))
    writer.start()
    try:
        yield writer
    finally:
        writer.stop()


def asked(writer, puts=(), drops=(), message="Changed", folder=""):
    """A change that the writer is asked for: contents by path, and what goes away."""
    puts = {path: text.encode() for path, text in dict(puts).items()}
    plan = Plan(Change(puts, tuple(drops), folder=folder), message, message)
    return writer.ask(lambda: plan)


def wrote(writer, puts=(), drops=(), message="Changed", folder=""):
    """Have a change made."""
    return asked(writer, puts, drops, message, folder).result(PATIENCE_SECONDS)


def opened(writer):
    """Have the store opened, and everything committed that a person has changed before."""
    writer.alone(lambda: None).result(PATIENCE_SECONDS)


# -- looked at -------------------------------------------------------------------------------


def settings_of_ann(folder):
    """The variables with which git and the program take Ann for who is at the machine."""
    settings = folder / "gitconfig"
    settings.write_text("[user]\n\tname = Ann\n\temail = ann@example.org\n", encoding="utf-8")
    return {"GIT_CONFIG_GLOBAL": str(settings), "GIT_CONFIG_NOSYSTEM": "1"}


def pushed(store, files):
    """A repository with these texts, by path, as another machine has pushed it."""
    for path, text in files.items():
        put(store, path, text)
    git(store, "init", "--quiet", "--initial-branch=main")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "Theirs")
    git(store, "config", "receive.denyCurrentBranch", "ignore")
    return store


def git(store, *arguments, given=None, status=0):
    """What git prints in a store, as a person runs it there."""
    variables = {n: v for n, v in os.environ.items() if not n.startswith("GIT_")}
    person = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Bob",
        "GIT_AUTHOR_EMAIL": "bob@example.org",
        "GIT_COMMITTER_NAME": "Bob",
        "GIT_COMMITTER_EMAIL": "bob@example.org",
    }
    run = partial(
        subprocess.run,
        ["git", *arguments],
        cwd=store,
        env={**variables, **person},
        input=given,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    ran, since = run(), time.monotonic()
    # A service holds the lock of git's index for some microseconds after a change.
    while _LOCKED in ran.stderr and ran.returncode != status:
        assert time.monotonic() < since + PATIENCE_SECONDS, ran.stderr
        ran = run()
    assert ran.returncode == status, ran.stderr
    return ran.stdout.rstrip("\n")


def log(store, *options):
    """Author and subject of each commit, the newest first."""
    lines = git(store, "log", "--format=%an <%ae>%x09%s", *options).split("\n")
    return [tuple(line.split("\t")) for line in lines]


def committed(store, path, commit="HEAD"):
    """What a commit holds at a path."""
    return git(store, "cat-file", "blob", f"{commit}:{path}")


def files_of(store):
    """What lies in a store by path: bytes, and where links lead; not what is git's, nor the log."""
    found = {}
    for path in store.rglob("*"):
        key = str(path.relative_to(store))
        if key.startswith((".git/", "activity.log")):
            continue
        if path.is_symlink():
            found[key] = f"-> {path.readlink()}"
        elif key != ".git":
            found[key] = path.read_bytes() if path.is_file() else "folder"
    return found


def removed(folder):
    """Remove a folder in which a writer or its upkeep may make and remove files meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def state_of(store):
    """All that an error must leave as it was: the files, the branches, what git keeps beside."""
    gits = store / ".git"
    heads = {
        str(path.relative_to(gits)): path.read_bytes()
        for path in [gits / "HEAD", gits / "packed-refs", *gits.glob("refs/**/*")]
        if path.is_file() and path != gits / "refs/vector-index-mcp/next"  # no branch of anybody's
    }
    own = store / OWN
    left = sorted(p.name for p in own.iterdir()) if own.is_dir() else []
    # Whoever waits is answered a moment before the mark of a change under way goes.
    passing = {"lock", "changing", "index.part", "index.part.lock", "new.part"}
    return files_of(store), heads, [name for name in left if name not in passing]
