"""What people see: the real program on a real terminal, in a pipe, and in an editor."""

import os
import re
import select
import shutil
import struct
import subprocess
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
from processes import (
    ANOTHER_VERSION,
    ANSWER_SECONDS,
    COMMAND,
    FAKE_MODEL,
    FAKE_WORKER,
    NO_MODEL,
    SEARCH,
    environment,
    needs_model,
    run,
    wired,
    with_import_hook,
)
from waiting import eventually
from writing import write

from vector_index_mcp import cli
from vector_index_mcp.console.view import NO_SERVICE

pytestmark = pytest.mark.long

fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

PROJECT = {
    "load.py": "import os\n\n\ndef parse_config(path):\n    return read_settings(path)\n",
    "server/listen.py": "def accept_connections(port):\n    bind(port)\n",
    "README.md": "# Weather\n\nShows whether it rains.\n",
}
CTRL_C = b"\x03"
ENTER_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"
COLOUR = re.compile(r"\x1b\[[\d;]*m")
OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
HOSTILE = "e\x1b]0;owned\x07\u202e\r\nvil"


class Terminal:
    """A command that has a terminal for itself, with somebody in front of it."""

    def __init__(self, process: subprocess.Popen, descriptor: int) -> None:
        self.process = process
        self.shown = ""
        self._descriptor = descriptor

    def wait_for(self, text: str) -> str:
        """Read on until `text` has been shown; returns all that was read meanwhile."""
        before = len(self.shown)
        deadline = time.monotonic() + ANSWER_SECONDS
        while text not in self.shown[before:]:
            ready, _, _ = select.select([self._descriptor], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} is not in {self.shown[before:]!r}"
            if not self._read():
                pytest.fail(f"it ended without {text!r}: {self.shown[before:]!r}")
        return self.shown[before:]

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def end(self) -> int:
        """Read to the end; returns the exit status."""
        while self._read():
            pass
        return self.process.wait(ANSWER_SECONDS)

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # how Linux tells the end
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def terminal(*arguments, cwd, variables, columns=100, lines=40):
    """A command on a terminal of that size; killed at the end if it is still there."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env={"TERM": "xterm-256color", **variables},
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where commands are run; the project in it is indexed."""
    folder = tmp_path_factory.mktemp("terminal")
    write(folder / "project", PROJECT)
    ran = run("index", "project", cwd=folder, variables=environment(folder, **NO_MODEL))
    assert ran.returncode == 0
    return folder


@pytest.fixture
def variables(folder):
    found = environment(folder, **NO_MODEL)
    return {name: value for name, value in found.items() if name not in {"NO_COLOR", "COLUMNS"}}


def plain(text):
    return COLOUR.sub("", text).replace("\r\n", "\n")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_who_starts_the_server_on_a_terminal_is_told_that_it_waits(
    is_terminal, monkeypatch, capsys
):
    monkeypatch.setattr(cli.os, "isatty", lambda descriptor: is_terminal and descriptor == 0)
    cli._require_streams(())
    assert ("waiting for an MCP client" in capsys.readouterr().err) == is_terminal


# -- search ----------------------------------------------------------------------------------


def test_on_a_terminal_results_are_painted(folder, variables):
    with terminal(*SEARCH, "project", "parse_config", cwd=folder, variables=variables) as screen:
        assert screen.end() == 0
    assert "\x1b[35mreturn\x1b[0m" in screen.shown
    assert "   4  def parse_config(path):\n   5      return read_settings(path)" in plain(
        screen.shown
    )
    assert "result, by words only" in plain(screen.shown)


@pytest.mark.parametrize(
    ("option", "more"), [((), {"NO_COLOR": "1"}), ((), {"TERM": "dumb"}), (("--color=never",), {})]
)
def test_on_a_terminal_without_colours_results_are_plain(folder, variables, option, more):
    with terminal(
        "search",
        "--no-service",
        "project",
        "parse_config",
        *option,
        cwd=folder,
        variables=variables | more,
    ) as screen:
        assert screen.end() == 0
    assert "\x1b" not in screen.shown
    assert "   4  def parse_config(path):" in screen.shown


def test_a_narrow_terminal_loses_nothing(folder, variables):
    arguments = (*SEARCH, "project", "parse_config")
    with terminal(*arguments, cwd=folder, variables=variables, columns=20) as screen:
        assert screen.end() == 0
    assert "return read_settings(path)" in plain(screen.shown)  # the terminal wraps, not we


def test_in_a_pipe_results_are_plain_unless_painted_on_demand(folder, variables):
    ran = run(*SEARCH, "project", "parse_config", cwd=folder, variables=variables)
    assert "\x1b" not in ran.stdout
    always = (*SEARCH, "project", "parse_config", "--color", "always")
    painted = run(*always, cwd=folder, variables=variables)
    assert "\x1b[35m" in painted.stdout
    assert plain(painted.stdout) == ran.stdout


def test_a_reader_that_has_seen_enough_is_no_accident(folder, variables):
    command = " ".join([*COMMAND, *SEARCH, "project", "config", "--color", "always"])
    ran = subprocess.run(
        ["bash", "-c", f"{command} 2>errors | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] in {"0", "1"}  # whether all fits into the pipe is chance
    assert "Traceback" not in (folder / "errors").read_text()
    assert "rror" not in (folder / "errors").read_text()


# -- search --format grep --------------------------------------------------------------------


def grep(folder, variables, *arguments):
    ran = run(*SEARCH, *arguments, "--format", "grep", cwd=folder, variables=variables)
    assert ran.returncode == 0
    return ran.stdout


def test_lines_for_editors_name_lines_of_files(folder, variables):
    for line in (told := grep(folder, variables, "project", "config connections")).splitlines():
        path, number, text = line.split(":", 2)
        assert (folder / path).read_text().splitlines()[int(number) - 1] == text
    assert "project/load.py:4:def parse_config(path):\n" in told
    assert "project/server/listen.py:1:def accept_connections(port):\n" in told


def test_lines_for_editors_are_told_from_where_one_is(folder, variables):
    project = folder / "project"
    assert grep(project, variables, ".", "parse_config").startswith("load.py:4:")
    assert grep(project, variables, str(project), "parse_config").startswith(
        f"{project}/load.py:4:"
    )


def test_what_lacks_in_lines_for_editors_is_told_beside_them(folder, variables):
    asked = (*SEARCH, "project", "parse_config", "--format", "grep")
    found = run(*asked, cwd=folder, variables=variables)
    assert all(re.match(r"project/[\w/.]+:\d+:", line) for line in found.stdout.splitlines())
    assert found.stderr.startswith("Note: Searched by words only, not by meaning: ")
    none = run(*asked, "--glob", "*.rs", cwd=folder, variables=variables)
    assert none.stdout == ""
    assert "Note: No indexed file matches --glob '*.rs'." in none.stderr


@pytest.mark.skipif(shutil.which("vim") is None, reason="asks vim")
def test_nothing_found_is_a_status_for_scripts(folder, variables):
    for more, status in (((), 0), (("--glob", "nothing/**"), 1)):
        asked = (*SEARCH, "project", "parse_config", "--format", "grep", *more)
        assert run(*asked, cwd=folder, variables=variables).returncode == status


def test_vim_takes_the_lines_for_places(folder, variables):
    (folder / "errors.txt").write_text(grep(folder, variables, "project", "parse_config"))
    script = "+redir! > places.txt | silent clist | redir END | qa!"
    subprocess.run(
        ["vim", "-u", "NONE", "-es", "-q", "errors.txt", script],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        timeout=ANSWER_SECONDS,
        check=False,
    )
    assert "project/load.py:4: def parse_config(path):" in (folder / "places.txt").read_text()


# -- names that would be obeyed ----------------------------------------------------------------


def test_no_name_reaches_the_terminal_as_it_is(tmp_path):
    variables = environment(tmp_path, **NO_MODEL, VECTOR_INDEX_LOG_LEVEL="DEBUG")
    project = write(tmp_path / "project", {f"{HOSTILE}.py": f"telling = 1  # {HOSTILE}\n"})
    (project / f"{HOSTILE}.bin").write_bytes(bytes(range(256)))
    shown = "e\\x1b]0;owned\\x07\\u202e\\r\\nvil"

    def told(*arguments):
        ran = run(*arguments, cwd=tmp_path, variables=variables)
        assert not OBEYED.search(ran.stdout + ran.stderr), arguments
        return ran.stdout + ran.stderr

    told("index", "project")
    assert f"project/{shown}.py:1-" in told(*SEARCH, "project", "telling")
    assert f"project/{shown}.py:1:" in told(*SEARCH, "project", "telling", "--format", "grep")
    assert f"{shown}.bin: binary" in told("status", "project", "--skipped")
    told("status", "project")
    (project / f"{HOSTILE}.py").write_text("other = 1\n")
    assert f"{shown}.py has another text" in told("verify", "project")
    assert f"{shown}/none does not exist" in told("status", f"{HOSTILE}/none")


# -- status --watch --------------------------------------------------------------------------


@pytest.mark.anyio
async def test_no_log_reaches_the_terminal_as_it_is(place):
    async with place.relayed() as client:
        await client.initialize()
        with place.endpoint.log.open("a", encoding="utf-8") as log:
            log.write("told of \x1b]0;owned\x07.py\n\tat \x9b2J\n")
        ran = await place.run("logs", place.project)
    assert "told of \\x1b]0;owned\\x07.py\n\tat \\x9b2J\n" in ran.stdout
    assert not OBEYED.search(ran.stdout.replace("\t", ""))


@pytest.mark.anyio
@pytest.mark.parametrize("columns", [40, 100])
async def test_a_service_is_watched_on_a_terminal_from_before_its_start_to_its_end(place, columns):
    arguments = ("status", place.project, "--watch")
    with terminal(
        *arguments, cwd=place.folder, variables=place.variables, columns=columns
    ) as screen:
        assert ENTER_SCREEN in screen.wait_for("Waiting for one.")
        assert not any(place.runtime.glob("*.lock"))  # it has started none
        async with place.relayed() as client:
            await client.initialize()
            screen.wait_for("3 indexed")
            write(place.project, {"saved.py": "x = 1\n"})
            screen.wait_for("saved.py")
            await client.call("search_index", query="x")
            screen.wait_for("1 answered")
        stopped = await place.run("stop", place.project)
        assert stopped.returncode == 0
        screen.wait_for("Waiting for one.")
        screen.press(CTRL_C)
        assert screen.end() == 130
    assert "Traceback" not in screen.shown
    end = screen.shown[screen.shown.rindex(ENTER_SCREEN) :]
    assert LEAVE_SCREEN in end
    assert SHOW_CURSOR in end


@contextmanager
def watching(place, log):
    """`status --watch` without a terminal; what it tells goes into the file `log`."""
    command = [*COMMAND, "status", str(place.project), "--watch"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=place.variables, cwd=place.folder, stdout=out, stderr=out
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.anyio
async def test_without_a_terminal_every_change_is_a_line(place):
    log = place.folder / "watched.txt"
    with watching(place, log):
        await eventually(lambda: NO_SERVICE in log.read_text())
        async with place.relayed() as client:
            await client.initialize()
            await eventually(lambda: "WATCHING: 3 files, 3 chunks" in log.read_text())
            write(place.project, {"saved\x1b.py": "x = 1\n"})
            await eventually(lambda: " indexed saved\\x1b.py\n" in log.read_text())
            await eventually(lambda: "WATCHING: 4 files, 4 chunks" in log.read_text())
    lines = log.read_text().splitlines()
    assert all(line != following for line, following in pairwise(lines))
    assert not OBEYED.search(log.read_text())


@pytest.mark.anyio
async def test_a_service_of_another_version_is_told_of(place):
    hook = with_import_hook(place.folder / "other", ANOTHER_VERSION, place.variables)
    async with wired(place.project, cwd=place.folder, variables=hook) as client:
        await client.initialize()
        watched = await place.run("status", place.project, "--watch")
        found = await place.run("doctor", place.project)
    assert (watched.returncode, watched.stdout) == (1, "")
    assert "the background service is of version 0.0.1, this is " in watched.stderr
    assert f"`vector-index-mcp stop {place.project}`" in watched.stderr
    assert "warning  service: version 0.0.1, process " in found.stdout
    assert f"do: vector-index-mcp stop {place.project}" in found.stdout


# -- doctor ----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_model_that_the_service_has_loaded_is_not_loaded_again(place):
    place.variables |= FAKE_MODEL
    fake = with_import_hook(place.folder / "fake", FAKE_WORKER, place.variables)
    async with wired(place.project, cwd=place.folder, variables=fake) as client:
        await client.initialize()
        await client.complete()
        found = await place.run("doctor", place.project)  # which would find no model
    said = "fake, 32 numbers a vector, float32; the service has loaded it, and it is not loaded"
    assert f"ok       model: {said} here as well\n" in found.stdout
    assert "(default)" not in found.stdout
    assert "settings: 2 set; all others are default\n" in found.stdout


@pytest.mark.anyio
async def test_the_doctor_names_a_setting_that_there_is_not(place):
    found = await place.run("doctor", place.project, VECTOR_INDEX_RESCAN_SECOND="9")
    said = "VECTOR_INDEX_RESCAN_SECOND is set but is no setting, so it has no effect; did you mean "
    assert f"{said}VECTOR_INDEX_RESCAN_SECONDS?" in found.stdout


def test_the_doctor_finds_what_is_wrong_and_says_what_to_do(folder, variables):
    ran = run("doctor", "project", cwd=folder, variables=variables)
    assert (ran.returncode, ran.stderr) == (1, "")
    marks = [line[:9].strip() for line in ran.stdout.splitlines()]
    assert marks.count("FAILED") == 1
    assert (
        "FAILED   model: the embedding model folder no-such-model does not"
        in ran.stdout.replace(f"{folder}/", "")
    )
    assert "\n         do: correct VECTOR_INDEX_EMBEDDING_MODEL or unset it\n" in ran.stdout
    assert "ok       index: 3 chunks of 3 files, 0 vectors, 0 files skipped" in ran.stdout
    assert "ok       service: none runs; the first client starts one" in ran.stdout
    assert "(environment)" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "19 checks: 18 ok, 1 FAILED"


def test_the_doctor_looks_where_one_is_and_writes_ascii(folder, variables):
    project = folder / "project"
    ran = run("doctor", cwd=project, variables=variables | {"PYTHONIOENCODING": "ascii"})
    assert f"index folder: {project}/.lancedb" in ran.stdout


@pytest.mark.anyio
async def test_the_doctor_asks_a_running_service_and_starts_none(place):
    before = await place.run("doctor", place.project)
    assert "service: none runs" in before.stdout
    assert "warning  index: nothing is indexed yet" in before.stdout
    assert place.report() == {}
    assert not (place.project / ".lancedb").exists()
    async with place.relayed() as client:
        await client.initialize()
        await eventually(lambda: place.report().get("state") == "WATCHING")
        found = await place.run("doctor", place.project)
    assert re.search(rf"ok +service: version \S+, process {place.report()['pid']}, ", found.stdout)
    assert re.search(r"ok +first answer: \d\.\d\d s of the service", found.stdout)
    assert re.search(r"ok +index: 3 chunks of 3 files", found.stdout)


def test_the_doctor_tells_of_an_index_folder_that_cannot_be_written(tmp_path):
    project = write(tmp_path / "project", PROJECT)
    (project / ".lancedb").mkdir()
    (project / ".lancedb").chmod(0o555)
    variables = environment(tmp_path, **NO_MODEL)
    ran = run("doctor", "project", cwd=tmp_path, variables=variables, obeys_modes=True)
    assert ran.returncode == 1
    assert f"FAILED   index folder: {project}/.lancedb cannot be written\n" in ran.stdout
    assert "or set VECTOR_INDEX_LANCEDB_URI to a folder of your own" in ran.stdout


@needs_model
def test_the_doctor_is_content_with_a_model(folder, variables):
    variables = variables | {"VECTOR_INDEX_EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
    ran = run("doctor", "project", cwd=folder, variables=variables)
    assert ran.returncode == 0, ran.stdout
    assert "ok       model: all-MiniLM-L6-v2, 384 numbers a vector, " in ran.stdout
    assert re.search(r"loaded in \d+\.\d s from /.*/model\n", ran.stdout)
