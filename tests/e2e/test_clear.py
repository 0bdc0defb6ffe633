"""`clear` as somebody types it: what it shows, asks and ends, and its exit status."""

import json
import re
import shutil

import pytest
from processes import (
    NO_MODEL,
    environment,
    place_of,
    posix_only,
    run,
    session,
)
from test_on_a_terminal import plain, terminal
from waiting import eventually
from writing import write

pytestmark = [pytest.mark.long, pytest.mark.anyio]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}


@pytest.fixture
def project(tmp_path):
    """A project that is indexed."""
    root = write(tmp_path / "project", PROJECT)
    assert command(tmp_path, "index", "project").returncode == 0
    return root


def command(folder, *arguments, **options):
    return run(*arguments, cwd=folder, variables=environment(folder, **NO_MODEL), **options)


def test_without_a_terminal_nothing_is_removed_unless_it_is_said(project):
    shown = command(project.parent, "clear", "project")
    assert shown.returncode == 2
    assert shown.stdout.startswith(f"removes {project}/.lancedb (index of {project}, ")
    said = "nothing was removed; give --yes to remove it without being asked\n"
    assert shown.stderr == f"vector-index-mcp: {said}"
    assert command(project.parent, "clear", "project", "--dry-run").returncode == 0
    assert (project / ".lancedb").exists()
    removed = command(project.parent, "clear", "project", "--yes")
    assert (removed.returncode, removed.stderr) == (0, "")
    assert "\nremoved " in removed.stdout
    assert [path.name for path in project.iterdir()] == ["load.py"]
    again = command(project.parent, "clear", "project", "--yes")
    assert (again.returncode, again.stdout) == (
        0,
        f"nothing to remove: {project} has no index of this program\n",
    )


@posix_only
@pytest.mark.parametrize(("answer", "status"), [(b"y\r", 0), (b"\r", 1), (b"\x04", 1)])
def test_somebody_at_a_terminal_is_asked(project, answer, status):
    variables = environment(project.parent, **NO_MODEL)
    with terminal("clear", cwd=project, variables=variables) as shown:
        shown.wait_for("[y/N] ")
        assert (project / ".lancedb").exists()
        shown.press(answer)
        assert shown.end() == status
    assert (project / ".lancedb").exists() is (status != 0)
    assert ("nothing was removed" in plain(shown.shown)) is (status != 0)


def test_a_path_and_all_do_not_go_together(tmp_path):
    refused = command(tmp_path, "clear", ".", "--all", "--yes")
    assert (refused.returncode, "PATH and --all exclude each other" in refused.stderr) == (2, True)


async def test_a_service_is_ended_before_its_index_goes():
    with place_of(PROJECT, **NO_MODEL) as place:
        async with place.relayed() as client:
            await client.initialize()
            await client.call("trigger_index")
            service = place.service()
            shown = await place.run("clear", "project", "--dry-run")
            assert f"ends    the background service of {place.project}\n" in shown.stdout
            assert service.is_running()
            done = await place.run("clear", "project", "--yes")
            assert (done.returncode, done.stderr) == (0, "")
            await eventually(lambda: not service.is_running() or service.status() == "zombie")
        assert [path.name for path in place.project.iterdir()] == ["load.py"]


async def test_of_all_that_was_written_for_a_user_nothing_is_left():
    with place_of(PROJECT, **NO_MODEL) as place:
        async with place.relayed() as client:
            await client.initialize()
            await client.call("trigger_index")
            notes = place.folder / "home/.knowledge-mcp"
            created = await place.run("notes", "list")
            assert created.returncode == 0, created.stderr
            write(notes, {"projects/x/main.md": "# mine\n"})
            done = await place.run("clear", "--all", "--yes")
            assert (done.returncode, done.stderr) == (0, ""), done
            assert "Not touched: notes (~/.knowledge-mcp)" in done.stdout
            assert re.search(r" \d+ B\)", done.stdout), done.stdout
            assert " 0.0 KB)" not in done.stdout
        assert [path.name for path in place.project.iterdir()] == ["load.py"]
        assert [*place.runtime.iterdir()] == []
        assert not [*place.folder.glob("cache/*")]
        assert not (place.folder / "home/.local/state/vector-index-mcp").exists()
        assert (notes / "projects/x/main.md").read_text() == "# mine\n"


async def test_an_index_in_use_by_a_process_that_is_no_service_is_named():
    with place_of(PROJECT, **NO_MODEL) as place:
        async with session(place.project, place.variables) as server:
            await server.trigger()
            done = await place.run("clear", "--yes", "project")
            assert done.returncode == 1
            said = f"not removed: {place.project}/.lancedb: another process uses it"
            assert said in done.stderr
            assert "; 1 thing is left\n" in done.stdout
            await server.converges("parse_config", "load.py")


def test_an_index_that_was_removed_by_hand_and_made_anew_is_listed_once(project):
    for _ in range(2):
        shutil.rmtree(project / ".lancedb")
        assert command(project.parent, "index", "project").returncode == 0
    of_all = command(project.parent, "clear", "--all", "--dry-run").stdout.splitlines()
    of_project = command(project.parent, "clear", "project", "--dry-run").stdout.splitlines()
    line = f"removes {project}/.lancedb (index of {project}, "
    assert [each for each in of_all if each.startswith(line)] == of_project
    assert len(of_project) == 1
    assert any("records of 3 indexes" in each for each in of_all)
    done = command(project.parent, "clear", "--all", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (project.parent / "home/.local/state/vector-index-mcp").exists()


@posix_only
def test_what_cannot_be_removed_is_named(project):
    (project / ".lancedb").chmod(0o500)
    done = command(project.parent, "clear", "--yes", "project", obeys_modes=True)
    assert done.returncode == 1
    assert f"not removed: {project}/.lancedb" in done.stderr
    assert "Permission denied" in done.stderr
    (project / ".lancedb").chmod(0o700)
    assert command(project.parent, "clear", "--yes", "project").returncode == 0


def test_without_a_home_that_is_told_the_users_is_used(project):
    variables = environment(project.parent, **NO_MODEL)
    del variables["HOME"]
    variables["XDG_STATE_HOME"] = f"{project.parent}/home/.local/state"
    done = run("clear", "project", "--yes", cwd=project.parent, variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (project / ".lancedb").exists()


def test_a_shipped_index_is_named_and_stays(project, tmp_path):
    clone = write(tmp_path / "clone", PROJECT)
    shutil.copytree(project / ".lancedb", clone / ".lancedb")
    for record in (tmp_path / "home/.local/state/vector-index-mcp/indexes").iterdir():
        assert json.loads(record.read_text())["owner"] == str(project)
        record.unlink()
    left = command(tmp_path, "clear", "--yes", "clone")
    assert left.stdout.startswith(f"leaves  {clone}/.lancedb: this program did not write it ")
    assert left.returncode == 0
    assert (clone / ".lancedb/chunks.lance").is_dir()
