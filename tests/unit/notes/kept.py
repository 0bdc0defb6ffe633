"""A store with a past: written by the tools or committed by a person, at times that a test says."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from datetime import datetime

from stores import files_of, opened, writer_of, wrote
from waiting import PATIENCE_SECONDS

from vector_index_mcp.notes import document_calls, main_calls, todo_calls
from vector_index_mcp.notes.arguments import checked
from vector_index_mcp.notes.calls import Store, planned
from vector_index_mcp.notes.past.states import tree_of
from vector_index_mcp.notes.store.byhand import ByHand
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.texts.reading import Shelf

WRITES = {**main_calls.WRITES, **document_calls.WRITES, **todo_calls.WRITES}


class Kept:
    """A store in the folder `store` of a folder, and its writer."""

    def __init__(self, folder, writer):
        self.home = folder / "store"
        self.writer = writer
        disk = Disk(self.home)
        (folder / "looked" / "git").mkdir(parents=True, exist_ok=True)
        self.store = Store(disk, Shelf(disk), Repository(disk, folder / "looked"))

    def call(self, tool, **arguments):
        """What a tool that writes answers."""
        given = checked(tool, arguments)
        asked = self.writer.ask(lambda: planned(WRITES[tool], self.store, given))
        return asked.result(PATIENCE_SECONDS)

    def document(self, project, name, text="text"):
        """Make a document with one chapter."""
        self.call(
            "create_knowledge_file",
            project_id=project,
            filename=name,
            title=name,
            introduction="About it.",
            keywords=["word"],
            chapters=[{"title": "Chapter", "content": text}],
        )

    def chapter(self, project, name, text):
        """Change that chapter."""
        self.call(
            "update_chapter",
            project_id=project,
            filename=f"{name}.md",
            chapter_title="Chapter",
            new_content=text,
        )

    def main(self, project, text):
        """Write a main text."""
        self.call("update_project_main", project_id=project, content=text)

    def todo(self, project, description, *tasks):
        """Make a to-do list; its number."""
        made = self.call("create_todo", project_id=project, description=description, tasks=[*tasks])
        return made["todo_number"]

    def put(self, path, text):
        """Write a file by hand."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def change(self, puts=(), drops=()):
        """Have files changed in one commit."""
        wrote(self.writer, puts, drops)

    def stage(self):
        """Bring git's index up to date, as a service does soon after each commit."""
        self.writer.index.refresh()

    @property
    def head(self):
        """The last commit."""
        repository = self.store.repository
        repository.prepare()
        return repository.commit_of(repository.branch())

    @property
    def texts(self):
        """The contents of the store's files by path; nothing of git."""
        return {path: data for path, data in files_of(self.home).items() if isinstance(data, bytes)}

    @property
    def tree(self):
        """The files of the last commit."""
        return tree_of(self.store.repository, self.head)

    @property
    def by_hand(self):
        """Finds what differs from that."""
        return ByHand(self.store.disk)

    def person(self, *arguments, at="2026-11-17 12:00", name="Ann", given=None):
        """What git prints when a person runs it in the store at some moment."""
        variables = {n: v for n, v in os.environ.items() if not n.startswith("GIT_")}
        moment = str(int(datetime.fromisoformat(at).timestamp()))
        person = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_NAME": name for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "ann@example.org" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_DATE": f"@{moment} +0000" for role in ("AUTHOR", "COMMITTER")},
        }
        ran = subprocess.run(
            ["git", *arguments],
            cwd=self.home,
            env=variables | person,
            input=given,
            capture_output=True,
            check=True,
        )
        return ran.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def commit(self, puts=(), drops=(), *, at="2026-11-17 12:00", message="Written", name="Ann"):
        """Change files by hand and commit them at some moment; the commit's name."""
        for path in drops:
            (self.home / path).unlink()
        for path, text in dict(puts).items():
            self.put(path, text)
        self.person("add", "--all")
        self.person("commit", "--quiet", "--allow-empty", "-m", message, at=at, name=name)
        return self.person("rev-parse", "HEAD")


@contextmanager
def kept_in(folder):
    """A store with a writer; nothing is in it yet."""
    with writer_of(folder) as writer:
        yield Kept(folder, writer)


@contextmanager
def kept_copy(made, folder):
    """A copy of the store that was written in the folder `made`, with a writer of its own."""
    shutil.copytree(made / "store", folder / "store")
    with kept_in(folder) as kept:
        opened(kept.writer)
        kept.store.repository.prepare()
        yield kept


@contextmanager
def kept_by_hand(folder):
    """A store that nobody but a person with git has written."""
    with kept_in(folder) as kept:
        kept.home.mkdir()
        kept.person("init", "--quiet", "-b", "main")
        kept.store.repository.prepare()
        yield kept
