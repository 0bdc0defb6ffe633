"""What is taken for a store: a new one, one of the original program, and nobody else's folder."""

import json
import shutil

import pytest
from stores import (
    ANN,
    OURS,
    OWN,
    answered,
    committed,
    done,
    files_of,
    git,
    log,
    notes_of,
    opened,
    removed,
    serving,
    writer_of,
    wrote,
)
from writing import put, write

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import NEVER_KEPT

pytestmark = pytest.mark.usefixtures("ann")

P = {"project_id": "My Project"}
FOLDER = "projects/my-project"
TASK = (
    "---\ncompleted: {done}\ncreated: '2024-01-01T00:00:00.000Z'\n"
    "updated: '2024-01-01T00:00:00.000Z'\n---\n# {title}\n\nbody of {title}\n"
)
ORIGINAL = {
    "README.md": "# Knowledge Base Storage\n",
    ".gitignore": "activity.log\n.DS_Store\n*.tmp\n",
    "index.json": json.dumps({"projects": {"My Project": "my-project"}}, indent=2),
    f"{FOLDER}/main.md": "# My Project\n\n## A\nalpha\n",
    f"{FOLDER}/knowledge/api.md": "---\ntitle: API\nkeywords:\n  - api\n"
    "created: '2024-01-01T00:00:00.000Z'\nupdated: '2024-01-01T00:00:00.000Z'\n---\n"
    "All about it.\n\n\n\n## Auth\n\nKeys.",
    f"{FOLDER}/TODO/1/index.json": json.dumps(
        {"created": "2024-01-01T00:00:00.000Z", "description": "First"}
    ),
    f"{FOLDER}/TODO/1/TASK-001-one.md": TASK.format(done="true", title="one"),
    f"{FOLDER}/TODO/1/TASK-002-two.md": TASK.format(done="false", title="two"),
    "activity.log": '{"method": "get_project_main"}\n',
}


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def everything(folder):
    """All that lies in a folder, what is git's as well."""
    return {str(p): p.read_bytes() if p.is_file() else "" for p in sorted(folder.rglob("*"))}


def refusal(tmp_path):
    """Why nothing can be written."""
    with writer_of(tmp_path) as writer, pytest.raises(Refusal) as refused:
        wrote(writer, {"projects/p/main.md": "x"})
    return refused.value


# -- new ones ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files", [{}, {"README.md": "mine"}, {"LICENSE": "mine", ".hidden/x": "mine"}]
)
def test_a_folder_without_anything_of_its_own_becomes_a_store(store, tmp_path, files):
    write(store, files)
    with writer_of(tmp_path) as writer:
        wrote(writer, {"projects/p/main.md": "x"})
    assert log(store)[-1] == (OURS, "Initial commit")
    assert files.items() <= {path: git(store, "show", f"HEAD:{path}") for path in files}.items()
    git(store, "fsck", "--strict")


def test_a_store_is_made_with_the_folders_above_it(tmp_path):
    (tmp_path / "deep").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    with writer_of((tmp_path / "deep/er").resolve()) as writer:
        wrote(writer, {"projects/p/main.md": "x"})
    assert (tmp_path / "real/er/store/projects/p/main.md").exists()


def test_projects_copied_into_a_folder_are_a_store(store, tmp_path):
    put(store, "projects/p/main.md", "mine")
    with writer_of(tmp_path) as writer:
        opened(writer)
    assert log(store) == [(OURS, "Initial commit")]
    assert committed(store, "projects/p/main.md") == "mine"


def history_moved(store):
    (store / ".git").rename(store.with_name("moved"))


def history_emptied(store):
    for path in (store / ".git").iterdir():
        removed(path) if path.is_dir() else path.unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "goes",
    [
        removed,
        history_moved,
        history_emptied,
    ],
    ids=lambda goes: goes.__name__,
)
def test_a_store_that_goes_under_a_writer_is_made_anew(store, tmp_path, goes):
    with writer_of(tmp_path) as writer:
        wrote(writer, {"projects/p/main.md": "x"})
        goes(store)
        wrote(writer, {"projects/p/main.md": "y"}, message="Y")
        assert log(store) == [(OURS, "Y"), (OURS, "Initial commit")]
        assert git(store, "ls-tree", "--name-only", "HEAD").splitlines() == [
            ".gitignore", "README.md", "projects",
        ]  # fmt: skip


# -- those of the original program -------------------------------------------------------------


@pytest.fixture
def original(store):
    """A store as the original program left it."""
    write(store, ORIGINAL)
    git(store, "init", "--quiet", "--initial-branch=master")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "Update knowledge")
    return store


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_store_of_the_original_program_is_read_and_written(original, tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        assert (await done(client, "get_project_main", **P))["content"] == ORIGINAL[
            f"{FOLDER}/main.md"
        ]
        document = (await done(client, "get_knowledge_file", **P, filename="api.md"))["document"]
        assert document["metadata"]["keywords"] == ["api"]
        assert [chapter["title"] for chapter in document["chapters"]] == ["Auth"]
        todo = {**P, "todo_number": 1}
        assert (await done(client, "get_todo_tasks", **todo))["tasks"] == [
            {"number": 1, "description": "one", "content": "body of one", "completed": True},
            {"number": 2, "description": "two", "content": "body of two", "completed": False},
        ]
        await done(client, "complete_todo_task", **todo, task_number=2)
        await done(client, "add_todo_task", **todo, title="three")
        await done(
            client, "add_chapter", **P, filename="api.md", chapter_title="New", content="new"
        )
        status = await done(client, "get_storage_status")
    assert (status["current_branch"], status["has_changes"]) == ("master", False)
    assert [who for who, _ in log(original)] == [OURS] * 4 + ["Bob <bob@example.org>"]
    assert log(original)[-2] == (OURS, "Updated .gitignore")
    text = (original / FOLDER / "TODO/1/TASK-002-two.md").read_text(encoding="utf-8")
    assert text.startswith("---\ncompleted: true\n")
    assert text.endswith("---\n# two\n\nbody of two\n")
    assert (original / FOLDER / "TODO/1/TASK-003-three.json").exists()
    for path in ("README.md", "index.json", f"{FOLDER}/main.md"):
        assert (original / path).read_text(encoding="utf-8") == ORIGINAL[path]
    ignored = (original / ".gitignore").read_text(encoding="utf-8")
    assert ignored.endswith(ORIGINAL[".gitignore"])
    assert "*.temp\n" in ignored
    assert git(original, "status", "--porcelain") == ""
    assert git(original, "branch", "--format=%(refname:short)") == "master"


@pytest.mark.slow
def test_what_people_did_while_nobody_served_is_committed_as_theirs(original, tmp_path):
    put(original, f"{FOLDER}/main.md", "by hand")
    put(original, f"{FOLDER}/knowledge/new.md", "by hand")
    (original / f"{FOLDER}/TODO/1/TASK-001-one.md").unlink()
    with writer_of(tmp_path) as writer:
        opened(writer)
        opened(writer)
    assert [who for who, _ in log(original)] == [OURS, ANN, "Bob <bob@example.org>"]
    assert log(original)[1][1].startswith("Edited by hand: ")
    assert git(original, "show", "--name-status", "--format=", "HEAD~1").splitlines() == [
        f"D\t{FOLDER}/TODO/1/TASK-001-one.md",
        f"A\t{FOLDER}/knowledge/new.md",
        f"M\t{FOLDER}/main.md",
    ]


# -- what is kept out of the history -----------------------------------------------------------


def begun_by_hand(store, files):
    """Make a store's repository in which somebody has committed `files`, and nothing else."""
    write(store, files)
    git(store, "init", "--quiet", "--initial-branch=main")
    git(store, "add", "--all", "--force")
    git(store, "commit", "--quiet", "-m", "Bob's")


@pytest.mark.slow
def test_a_store_with_commits_and_no_gitignore_gets_one(store, tmp_path):
    logs = ["activity.log", "projects/p/x.tmp", "#draft.md#"]
    begun_by_hand(store, {"projects/p/main.md": "x", **dict.fromkeys(logs, "x")})
    with writer_of(tmp_path) as writer:
        opened(writer)
        writer.index.refresh()
        opened(writer)
    assert log(store) == [(OURS, "Updated .gitignore"), ("Bob <bob@example.org>", "Bob's")]
    assert (store / ".gitignore").read_text(encoding="utf-8") == NEVER_KEPT
    assert git(store, "ls-files").splitlines() == [".gitignore", "projects/p/main.md"]
    assert all((store / path).exists() for path in logs)
    assert git(store, "status", "--porcelain") == ""


def test_what_people_ignore_and_what_they_keep_all_the_same_stays(store, tmp_path):
    own = "secret.md\r\n!kept.tmp\n*.temp"
    files = {".gitignore": own, "projects/p/secret.md": "", "kept.tmp": "", "a.temp": ""}
    begun_by_hand(store, {"projects/p/main.md": "x", "a.tmp": "", **files})
    with writer_of(tmp_path) as writer:
        opened(writer)
    text = (store / ".gitignore").read_bytes().decode()
    assert text == NEVER_KEPT.replace("*.temp\n", "") + own
    assert set(git(store, "ls-tree", "-r", "--name-only", "HEAD").splitlines()) == {
        "projects/p/main.md", *files,
    }  # fmt: skip


@pytest.mark.slow
def test_a_gitignore_that_is_complete_or_no_text_stays_as_it_is(store, tmp_path):
    for data in (f"mine\n{NEVER_KEPT}".encode(), b"\xff"):
        (store / ".gitignore").write_bytes(data)
        begun_by_hand(store, {"projects/p/main.md": "x"})
        with writer_of(tmp_path) as writer:
            opened(writer)
        assert log(store) == [("Bob <bob@example.org>", "Bob's")]
        assert (store / ".gitignore").read_bytes() == data
        shutil.rmtree(store / ".git")


def test_a_gitignore_that_cannot_be_committed_is_put_back(store, tmp_path, monkeypatch):
    begun_by_hand(store, {"projects/p/main.md": "x", ".gitignore": "mine\n"})

    def fail(*_):
        raise Refusal(Code.GIT_COMMAND_FAILED, "git was killed")

    with writer_of(tmp_path) as writer:
        with monkeypatch.context() as meanwhile, pytest.raises(Refusal, match="was killed"):
            meanwhile.setattr("vector_index_mcp.notes.store.opening.write", fail)
            opened(writer)
        assert (store / ".gitignore").read_text(encoding="utf-8") == "mine\n"
        opened(writer)
    assert log(store)[0] == (OURS, "Updated .gitignore")


# -- what is none ------------------------------------------------------------------------------

FOREIGN = {
    "code": {"src/main.py": "x", "README.md": "x", "pyproject.toml": "x"},
    "one file": {"letter.txt": "x"},
    "another index.json": {"index.json": '{"pages": []}', "a.html": "", "b.html": "", "c.html": ""},
    "many files": {f"{n}.txt": "x" for n in range(50)},
}


def commit(store):
    """Make somebody's repository of a folder, with something staged and something not."""
    git(store, "init", "--quiet")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "theirs")
    path = git(store, "ls-files").splitlines()[0]
    text = (store / path).read_bytes()
    put(store, path, "staged")
    git(store, "add", path)
    (store / path).write_bytes(text)
    put(store, "new.txt", "not committed")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "make",
    [
        lambda store: None,
        commit,
    ],
    ids=["folder", "repository"],
)
@pytest.mark.parametrize("name", FOREIGN)
async def test_a_folder_of_somebody_elses_is_left_alone(store, tmp_path, name, make):
    write(store, FOREIGN[name])
    make(store)
    before = everything(store)
    async with serving(notes_of(tmp_path)) as client:
        for tool, arguments in [
            ("update_project_main", {**P, "content": "x"}),
            ("create_todo", {**P, "description": "x"}),
            ("sync_storage", {}),
        ]:
            answer = await answered(client, tool, **arguments)
            assert (answer["success"], answer["code"]) == (False, "INVALID_PATH")
            assert "holds other files than notes" in answer["error"]
        assert not (await done(client, "get_project_main", **P))["exists"]
        status = await done(client, "get_storage_status")
        assert "holds other files than notes" in status["status_details"]
    assert everything(store) == before


@pytest.mark.parametrize("above", ["", "home"])
def test_a_home_folder_is_left_alone(store, tmp_path, monkeypatch, above):
    monkeypatch.setenv("HOME", str(store / above))
    before = everything(store)
    refused = refusal(tmp_path)
    assert refused.code is Code.INVALID_PATH
    assert "home folder" in str(refused)
    assert everything(store) == before


def test_code_in_a_folder_of_projects_is_left_alone(store, tmp_path):
    write(store, {"angular.json": "{}", "package.json": "{}", "projects/app/main.ts": "x"})
    before = everything(store)
    assert refusal(tmp_path).code is Code.INVALID_PATH
    assert everything(store) == before


def test_a_file_is_no_store(tmp_path):
    put(tmp_path, "store", "mine")
    refusal(tmp_path)
    assert (tmp_path / "store").read_text(encoding="utf-8") == "mine"


# -- after a kill ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heads/main.lock", "vector-index-mcp/next.lock"])
def test_a_lock_that_a_killed_process_has_left_goes(store, tmp_path, monkeypatch, name):
    monkeypatch.setattr("vector_index_mcp.notes.store.opening._CHILD_SECONDS", 0.0)
    with writer_of(tmp_path) as writer:
        wrote(writer, {"projects/p/main.md": "x"})
    put(store, f".git/refs/{name}")
    put(store, f"{OWN}/changing")
    with writer_of(tmp_path) as writer:
        wrote(writer, {"projects/p/main.md": "y"})
    assert committed(store, "projects/p/main.md") == "y"


@pytest.mark.slow
def test_what_a_killed_process_had_written_is_kept(store, tmp_path):
    with writer_of(tmp_path) as writer:
        wrote(writer, {"projects/p/main.md": "x"})
    put(store, "projects/p/main.md", "written, not committed")
    for name in ("changing", "a.old", "b.part"):
        put(store, f"{OWN}/{name}")
    with writer_of(tmp_path) as writer:
        opened(writer)
        wrote(writer, {"projects/p/other.md": "y"}, message="Other")
    assert log(store)[:2] == [
        (OURS, "Other"),
        (OURS, "Kept what was written before an interruption: projects/p/main.md"),
    ]
    assert committed(store, "projects/p/main.md") == "written, not committed"
    assert sorted(path.name for path in (store / OWN).iterdir()) == [
        "found", "index.held", "lock", "staged", "staging.lock",
    ]  # fmt: skip
    assert "a.old" not in files_of(store)
