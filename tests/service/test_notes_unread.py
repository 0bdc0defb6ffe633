"""What no tool reads (large files, links, submodules) is left alone, and stops no exchange."""

import hashlib
from pathlib import Path

import pytest
from machines import git, joined, remote_at, two_machines

from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.store.line_ends import plain

pytestmark = pytest.mark.anyio

BIG = "projects/app/assets/big.bin"
SAID = f"{BIG} has more than {LARGEST_FILE_BYTES:,} bytes: it stays as it is"


@pytest.fixture
def remote(tmp_path):
    return remote_at(tmp_path / "remote.git")


@pytest.fixture
async def both(tmp_path, remote):
    async with two_machines(tmp_path, remote) as both:
        yield both


async def main(machine, text, project="app"):
    await machine.done("update_project_main", project_id=project, content=text)


async def read(machine, project="app"):
    return (await machine.done("get_project_main", project_id=project))["content"]


def put_large(machine, letter=b"x"):
    """Write a file in one step, so that nobody sees the first part of it."""
    whole = machine.home.with_name("whole")
    whole.write_bytes(letter * (LARGEST_FILE_BYTES + 1))
    (machine.home / BIG).parent.mkdir(exist_ok=True)
    whole.replace(machine.home / BIG)


def committed(machine, *paths, message="By a person"):
    """Have a person commit what is at these paths."""
    staged(machine)
    git(machine.home, "add", "--", *paths)
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    git(machine.home, *person, "commit", "--quiet", "-m", message)


def staged(machine):
    machine.notes.writer.index.refresh()


def summed(machine):
    return hashlib.sha256((machine.home / BIG).read_bytes()).hexdigest()


def entries(machine):
    return git(machine.home, "ls-tree", "-r", "HEAD")


# -- large files -------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_a_large_file_is_exchanged_and_left_alone(both, is_ahead):
    laptop, desktop = both
    put_large(laptop)
    committed(laptop, BIG)
    await main(laptop, "# App\n\nMore\n")
    await laptop.synced()
    if is_ahead:
        await main(desktop, "# Other\n", project="other")
    answer = await desktop.synced()
    if not is_ahead:  # otherwise an exchange after the write may have told it
        assert any(note.startswith(SAID) for note in answer["notes"])
    assert summed(desktop) == summed(laptop)
    assert await read(desktop) == "# App\n\nMore\n"
    for machine in both:
        details = await machine.details()
        assert details.count(SAID) == 1
    await main(desktop, "# App\n\nStill\n")
    await desktop.synced()
    await laptop.synced()
    assert await read(laptop) == "# App\n\nStill\n"
    assert entries(laptop) == entries(desktop)
    staged(desktop)
    assert git(desktop.home, "status", "--porcelain") == ""


@pytest.mark.long
async def test_one_that_changes_and_goes_does_so_elsewhere(both):
    laptop, desktop = both
    for letter in (b"x", b"y"):
        put_large(laptop, letter)
        committed(laptop, BIG)
        await laptop.synced()
        await desktop.synced()
        assert (desktop.home / BIG).read_bytes()[:1] == letter
    (laptop.home / BIG).unlink()
    await laptop.synced()
    await desktop.synced()
    assert not (desktop.home / BIG).exists()


@pytest.mark.long
async def test_of_one_that_both_changed_both_versions_stay(both):
    laptop, desktop = both
    for machine, letter in ((laptop, b"x"), (desktop, b"y")):
        put_large(machine, letter)
        committed(machine, BIG)
    await laptop.synced()
    await desktop.synced()
    assert "has two versions" in await desktop.details()
    await laptop.synced()
    found = {path.read_bytes()[:1] for path in (laptop.home / BIG).parent.iterdir()}
    assert found == {b"x", b"y"}
    assert entries(laptop) == entries(desktop)


@pytest.mark.long
async def test_an_edit_of_one_is_not_replaced(both):
    laptop, desktop = both
    put_large(laptop)
    committed(laptop, BIG)
    await laptop.synced()
    await desktop.synced()
    put_large(desktop, b"z")
    put_large(laptop, b"y")
    committed(laptop, BIG)
    await laptop.synced()
    answer = await desktop.done("sync_storage")
    assert BIG in answer["message"]
    assert (desktop.home / BIG).read_bytes()[:1] == b"z"


async def test_a_project_with_one_can_be_deleted_and_looked_at(both):
    laptop, _ = both
    put_large(laptop)
    committed(laptop, BIG)
    await main(laptop, "# App\n\nMore\n")
    await laptop.done("delete_project", project_id="app")
    assert not (laptop.home / BIG).exists()
    assert f"{BIG}" in git(laptop.home, "ls-tree", "-r", "--name-only", "HEAD~1")


# -- links and submodules ----------------------------------------------------------------------


def linked(machine, path, target):
    place = machine.home / path
    place.unlink(missing_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_a_link_of_another_machine_stays_in_the_history(both, is_ahead):
    laptop, desktop = both
    linked(laptop, "projects/app/link.md", "main.md")
    committed(laptop, "projects/app/link.md")
    await laptop.synced()
    if is_ahead:
        await main(desktop, "# Other\n", project="other")
    await desktop.synced()
    await laptop.synced()
    assert entries(laptop) == entries(desktop)
    assert "120000" in entries(laptop)
    assert (laptop.home / "projects/app/link.md").readlink() == Path("main.md")


@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_a_link_that_becomes_a_file_is_one_everywhere(both, is_ahead):
    laptop, desktop = both
    path = "projects/app/link.md"
    for machine in both:
        linked(machine, path, "main.md")
    committed(laptop, path)
    await laptop.synced()
    await desktop.synced()
    (laptop.home / path).unlink()
    (laptop.home / path).write_text("A file now.\n", encoding="utf-8")
    await laptop.synced()
    assert git(laptop.home, "ls-tree", "HEAD", path).startswith("100644 blob")
    if is_ahead:
        await main(desktop, "# Other\n", project="other")
    await desktop.synced()
    assert not (desktop.home / path).is_symlink()
    assert plain((desktop.home / path).read_bytes()) == b"A file now.\n"
    assert entries(desktop).count("120000") == 0


@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
@pytest.mark.parametrize("is_gone", [False, True], ids=["file", "gone"])
@pytest.mark.parametrize("kind", ["link", "submodule"])
async def test_one_that_was_only_taken_changes_and_goes(both, kind, is_gone, is_ahead):
    laptop, desktop = both
    path, person = "projects/app/other.md", ("-c", "user.name=Ann", "-c", "user.email=a@b.org")
    if kind == "link":
        linked(laptop, path, "main.md")
        committed(laptop, path)
    else:
        staged(laptop)
        entry = f"160000,{commit(laptop.home)},{path}"
        git(laptop.home, "update-index", "--add", "--cacheinfo", entry)
        git(laptop.home, *person, "commit", "--quiet", "-m", "A submodule")
    await laptop.synced()
    await desktop.synced()
    assert not (desktop.home / path).is_symlink()
    (laptop.home / path).unlink(missing_ok=True)
    staged(laptop)
    git(laptop.home, "rm", "--quiet", "--cached", path)
    if not is_gone:
        (laptop.home / path).write_text("A file now.\n", encoding="utf-8")
        git(laptop.home, "add", path)
    git(laptop.home, *person, "commit", "--quiet", "-m", "No more")
    await laptop.synced()
    if is_ahead:
        await main(desktop, "# Other\n", project="other")
    await desktop.synced()
    await laptop.synced()
    assert entries(desktop) == entries(laptop)
    assert (path in entries(desktop)) is not is_gone
    assert (desktop.home / path).exists() is not is_gone
    assert await read(laptop, "other" if is_ahead else "app")


async def test_a_document_in_place_of_one_is_no_edit_by_hand(both):
    laptop, desktop = both
    path = "projects/app/knowledge/other.md"
    await laptop.done("create_knowledge_file", **document("first"))
    linked(laptop, path, "first.md")
    committed(laptop, path)
    await laptop.synced()
    await desktop.synced()
    await desktop.done("create_knowledge_file", **document("other"))
    await desktop.synced()
    subjects = git(desktop.home, "log", "--format=%s").splitlines()
    assert not [each for each in subjects if each.startswith("Edited by hand")]
    assert git(desktop.home, "ls-tree", "HEAD", path).startswith("100644 blob")


def document(name):
    chapters = [{"title": "Chapter", "content": "Text."}]
    about = {"title": name, "introduction": "About it.", "keywords": ["k"], "chapters": chapters}
    return {"project_id": "app", "filename": name} | about


@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_a_link_in_place_of_a_folder_is_one_everywhere(both, is_ahead):
    laptop, desktop = both
    path = "projects/app/more"
    (laptop.home / path).mkdir()
    (laptop.home / path / "a.md").write_text("A\n", encoding="utf-8")
    await laptop.synced()
    await desktop.synced()
    (laptop.home / path / "a.md").unlink()
    (laptop.home / path).rmdir()
    linked(laptop, path, "knowledge")
    committed(laptop, path)
    await laptop.synced()
    if is_ahead:
        await main(desktop, "# Other\n", project="other")
    await desktop.synced()
    await laptop.synced()
    assert f"\t{path}\n" in f"{entries(desktop)}\n"
    assert entries(laptop) == entries(desktop)
    assert "a folder on the other" not in await desktop.details()


@pytest.mark.long
@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
@pytest.mark.parametrize("is_gone", [False, True], ids=["changed", "gone"])
async def test_the_folder_of_a_submodule_is_never_touched(both, tmp_path, is_gone, is_ahead):
    laptop, desktop = both
    other = joined(tmp_path / "other", "nowhere")
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for number in ("1", "2"):
        git(other, *person, "commit", "--quiet", "--allow-empty", "-m", number)
    path = "projects/app/sub"
    staged(laptop)
    git(laptop.home, "update-index", "--add", "--cacheinfo", f"160000,{commit(other, '~1')},{path}")
    git(laptop.home, *person, "commit", "--quiet", "-m", "A submodule")
    await laptop.synced()
    await desktop.synced()
    (desktop.home / path).mkdir()
    (desktop.home / path / "work.tmp").write_text("mine alone", encoding="utf-8")
    staged(laptop)
    if is_gone:
        git(laptop.home, "update-index", "--force-remove", path)
    else:
        git(laptop.home, "update-index", "--cacheinfo", f"160000,{commit(other)},{path}")
    git(laptop.home, *person, "commit", "--quiet", "-m", "Another one")
    await laptop.synced()
    if is_ahead:
        await main(desktop, "# Other\n", project="other")
    await desktop.done("sync_storage")
    assert (desktop.home / path / "work.tmp").read_text(encoding="utf-8") == "mine alone"


def commit(folder, which=""):
    return git(folder, "rev-parse", f"HEAD{which}")
