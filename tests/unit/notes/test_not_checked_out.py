"""What git has not checked out is no deletion, and nobody replaces what nobody can see."""

import json
import shutil

import pytest
from kept import kept_by_hand, kept_in
from stores import (
    answered,
    committed,
    done,
    git,
    log,
    notes_of,
    opened,
    pushed,
    serving,
    writer_of,
    wrote,
)
from writing import put

from vector_index_mcp.notes.doctor import examining
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import upkeep
from vector_index_mcp.notes.store.history import contents

MAIN = {f"projects/{name}/main.md": f"# {name}\n\nOne\n" for name in ("a", "b", "c")}
pytestmark = pytest.mark.anyio

RESTORE = "run `git checkout HEAD -- .` there"


@pytest.fixture
def origin(tmp_path):
    """A repository with three projects, as another machine has pushed it."""
    return pushed(tmp_path / "origin", MAIN)


def clone(origin, store, *options):
    git(origin.parent, "clone", "--quiet", *options, f"file://{origin}", str(store))


def remaining(store):
    """The projects in the last commit."""
    return git(store, "ls-tree", "--name-only", "HEAD:projects").splitlines()


def refusal(do):
    with pytest.raises(Refusal) as refused:
        do()
    assert refused.value.code is Code.GIT_ERROR
    return str(refused.value)


# -- sparse checkouts --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("is_sparse_index", [False, True])
def test_what_a_sparse_checkout_leaves_out_stays(origin, store, tmp_path, is_sparse_index):
    clone(origin, store)
    option = "--sparse-index" if is_sparse_index else "--no-sparse-index"
    git(store, "sparse-checkout", "set", "--cone", option, "projects/a")
    assert not (store / "projects/b").exists()
    with writer_of(tmp_path) as writer:
        opened(writer)
        wrote(writer, {"projects/a/main.md": "ours"})
        assert writer.alone(writer.take_over_by_hand).result() == 0
        (store / "projects/a/main.md").unlink()
        assert writer.alone(writer.take_over_by_hand).result() == 1
    assert remaining(store) == ["b", "c"]


@pytest.mark.slow
async def test_no_machine_loses_it(origin, store, tmp_path):
    clone(origin, store)
    git(store, "sparse-checkout", "set", "--cone", "projects/a")
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", project_id="a", content="ours\n")
        await done(client, "sync_storage")
    assert remaining(origin) == ["a", "b", "c"]
    assert committed(origin, "projects/a/main.md") == "ours"


@pytest.mark.slow
def test_what_becomes_sparse_under_a_writer_stays(origin, store, tmp_path):
    clone(origin, store)
    with writer_of(tmp_path) as writer:
        opened(writer)
        git(store, "sparse-checkout", "set", "--cone", "projects/a")
        assert writer.alone(writer.take_over_by_hand).result() == 0
        git(store, "sparse-checkout", "disable")
        (store / "projects/b/main.md").unlink()
        assert writer.alone(writer.take_over_by_hand).result() == 1
    assert remaining(store) == ["a", "c"]


@pytest.mark.slow
def test_with_an_index_that_git_cannot_read_nothing_counts_as_deleted(origin, store, tmp_path):
    clone(origin, store)
    put(store, ".git/index", "broken")
    (store / "projects/b/main.md").unlink()
    with writer_of(tmp_path) as writer:
        opened(writer)
    assert remaining(store) == ["a", "b", "c"]


SPARSE = "run `git sparse-checkout add projects/b` there"


@pytest.fixture
def sparse(origin, store):
    """A clone in which only project a is checked out; b has documents and a to-do list as well."""
    for path in ("projects/b/knowledge/d.md", "projects/b/TODO/1/index.json"):
        put(origin, path, "{}\n")
    index = {"projects": {name: name for name in "abc"}}
    put(origin, "index.json", json.dumps(index))
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "-m", "More")
    clone(origin, store)
    git(store, "sparse-checkout", "set", "--cone", "projects/a")
    return store


CALLS = [
    ("update_project_main", {"content": "mine\n"}),
    ("create_todo", {"description": "d"}),
    ("delete_project", {}),
    (
        "create_knowledge_file",
        {"filename": "new", "title": "N", "introduction": "i", "keywords": ["k"], "chapters": []},
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "given"), CALLS, ids=[tool for tool, _ in CALLS])
async def test_a_project_that_is_left_out_is_not_written(sparse, tmp_path, tool, given):
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", project_id="a", content="ours\n")
        before = git(sparse, "rev-parse", "HEAD")
        said = await answered(client, tool, project_id="b", **given)
        assert said["code"] == Code.GIT_ERROR
        assert said["error"].endswith(SPARSE)
        details = (await done(client, "get_storage_status"))["status_details"]
        assert "the sparse checkout leaves out projects/b/TODO/1/index.json" in details
    assert git(sparse, "rev-parse", "HEAD") == before
    assert not (sparse / "projects/b").exists()


@pytest.mark.slow
async def test_what_is_left_out_is_not_told_as_missing(sparse, tmp_path):
    left_out = f"the sparse checkout in {sparse} leaves out projects/b; {SPARSE}"
    document = {"filename": "d.md"}
    async with serving(notes_of(tmp_path)) as client:
        main = await done(client, "get_project_main", project_id="b")
        assert (main["exists"], main["note"]) == (False, left_out)
        said = await answered(client, "get_knowledge_file", project_id="b", **document)
        assert said["code"] == Code.DOCUMENT_NOT_FOUND
        assert said["error"] == f"Knowledge file d.md not found in project b; {left_out}"
        (sparse / "index.json").unlink()  # now the folder alone says that there is a project
        said = await answered(client, "get_todo_tasks", project_id="b", todo_number=1)
        assert said["code"] == Code.PROJECT_NOT_FOUND
        assert said["error"].endswith(left_out)
        assert "note" not in await done(client, "get_project_main", project_id="d")
        git(sparse, "sparse-checkout", "add", "projects/b")
        assert (await done(client, "get_project_main", project_id="b"))["exists"]


@pytest.mark.slow
async def test_resources_tell_as_well_what_is_left_out(sparse, tmp_path):
    left_out = f"the sparse checkout in {sparse} leaves out projects/b; {SPARSE}"

    async def text_of(client, resource):
        read = await client.read_resource(f"knowledge://projects/{resource}")
        return read.contents[0].text

    async with serving(notes_of(tmp_path)) as client:
        told = await text_of(client, "b/main")
        assert told == f"Project b has no main.md yet; {left_out}"
        assert (await text_of(client, "b/chapters/d.md")).endswith(f"; {left_out}")
        files = json.loads(await text_of(client, "b/files"))
        assert files == {"files": [], "count": 0, "note": left_out}
        assert json.loads(await text_of(client, "a/files")) == {"files": [], "count": 0}
        (sparse / "index.json").unlink()  # now the folder alone says that there is a project
        assert (await text_of(client, "b/main")).endswith(f"; {left_out}")


@pytest.mark.slow
async def test_others_and_new_ones_are_written(sparse, tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        for name in ("a", "new"):
            await done(client, "update_project_main", project_id=name, content="ours\n")
            await done(client, "create_todo", project_id=name, description="d")
        git(sparse, "sparse-checkout", "add", "projects/b")
        await done(client, "update_project_main", project_id="b", content="ours\n")
        assert (await done(client, "create_todo", project_id="b", description="d"))[
            "todo_number"
        ] == 2
    assert remaining(sparse) == ["a", "b", "c", "new"]


@pytest.mark.slow
def test_a_file_that_is_left_out_is_not_replaced(origin, store, tmp_path):
    put(origin, "index.json", "{}")
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "-m", "More")
    clone(origin, store)
    git(store, "sparse-checkout", "set", "--no-cone", "/*", "!/index.json")
    with writer_of(tmp_path) as writer:
        opened(writer)
        words = refusal(lambda: wrote(writer, {"index.json": "mine"}))
        assert "leaves out index.json" in words


# -- submodules --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_files_of_a_submodule_are_not_ours(origin, store, tmp_path):
    inner = git(origin, "rev-parse", "HEAD")
    git(origin, "update-index", "--add", "--cacheinfo", f"160000,{inner},projects/sub")
    git(origin, "commit", "--quiet", "-m", "A submodule")
    clone(origin, store)
    put(store, "projects/sub/main.md", "of another repository")
    with writer_of(tmp_path) as writer:
        opened(writer)
        assert writer.alone(writer.take_over_by_hand).result() == 0
        places = ["projects/sub", "projects/sub/main.md"]
        kept = writer.alone(lambda: writer.by_hand.kept(writer.tree, places)).result()
        assert kept == set()
        words = refusal(lambda: wrote(writer, {"projects/sub/main.md": "ours"}))
        assert words.startswith("projects/sub is a git submodule")
    assert git(store, "ls-tree", "HEAD", "projects/sub").startswith("160000 commit")


# -- partial clones ----------------------------------------------------------------------------


@pytest.fixture
def partial(origin, store):
    """A clone that lacks the texts of the past, of a server that relies on what a clone has."""
    for text in ("two", "three"):
        put(origin, "projects/a/main.md", f"{text}\n" * 50)
        git(origin, "commit", "--quiet", "-am", text)
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    clone(origin, store, "--filter=blob:none")
    return store


def turned_back(origin):
    """The server has an old text again, which it believes the clone to have."""
    git(origin, "checkout", "--quiet", "HEAD~1", "--", "projects/a/main.md")
    git(origin, "commit", "--quiet", "-m", "Back")
    git(origin, "repack", "-qadb")


@pytest.mark.slow
async def test_a_partial_clone_is_written_and_exchanged(origin, partial, tmp_path):
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", project_id="a", content="ours\n")
        await done(client, "sync_storage")
        assert committed(origin, "projects/a/main.md", "main") == "ours"


@pytest.mark.slow
async def test_what_it_lacks_is_said_with_what_to_do(origin, partial, tmp_path):
    turned_back(origin)
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "update_project_main", project_id="b", content="ours\n")
        said = await done(client, "sync_storage")
        assert said["message"].endswith(REFETCH)
        assert not said["pushed"]
        git(partial, "fetch", "--quiet", "--refetch", "--no-filter", "origin")
        said = await done(client, "sync_storage")
        assert said["pushed"]
        read = await done(client, "get_project_main", project_id="a")
        assert read["content"] == "two\n" * 50
    git(partial, "fsck", "--strict")


REFETCH = (
    "is a partial clone (`git clone --filter`), which lacks a part of the history; run `git fetch "
    "--refetch --no-filter origin` there"
)


def history_of(kept):
    """What the doctor says about the history."""
    return {found.name: found for found in examining.examine(kept.store)}["history"]


@pytest.mark.slow
def test_the_doctor_does_not_take_it_for_damaged(partial, tmp_path):
    with kept_in(tmp_path) as kept:
        kept.store.repository.prepare()
        found = history_of(kept)
        assert found.verdict is examining.Verdict.WARNING
        assert "partial clone" in found.words
        assert found.remedy == "run `git fetch --refetch --no-filter origin` there"
        old = kept.person("rev-parse", "HEAD~1:projects/a/main.md")
        with pytest.raises(Refusal, match="lacks a part of the history"):
            contents(kept.store.repository, [old])
        git(partial, "fetch", "--quiet", "--refetch", "--no-filter", "origin")
        assert contents(kept.store.repository, [old]) == {old: b"two\n" * 50}
        assert history_of(kept).verdict is examining.Verdict.OK
        [pack, *_] = (partial / ".git/objects/pack").glob("*.pack")
        pack.chmod(0o600)
        pack.write_bytes(b"broken")
        assert history_of(kept).verdict is examining.Verdict.FAILURE


@pytest.mark.slow
def test_its_packs_keep_their_marks(partial, tmp_path):
    with kept_in(tmp_path) as kept:
        opened(kept.writer)
        for number in range(28):
            put(partial, f".git/objects/17/{number:038x}", "x")
        assert not upkeep.tidy(kept.writer.disk, kept.writer.repository)
    packs = partial / ".git/objects/pack"
    marked = {path.stem for path in packs.glob("*.promisor")}
    assert {path.stem for path in packs.glob("*.pack")} == marked


# -- no checkout at all ------------------------------------------------------------------------


def not_checked_out(origin, store):
    clone(origin, store, "--no-checkout")


def emptied(origin, store):
    clone(origin, store)
    shutil.rmtree(store / "projects")


def cut_off(origin, store):
    """A clone for which there was no space: git writes its index last."""
    clone(origin, store)
    shutil.rmtree(store / "projects/c")
    (store / ".git/index").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("make", [not_checked_out, emptied, cut_off])
def test_a_clone_without_its_files_is_not_written(origin, store, tmp_path, make):
    make(origin, store)
    before = git(store, "rev-parse", "HEAD")
    with writer_of(tmp_path) as writer:
        for _ in range(2):
            words = refusal(lambda: wrote(writer, {"projects/new/main.md": "x"}))
            assert words.startswith("git has not checked out projects/")
            assert words.endswith(RESTORE)
        assert git(store, "rev-parse", "HEAD") == before
        assert not (store / "projects/new").exists()
        git(store, "checkout", "HEAD", "--", ".")
        wrote(writer, {"projects/new/main.md": "x"})
    assert remaining(store) == ["a", "b", "c", "new"]


@pytest.mark.slow
async def test_it_says_so_and_pushes_nothing(origin, store, tmp_path):
    clone(origin, store, "--no-checkout")
    async with serving(notes_of(tmp_path)) as client:
        said = await answered(client, "update_project_main", project_id="new", content="x\n")
        assert said["code"] == Code.GIT_ERROR
        status = await done(client, "get_storage_status")
        assert RESTORE in status["status_details"]
        await answered(client, "sync_storage")
    assert log(origin) == [("Bob <bob@example.org>", "Theirs")]


@pytest.mark.slow
def test_files_that_all_go_under_a_writer_are_not_deleted(origin, store, tmp_path):
    clone(origin, store)
    with writer_of(tmp_path) as writer:
        opened(writer)
        for path in (*MAIN, ".gitignore"):
            (store / path).unlink()
        words = refusal(lambda: writer.alone(writer.take_over_by_hand).result())
        assert words.endswith(RESTORE)
    assert remaining(store) == ["a", "b", "c"]


@pytest.mark.slow
def test_a_clone_in_the_place_of_an_open_store_is_waited_for(origin, store, tmp_path):
    clone(origin, store)
    with writer_of(tmp_path) as writer:
        opened(writer)
        writer.alone(writer.take_over_by_hand).result()
        store.rename(tmp_path / "former")
        cut_off(origin, store)
        before = git(store, "rev-parse", "HEAD")
        words = refusal(lambda: wrote(writer, {"projects/new/main.md": "x"}))
        assert words.startswith("git has not checked out projects/")
        assert git(store, "rev-parse", "HEAD") == before


def test_the_doctor_says_so(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        kept.commit(MAIN)
        shutil.rmtree(kept.home / "projects")
        found = {f.name: f for f in examining.examine(kept.store)}["commits"]
        assert "git has not checked out" in found.words
        assert found.remedy == RESTORE
