"""The command line as somebody types it: what is printed where, and the exit status."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import anyio
import psutil
import pytest
from anyio.streams.text import TextReceiveStream
from processes import (
    ANSWER_SECONDS,
    COMMAND,
    FAKE_MODEL,
    FAKE_WORKER,
    NO_MODEL,
    SEARCH,
    environment,
    foreground,
    needs_model,
    posix_only,
    run,
    started,
    those_left,
    wired,
    with_import_hook,
)
from writing import write

from vector_index_mcp import __version__
from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.hits import SearchResult

PROJECT = {
    "load.py": "def parse_config(path):\n    return read_settings(path)\n",
    "server/listen.py": "def accept_connections(port):\n    bind(port)\n",
    "README.md": "# Weather\n\nShows whether it rains.\n",
}
REMEDY = "give the path of "


@dataclass
class Place:
    """A project, and a folder to run commands in."""

    folder: Path
    project: Path

    def run(self, *arguments, cwd=None, options=None, obeys_modes=False, **variables):
        """Run a command that searches by words only."""
        settings = environment(self.folder, **NO_MODEL, **variables)
        options = (options or {}) | {"obeys_modes": obeys_modes}
        return run(*arguments, cwd=cwd or self.folder, variables=settings, **options)


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path, write(tmp_path / "project", PROJECT))


@dataclass
class Indexed(Place):
    """A project that the first command run on it has indexed."""

    first: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory) -> Indexed:
    """One for the tests that change nothing."""
    folder = tmp_path_factory.mktemp("cli")
    place = Place(folder, write(folder / "project", PROJECT))
    return Indexed(folder, place.project, place.run("index", "project"))


_INTERRUPTED_WITH_A_THREAD = """
import sys, threading
from vector_index_mcp import cli

def wait():
    threading.main_thread().join()
    print("only this thread is left", flush=True)
    sys.stdin.read()

def interrupted(_):
    threading.Thread(target=wait).start()
    raise KeyboardInterrupt

cli.COMMANDS = {**cli.COMMANDS, "ps": interrupted}
cli.main(["ps"])
"""


@posix_only
def test_a_second_interrupt_ends_the_program_without_a_traceback():
    with subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED_WITH_A_THREAD],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "only this thread is left\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (-signal.SIGINT, "")


# -- which project ---------------------------------------------------------------------------


def test_a_command_is_about_the_project_that_you_stand_in(indexed):
    below = indexed.project / "server"
    found = indexed.run(*SEARCH, "accept_connections", "--format", "grep", cwd=below)
    assert found.stdout.startswith("listen.py:1:"), found.stderr
    assert found.returncode == 0
    assert "3 chunks of 3 files" in indexed.run("status", cwd=below).stdout
    assert not (below / ".lancedb").exists()


def test_lines_of_a_regular_expression_are_those_that_grep_finds(place):
    raising = "".join(
        f"def check_{n}(value):\n    # {'a long comment ' * 40}\n    raise Error{n}(value)\n\n\n"
        for n in range(300)
    )
    write(place.project, {"checks.py": raising})
    found = place.run(*SEARCH, "project", r"raise \w+\(", "--format", "grep")
    lines = enumerate(raising.splitlines(), start=1)
    expected = {f"project/checks.py:{n}:{line}" for n, line in lines if "raise" in line}
    assert set(found.stdout.splitlines()) == expected
    assert int(re.search(r"(\d+) chunks match", found.stderr)[1]) > 100  # several pages
    assert "the lines of" not in found.stderr and "no single line" not in found.stderr
    few = place.run(*SEARCH, "project", r"raise \w+\(", "--format", "grep", "--top-k", "2")
    assert set(few.stdout.splitlines()) < expected
    assert "At most the lines of the best 2 chunks are printed;" in few.stderr
    none = place.run(*SEARCH, "project", r"raise\s+check_\w+", "--format", "grep")
    assert (none.stdout, none.returncode) == ("", 1)
    assert "No chunk matches the query as a regular expression" in none.stderr
    assert none.stderr.endswith("No single line matches; `--format text` shows what was found.\n")
    write(place.project, {"calls.py": "check_1(2)\n", "broken.py": "check_1(\n    2\n)\n"})
    over_lines = place.run(*SEARCH, "project", r"check_1\(\s*2", "--format", "grep")
    assert over_lines.stdout == "project/calls.py:1:check_1(2)\n"
    said = "In 1 chunk, no single line matches; `--format text` shows the whole text.\n"
    assert over_lines.stderr.endswith(said)
    said_to_be = place.run(*SEARCH, "project", "-E", "Error.3.va", "--format", "grep")
    assert set(said_to_be.stdout.splitlines()) == {
        line for line in expected if re.search("Error.3.va", line)
    }
    exactly = place.run(*SEARCH, "project", "-E", "error.3.va", "--format", "grep")
    assert (exactly.stdout, exactly.returncode) == ("", 1)
    few = place.run(*SEARCH, "project", "values?", "--format", "grep")  # may be text
    assert len(few.stdout.splitlines()) > 100
    text = place.run(*SEARCH, "project", "value?n", "--format", "grep")  # matches nothing
    assert 0 < len(text.stdout.splitlines()) <= 5
    nowhere = place.run(*SEARCH, "project", "check_nothing_like_it", "--format", "grep")
    assert (nowhere.stdout, nowhere.returncode) == ("", 1)
    assert nowhere.stderr.startswith("No searched file contains `check_nothing_like_it`.\n")
    one = place.run(*SEARCH, "project", "nothing_like_it check_7", "--format", "grep")
    assert "project/checks.py" in one.stdout


@pytest.mark.long
@needs_model
def test_a_search_without_vectors_says_what_makes_some(place):
    settings = environment(place.folder)
    found = run(*SEARCH, "project", "rain", cwd=place.folder, variables=settings)
    note = "`vector-index-mcp index` makes vectors, and so does a service."
    assert note in " ".join(found.stdout.split())
    run("index", "project", cwd=place.folder, variables=settings)
    found = run(*SEARCH, "project", "rain", cwd=place.folder, variables=settings)
    assert "makes vectors" not in found.stdout


def test_a_folder_of_an_indexed_project_gets_no_index_of_its_own(indexed):
    found = indexed.run(*SEARCH, "project/server", "def", "--format", "grep")
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == [
        "project/server/listen.py"
    ]
    used = f"project/server lies in {indexed.project}, whose index is used"
    said = f"{used}; only server/ is searched\n"
    assert found.stderr.startswith(said)
    assert not (indexed.project / "server/.lancedb").exists()


def test_who_stands_in_no_project_is_told_that_all_of_the_folder_is_indexed(place):
    folder = place.folder / "downloads"
    write(folder, {"one.py": "def rain(): pass\n", "sub/two.py": "x = 1\n"})
    warning = f"{folder} has no repository, no project file such as package.json and no index yet"
    status = place.run("status", cwd=folder)
    assert "no repository" not in status.stderr  # which indexes nothing
    first = place.run(*SEARCH, "rain", "--format", "grep", cwd=folder)
    assert first.stderr.startswith(warning)
    assert first.stdout == "one.py:1:def rain(): pass\n"
    again = place.run(*SEARCH, "rain", "--format", "grep", cwd=folder)
    assert "no repository" not in again.stderr


def test_a_repository_in_an_indexed_project_uses_its_index_and_says_so(indexed):
    repository = indexed.project / "server"
    (repository / ".git").mkdir()
    try:
        found = indexed.run(*SEARCH, "def", "--format", "grep", cwd=repository)
    finally:
        (repository / ".git").rmdir()
    assert found.stderr.startswith(f"{repository} lies in {indexed.project}, whose index is used\n")
    found = indexed.run(*SEARCH, "def", "--format", "grep", cwd=repository)
    assert "lies in" not in found.stderr


@pytest.mark.parametrize(
    ("here", "project", "place"),
    [
        ("project/server", (), "listen.py:1"),
        ("project/server", (), "../server/listen.py:1"),
        ("project/server", (), "server/listen.py:2"),  # as the tool takes it
        (".", ("project", ""), "project/server/listen.py:1"),
    ],
)
def test_a_sample_is_named_as_results_are_printed(indexed, here, project, place):
    cwd = indexed.folder / here
    found = indexed.run(*SEARCH, *project, "--similar-to", place, "--format", "grep", cwd=cwd)
    assert found.returncode == 0, found.stderr
    assert "load.py:1:" in found.stdout
    assert "listen.py" not in found.stdout


def test_a_folder_beside_a_sample_is_the_project(indexed):
    found = indexed.run(
        *SEARCH, "project", "--similar-to", "project/server/listen.py:1", "--format", "grep"
    )
    assert "load.py:1:" in found.stdout, found.stderr
    assert not (indexed.folder / ".lancedb").exists()


@pytest.mark.parametrize(
    ("here", "project", "glob"),
    [
        ("project/server", (), "listen.py"),
        ("project/server", (), "../server/listen.py"),
        ("project/server", (), "server/*.py"),  # as the tool takes it
        ("project/server", (), "../server/*.py"),
        (".", ("project",), "project/server/listen.py"),
        (".", ("project",), "project/server/**"),
    ],
)
def test_a_glob_may_begin_as_results_are_printed(indexed, here, project, glob):
    beside = indexed.folder / "server"  # is not meant
    beside.mkdir(exist_ok=True)
    cwd = indexed.folder / here
    found = indexed.run(*SEARCH, *project, "listen", "--glob", glob, "--format", "grep", cwd=cwd)
    beside.rmdir()
    assert "listen.py:" in found.stdout, found.stderr
    assert "load.py" not in found.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--similar-to", "load.py"], "--similar-to names no line: 'load.py'; "),
        (["--similar-to", "gone.py:1"], "--similar-to names no indexed file: 'gone.py:1'"),
        (["--similar-to", "load.py:99"], "--similar-to names a line that no chunk holds: "),
        (["x", "--language", "klingon"], "or limit it by --glob instead"),
    ],
)
def test_what_is_wrong_is_told_of_the_option_that_was_typed(indexed, arguments, told):
    for command in (SEARCH, ["search"]):
        refused = indexed.run(*command, *arguments, cwd=indexed.project)
        assert refused.returncode == 2
        assert told in refused.stderr
        assert "similar_to" not in refused.stderr
    indexed.run("stop", cwd=indexed.project)


def test_a_folder_behind_the_query_is_told(indexed):
    refused = indexed.run(*SEARCH, "accept connections", "./project")
    assert refused.returncode == 2
    said = "the project's folder stands before the query: search './project' 'accept connections'"
    assert said in refused.stderr


def test_a_mistyped_setting_is_told_by_any_command(indexed):
    wrong = {"VECTOR_INDEX_CHUNK_MAX_CHAR": "500"}
    told = indexed.run("status", "project", **wrong).stderr
    assert "VECTOR_INDEX_CHUNK_MAX_CHAR is set but is no setting, so it has no effect; " in told
    assert "did you mean VECTOR_INDEX_CHUNK_MAX_CHARS?" in told


# -- index -----------------------------------------------------------------------------------


def test_index_tells_what_it_did_on_stdout(indexed):
    assert indexed.first.returncode == 0
    did, holds, *rest = indexed.first.stdout.splitlines()
    assert did == "3 files seen; 3 indexed"
    assert re.fullmatch(r"3 files, 3 chunks, none with vectors, in \d+\.\d s", holds)
    assert "no-such-model" in "".join(rest)  # and so there are no vectors
    assert rest[-1].startswith("no service keeps it up to date now; `search`, `serve PATH` or")


@pytest.mark.long
@needs_model
def test_index_tells_how_long_it_took_with_the_vectors(place):
    began = time.monotonic()
    done = started("index", "project", cwd=place.folder, variables=environment(place.folder))
    took = time.monotonic() - began
    told = re.search(r"^3 files, 3 chunks, all with vectors, in (\d+\.\d) s$", done.stdout, re.M)
    assert told, done.stdout
    assert took / 2 < float(told[1]) < took  # the rest is Python's own start


@pytest.mark.long
@posix_only
@pytest.mark.parametrize("named", ["gone", "project/README.md"])
def test_a_folder_for_temporary_files_that_is_none_is_replaced_and_told_by_the_doctor(place, named):
    gone = environment(place.folder, **NO_MODEL, TMPDIR=str(place.folder / named))

    def said(*words):
        """What a process of its own prints: the folder is looked for as it starts."""
        return " ".join(started(*words, cwd=place.folder, variables=gone).stdout.split())

    assert "3 files seen; 3 indexed" in said("index", "project")
    assert "load.py" in said("search", "project", "parse_config")
    told = said("doctor", "project")
    assert f"TMPDIR is {place.folder}/{named}, which cannot be written" in told


@pytest.mark.long
@pytest.mark.parametrize("has_service", [False, True])
def test_index_ends_with_an_error_while_the_disk_is_full(place, small_disk, has_service):
    """With a model, so that vectors are waited for as well."""
    settings = {"VECTOR_INDEX_LANCEDB_URI": str(small_disk / "index")}
    variables = with_import_hook(
        place.folder / "hook", FAKE_WORKER, environment(place.folder, **settings, **FAKE_MODEL)
    )

    def said(*words):
        done = run(*words, "project", cwd=place.folder, variables=variables, is_hook_first=False)
        return done.returncode, done.stdout

    assert said("index")[0] == 0
    if has_service:
        run("search", "project", "x", cwd=place.folder, variables=variables, is_hook_first=False)
    (small_disk / "filler").write_bytes(b"\0" * shutil.disk_usage(small_disk).free)
    write(place.project, {"more.py": "def more():\n    return 1\n" * 2_000})
    status, told = said("index")
    assert status == 1
    assert "error: " in told
    assert "the disk is full" in told
    assert "nothing had changed" not in told
    said("stop")


def test_index_without_a_terminal_shows_its_progress_in_plain_lines(indexed):
    lines = indexed.first.stderr.splitlines()
    assert "indexing files: 3 of 3" in lines
    assert all(re.fullmatch(r"(indexing files|embedding chunks): \d+ of \d+", x) for x in lines)


@posix_only
def test_index_on_a_terminal_shows_a_bar(place):
    ours, theirs = os.openpty()
    command = [*COMMAND, "index", str(place.project)]
    variables = environment(place.folder, TERM="xterm", COLUMNS="100", **NO_MODEL)
    with subprocess.Popen(
        command, env=variables, cwd=place.folder, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = everything_shown(ours)
        out, _ = process.communicate(timeout=ANSWER_SECONDS)
    assert process.returncode == 0
    assert b"3 indexed" in out
    assert "━" in shown
    assert "indexing files" in shown
    assert "3/3" in shown
    assert "3 of 3" not in shown


def everything_shown(terminal: int) -> str:
    """What is written to a terminal until nobody holds it any more."""
    shown = b""
    with os.fdopen(terminal, "rb", buffering=0) as reading:
        try:
            while data := reading.read(65_536):
                shown += data
        except OSError:  # how Linux tells the end
            pass
    return shown.decode()


@pytest.mark.parametrize(("content", "seen"), [(None, "nothing to index"), (b"\0", "1 skipped")])
def test_index_says_that_a_project_has_nothing_to_find(place, content, seen):
    (place.folder / "bare").mkdir()
    if content is not None:
        (place.folder / "bare" / "picture").write_bytes(content)
    ran = place.run("index", "bare")
    said = ran.stdout.splitlines()
    assert ran.returncode == 0
    assert said[0].endswith(f" seen; {seen}")
    assert said[1].startswith("0 files, 0 chunks, in ")
    assert said[2].startswith("nothing can be found: no file here has text to index")


def test_index_reads_what_changed_and_with_force_everything(indexed):
    again = indexed.run("index", "project")
    assert again.returncode == 0
    assert again.stdout.startswith("3 files seen; nothing had changed\n")
    forced = indexed.run("index", "--force", "project")
    assert forced.returncode == 0
    assert forced.stdout.startswith("3 files seen; 3 indexed\n")


@pytest.mark.long
@posix_only
def test_index_fails_when_a_file_failed_and_indexes_the_others(place):
    forbidden = place.project / "load.py"
    forbidden.chmod(0)
    failed = place.run("index", "project", obeys_modes=True)
    assert failed.returncode == 1
    assert "2 indexed, 1 failed" in failed.stdout
    assert "failed: load.py: unreadable" in failed.stdout
    forbidden.chmod(0o644)
    mended = place.run("index", "project", obeys_modes=True)
    assert mended.returncode == 0
    assert "1 indexed" in mended.stdout


@posix_only
@pytest.mark.anyio
async def test_index_ends_at_ctrl_c_and_leaves_no_process(place):
    silent = FAKE_WORKER.replace("    for line in", "    sys.stdin.buffer.read()\n    for line in")
    variables = environment(place.folder)
    process = await anyio.open_process(
        [*COMMAND, "index", str(place.project)],
        env=with_import_hook(place.folder / "hook", silent, variables),
        cwd=place.folder,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    async with process:
        errors = TextReceiveStream(process.stderr)
        with anyio.fail_after(ANSWER_SECONDS):
            told, children = "", set()
            while "embedding" not in told or not children:  # some have done their work by then
                told += await errors.receive()
                children.update(psutil.Process(process.pid).children())
            os.killpg(process.pid, signal.SIGINT)  # what a terminal does
            told += "".join([text async for text in errors])
            assert await process.wait() == 130
    assert "Traceback" not in told
    assert await those_left(children) == []


# -- search and status -----------------------------------------------------------------------


def test_search_prints_places_and_their_text(indexed):
    ran = indexed.run(*SEARCH, "project", "parseConfig readSettings bind", "--top-k", "1")
    assert ran.returncode == 0
    assert ran.stdout.startswith("1. project/load.py:1-2 (score ")
    assert "    return read_settings(path)" in ran.stdout
    assert "2. " not in ran.stdout
    assert "Note: Searched by words only" in ran.stdout


def test_a_search_explains_itself_where_that_is_wanted(indexed):
    asked = (*SEARCH, "project", "where are settings read from a file", "--top-k", "1")
    assert "why: words " in indexed.run(*asked, "--explain").stdout
    assert "why: " not in indexed.run(*asked).stdout
    [explained] = json.loads(indexed.run(*asked, "--explain", "--json").stdout)["results"]
    assert explained["why"]["file"]["score"] > 0
    assert "why" not in json.loads(indexed.run(*asked, "--json").stdout)["results"][0]


def test_search_indexes_what_changed_before_it_answers(place):
    ran = place.run(*SEARCH, "project", "accept connections", "--json")
    assert ran.returncode == 0
    result = SearchResult.model_validate_json(ran.stdout)
    assert [hit.file_path for hit in result.results] == ["server/listen.py"]
    assert result.mode == "lexical"
    assert "indexing files: 3 of 3" in ran.stderr.splitlines()


def test_status_tells_what_the_index_holds(indexed):
    ran = indexed.run("status", "project")
    assert ran.returncode == 0
    assert "3 chunks of 3 files" in ran.stdout
    assert str(indexed.project) in ran.stdout


def test_status_lists_what_is_not_indexed_and_why(place):
    (place.project / "data.bin").write_bytes(bytes(range(256)))
    (place.project / ".env").write_text("TOKEN=1")
    place.run("index", "project")
    ran = place.run("status", "project", "--skipped")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == ".env: may hold secrets\ndata.bin: binary\n"
    for name in ("data.bin", ".env"):
        (place.project / name).unlink()
    place.run("index", "project")
    ran = place.run("status", "project", "--skipped")
    said = (
        "no file is skipped; ignored files are not counted: what git ignores, and what is never "
        "worth a search, such as node_modules and lock files\n"
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", said)


@pytest.mark.long
def test_verify_tells_which_files_are_not_as_the_index_says_and_repairs_them(place):
    place.run("index", "project")
    sound = place.run("verify", "project")
    assert (sound.returncode, sound.stderr) == (0, "")
    lacks, sums = sound.stdout.splitlines()
    assert lacks.startswith("without a vector, so found by words only: 3 of 3 chunks; ")
    assert lacks.endswith("a running service embeds what is left, and so does `index`")
    assert sums == "3 files, 3 chunks, 0 vectors; the index is as the files are"

    (place.project / "load.py").write_text("def load(path):\n    return path\n")
    wrong = place.run("verify", "project")
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("load.py has another text than the index\n")
    assert "1 file differs from the index" in wrong.stdout

    repaired = place.run("verify", "project", "--repair")
    assert repaired.returncode == 0
    *_, lacks, sums = repaired.stdout.splitlines()
    assert lacks.startswith("without a vector")
    assert sums.endswith("the index is as the files are")


@pytest.mark.long
@pytest.mark.parametrize("table", ["chunks", "files", "none"])
def test_verify_repairs_what_cannot_be_read(place, table):
    place.run("index", "project")
    if table == "none":
        shutil.rmtree(place.project / ".lancedb/chunks.lance")
        (place.project / ".lancedb/chunks.lance").write_bytes(b"a file")
    else:
        for part in (place.project / f".lancedb/{table}.lance/data").iterdir():
            part.write_bytes(b"garbage")
    told = place.run("verify", "project")
    assert told.returncode == 1
    assert "`vector-index-mcp index --force`, builds a new one" in told.stderr
    repaired = place.run("verify", "project", "--repair")
    assert repaired.returncode == 0, repaired.stderr
    assert repaired.stdout.endswith("the index is as the files are\n")


@pytest.mark.long
@posix_only
def test_verify_does_not_take_what_it_cannot_read_for_gone_or_changed(place):
    write(place.project, {"hidden/more.py": "def more():\n    return 1\n"})
    place.run("index", "project")
    (place.project / "load.py").chmod(0)
    (place.project / "hidden").chmod(0)
    ran = place.run("verify", "project", obeys_modes=True)
    again = place.run("verify", "project", "--repair", obeys_modes=True)
    (place.project / "hidden").chmod(0o755)
    (place.project / "load.py").chmod(0o644)
    first, second, _, sums = ran.stdout.splitlines()
    assert first == "hidden/more.py cannot be read now, so it is not compared"
    assert second == "load.py cannot be read now, so it is not compared"
    assert sums.endswith("0 vectors; the index is as the files are, as far as they can be read")
    assert ran.returncode == 1
    assert (again.returncode, again.stdout) == (1, ran.stdout)  # there is nothing to repair
    assert place.run("verify", "project").returncode == 0


@pytest.mark.long
@posix_only
@pytest.mark.parametrize("command", [("index", "--force"), ("verify", "--repair")])
def test_what_cannot_be_read_is_still_in_an_index_that_is_built_anew(place, command):
    write(place.project, {"hidden/deep/more.py": "def more():\n    return 1\n"})
    place.run("index", "project")
    write(place.project, {"load.py": "def other():\n    return 1\n"})
    (place.project / "hidden").chmod(0)
    ran = place.run(*command, "project", obeys_modes=True)
    assert "hidden/deep/more.py is" not in ran.stdout
    (place.project / "hidden").chmod(0o755)
    assert place.run("verify", "project").returncode == 0


def test_an_index_that_cannot_be_read_is_not_told_as_an_empty_one(place):
    place.run("index", "project")
    for part in (place.project / ".lancedb").glob("*.lance/_versions/*.manifest"):
        part.write_bytes(b"")
    ran = place.run("status", "project")
    assert "error: opening the index failed: " in ran.stdout
    assert "index: nothing in it can be read now" in ran.stdout
    assert "0 chunks" not in ran.stdout
    assert ran.returncode == 1
    assert place.run("status", "project", "--json").returncode == 1


def test_verify_of_a_project_without_an_index_says_so(place):
    ran = place.run("verify", "project")
    assert ran.returncode == 1
    assert f"{place.project} is not indexed; " in ran.stderr


def test_a_library_that_may_abort_the_process_at_its_end_gets_no_chance(place):
    code = "import atexit, os, obstore\natexit.register(os.write, 2, b'python ended')\n"
    variables = with_import_hook(place.folder / "hook", code, environment(place.folder))
    for arguments, status in ((["ps"], 0), (["status", place.folder / "none"], 2)):
        ran = run(*arguments, cwd=place.project, variables=variables)
        assert ran.returncode == status, ran.stderr
        assert "python ended" not in ran.stderr
        assert ran.stdout.endswith("\n") if status == 0 else "does not exist" in ran.stderr


@pytest.mark.long
@posix_only
def test_output_that_nobody_reads_is_no_accident(indexed):
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [*COMMAND, "status", str(indexed.project)],
        env=environment(indexed.folder, PYTHONUNBUFFERED=""),
        cwd=indexed.folder,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=ANSWER_SECONDS,
        check=False,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_status_of_a_project_without_an_index_changes_nothing(place):
    before = everything_below(place.folder)
    ran = place.run("status", "project")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"vector-index-mcp: {place.project} is not indexed; `vector-index-mcp index "
        f"{place.project}` indexes it, and so does an MCP client that connects\n"
    )
    listed = place.run("status", "project", "--json")
    assert (listed.returncode, listed.stderr) == (1, "")
    assert json.loads(listed.stdout)["indexed_chunk_count"] == 0
    assert place.run("status", "project", "--skipped").stderr == ran.stderr
    assert everything_below(place.folder) - before <= {place.folder / "home", place.folder / "run"}


def everything_below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_what_is_printed_survives_a_terminal_that_lacks_its_characters(place):
    write(place.project, {"naïve.py": "größenword = '✓'\n"})
    ran = place.run(*SEARCH, "project", "größenword", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert "na\\xefve.py" in ran.stdout


def test_a_search_in_this_process_computes_with_one_thread_as_a_service_does(indexed, tmp_path):
    code = """
import os, sys
class Watch:
    def find_spec(name, *_):
        if name == "numpy":
            print("numpy with", os.environ.get("OPENBLAS_NUM_THREADS"), file=sys.stderr)
sys.meta_path.insert(0, Watch)
"""
    calm = environment(indexed.folder, **NO_MODEL)
    calm.pop("OPENBLAS_NUM_THREADS")
    variables = with_import_hook(tmp_path / "hook", code, calm)
    found = run(*SEARCH, "project", "parse_config", cwd=indexed.folder, variables=variables)
    assert "numpy with 1\n" in found.stderr, found.stderr


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (("--glob", "server/"), ["server/listen.py"]),
        (("--glob", "*.{md,rst}"), ["README.md"]),
        (("--language", "py", "--glob", "/*"), ["load.py", "server/listen.py"]),
        (("--language", "markdown"), ["README.md"]),
    ],
)
def test_search_is_limited_to_the_files_asked_for(indexed, option, expected):
    ran = indexed.run(*SEARCH, "project", "config connections rains", *option, "--json")
    assert ran.returncode == 0
    result = SearchResult.model_validate_json(ran.stdout)
    assert sorted(hit.file_path for hit in result.results) == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--language", "klingon"), "language is not known: 'klingon'; use a name like python"),
        (("--glob", "{}"), "path is not a glob that matches files: '{}'; examples:"),
    ],
)
def test_a_filter_that_means_nothing_is_refused_with_the_remedy(indexed, option, message):
    ran = indexed.run(*SEARCH, "project", "config", *option)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"vector-index-mcp: {message}")


@pytest.mark.parametrize("count", ["499", "100001", "x"])
def test_a_length_of_the_answer_out_of_range_is_refused(place, count):
    ran = place.run(*SEARCH, "project", "query", "--max-tokens", count)
    assert ran.returncode == 2
    assert f"--max-tokens: {count!r} is not a number from 500 to 100000" in ran.stderr


@pytest.mark.parametrize("count", ["0", "101", "x", "-1"])
def test_a_number_of_results_out_of_range_is_refused(place, count):
    ran = place.run(*SEARCH, "project", "query", "--top-k", count)
    assert ran.returncode == 2
    assert f"--top-k: {count!r} is not a number from 1 to 100" in ran.stderr


def test_an_empty_query_is_refused_before_anything_is_indexed(place):
    ran = place.run(*SEARCH, "project", " ")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the query is empty; say what to look for" in ran.stderr
    assert not (place.project / ".lancedb").exists()


# -- PATH ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "problem", "remedy"),
    [
        ("missing", "missing does not exist", REMEDY),
        ("project/load.py", "project/load.py is a file", "give the path of the folder"),
        ("/", "/ is a whole drive; ", REMEDY),
        ("~", "is your home folder; ", "VECTOR_INDEX_ALLOW_BROAD_PATH=true"),
        ("home/..", "holds your home folder; ", REMEDY),
        ("~nobody-of-this-name/x", "", REMEDY),
    ],
)
def test_a_path_that_is_no_project_is_refused_with_the_remedy(place, path, problem, remedy):
    ran = place.run("status", path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("vector-index-mcp: ")
    assert problem in ran.stderr
    assert remedy in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "arguments", [["missing"], ["index", "missing"], ["search", "missing", "x y"]]
)
def test_every_command_refuses_a_path_that_does_not_exist(place, arguments):
    ran = place.run(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert REMEDY in ran.stderr


def test_a_home_folder_is_a_project_if_that_is_meant(place):
    ran = place.run("status", "~", "--json", VECTOR_INDEX_ALLOW_BROAD_PATH="true")
    assert (ran.returncode, ran.stderr) == (1, "")  # it has no index
    assert json.loads(ran.stdout)["project_path"] == str(place.folder / "home")


async def serves(folder: Path, *arguments: str) -> list[str]:
    """The files found by the server that these arguments start."""
    async with wired(*arguments, variables=environment(folder, **NO_MODEL), cwd=folder) as server:
        assert (await server.initialize())["serverInfo"]["name"] == "vector-index-mcp"
        found = await server.call("search_index", query="parse_config")
        await server.process.stdin.aclose()
        assert await server.exit_status() == 0
    return [hit["file_path"] for hit in found["results"]]


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [["--env-file", "e.env", "./index"], ["serve", "index"]])
async def test_a_path_is_served_even_if_it_is_named_like_a_command(place, arguments):
    place.project.rename(place.folder / "index")
    (place.folder / "e.env").touch()
    assert await serves(place.folder, *arguments, "--foreground") == ["load.py"]


@pytest.mark.parametrize("content", [None, b"\n"], ids=["nothing", "a line"])
def test_a_server_whose_input_is_a_file_ends_with_it(place, content):
    source = Path(os.devnull) if content is None else place.folder / "input"
    if content is not None:
        source.write_bytes(content)
    with source.open("rb") as reading:
        ran = place.run(*foreground(place.project), options={"stdin": reading})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


# -- help ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["-h", "project"]])
def test_help_tells_of_every_command(place, arguments):
    ran = place.run(*arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    for command in ("index", "search", "status", "verify", "doctor"):
        assert re.search(rf"^ +vector-index-mcp {command} .*\w", ran.stdout, re.MULTILINE), command
    listed = ("vector-index-mcp PATH ", "vector-index-mcp index [PATH] ", "--env-file FILE")
    for line in (*listed, "`serve`"):
        assert line in ran.stdout
    assert "mcpServers" in ran.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("serve", ["PATH"]),
        ("index", ["PATH", "--force"]),
        (
            "search",
            ["PATH", "QUERY", "--top-k N", "--glob GLOB", "--language", "--max-tokens N", "--json"],
        ),
        ("search", ["--format", "path:line:text", "--color"]),
        ("status", ["PATH", "--json", "--skipped", "--watch"]),
        ("doctor", ["[PATH]", "--json"]),
        ("verify", ["PATH", "--repair"]),
    ],
)
def test_help_of_a_command_tells_of_its_arguments(place, command, words):
    ran = place.run(command, "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert all(word in ran.stdout for word in words)


def test_the_version_is_printed(place):
    ran = place.run("--version")
    assert (ran.returncode, ran.stdout) == (0, f"vector-index-mcp {__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["search"],
        ["serve"],
        ["index", "project", "more"],
        ["--no-such", "x"],
        ["indx", "x"],
        ["help", "frob"],
        ["search", "missing", "x"],
    ],
)
def test_a_mistyped_command_is_told_how_it_is_written(place, arguments):
    ran = place.run(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("usage: vector-index-mcp ")


# -- settings --------------------------------------------------------------------------------


def test_a_wrong_setting_is_refused_by_its_variable(place):
    ran = place.run("status", "project", VECTOR_INDEX_CHUNK_MAX_CHARS="many")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("vector-index-mcp: VECTOR_INDEX_CHUNK_MAX_CHARS='many': ")


def is_refused(ran: subprocess.CompletedProcess[str], variable: str) -> bool:
    return ran.returncode == 2 and variable in ran.stderr


WRONG = {"wrong.env": "VECTOR_INDEX_RESCAN_SECONDS=1\n"}
OTHER = {"other.env": "VECTOR_INDEX_MAX_FILE_BYTES=0\n"}


def test_an_env_file_is_read_from_where_the_option_says(place):
    write(place.folder, WRONG | OTHER)
    ran = place.run("--env-file", "wrong.env", "status", "project")
    assert is_refused(ran, "VECTOR_INDEX_RESCAN_SECONDS='1'")
    # The option comes before the variable.
    ran = place.run("--env-file=wrong.env", "status", "project", VECTOR_INDEX_ENV_FILE="other.env")
    assert is_refused(ran, "VECTOR_INDEX_RESCAN_SECONDS='1'")
    assert "MAX_FILE_BYTES" not in ran.stderr


def test_an_env_file_is_read_from_where_the_variable_says(place):
    write(place.folder, WRONG)
    ran = place.run("status", "project", VECTOR_INDEX_ENV_FILE=str(place.folder / "wrong.env"))
    assert is_refused(ran, "VECTOR_INDEX_RESCAN_SECONDS='1'")


def test_a_missing_env_file_is_refused_by_its_path(place):
    ran = place.run("--env-file", "missing.env", "status", "project")
    assert is_refused(ran, "the env file missing.env")


def test_an_empty_variable_names_no_env_file(place):
    ran = place.run("status", "missing", VECTOR_INDEX_ENV_FILE="")
    assert "missing does not exist" in ran.stderr


def test_the_environment_comes_before_the_env_file(place):
    write(place.folder, WRONG)
    ran = place.run(
        "--env-file", "wrong.env", "status", "missing", VECTOR_INDEX_RESCAN_SECONDS="60"
    )
    assert "missing does not exist" in ran.stderr


def test_the_projects_own_env_file_is_never_read(place):
    write(place.project, {".env": "VECTOR_INDEX_LANCEDB_URI=/elsewhere\nVECTOR_INDEX_LOG_LEVEL=x"})
    ran = place.run("status", ".", "--json", cwd=place.project)
    assert (ran.returncode, ran.stderr) == (1, "")  # it has no index
    status = wire.IndexStatus.model_validate_json(ran.stdout)
    assert status.index_location == str(place.project / ".lancedb")


def test_patterns_to_ignore_and_a_place_for_the_index_are_obeyed(place):
    patterns, uri = "*.md, server/", str(place.folder / "elsewhere")
    ran = place.run(
        "index", "project", VECTOR_INDEX_IGNORE_PATTERNS=patterns, VECTOR_INDEX_LANCEDB_URI=uri
    )
    assert ran.stdout.startswith("1 file seen; 1 indexed")
    assert any(Path(uri).iterdir())
    assert not (place.project / ".lancedb").exists()
