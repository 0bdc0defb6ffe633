"""The notes' command line as a person uses it: the real program, in a pipe and on a terminal."""

import json
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from greeting import INITIALIZE
from processes import ANSWER_SECONDS, COMMAND, NO_MODEL, Place, place_of, posix_only, run
from waiting import eventually
from writing import put

from vector_index_mcp.console.notes.arguments import is_relay

pytestmark = posix_only

HOSTILE = "e\x1b]0;owned\x07\u202evil"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
COLOUR = "\x1b["


class Program:
    """The program, over a store of notes of its own."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.home = place.folder / "notes"
        place.variables["KNOWLEDGE_MCP_HOME"] = str(self.home)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run("notes", *arguments, cwd=self.place.folder, variables=self.place.variables)

    def says(self, *arguments: str) -> str:
        """What a command prints that succeeds."""
        done = self(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def fails(self, status: int, *arguments: str) -> str:
        """What a command says that fails: one line on standard error."""
        done = self(*arguments)
        assert done.returncode == status, done
        [line] = done.stderr.splitlines()
        return line.removeprefix("vector-index-mcp: ")

    def undoing(self, *arguments: str) -> list[str]:
        """The arguments that the program says undo what it has done."""
        line = self.says(*arguments).splitlines()[-1]
        return [*line.split()[2:], "--yes"]

    def git(self, *arguments: str) -> str:
        """What git prints in the store."""
        ran = subprocess.run(
            ["git", *arguments], cwd=self.home, env=self.place.variables, capture_output=True,
            encoding="utf-8", check=True,
        )  # fmt: skip
        return ran.stdout.strip()

    def write(self, **texts: str) -> None:
        """Import documents into the project `shop`, by name."""
        folder = self.place.folder / f"import-{time.monotonic_ns()}"
        for name, text in texts.items():
            put(folder, f"knowledge/{name}.md", text)
        self.says("import", str(folder), "--project", "shop", "--replace")


@pytest.fixture
def program() -> Iterator[Program]:
    with place_of({}, **NO_MODEL) as place:
        yield Program(place)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A store in which a document was written, changed, and another one added."""
    with place_of({}, **NO_MODEL) as place:
        program = Program(place)
        program.write(setup="one\n", other="other\n")
        program.write(setup="two\n")
        program.write(new="new\n")
        yield program.home


@pytest.fixture
def filled(program, template) -> Program:
    """A copy of that store for a test of its own."""
    shutil.copytree(template, program.home)
    return program


@contextmanager
def client(program, *calls):
    """The answers of the notes' tools to a client, as it asks; the service lives as long as it."""
    with subprocess.Popen(
        [*COMMAND, "notes", "serve"],
        cwd=program.place.folder,
        env=program.place.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(message):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        def call(tool, **arguments):
            params = {"name": tool, "arguments": arguments}
            answer = ask({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
            return answer["result"]["structuredContent"]

        try:
            ask(INITIALIZE)
            yield call
        finally:
            process.kill()


# -- a machine without notes -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "Nobody has written a note yet ("),
        (["log"], "Nobody has written a note yet ("),
        (["status"], "Nobody has written a note yet"),
        (["doctor"], "ok       notes: Nobody has written a note yet"),
        (["doctor", "--repair"], "There is nothing that can be repaired"),
    ],
)
def test_where_nobody_wrote_a_note_it_is_said_and_nothing_is_made(program, arguments, said):
    before = sorted(program.place.folder.rglob("*"))
    assert said in program.says(*arguments)
    assert sorted(program.place.folder.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "shop"],
        ["show", "shop"],
        ["log", "shop"],
        ["diff", "shop"],
        ["restore", "shop", "--to", "yesterday", "--yes"],
        ["export", "shop", "out"],
        ["import", "nowhere"],
    ],
)
def test_what_is_not_there_is_said_in_a_sentence_and_nothing_is_made(program, arguments):
    before = sorted(program.place.folder.rglob("*"))
    assert program.fails(2, *arguments)
    assert sorted(program.place.folder.rglob("*")) == before


def test_there_is_no_log_before_a_service_ran(program):
    assert program.fails(1, "logs").startswith("there is no log yet")


# -- looking ---------------------------------------------------------------------------------


@pytest.mark.long
def test_projects_and_what_they_hold_are_listed(filled):
    put(filled.place.folder, "tasks/todo-1.md", "# Release\n\n- [x] one\n- [ ] two\n")
    filled.says("import", str(filled.place.folder / "tasks"), "--project", "shop")
    head, row = filled.says("list").splitlines()
    assert head.split() == ["PROJECT", "DOCUMENTS", "TO-DOS", "OPEN", "TASKS", "LAST", "CHANGE"]
    assert row.split()[:6] == ["shop", "3", "1", "1", "of", "2"]
    listed = filled.says("list", "shop")
    for words in ("no main text", "setup.md", "todo 1  Release  1 of 2 open"):
        assert words in listed


def test_a_document_is_shown_as_it_is_and_as_it_was(filled):
    assert filled.says("show", "shop", "setup") == "two\n"
    assert filled.says("show", "shop", "setup", "--at", "HEAD~2") == "one\n"
    assert filled.says("show", "shop", "--at", "HEAD~2", "setup.md") == "one\n"
    assert filled.says("show", "shop", "setup", "--at", "now") == "two\n"
    assert "had no new.md then" in filled.fails(2, "show", "shop", "new", "--at", "HEAD~1")


def test_what_a_person_has_just_written_is_shown_without_being_committed(filled):
    put(filled.home, "projects/shop/main.md", "by hand")
    before = filled.git("rev-parse", "HEAD")
    assert filled.says("show", "shop") == "by hand\n"
    assert "Not committed yet" in filled.says("diff", "shop")
    assert "Not committed: 1 file" in filled.says("status")
    assert filled.git("rev-parse", "HEAD") == before
    assert filled.git("status", "--porcelain") == "?? projects/shop/main.md"


def test_the_log_tells_when_who_what(filled):
    lines = filled.says("log", "shop", "setup").splitlines()
    assert len(lines) == 2
    commit = filled.git("rev-parse", "HEAD~1")[:10]
    told = rf"\d{{4}}-\d\d-\d\d \d\d:\d\d  {commit}  Knowledge MCP Server  Imported 1 text .*"
    assert re.fullmatch(told, lines[0])
    assert filled.says("log", "-n", "1").splitlines()[1] == "3 more: `-n 4` shows them"
    assert "shop: Imported" in filled.says("log")


@pytest.mark.long
def test_the_diff_is_that_of_the_last_change_or_of_the_time_that_is_asked_for(filled):
    lines = filled.says("diff", "shop", "setup").splitlines()[1:]
    expected = ["--- knowledge/setup.md", "+++ knowledge/setup.md", "@@ -1 +1 @@", "-one", "+two"]
    assert lines == expected
    assert "+new" in filled.says("diff", "shop")
    since = filled.says("diff", "shop", "--since", "HEAD~2").splitlines()
    assert {"+new", "-one", "+two"} <= set(since)
    until = filled.says("diff", "shop", "--since", "HEAD~2", "--until", "HEAD~1")
    assert "+new" not in until
    assert filled.says("diff", "shop", "--since", "HEAD") == "Nothing is different\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "shop", "setup", "--at", "nonsense"],
        ["show", "shop", "setup", "--at", "1999-01-01"],
        ["show", "shoq"],
        ["show", "shop", "../other"],
        ["show", "shop", "a", "b"],
        ["log", "shoq"],
        ["diff", "shop", "--since", "99 problems"],
    ],
)
def test_wrong_use_is_told_in_one_sentence_with_status_2(filled, arguments):
    assert filled.fails(2, *arguments)


@pytest.mark.parametrize("arguments", [["show"], ["restore"], ["log", "-n", "0"], ["frob"]])
def test_a_command_that_lacks_something_is_told_its_usage(program, arguments):
    done = program(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: vector-index-mcp notes")


def test_help_says_what_a_moment_is(program):
    for arguments in (["--help"], ["restore", "--help"], ["show", "--help"]):
        assert "3 days ago" in program.says(*arguments)


# -- restoring -------------------------------------------------------------------------------


def test_what_would_be_restored_is_shown_and_done_only_if_somebody_says_so(filled):
    before = filled.git("rev-parse", "HEAD")
    done = filled("restore", "shop", "--to", "HEAD~2")
    assert done.returncode == 2
    assert "goes away   knowledge/new.md\n" in done.stdout
    assert "changes     knowledge/setup.md\n" in done.stdout
    assert "--yes" in done.stderr
    assert filled.git("rev-parse", "HEAD") == before
    assert filled.says("show", "shop", "setup") == "two\n"


@pytest.mark.long
def test_a_restored_project_is_as_it_was_and_the_command_that_undoes_it_is_told(filled):
    before = filled.git("rev-parse", "HEAD")
    undoing = filled.undoing("restore", "shop", "--to", "HEAD~2", "--yes")
    assert filled.says("show", "shop", "setup") == "one\n"
    assert not (filled.home / "projects/shop/knowledge/new.md").exists()
    assert filled.git("status", "--porcelain") == ""
    filled.says(*undoing)
    assert filled.git("diff", before, "HEAD") == ""
    assert "nothing to do" in filled.says("restore", "shop", "--to", before)


def test_what_is_deleted_comes_back_without_a_time(filled):
    assert "project shop is not deleted; say with --to" in filled.fails(2, "restore", "shop")
    text = filled.says("show", "shop", "setup")
    (filled.home / "projects/shop/knowledge/setup.md").unlink()
    filled.says("restore", "shop", "setup", "--yes")
    assert filled.says("show", "shop", "setup") == text


@pytest.mark.long
def test_a_running_service_answers_with_what_was_restored(filled):
    with client(filled) as call:
        assert call("get_knowledge_file", project_id="shop", filename="setup.md")["success"]
        filled.says("restore", "shop", "setup", "--to", "HEAD~2", "--yes")
        found = call("get_knowledge_file", project_id="shop", filename="setup.md")
        assert found["document"]["full_content"] == "one\n"
        call("update_project_main", project_id="shop", content="from the service")
        told, ours = call("get_storage_status"), json.loads(filled.says("status", "--json"))
        for status in (told, ours):
            status["last_commit"] = status["last_commit"].partition(" (")[0]  # how long ago it was
        assert ours == told
    assert filled.says("show", "shop") == "from the service\n"
    # git's index follows a commit a little later.
    status = ("--no-optional-locks", "status", "--porcelain")  # or it holds the lock too often
    anyio.run(eventually, lambda: filled.git(*status) == "")
    filled.says("logs")


def test_the_service_is_ended_by_a_command_of_the_notes(filled):
    assert filled.says("stop") == f"no background service is running for {filled.home}\n"
    with client(filled):
        assert filled.says("stop") == f"ended the service of {filled.home}\n"


def test_the_service_is_ended_by_the_path_that_is_listed(filled):
    place = filled.place

    def general(*arguments):
        return run(*arguments, cwd=place.folder, variables=place.variables)

    with client(filled):
        path = general("ps").stdout.splitlines()[-1].split()[-1]
        assert path == str(filled.home)
        assert "listens" in general("logs", path).stdout
        assert general("stop", path).stdout == f"ended the service of {path}\n"
        assert general("ps").stdout == "no background service is running\n"


# -- on a terminal ---------------------------------------------------------------------------


def on_terminal(program, *arguments, keys=b""):
    """What somebody sees, who presses `keys` when asked; and the exit status."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "notes", *arguments],
        cwd=program.place.folder,
        env=program.place.variables,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown, deadline = "", time.monotonic() + ANSWER_SECONDS
        while True:
            assert select.select([ours], [], [], deadline - time.monotonic())[0], shown
            try:
                data = os.read(ours, 65_536)
            except OSError:  # how Linux tells the end
                data = b""
            if not data:
                break
            shown += data.decode()
            if shown.endswith("[y/N] ") and keys:
                os.write(ours, keys)
                keys = b""
        os.close(ours)
        return shown, process.wait(ANSWER_SECONDS)


@pytest.mark.parametrize("keys", [b"\n", b"n\n", b"\x04"])
def test_somebody_who_does_not_say_yes_has_nothing_changed(filled, keys):
    before = filled.git("rev-parse", "HEAD")
    shown, status = on_terminal(filled, "restore", "shop", "--to", "HEAD~2", keys=keys)
    assert "Nothing was changed" in shown
    assert status == 1
    assert filled.git("rev-parse", "HEAD") == before


def test_somebody_who_says_yes_has_it_restored(filled):
    shown, status = on_terminal(filled, "restore", "shop", "--to", "HEAD~2", keys=b"y\n")
    assert "Restored, in commit" in shown
    assert status == 0
    assert filled.says("show", "shop", "setup") == "one\n"


@pytest.mark.long
def test_there_are_colours_on_a_terminal_and_nowhere_else(filled):
    assert COLOUR not in filled.says("diff", "shop")
    assert f"{COLOUR}32m+new" in on_terminal(filled, "diff", "shop")[0]
    filled.place.variables["NO_COLOR"] = "1"
    assert COLOUR not in on_terminal(filled, "diff", "shop")[0]


@pytest.mark.long
def test_nothing_of_others_is_obeyed_by_a_terminal(filled):
    put(filled.home, f"projects/{HOSTILE}/main.md", HOSTILE)
    put(filled.home, f"projects/shop/knowledge/{HOSTILE}.md", f"# {HOSTILE}\n\n## {HOSTILE}\n")
    put(filled.home, "projects/shop/knowledge/-n.md", "dash")
    put(filled.home, "projects/shop/knowledge/:(glob)x.md", "glob")
    put(filled.home, "projects/shop/TODO/1/index.json", json.dumps({"description": HOSTILE}))
    task = json.dumps({"title": HOSTILE, "content": HOSTILE})
    put(filled.home, f"projects/shop/TODO/1/TASK-001-{HOSTILE}.json", task)
    filled.git("add", "--all")
    filled.git("-c", f"user.name={HOSTILE}", "-c", "user.email=x", "commit", "-qm", HOSTILE)
    commands = [
        ["list"], ["list", "shop"], ["list", HOSTILE], ["show", HOSTILE], ["show", "shop", HOSTILE],
        ["show", "shop", "todo", "1"], ["log"], ["log", "shop"], ["log", HOSTILE],
        ["log", "shop", HOSTILE], ["diff", "shop"], ["diff", HOSTILE], ["status"], ["doctor"],
        ["show", "shop", "--at", HOSTILE], ["show", f"{HOSTILE}x"], ["log", f"{HOSTILE}x"],
        ["restore", "shop", "--to", "HEAD~1"], ["restore", HOSTILE, "--to", "HEAD~1", "--yes"],
        ["restore", "shop", HOSTILE, "--to", "HEAD~1", "--yes"], ["export", "shop", HOSTILE],
        ["import", HOSTILE], ["import", f"{HOSTILE}x"], ["doctor", "--repair", "--yes"],
    ]  # fmt: skip
    for arguments in commands:
        done = filled(*arguments)
        assert not OBEYED.search(done.stdout + done.stderr), arguments
        assert "Traceback" not in done.stderr
    assert filled.says("show", "shop", "--", "-n.md") == "dash\n"
    assert filled.says("show", "shop", ":(glob)x.md") == "glob\n"
    assert len(filled.says("log", "shop", "--", "-n.md").splitlines()) == 1


# -- out and in, doctor, services ------------------------------------------------------------


@pytest.mark.long
def test_a_project_is_exported_and_imported_again(filled):
    out = filled.place.folder / "out"
    assert filled.says("export", "shop", str(out)) == f"Wrote 3 files into {out}\n"
    assert "is not empty" in filled.fails(2, "export", "shop", str(out))
    assert "into project out, in commit" in filled.says("import", str(out))
    assert filled.says("show", "out", "setup") == "two\n"
    assert "has this already" in filled.fails(1, "import", str(out))
    assert "3 of them in place" in filled.says("import", str(out), "--replace")


def test_what_is_left_out_is_named_and_changes_the_status(program):
    folder = program.place.folder / "mine"
    put(folder, "good.md", "x")
    (folder / "bad.md").write_bytes(b"\xff")
    assert program.fails(1, "import", str(folder)) == "left out: bad.md: it is not in UTF-8"
    assert program.says("show", "mine", "good") == "x\n"


@pytest.mark.long
def test_the_doctor_finds_shows_and_mends(filled):
    assert filled.says("doctor").splitlines()[-1] == "12 checks: 12 ok"
    (filled.home / "projects/shop/knowledge/setup.md").write_bytes(b"\xff")
    done = filled("doctor", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert not found["ok"]
    assert [c["name"] for c in found["checks"] if c["verdict"] == "failure"] == ["documents"]
    refused = filled("doctor", "--repair")
    assert refused.returncode == 2
    assert "setup.md: its last readable version comes back" in refused.stdout
    assert "12 checks: 12 ok" in filled.says("doctor", "--repair", "--yes")
    assert filled.says("show", "shop", "setup") == "two\n"


def test_a_project_whose_folder_was_renamed_is_not_listed_under_its_old_name(filled):
    (filled.home / "projects/shop").rename(filled.home / "projects/store")
    listed = filled("list")
    assert listed.returncode == 0
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert "store" in names
    assert "shop" not in names
    said = "project shop has no folder (projects/shop); if the folder was renamed, rename it back"
    assert said in listed.stderr
    alone = filled("list", "shop")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert said in alone.stderr
    assert filled("list", "store").stderr == ""


@pytest.mark.long
def test_notes_that_are_gone_are_missed_by_every_command(filled):
    with client(filled) as call:
        assert call("get_storage_status")["success"]
        filled.says("stop")
    filled.home.rename(filled.home.with_name("away"))
    said = f"there were notes in {filled.home}, and they are gone"
    for command, status in ((["list"], 1), (["log"], 1), (["status"], 0), (["doctor"], 1)):
        done = filled(*command)
        assert done.returncode == status, command
        assert said in (done.stdout if command == ["doctor"] else done.stderr), command
        assert done.stderr == "" or command != ["doctor"]
        assert "Nobody has written" not in done.stdout or command == ["status"]
    assert not filled.home.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("foreign", "holds other files than notes"),
        ("bare", "is a bare git repository"),
        ("linked", "belongs to another git repository"),
    ],
)
def test_a_folder_that_cannot_take_notes_is_named_by_every_command(filled, kind, said):
    folder = filled.place.folder / kind
    if kind == "foreign":
        put(folder, "code.py", "1")
    else:
        how = ("clone", "--bare", str(filled.home)) if kind == "bare" else ("worktree", "add")
        subprocess.run(["git", *how, str(folder)], cwd=filled.home, check=True, capture_output=True)
    before = sorted(folder.rglob("*"))
    for command in (["list"], ["log"], ["status"], ["import", str(filled.home)]):
        done = filled(*command, "--home", str(folder))
        assert done.stderr.count(f"{folder} {said}") == 1, command
        assert "Nobody has written" not in done.stdout, command
        assert f"{folder} {said}" in done.stdout or command != ["status"]
    examined = filled("doctor", "--home", str(folder))
    assert examined.returncode == 1
    assert "Nobody has written" not in examined.stdout
    assert said in examined.stdout or "share that of another folder" in examined.stdout
    assert sorted(folder.rglob("*")) == before


def test_another_store_is_named_on_the_command_line(filled):
    elsewhere = str(filled.place.folder / "elsewhere")
    assert "Nobody has written" in filled.says("list", "--home", elsewhere)
    folder = filled.place.folder / "mine"
    put(folder, "a.md", "1")
    filled.says("import", str(folder), "--home", elsewhere)
    put(folder, "a.md", "2")
    filled.says("import", str(folder), "--replace", "--home", elsewhere)
    undoing = filled.undoing("restore", "mine", "--to", "HEAD~1", "--yes", "--home", elsewhere)
    assert undoing[-4:] == ["--home", elsewhere, "mine", "--yes"]


@pytest.mark.parametrize("arguments", [["show", "serve"], ["serve", "--help"], ["list"]])
def test_only_the_command_that_serves_belongs_to_a_client(arguments):
    assert is_relay(["serve", "--home", "x"])
    assert not is_relay(arguments)
