"""What comes from a remote replaces nothing that only this machine has, and is all of it."""

import json
import time

import pytest
from machines import git, remote_at, two_machines

from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.past import history
from vector_index_mcp.notes.store.history import id_of

pytestmark = pytest.mark.anyio

DRAFT = "projects/app/knowledge/draft.md"


@pytest.fixture
def remote(tmp_path):
    return remote_at(tmp_path / "remote.git")


@pytest.fixture
async def both(tmp_path, remote):
    async with two_machines(tmp_path, remote) as both:
        yield both


async def create(machine, name, project="app"):
    await machine.done(
        "create_knowledge_file",
        project_id=project,
        filename=name,
        title=name,
        introduction="About it.",
        keywords=["k"],
        chapters=[{"title": "One", "content": "First."}],
    )


def put(machine, path, text):
    """Write a file in one step: of a large one, the watching machine may find the first half."""
    file = machine.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = machine.home.with_name("whole")
    whole.write_text(text, encoding="utf-8")
    whole.replace(file)


@pytest.mark.long
@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
@pytest.mark.parametrize("kind", ["ignored", "too-large"])
async def test_what_is_in_no_history_is_not_replaced(both, kind, is_ahead):
    laptop, desktop = both
    text = "mine alone" if kind == "ignored" else "x" * (LARGEST_FILE_BYTES + 1)
    if kind == "ignored":
        await desktop.done("sync_storage")
        put(desktop, ".gitignore", "draft.md\n")
    if is_ahead or kind == "ignored":
        # Its commit holds the rule as well: a draft before that could be committed without it.
        await create(desktop, "other")
    put(desktop, DRAFT, text)
    await create(laptop, "draft")
    await laptop.synced()
    answer = await desktop.done("sync_storage")
    assert not answer["pushed"]
    assert "draft.md" in answer["message"]
    assert (desktop.home / DRAFT).read_text(encoding="utf-8") == text
    (desktop.home / DRAFT).rename(desktop.home / DRAFT.replace("draft", "my-draft"))
    await desktop.synced()
    assert await desktop.chapters("app", "draft.md") == {"One": "First."}


@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_what_was_deleted_elsewhere_leaves_no_ghost(both, is_ahead):
    laptop, desktop = both
    await create(laptop, "one", "shop")
    await laptop.done("create_todo", project_id="app", description="List", tasks=["a"])
    await laptop.synced()
    await desktop.synced()
    if is_ahead:
        await create(desktop, "mine")
    await laptop.done("delete_project", project_id="shop")
    await laptop.done("delete_todo", project_id="app", todo_number=1)
    await laptop.synced()
    await desktop.synced()
    assert not (desktop.home / "projects/shop").exists()
    assert (await desktop.done("list_todos", project_id="app"))["todos"] == []
    made = await desktop.done("create_todo", project_id="app", description="Next")
    assert made["todo_number"] == 1


@pytest.mark.long
@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
@pytest.mark.parametrize("place", ["projects/app/knowledge/sub", "docs"])
async def test_a_folder_may_become_a_file_and_a_file_a_folder(both, place, is_ahead):
    laptop, desktop = both
    put(laptop, f"{place}/in.md", "inner")
    await laptop.synced()
    await desktop.synced()
    if is_ahead:
        await create(desktop, "mine")
    (laptop.home / place / "in.md").unlink()
    (laptop.home / place).rmdir()
    put(laptop, place, "a file now")
    await laptop.synced()
    await desktop.synced()
    assert (desktop.home / place).read_text(encoding="utf-8") == "a file now"
    if is_ahead:
        await create(desktop, "another")
    (laptop.home / place).unlink()
    put(laptop, f"{place}/in.md", "a folder again")
    await laptop.synced()
    await desktop.synced()
    assert (desktop.home / place / "in.md").read_text(encoding="utf-8") == "a folder again"


async def test_a_branch_that_is_gone_is_pushed_again(both, remote):
    laptop, _ = both
    git(remote, "update-ref", "-d", "refs/heads/main")
    await laptop.synced()
    assert git(remote, "rev-parse", "main") == git(laptop.home, "rev-parse", "HEAD")


async def test_another_remote_gets_everything(both, tmp_path):
    laptop, _ = both
    new = remote_at(tmp_path / "new.git")
    git(laptop.home, "remote", "set-url", "origin", str(new))
    await laptop.synced()
    assert git(new, "rev-parse", "main") == git(laptop.home, "rev-parse", "HEAD")


async def test_a_moment_tells_of_what_any_machine_had_written(both, remote):
    laptop, desktop = both
    git(desktop.home, "remote", "set-url", "origin", str(remote.with_name("nowhere")))
    await create(desktop, "mine", "offline")
    await create(laptop, "theirs", "shop")
    await laptop.synced()
    moment = time.strftime("%Y-%m-%d %H:%M:%S")
    commit = git(laptop.home, "rev-parse", "HEAD")
    git(desktop.home, "remote", "set-url", "origin", str(remote))
    for machine in (desktop, laptop):  # merges, and goes forward to the merge
        await machine.synced()
    store = laptop.notes.store
    head = history.head_of(store)
    assert head != commit
    assert git(laptop.home, "rev-parse", "HEAD^1") != commit  # it is the other machine's line
    assert history.commit_at(store, head, "shop", moment) == commit


async def test_what_both_changed_in_main_texts_and_tasks_is_told_by_both(both):
    laptop, desktop = both
    await laptop.done("update_project_main", project_id="app", content="## Build\n\nmake\n")
    await laptop.done("create_todo", project_id="app", description="List", tasks=["a task"])
    await laptop.synced()
    await desktop.synced()
    [task] = (laptop.home / "projects/app/TODO/1").glob("TASK-*")
    for machine, word in ((laptop, "one"), (desktop, "two")):
        await machine.done("update_project_main", project_id="app", content=f"## Build\n\n{word}\n")
        name = task.relative_to(laptop.home)
        said = {**json.loads(task.read_text(encoding="utf-8")), "title": f"a task, {word}"}
        put(machine, name, json.dumps(said))
    for machine in (laptop, desktop, laptop):
        await machine.synced()
    for machine in (laptop, desktop):
        details = await machine.details()
        assert '"Build' in details
        assert "TASK-001" in details
        answer = await machine.done("get_todo_tasks", project_id="app", todo_number=1)
        assert "a task, one" in str(answer)
        assert "a task, two" in str(answer)


@pytest.mark.long
async def test_two_versions_that_are_too_much_for_one_file_are_two_files(both):
    laptop, desktop = both
    half = "x" * (LARGEST_FILE_BYTES // 2 + 1_000)
    for machine, letter in ((laptop, "a"), (desktop, "b")):
        put(machine, DRAFT, f"## One\n\n{letter}{half}\n")
    for machine in (laptop, desktop, laptop):
        await machine.synced()
    contents = [file.read_bytes() for file in (laptop.home / DRAFT).parent.iterdir()]
    assert {data[8:9] for data in contents} == {b"a", b"b"}
    assert len({id_of(data) for data in contents}) == 2
