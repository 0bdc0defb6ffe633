"""Machines that share notes: each has a store of its own; a bare repository is their remote."""

import subprocess
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.notes.activity import Call
from vector_index_mcp.notes.arguments import checked
from vector_index_mcp.notes.remedies import REMEDIES
from vector_index_mcp.notes.service import Notes
from vector_index_mcp.serving.lazily import Retrying


async def _no_index():
    raise AssertionError("nobody searches by meaning")


def notes_at(home, load_index=_no_index):
    """The notes in the folder `home`; what belongs to them lies beside it."""
    return Notes(home, home.parent / f"{home.name}-state", Retrying(load_index), REMEDIES)


@dataclass(frozen=True)
class Machine:
    notes: Notes

    @property
    def home(self):
        return self.notes.store.disk.root

    async def call(self, name, **given):
        return await self.notes.answer(Call(name, given), checked(name, given))

    async def done(self, name, **given):
        """The answer to a call that is expected to succeed."""
        answer = await self.call(name, **given)
        assert answer["success"], answer
        return answer

    async def synced(self):
        answer = await self.done("sync_storage")
        assert "not pushed" not in answer["message"], answer
        return answer

    async def details(self):
        return (await self.done("get_storage_status"))["status_details"]

    async def chapters(self, project, filename):
        found = await self.done("get_knowledge_file", project_id=project, filename=filename)
        return {each["title"]: each["content"] for each in found["document"]["chapters"]}

    def git(self, *arguments):
        return git(self.home, *arguments)


def git(folder, *arguments, check=True):
    """What git prints in `folder`."""
    ran = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    assert not check or ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def remote_at(path: Path):
    """A bare repository, as a server has it."""
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--bare", "--initial-branch=main")
    return path


def joined(home: Path, remote):
    """A folder with an empty repository whose remote is `remote`."""
    home.mkdir(parents=True)
    git(home, "init", "--quiet", "--initial-branch=main")
    git(home, "remote", "add", "origin", str(remote))
    return home


@asynccontextmanager
async def running(home):
    """A machine whose service runs."""
    notes = notes_at(home)
    async with notes.running():
        yield Machine(notes)


@asynccontextmanager
async def two_machines(folder: Path, remote):
    """A laptop and a desktop in `folder`, with the same main text."""
    homes = [joined(folder / name, remote) for name in ("laptop", "desktop")]
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await laptop.done("update_project_main", project_id="app", content="# App\n")
        await laptop.synced()
        await desktop.synced()
        yield laptop, desktop


@contextmanager
def gone(remote):
    """The time in which the remote cannot be reached."""
    away = remote.with_name("away")
    remote.rename(away)
    yield
    away.rename(remote)
