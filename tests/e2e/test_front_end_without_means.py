"""A front end that lacks what it needs says what and what to do, on stderr and to its client."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import template
from greeting import CLIENT, INITIALIZE
from processes import (
    ANSWER_SECONDS,
    COMMAND,
    NO_MODEL,
    Place,
    obey_file_modes,
    place_of,
    run,
    wire_of,
    with_import_hook,
)
from waiting import eventually

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="sets limits as Linux knows them"),
]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
REQUESTS = [
    INITIALIZE | {"id": "first"},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_status"}},
]
INPUT = b"".join(json.dumps(request).encode() + b"\n" for request in REQUESTS)
AT_START = 'import os, signal, sys\nif "host" in sys.orig_argv:\n    '


@pytest.fixture
def place(place: Place) -> Place:
    """A project without what has services forked, which takes memory of its own."""
    for variable in (template.VARIABLE, "PYTHONPATH"):
        place.variables.pop(variable, None)
    return place


def front_end(
    place: Place, before: str = "", after: str = "", data: bytes = INPUT, **options
) -> subprocess.CompletedProcess[str]:
    """A front end as a shell starts it, until it ends; its client speaks and never leaves."""
    command = f"{before} exec {' '.join(COMMAND)} {place.project} {after}"
    theirs, ours = os.pipe()
    try:
        os.write(ours, data)
        return subprocess.run(
            ["sh", "-c", command],
            stdin=theirs,
            capture_output=True,
            text=True,
            env=place.variables,
            cwd=place.folder,
            timeout=ANSWER_SECONDS,
            check=False,
            **options,
        )
    finally:
        os.close(ours)
        os.close(theirs)


def assert_is_told(ran: subprocess.CompletedProcess[str], *words: str, status: int = 1) -> None:
    """That it ended with one sentence."""
    assert ran.returncode == status, ran
    [line] = ran.stderr.splitlines()
    assert line.startswith("vector-index-mcp: ")
    for word in words:
        assert word in line


def error_told(ran: subprocess.CompletedProcess[str]) -> str:
    """The error that the first request was answered with."""
    [line] = ran.stdout.splitlines()
    answer = json.loads(line)
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", "first")
    return answer["error"]["message"]


async def reason_told(place: Place, before: str) -> str:
    """What a client is told in answer to the first request that fails."""
    command = f"{before} exec {' '.join(COMMAND)} {place.project}"
    async with wire_of(["sh", "-c", command], place.folder, place.variables) as client:
        answer = await client.ask("initialize", **CLIENT)
        while "error" not in answer and not answer["result"].get("isError"):
            answer = await client.ask("tools/call", name="get_status", arguments={})
    if "error" in answer:
        return answer["error"]["message"]
    return answer["result"]["content"][0]["text"]


def first_line(*command: str | Path, place: Place) -> str:
    """What a command that goes on says first; it is ended then."""
    with subprocess.Popen(
        [*COMMAND, *map(str, command)],
        env=place.variables,
        cwd=place.folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        patience = threading.Timer(ANSWER_SECONDS, process.kill)
        patience.start()
        try:
            return process.stdout.readline()
        finally:
            patience.cancel()
            process.kill()


def ways_left() -> list[Path]:
    """Where links lead that were made for a short way to a socket, and stayed."""
    return [path.resolve() for path in Path("/tmp").glob("vi-*/r")]


# -- a long path -----------------------------------------------------------------------------


async def test_a_service_is_met_however_long_its_folder_is_called():
    with place_of(PROJECT, **NO_MODEL) as place:
        runtime = place.folder / ("x" * 100) / ("y" * 200)
        place.variables["VECTOR_INDEX_RUNTIME_DIR"] = str(runtime)
        async with place.relayed() as client:
            await client.initialize()
            assert (await client.call("get_status"))["is_writer"]
            assert place.endpoint.socket_path.is_socket()
            assert place.endpoint.socket_path.stat().st_mode & 0o777 == 0o600
            ran = await place.run("ps")
            assert str(place.project) in ran.stdout
        assert (await place.run("stop", place.project)).returncode == 0
        await eventually(lambda: not place.processes())
        assert {path.suffix for path in runtime.iterdir()} == {".lock", ".log"}
        assert runtime not in ways_left()


# -- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("-n 6", "Too many open files; raise the limit of open files (`ulimit -n"),
        ("-n 8", "Too many open files; raise the limit of open files (`ulimit -n"),
        ("-v 40000", "memory"),
        ("-f 0", "File too large; raise the limit of a file's size"),
    ],
)
def test_a_limit_under_which_no_service_starts_is_told(place, limit, words):
    ran = front_end(place, f"ulimit {limit};")
    assert_is_told(ran, words)
    assert words in error_told(ran)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("-n 10", ["raise the limit of open files"]),
        # A library may end the process, in words of its own; or the front end lacks it, too.
        ("-v 80000", ["the background service ", "not enough memory"]),
        ("-v 150000", ["the background service "]),
        ("-v 300000", ["not enough memory"]),
    ],
)
async def test_a_limit_under_which_a_service_ends_soon_is_told(place, limit, words):
    told = await reason_told(place, f"ulimit {limit};")
    assert any(each in told for each in words), told


# Stands in for a limit of memory, whose measure depends on the machine.
NO_ROOM = """
import sys
class Hook:
    def find_spec(name, path=None, target=None):
        if name == "lancedb":
            raise ImportError("_lancedb.so: failed to map segment from shared object")
sys.meta_path.insert(0, Hook)
"""


@pytest.mark.parametrize("command", ["index", "status", "search . parse_config --no-service"])
def test_a_command_whose_libraries_do_not_fit_into_memory_says_so(place, command):
    variables = with_import_hook(place.folder / "hook", NO_ROOM, place.variables)
    ran = run(*command.split(), cwd=place.project, variables=variables)
    assert_is_told(ran, "there is not enough memory", "raise the limit of memory (`ulimit -v`)")


def test_a_full_disk_is_told(place, small_disk):
    place.variables["VECTOR_INDEX_RUNTIME_DIR"] = str(small_disk / "run")
    (small_disk / "run").mkdir(0o700)
    with (small_disk / "fill").open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(bytes(4_096))
    ran = front_end(place)
    assert_is_told(ran, f"{small_disk}/run/", "No space left on device; free some space there")
    assert "free some space" in error_told(ran)
    assert {path.suffix for path in (small_disk / "run").iterdir()} <= {".lock", ".log"}
    lack = f"{small_disk / 'run'}: no space left for a service; free some space there"
    for command in (["status", place.project], ["documents", "status"]):
        assert lack in run(*command, cwd=place.folder, variables=place.variables).stderr
        assert lack in first_line(*command, "--watch", place=place)


def test_a_folder_that_cannot_be_written_is_told(place):
    place.runtime.mkdir(0o500)
    ran = front_end(place, preexec_fn=obey_file_modes)
    assert_is_told(ran, f"{place.runtime}/", "Permission denied; give yourself permission")
    assert "give yourself permission" in error_told(ran)


def test_a_runtime_folder_that_each_front_end_would_find_elsewhere_is_refused(place):
    before = sorted(place.folder.iterdir())
    place.variables["VECTOR_INDEX_RUNTIME_DIR"] = "run"
    assert_is_told(
        front_end(place), "VECTOR_INDEX_RUNTIME_DIR is run; set it to an absolute path", status=2
    )
    assert sorted(place.folder.iterdir()) == before


async def test_a_home_that_nobody_knows_is_told(place):
    nobody = "import pwd\ndef unknown(_): raise KeyError\npwd.getpwuid = unknown\n"
    place.variables = with_import_hook(place.folder / "hook", nobody, place.variables)
    assert "your home folder is not known; set HOME" in await reason_told(place, "unset HOME;")


def _forbidden(state: Path) -> Path:
    state.chmod(0o000)
    return state


def _forbidden_records(state: Path) -> Path:
    (state / "indexes").chmod(0o000)
    return state / "indexes"


def _a_file(state: Path) -> Path:
    state.rename(state.with_name("away"))
    state.touch()
    return state


@pytest.mark.parametrize("spoil", [_forbidden, _forbidden_records, _a_file])
def test_records_that_cannot_be_read_make_no_index_foreign_or_missing(place, spoil):
    state = place.folder / "state" / "vector-index-mcp"
    place.variables["XDG_STATE_HOME"] = str(state.parent)

    def ran(*command: str) -> tuple[int, str]:
        done = run(*command, cwd=place.project, variables=place.variables, obeys_modes=True)
        return done.returncode, done.stdout + done.stderr

    assert ran("index")[0] == 0
    was, modes = ran("status"), {path: path.stat().st_mode for path in (state, state / "indexes")}
    spoilt = spoil(state)
    for command in ("status", "index", "clear --dry-run", "search --no-service parse_config"):
        code, told = ran(*command.split())
        assert code == 1, command
        assert f"the folder {state}" in told, command
        assert "set XDG_STATE_HOME to a folder you may write" in told, command
        assert "LANCEDB_URI" not in told, command
    if spoilt.is_file():
        spoilt.unlink()
        state.with_name("away").rename(state)
    for path, mode in modes.items():
        path.chmod(mode)
    assert ran("status") == was


# -- closed streams --------------------------------------------------------------------------


@pytest.mark.parametrize(("closed", "name"), [("<&-", "stdin"), (">&-", "stdout")])
def test_a_closed_stream_is_told(place, closed, name):
    assert_is_told(front_end(place, after=closed), f"{name} closed", "pipes", status=2)


def test_with_all_streams_closed_it_ends(place):
    ran = front_end(place, after="<&- >&- 2>&-")
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "")


def test_without_stderr_nothing_but_the_protocol_is_on_stdout(place):
    place.project = place.project / "nowhere"
    ran = front_end(place, after="2>&-")
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "does not exist" in error_told(ran)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"no json\n", b"[" * 60_000, INPUT[INPUT.index(b"\n") + 1 :][:60] + b"\n"],
    ids=["nothing", "an empty line", "no json", "brackets", "a notification"],
)
def test_what_is_no_request_is_not_answered(place, data):
    place.project = place.project / "nowhere"
    ran = front_end(place, data=data)
    assert_is_told(ran, "does not exist", status=2)
    assert ran.stdout == ""


# -- a service that dies ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dies", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "it was ended by SIGKILL"),
        ("os.write(2, b'no such library\\n'); os._exit(7)", "status 7 (no such library)"),
        ("import vector_index_mcp.settings as s; s.load = lambda _: 1 / 0", "ZeroDivisionError"),
    ],
    ids=["killed", "ended by a library", "an error of ours"],
)
def test_why_a_service_dies_at_its_start_is_told(place, dies, words):
    place.variables = with_import_hook(place.folder / "hook", AT_START + dies, place.variables)
    ran = front_end(place)
    assert_is_told(ran, "did not start", words)
    assert words in error_told(ran)
