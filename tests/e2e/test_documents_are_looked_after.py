"""The documents' own doctor, log and live status, as somebody types them."""

import json
import queue
import random
import shutil
import subprocess
import threading

import pytest
from commanding import Qmd
from processes import COMMAND, needs_model, place_of
from waiting import PATIENCE_SECONDS
from writing import write

pytestmark = pytest.mark.long

FILES = {
    "docs/readme.md": "# Read me\n\nThe apple is red.\n",
    "docs/picture.md": "\0\1\2",
    "notes/plan.md": "# Plan\n\nBuy pears.\n",
}


@pytest.fixture
def qmd():
    with place_of(FILES) as place:
        yield Qmd(place)


def checks(qmd, *, status=0):
    """What the doctor finds, by the name of the check."""
    done = qmd("doctor", "--json")
    assert (done.returncode, done.stderr) == (status, "")
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_the_doctor_examines_what_is_indexed_and_names_our_commands(qmd):
    before = checks(qmd)
    assert before["index"]["verdict"] == "warning"
    assert "vector-index-mcp documents update" in before["index"]["remedy"]
    assert qmd.succeeds("embed").startswith("✓ Done!")
    found = checks(qmd)
    assert {check["verdict"] for check in found.values()} == {"ok"}
    assert found["collections"]["words"] == "2, all there"
    assert found["index"]["words"].startswith("2 chunks of 2 files, 2 vectors, 1 file skipped")
    assert "with the index opened for it" in found["first answer"]["words"]
    assert str(qmd.place.folder / "index.lancedb") in found["index folder"]["words"]


def test_the_doctor_asks_a_running_service(qmd):
    with qmd.served():
        found = checks(qmd)
        assert "1 client," in found["service"]["words"]
        assert "of the service" in found["first answer"]["words"]


@needs_model
def test_a_model_that_a_service_has_loaded_is_not_loaded_by_the_doctor_as_well(qmd):
    with qmd.served():
        assert qmd.succeeds("embed").startswith("✓ Done!")
        told = checks(qmd)["model"]
        assert told["verdict"] == "ok"
        assert told["words"].startswith("all-MiniLM-L6-v2, 384 numbers a vector, ")
        assert "the service has loaded it, and it is not loaded here" in told["words"]


def test_a_collection_that_is_gone_is_told_by_the_doctor_and_by_status(qmd):
    qmd.succeeds("update")
    (qmd.place.project / "notes").rename(qmd.place.folder / "elsewhere")
    found = checks(qmd)["collections"]
    assert found["verdict"] == "warning"
    assert f"the folder 'notes' at {qmd.place.project / 'notes'} is gone" in found["words"]
    assert "Problem:  the folder 'notes'" in qmd.succeeds("status")
    with qmd.served():
        assert checks(qmd)["service"]["verdict"] == "warning"


def test_a_configuration_that_cannot_be_read_fails_its_checks_alone(qmd):
    configuration = qmd.place.folder / "configuration/index.yml"
    configuration.write_text("collections: [", encoding="utf-8")
    found = checks(qmd, status=1)
    assert found["collections"]["verdict"] == "FAILED"
    assert "index.yml" in found["collections"]["words"]
    assert found["model"]["verdict"] == "ok"


def test_status_tells_what_is_skipped_and_why(qmd):
    qmd.succeeds("update")
    assert "  Skipped:  1 (1 binary)\n" in qmd.succeeds("status")


def test_a_disk_that_fills_up_ends_a_command_with_an_error(qmd, small_disk):
    qmd.place.variables["INDEX_PATH"] = str(small_disk / "index")
    filler = shutil.disk_usage(small_disk).free - 700_000  # 50 notes have 900,000 bytes
    (small_disk / "filler").write_bytes(b"\0" * filler)
    noise = random.Random(1)
    for number in range(50):
        words = " ".join(f"{noise.getrandbits(48):x}" for _ in range(1_500))
        write(qmd.place.project, {f"notes/{number}.md": f"# Note {number}\n\n{words}\n"})
    for command in (["update"], ["search", "apple"]):
        done = qmd(*command)
        assert "the disk is full" in done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode == (1 if command == ["update"] else 0)


def test_an_update_tells_of_a_folder_that_is_gone(qmd):
    qmd.succeeds("update")
    (qmd.place.project / "notes").rename(qmd.place.folder / "elsewhere")
    done = qmd("update")
    shown = done.stdout
    assert (done.returncode, done.stderr) == (1, "")
    assert f"{qmd.place.project / 'notes'} cannot be read" in shown.partition("Problem: ")[2]
    assert "Not all collections could be updated." in shown


@pytest.mark.parametrize("command", [["get", "plan.md"], ["ls", "notes"], ["search", "pears"]])
def test_what_cannot_be_read_is_not_called_missing(qmd, command):
    write(qmd.place.folder, {"index.lancedb/chunks.lance/_versions/1.manifest": "theirs"})
    done = qmd(*command)
    assert (done.returncode, done.stdout) == (1, "")
    assert "did not write for you" in done.stderr
    assert "set INDEX_PATH to another folder" in done.stderr


def test_the_log_of_the_service_is_shown(qmd):
    none = qmd("logs")
    assert (none.returncode, none.stdout) == (1, "")
    assert "no service has run" in none.stderr
    with qmd.served():
        qmd.succeeds("status")
    assert "INFO" in qmd.succeeds("logs")


def test_the_live_status_waits_for_a_service_and_shows_what_changes(qmd):
    command = [*COMMAND, "documents", "status", "--watch"]
    lines: queue.Queue[str] = queue.Queue()

    def read(stream):
        for line in stream:
            lines.put(line)

    def until(part):
        while part not in (line := lines.get(timeout=PATIENCE_SECONDS)):
            pass
        return line

    with subprocess.Popen(
        command,
        cwd=qmd.place.project,
        env=qmd.place.variables,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as watching:
        reader = threading.Thread(target=read, args=(watching.stdout,))
        reader.start()
        try:
            assert until("no service is running")
            with qmd.served():
                assert until("Total:    2 files indexed")
                write(qmd.place.project, {"notes/more.md": "# More\n"})
                assert until("Total:    3 files indexed")
                qmd.succeeds("stop")
                assert until("no service is running")
        finally:
            watching.terminate()
            reader.join(PATIENCE_SECONDS)


def test_the_help_names_what_looks_after_the_service(qmd):
    shown = qmd.succeeds("--help")
    for command in ("server", "status --watch", "logs", "stop", "doctor", "install --set"):
        assert command in shown
