"""What `clear` removes is ours; whatever is put in its way stays, and is named."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from attacks.canaries import own_tables, state_of
from fakes import FakeEmbedder
from folders import nested_in
from mounting import CAN_MOUNT, IN_A_NAMESPACE
from processes import obey_file_modes, posix_only
from serving import codebase_of, converged, found, serving, settled
from writing import write

from vector_index_mcp.console import belongings
from vector_index_mcp.files.removal import remove_at, remove_file_at, size_of
from vector_index_mcp.indexing.opening.locks import LOCKS, held
from vector_index_mcp.indexing.opening.marks import MARK
from vector_index_mcp.indexing.opening.owners import Owners
from vector_index_mcp.indexing.opening.ownership import LOCK, Records, Standing
from vector_index_mcp.indexing.opening.removal import remove_index
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.folders import cache_folder, state_folder
from vector_index_mcp.settings import Settings

FILES = {"one.py": "apple = 1\n", "sub/two.py": "banana = 2\n"}
CLEAR = """
import sys
from pathlib import Path
from vector_index_mcp.console import belongings
from vector_index_mcp.settings import Settings
for thing in belongings.of_project(Path(sys.argv[1]), Settings()).things:
    for left in thing.remove():
        print(f"{left.path}: {left.why}")
"""
OURS = ("chunks", "files", "manifest")


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Those of a user whose folders are all in one place."""
    for name in ("state", "cache", "config"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir(mode=0o700)  # whoever asks for a service makes it
    return Settings()


@pytest.fixture
def project(tmp_path, settings):
    return indexed(tmp_path / "project")


def indexed(root, uri=".lancedb"):
    """A project that is indexed."""
    write(root, FILES)

    async def build():
        codebase = codebase_of(root, FakeEmbedder(), uri=uri, state_folder=state_folder())
        async with codebase.running(Role.VISITOR):
            await codebase.index.trigger(force_reindex=False)
            await converged(codebase)

    anyio.run(build)
    return root


def cleared(found):
    """What is left after all that was found is removed."""
    left = [each for thing in found.things for each in thing.remove()]
    found.tidy()
    return left


def places(found):
    return [thing.path for thing in found.things]


def lefts(found):
    return {each.path: each.why for each in found.left}


# -- one project -----------------------------------------------------------------------------


def test_nothing_is_left_of_an_index_but_the_project(project, settings):
    found = belongings.of_project(project, settings)
    assert places(found) == [project / ".lancedb"]
    assert found.things[0].size > 1000
    assert (cleared(found), found.left) == ([], [])
    assert sorted(path.name for path in project.rglob("*")) == ["one.py", "sub", "two.py"]
    assert [*Records(state_folder()).all()] == []
    assert places(belongings.of_project(project, settings)) == []


def test_asking_changes_nothing(project, settings, tmp_path):
    before = state_of(tmp_path)
    belongings.of_project(project, settings)
    assert state_of(tmp_path) == before


def test_an_index_that_a_setting_put_elsewhere_is_found_without_it(tmp_path, settings):
    place = tmp_path / "elsewhere/index"
    project = indexed(tmp_path / "project", str(place))
    found = belongings.of_project(project, settings)
    assert places(found) == [place]
    assert cleared(found) == []
    assert not place.exists()


def test_an_index_in_the_state_folder_is_found_and_the_shipped_one_stays(tmp_path, settings):
    project = tmp_path / "project"
    anyio.run(own_tables, project / ".lancedb", *OURS)
    before = state_of(project / ".lancedb")
    indexed(project)
    found = belongings.of_project(project, settings)
    [place] = places(found)
    assert place.parent == state_folder() / "places"
    why = "this program did not write it for you on this machine"
    assert lefts(found) == {str(project / ".lancedb"): why}
    assert cleared(found) == []
    assert not place.exists()
    assert state_of(project / ".lancedb") == before


def test_a_folder_that_is_the_index_of_another_project_stays(tmp_path, settings):
    place = tmp_path / "index"
    other = indexed(tmp_path / "other", str(place))
    mine = write(tmp_path / "mine", FILES)
    before = state_of(place)
    found = belongings.of_project(mine, Settings(lancedb_uri=str(place)))
    assert places(found) == []
    assert lefts(found) == {str(place): f"it is the index of {other}"}
    assert state_of(place) == before


def test_a_folder_in_the_project_that_is_the_index_of_another_one_stays(tmp_path, settings):
    outer = tmp_path / "outer"
    inner = indexed(outer / "inner")
    found = belongings.of_project(outer, Settings(lancedb_uri="inner/.lancedb"))
    assert places(found) == []
    assert lefts(found) == {str(inner / ".lancedb"): f"it is the index of {inner}"}


def test_of_a_project_that_was_moved_the_index_goes(project, settings, tmp_path):
    project.rename(tmp_path / "moved")
    found = belongings.of_project(tmp_path / "moved", settings)
    assert places(found) == [tmp_path / "moved/.lancedb"]
    assert cleared(found) == []
    assert [*Records(state_folder()).all()] == []


def test_of_a_project_that_was_copied_the_original_stays_as_it_is(project, settings, tmp_path):
    shutil.copytree(project, tmp_path / "copy")
    assert cleared(belongings.of_project(tmp_path / "copy", settings)) == []
    assert not (tmp_path / "copy/.lancedb").exists()
    assert Records(state_folder()).standing(project / ".lancedb") is Standing.OURS


def test_tables_that_do_not_lie_here_are_left_alone_without_their_password(project):
    settings = Settings().model_copy(update={"lancedb_uri": "s3://key:geheim123@bucket/x"})
    found = belongings.of_project(project, settings)
    [uri] = [path for path in lefts(found) if "bucket" in path]
    assert "geheim123" not in uri
    assert places(found) == [project / ".lancedb"]  # from before


# -- links and foreign things ----------------------------------------------------------------


def test_a_link_in_the_place_of_the_index_is_not_followed(project, settings, tmp_path):
    (project / ".lancedb").rename(tmp_path / "away")
    (project / ".lancedb").symlink_to(tmp_path / "away")
    before = state_of(tmp_path / "away")
    found = belongings.of_project(project, settings)
    assert places(found) == []
    assert lefts(found) == {str(project / ".lancedb"): "a link leads there, and none is followed"}
    assert state_of(tmp_path / "away") == before


def test_a_link_on_the_way_to_the_index_is_not_followed(tmp_path, settings):
    project = indexed(tmp_path / "project", "build/index")
    (project / "build").rename(tmp_path / "away")
    (project / "build").symlink_to(tmp_path / "away")
    before = state_of(tmp_path / "away")
    for plan in (
        belongings.of_project(project, Settings(lancedb_uri="build/index")),
        belongings.of_user(settings),
    ):
        assert str(project / "build/index") in lefts(plan)
        assert project / "build/index" not in places(plan)
    assert remove_index(project / "build/index", Records(state_folder()), state_folder()) != []
    assert state_of(tmp_path / "away") == before


@pytest.mark.parametrize(
    "name", [MARK, LOCK, "manifest.lance", "chunks_7.lance", "chunks.lance/inside", ".gitignore"]
)
def test_no_link_inside_of_an_index_is_followed(project, settings, tmp_path, name):
    theirs = write(tmp_path / "theirs", {"file.txt": "theirs\n"})
    link = project / ".lancedb" / name
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    target = theirs / "file.txt" if name in {MARK, LOCK, ".gitignore"} else theirs
    link.symlink_to(target)
    before = state_of(theirs)
    cleared(belongings.of_project(project, settings))
    assert state_of(theirs) == before
    if name != MARK:  # without that, it is nobody's
        assert not (project / ".lancedb/files.lance").exists()


def test_second_names_of_files_elsewhere_stay(project, settings, tmp_path):
    canary = write(tmp_path / "theirs", {"file.txt": "theirs\n"}) / "file.txt"
    os.link(canary, project / ".lancedb/chunks.lance/file.txt")
    (project / ".lancedb" / LOCK).unlink()
    os.link(canary, project / ".lancedb" / LOCK)
    assert cleared(belongings.of_project(project, settings)) == []
    assert canary.read_text() == "theirs\n"
    assert not (project / ".lancedb").exists()


def test_what_a_user_has_put_beside_an_index_stays_and_is_named(tmp_path, settings):
    place = tmp_path / "index"
    project = indexed(tmp_path / "project", str(place))
    anyio.run(own_tables, place, "chunks_of_books")
    (place / "notes.txt").write_text("mine\n")
    before = [state_of(place / name) for name in ("chunks_of_books.lance", "notes.txt")]
    found = belongings.of_project(project, settings)
    assert {Path(path).name for path in lefts(found)} == {"chunks_of_books.lance", "notes.txt"}
    assert cleared(found) == []
    names = {".gitignore", "chunks_of_books.lance", "notes.txt"}
    assert {path.name for path in place.iterdir()} == names  # what hid them hides them still
    assert [state_of(place / name) for name in ("chunks_of_books.lance", "notes.txt")] == before


def test_an_index_that_was_replaced_since_it_was_shown_stays(project, settings, tmp_path):
    found = belongings.of_project(project, settings)
    shutil.rmtree(project / ".lancedb")
    anyio.run(own_tables, project / ".lancedb", *OURS)
    before = state_of(project / ".lancedb")
    assert [each.path for each in cleared(found)] == [str(project / ".lancedb")]
    assert state_of(project / ".lancedb") == before


@pytest.mark.parametrize("record", ["", '{"folder": 3}', "FORGED"])
def test_a_record_that_makes_no_sense_removes_nothing_of_others(
    project, settings, tmp_path, record
):
    theirs = tmp_path / "theirs"
    anyio.run(own_tables, theirs, *OURS)
    (theirs / MARK).write_text(f"{'0' * 32}\n")
    (state_folder() / "indexes" / f"{'1' * 32}.json").write_text(
        record.replace("FORGED", json.dumps({"folder": str(theirs), "mark": [1, 2], "owner": "x"}))
    )
    before = state_of(theirs)
    found = belongings.of_user(settings)
    assert theirs not in places(found) or record == "FORGED"
    cleared(found)
    assert state_of(theirs).keys() - {MARK} <= before.keys()


# -- all of a user ---------------------------------------------------------------------------


def test_nothing_is_left_of_all_but_what_is_the_users(project, settings, tmp_path):
    indexed(tmp_path / "second", str(tmp_path / "elsewhere"))
    gone = indexed(tmp_path / "gone")
    shutil.rmtree(gone)
    state, cache = state_folder(), cache_folder(settings)
    write(
        cache,
        {
            "embeddings-1.sqlite3": "x",
            "embeddings-1.sqlite3-wal": "x",
            "embeddings-1.sqlite3.lock": "",
            f"datasets/{'a' * 16}/{'b' * 24}/chunks.lance/x": "x",
            f"making/{'c' * 16}/chunks.lance/x": "x",
            f"making/{'c' * 16}.lock": "",
            f"making/{'c' * 16}.77.part/files.lance/x": "x",
        },
    )
    write(state, {f"notes/{'d' * 16}/git/config": "x", f"notes/{'d' * 16}/index/x": "x"})
    (state / f"notes/{'d' * 16}/git/refs").symlink_to(project)
    runtime = tmp_path / "run"
    for ending in ("sock", "lock", "json", "log", "log.1", "4711"):
        (runtime / f"{'e' * 16}.{ending}").touch()
    (runtime / f"vector-index-mcp-{'e' * 16}-{'f' * 16}.html").touch()
    theirs = write(tmp_path / ".knowledge-mcp", {"projects/x/main.md": "mine\n"})
    write(tmp_path / "config/qmd", {"index.yml": "collections: {}\n"})
    before = state_of(theirs)

    found = belongings.of_user(settings)
    assert found.left == []
    assert cleared(found) == []
    assert not state.exists()
    assert not cache.exists()
    assert [*runtime.iterdir()] == []
    assert not (project / ".lancedb").exists()
    assert not (tmp_path / "elsewhere").exists()
    assert state_of(theirs) == before
    assert (tmp_path / "config/qmd/index.yml").exists()
    assert (project / "one.py").exists()


def test_in_a_folder_that_a_setting_has_chosen_only_our_names_go(project, tmp_path):
    chosen = tmp_path / "documents"
    files = {
        "embeddings-1.sqlite3": "ours",
        "embeddings-of-mine.sqlite3": "mine",
        "thesis.md": "mine",
        "datasets/handbook/manifest.json": "mine",
        f"datasets/{'a' * 16}/{'b' * 24}/x": "ours",
        f"datasets/{'b' * 16}/x": "mine",
        f"making/{'a' * 16}/film.md": "mine",
        "making/of/film.md": "mine",
        "embeddings-2.sqlite3/x": "mine",
    }
    write(chosen, files)
    found = belongings.of_user(Settings(embedding_cache_dir=str(chosen)))
    assert {str(chosen / "datasets/handbook"), str(chosen / "making/of")} <= lefts(found).keys()
    assert cleared(found) == []
    left = {path.relative_to(chosen).as_posix() for path in chosen.rglob("*") if path.is_file()}
    assert left == {name for name, whose in files.items() if whose == "mine"}


def test_a_folder_where_we_make_files_is_none_of_ours(project, settings, tmp_path):
    name = "e" * 16
    for place in (
        tmp_path / f"run/{name}.1",
        tmp_path / f"run/{name}.log",
        tmp_path / f"run/vector-index-mcp-{name}-{name}.html",
        cache_folder(settings) / "embeddings-1.sqlite3",
        cache_folder(settings) / f"making/{name}.lock",
        state_folder() / f"indexes/{'1' * 32}.json",
        state_folder() / f"locks/{name}.lock",
    ):
        write(place, {"mine.txt": "mine\n"})
    cleared(belongings.of_user(settings))
    assert len([*tmp_path.rglob("mine.txt")]) == 7
    assert remove_file_at(tmp_path / f"run/{name}.1") != []


def test_a_folder_that_was_there_before_an_index_stays(tmp_path, settings):
    place = tmp_path / "empty"
    place.mkdir()
    project = indexed(tmp_path / "project", str(place))
    assert cleared(belongings.of_project(project, settings)) == []
    assert [*place.iterdir()] == []
    assert [*Records(state_folder()).all()] == []


def test_a_nest_of_folders_is_no_size_and_is_named(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/name").write_bytes(b"x" * 10)
    with nested_in(tmp_path / "cache"):
        assert size_of(tmp_path / "cache") == 10
        [left] = remove_at(tmp_path / "cache")
    assert left.why == "its folders are nested too deeply"


def test_the_size_is_that_of_the_index_alone(tmp_path, settings):
    place = tmp_path / "empty"
    write(place, {"large.bin": "x" * 1_000_000})
    [thing] = belongings.of_project(
        indexed(tmp_path / "project", str(place)), Settings(lancedb_uri=str(place))
    ).things
    assert 1_000 < thing.size < 900_000


@pytest.mark.skipif(not CAN_MOUNT, reason="only root may mount, in a namespace of its own")
@pytest.mark.parametrize("name", ["chunks.lance/data", "chunks.lance/mounted", "chunks_3.lance"])
def test_what_is_mounted_in_an_index_stays(project, settings, tmp_path, name):
    theirs = write(tmp_path / "theirs", {"deep/file.txt": "theirs\n"})
    target = project / ".lancedb" / name
    target.mkdir(exist_ok=True)
    script = 'mount --bind "$1" "$2" && "$3" -c "$4" "$5"'
    done = subprocess.run(
        [*IN_A_NAMESPACE, script, "sh", theirs, target, sys.executable, CLEAR, project],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert f"{target}: something else is mounted there" in done.stdout, done.stderr
    assert (theirs / "deep/file.txt").read_text() == "theirs\n"
    assert cleared(belongings.of_project(project, settings)) == []


def test_our_own_folder_is_not_followed_if_it_is_a_link(project, settings, tmp_path):
    theirs = write(tmp_path / "theirs", {"embeddings-1.sqlite3": "theirs"})
    cache = cache_folder(settings)
    shutil.rmtree(cache, ignore_errors=True)
    cache.parent.mkdir(exist_ok=True)
    cache.symlink_to(theirs)
    found = belongings.of_user(settings)
    assert lefts(found)[str(cache)] == "it is a link, and none is followed"
    assert cleared(found) == []
    assert (theirs / "embeddings-1.sqlite3").exists()


def test_what_we_name_nothing_so_stays_in_our_own_folders(project, settings):
    write(state_folder(), {"mine.txt": "", "indexes/mine.json": "", "places/mine/x": ""})
    found = belongings.of_user(settings)
    assert {Path(path).name for path in lefts(found)} == {"mine.txt", "mine.json", "mine"}
    assert cleared(found) == []
    left = {path.name for path in state_folder().rglob("*") if path.is_file()}
    assert left == {"mine.txt", "mine.json", "x"}


def test_the_record_of_an_index_that_could_not_be_removed_stays(project, settings):
    with held(project / ".lancedb" / LOCK):
        found = belongings.of_user(settings)
        found.things = [t for t in found.things if t.path != project / ".lancedb"]
        cleared(found)
    assert Records(state_folder()).standing(project / ".lancedb") is Standing.OURS
    assert cleared(belongings.of_user(settings)) == []
    assert not state_folder().exists()


# -- at the same time, and broken off --------------------------------------------------------


def test_an_index_that_another_process_writes_stays_and_is_named(project, settings, monkeypatch):
    monkeypatch.setattr("vector_index_mcp.indexing.opening.removal._PATIENCE_SECONDS", 0.1)
    before = state_of(project / ".lancedb")
    with held(project / ".lancedb" / LOCK):
        [left] = cleared(belongings.of_project(project, settings))
    assert (left.path, "another process" in left.why) == (str(project / ".lancedb"), True)
    assert state_of(project / ".lancedb") == before


def test_what_another_process_removes_with_the_folder_of_its_lock_is_done(project, settings):
    found = belongings.of_user(settings)
    locks = state_folder() / LOCKS
    shutil.rmtree(project / ".lancedb")
    shutil.rmtree(locks)
    locks.write_text("so the folder cannot be made, as when another process removes it just then")
    assert cleared(found) == []


def test_two_that_clear_at_the_same_time_are_both_done(project, settings):
    plans = [belongings.of_user(settings) for _ in range(2)]
    left: list = []
    threads = [threading.Thread(target=lambda p=p: left.extend(cleared(p))) for p in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left == []
    assert not (project / ".lancedb").exists()
    assert not state_folder().exists()


def test_the_names_of_indexes_elsewhere_go_as_well(project, settings):
    owners = Owners(state_folder())
    assert owners.name_of("/a/project")
    assert owners.place
    assert cleared(belongings.of_user(settings)) == []
    assert not state_folder().exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from vector_index_mcp.files import beneath
from vector_index_mcp.indexing.opening.ownership import Records
from vector_index_mcp.indexing.opening.removal import remove_index

left = int(sys.argv[3])

def dying(original):
    def remove(*arguments):
        global left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return original(*arguments)
    return remove

beneath.Folder.remove = dying(beneath.Folder.remove)
beneath.Folder.remove_folder = dying(beneath.Folder.remove_folder)
Records.forget = dying(Records.forget)
state = Path(sys.argv[2])
remove_index(Path(sys.argv[1]), Records(state), state)
"""


@posix_only
@pytest.mark.parametrize("goes_on", ["clear", "start"])
@pytest.mark.parametrize("steps_from_the_end", [0, 1, 2, 3, 9])
def test_what_a_killed_removal_leaves_is_ours(
    project, settings, tmp_path, goes_on, steps_from_the_end
):
    whole = tmp_path / "kept"
    shutil.copytree(project, whole)  # how many steps it takes depends on the files
    steps = sum(1 for _ in (whole / ".lancedb").rglob("*")) + 2  # the folder, the record
    arguments = [str(project / ".lancedb"), str(state_folder())]
    killed_at = max(0, steps - 1 - steps_from_the_end)
    died = subprocess.run([sys.executable, "-c", KILLED, *arguments, str(killed_at)], check=False)
    assert died.returncode == -9
    if goes_on == "clear":
        assert cleared(belongings.of_project(project, settings)) == []
        assert not (project / ".lancedb").exists()
        assert [*Records(state_folder()).all()] == []
        return

    async def start():
        codebase = codebase_of(project, FakeEmbedder(), state_folder=state_folder())
        async with serving(codebase) as client:
            status = await settled(client)
            assert status["index_location"] == str(project / ".lancedb")
            assert (await found(client, "apple"))[0] == "one.py"

    anyio.run(start)


READ_ONLY = """
import sys
from pathlib import Path
from vector_index_mcp.indexing.opening.ownership import Records
from vector_index_mcp.indexing.opening.removal import remove_index

state = Path(sys.argv[2])
for left in remove_index(Path(sys.argv[1]), Records(state), state):
    print(left.path, left.why, sep=": ")
"""


@posix_only
def test_what_is_read_only_is_named_and_still_ours(project, settings):
    data = next((project / ".lancedb").glob("chunks.lance/data"))
    data.chmod(0o500)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(project / ".lancedb"), str(state_folder())],
        check=True,
        capture_output=True,
        encoding="utf-8",
        preexec_fn=obey_file_modes,
    )
    assert str(data) in done.stdout
    assert "Permission denied" in done.stdout
    assert Records(state_folder()).standing(project / ".lancedb") is Standing.OURS
    data.chmod(0o700)
    assert cleared(belongings.of_project(project, settings)) == []
