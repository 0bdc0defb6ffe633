"""Notes on several machines with one remote: nothing that anybody has written is lost."""

import threading

import anyio
import anyio.to_thread
import pytest
from machines import git, gone, joined, remote_at, running
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.notes import coming, overview, service, syncing
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.opening import Opening
from vector_index_mcp.notes.store.remote import Remote

pytestmark = pytest.mark.anyio

DOCUMENT = {
    "project_id": "app",
    "filename": "api",
    "title": "API",
    "introduction": "About the API.",
    "keywords": ["api"],
    "chapters": [{"title": "Auth", "content": "Basic."}, {"title": "Limits", "content": "None."}],
}


@pytest.fixture
def remote(tmp_path):
    return remote_at(tmp_path / "remote.git")


@pytest.fixture
def homes(tmp_path, remote):
    return [joined(tmp_path / name, remote) for name in ("laptop", "desktop")]


async def both_begin(laptop, desktop):
    """Both machines have one document."""
    await laptop.done("create_knowledge_file", **DOCUMENT)
    await laptop.synced()
    await desktop.synced()
    assert await desktop.chapters("app", "api.md") == {"Auth": "Basic.", "Limits": "None."}


async def sync_all(*machines):
    for _ in range(2):
        for machine in machines:
            await machine.synced()


async def state_of(machine):
    """Every file of a machine that is kept; its repository is sound, and in the end its index."""
    git(machine.home, "fsck", "--strict")
    await eventually(lambda: not git(machine.home, "status", "--porcelain"))
    return git(machine.home, "ls-tree", "-r", "HEAD")


async def test_a_write_is_pushed_behind_the_answer(remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.done("update_project_main", project_id="app", content="# App\n")
        said = "Update knowledge for app: Created main.md"
        await eventually(lambda: said in git(remote, "log", "--format=%s", check=False))


async def test_another_machine_sees_what_was_pushed(homes):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        assert await state_of(laptop) == await state_of(desktop)


async def test_a_clone_that_has_checked_out_a_branch_which_the_remote_lacks_takes_the_other(
    tmp_path, remote, homes
):
    """As `git clone` does if the remote names `master` as its own and everybody pushes `main`."""
    git(remote, "symbolic-ref", "HEAD", "refs/heads/master")
    async with running(homes[0]) as laptop:
        await laptop.done("create_knowledge_file", **DOCUMENT)
        await laptop.synced()
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "--quiet", str(remote), str(clone))
        assert git(clone, "symbolic-ref", "HEAD") == "refs/heads/master"
        async with running(clone) as desktop:
            await desktop.done("update_project_main", project_id="app", content="# App\n")
            await sync_all(desktop, laptop)
            assert await desktop.chapters("app", "api.md") == {"Auth": "Basic.", "Limits": "None."}
            assert (await laptop.done("get_project_main", project_id="app"))["content"] == "# App\n"
            assert await state_of(laptop) == await state_of(desktop)
            assert "go on as main" in await desktop.details()
    assert git(remote, "branch", "--format=%(refname)") == "refs/heads/main"


async def test_the_first_call_on_a_new_machine_has_the_notes_of_the_others(homes):
    async with running(homes[0]) as laptop:
        await laptop.done("create_knowledge_file", **DOCUMENT)
        await laptop.done("update_project_main", project_id="app", content="# App\n")
        await laptop.synced()
    async with running(homes[1]) as desktop:
        found = await desktop.done("get_project_main", project_id="app")
        assert (found["exists"], found["content"]) == (True, "# App\n")


async def test_without_an_answer_of_the_remote_nobody_waits_for_long(homes, monkeypatch):
    monkeypatch.setattr(service, "_FIRST_NOTES_SECONDS", 0.01)
    go_on, fetch = threading.Event(), Remote.fetch

    def hung(*arguments):
        go_on.wait()
        return fetch(*arguments)

    monkeypatch.setattr(Remote, "fetch", hung)
    async with running(homes[1]) as desktop:
        found = await desktop.done("get_project_main", project_id="app")
        assert not found["exists"]
        go_on.set()


async def test_of_several_branches_none_is_taken(remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.done("create_knowledge_file", **DOCUMENT)
        await laptop.synced()
    git(remote, "branch", "drafts", "main")
    git(homes[1], "symbolic-ref", "HEAD", "refs/heads/master")
    async with running(homes[1]) as desktop:
        await desktop.done("update_project_main", project_id="app", content="# App\n")
        await desktop.synced()
    branches = git(remote, "branch", "--format=%(refname:short)").split()
    assert branches == ["drafts", "main", "master"]


async def test_a_branch_without_notes_is_not_taken(tmp_path, remote, homes):
    """As if the store's remote were a repository of code."""
    code = joined(tmp_path / "code", remote)
    (code / "app.py").write_text("x = 1\n", encoding="utf-8")
    git(code, "add", "app.py")
    git(code, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "code")
    git(code, "push", "--quiet", "origin", "main")
    git(homes[0], "symbolic-ref", "HEAD", "refs/heads/notes")
    async with running(homes[0]) as laptop:
        await laptop.done("update_project_main", project_id="app", content="# App\n")
        await laptop.synced()
        assert not (homes[0] / "app.py").exists()
    assert git(remote, "branch", "--format=%(refname:short)").split() == ["main", "notes"]
    assert git(remote, "ls-tree", "--name-only", "main") == "app.py"


async def test_a_branch_that_is_deleted_at_the_remote_comes_back(remote, homes):
    git(homes[0], "symbolic-ref", "HEAD", "refs/heads/notes")
    async with running(homes[0]) as laptop:
        await laptop.done("update_project_main", project_id="app", content="# App\n")
        await laptop.synced()
        git(remote, "branch", "main", "notes")
        git(remote, "branch", "-D", "notes")
        await laptop.synced()
        assert git(laptop.home, "symbolic-ref", "--short", "HEAD") == "notes"
    assert git(remote, "branch", "--format=%(refname:short)").split() == ["main", "notes"]


async def test_a_branch_that_could_not_be_taken_is_taken_by_the_next_try(remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.done("create_knowledge_file", **DOCUMENT)
        await laptop.synced()
    git(homes[1], "symbolic-ref", "HEAD", "refs/heads/master")
    lock = homes[1] / ".git/HEAD.lock"
    lock.touch()
    async with running(homes[1]) as desktop:
        assert "HEAD" in (await desktop.done("sync_storage"))["message"]
        lock.unlink()
        await desktop.synced()
        assert await desktop.chapters("app", "api.md") == {"Auth": "Basic.", "Limits": "None."}
    assert git(remote, "branch", "--format=%(refname:short)") == "main"


async def test_who_reads_soon_sees_what_others_have_pushed(homes, monkeypatch):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        monkeypatch.setattr(syncing, "_FETCH_FOR_READER_SECONDS", 0.0)
        await laptop.done("update_project_main", project_id="app", content="# App\n")
        await laptop.synced()

        async def is_there():
            return (await desktop.done("get_project_main", project_id="app"))["exists"]

        await eventually(is_there)


async def test_a_sync_says_what_it_had_to_do(tmp_path, remote, homes):
    nothing = ("No changes to sync - working tree clean", 0, False)
    done = "Storage synchronized successfully"

    async def said(machine):
        answer = await machine.done("sync_storage")
        return answer["message"], answer["files_committed"], answer["pushed"]

    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        await laptop.synced()
        assert await said(laptop) == nothing
        main = laptop.home / "projects/app/main.md"
        main.write_text("by hand\n")
        assert await said(laptop) == (done, 1, True)
        assert git(remote, "show", "main:projects/app/main.md") == "by hand"
        assert await said(desktop) == (done, 0, False)  # it has fetched
        assert await said(desktop) == nothing
    async with running(tmp_path / "alone") as alone:
        await alone.done("update_project_main", project_id="app", content="x\n")
        assert await said(alone) == nothing


async def test_commits_that_could_not_be_pushed_before_are_something_to_sync(remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.synced()
        with gone(remote):
            await laptop.done("update_project_main", project_id="app", content="x\n")
            assert not (await laptop.done("sync_storage"))["pushed"]
        answer = await laptop.done("sync_storage")
        assert (answer["files_committed"], answer["pushed"]) == (0, True)
        assert answer["message"] == "Storage synchronized successfully"


async def test_what_both_wrote_offline_both_have_in_the_end(remote, homes):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        with gone(remote):
            await laptop.done("update_project_main", project_id="laptop", content="# L\n")
            await laptop.done("create_todo", project_id="app", description="L", tasks=["l1"])
            await laptop.done(
                "add_chapter", project_id="app", filename="api.md", chapter_title="L", content="l"
            )
            await desktop.done("update_project_main", project_id="desktop", content="# D\n")
            await desktop.done("create_todo", project_id="app", description="D", tasks=["d1"])
            await desktop.done(
                "add_chapter", project_id="app", filename="api.md", chapter_title="D", content="d"
            )
        await sync_all(laptop, desktop)
        assert await state_of(laptop) == await state_of(desktop)
        for machine in (laptop, desktop):
            assert set(await machine.chapters("app", "api.md")) == {"Auth", "Limits", "L", "D"}
            todos = (await machine.done("list_todos", project_id="app"))["todos"]
            assert {each["description"] for each in todos} == {"L", "D"}
            assert [each["number"] for each in todos] == [1, 2]
            for project in ("laptop", "desktop"):
                assert (await machine.done("get_project_main", project_id=project))["exists"]


async def test_a_chapter_that_both_changed_is_there_twice_and_marked(remote, homes):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        chapter = {"project_id": "app", "filename": "api.md", "chapter_title": "Auth"}
        with gone(remote):
            await laptop.done("update_chapter", **chapter, new_content="OAuth.")
            await desktop.done("update_chapter", **chapter, new_content="Keys.")
        await sync_all(laptop, desktop)
        assert await state_of(laptop) == await state_of(desktop)
        chapters = await laptop.chapters("app", "api.md")
        texts = [text for title, text in chapters.items() if title.startswith("Auth")]
        assert len(texts) == 2
        assert any("OAuth." in text for text in texts)
        assert any("Keys." in text for text in texts)
        assert chapters["Limits"] == "None."
        [marked] = [title for title in chapters if title not in {"Auth", "Limits"}]
        for machine in (laptop, desktop):
            assert marked in await machine.details()
        await laptop.done("remove_chapter", **chapter | {"chapter_title": marked})
        assert marked not in await laptop.details()


async def test_a_start_loses_no_commit_that_was_never_pushed(remote, homes):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
    with gone(remote):
        async with running(homes[0]) as laptop:
            await laptop.done("update_project_main", project_id="app", content="offline\n")
    async with running(homes[1]) as desktop:
        await desktop.done("update_project_main", project_id="other", content="meanwhile\n")
        await desktop.synced()
    async with running(homes[0]) as laptop:
        await laptop.synced()
        for project, text in (("app", "offline\n"), ("other", "meanwhile\n")):
            found = await laptop.done("get_project_main", project_id=project)
            assert found["content"] == text


async def test_a_remote_that_is_gone_fails_no_write_and_is_told(remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.done("update_project_main", project_id="app", content="1\n")
        await laptop.synced()
        with gone(remote):
            await laptop.done("update_project_main", project_id="app", content="2\n")
            answer = await laptop.done("sync_storage")
            assert not answer["pushed"]
            assert "not pushed" in answer["message"]
            status = (await laptop.done("get_storage_status"))["remote_status"]
            assert "1 to push" in status
        await laptop.synced()
        status = (await laptop.done("get_storage_status"))["remote_status"]
        assert status == "origin/main (up to date)"


async def test_a_command_without_a_service_tells_that_it_asks_no_remote(remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.done("update_project_main", project_id="app", content="1\n")
        await laptop.synced()
        store = laptop.notes.store
    told = (await anyio.to_thread.run_sync(overview.status, store))["remote_status"]
    assert told == "origin/main (up to date as of the last fetch)"


async def test_an_error_that_nobody_foresaw_is_told_and_tried_again(homes, monkeypatch, caplog):
    async with running(homes[0]) as laptop:
        await laptop.synced()
        with monkeypatch.context() as meanwhile, anyio.fail_after(PATIENCE_SECONDS):
            meanwhile.setattr(laptop.notes.syncing._remote, "fetch", lambda *_: {}["a surprise"])
            await laptop.done("update_project_main", project_id="app", content="x\n")
            answer = await laptop.done("sync_storage")
            assert not answer["pushed"]
            assert "not pushed: 'a surprise'" in answer["message"]
            assert "a surprise" in (await laptop.done("get_storage_status"))["remote_status"]
        assert "Traceback" in caplog.text
        await laptop.synced()
        status = (await laptop.done("get_storage_status"))["remote_status"]
        assert status == "origin/main (up to date)"


async def test_an_error_that_nobody_foresaw_does_not_end_the_watching(tmp_path, monkeypatch):
    monkeypatch.setattr("vector_index_mcp.notes.watching._LOOK_SECONDS", 0.05)
    async with running(tmp_path / "store") as machine:
        await machine.done("update_project_main", project_id="app", content="x\n")
        with monkeypatch.context() as meanwhile:
            has_failed = threading.Event()

            def fail(*_):
                has_failed.set()
                raise KeyError("a surprise")

            meanwhile.setattr(machine.notes.writer, "take_over_by_hand", fail)
            await anyio.to_thread.run_sync(has_failed.wait, 30.0)
            assert has_failed.is_set()
        (machine.home / "projects/app/main.md").write_text("by hand\n")
        await eventually(lambda: not machine.git("status", "--porcelain", "--untracked-files=no"))
        assert machine.git("show", "HEAD:projects/app/main.md") == "by hand"


async def test_an_error_that_nobody_foresaw_while_opening_ends_no_service(tmp_path, monkeypatch):
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Opening, "ensure", lambda *_: {}["a surprise"])
        async with running(tmp_path / "store") as machine:
            answer = await machine.call("update_project_main", project_id="app", content="x\n")
            assert answer["error"] == "'a surprise'"
            meanwhile.undo()
            await machine.done("update_project_main", project_id="app", content="x\n")


async def test_what_the_remote_has_stays_if_the_commit_cannot_be_read_at_first(
    remote, homes, monkeypatch
):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        await desktop.done("update_project_main", project_id="app", content="remote's\n")
        await desktop.synced()
        tree, before, failures = laptop.notes.writer.tree, laptop.git("rev-parse", "HEAD"), []
        follow = tree.follow

        def fail_after_the_move(commit):
            if not failures and laptop.git("rev-parse", "HEAD") != before:
                failures.append(commit)
                raise Refusal(Code.GIT_COMMAND_FAILED, "git was killed")
            follow(commit)

        monkeypatch.setattr(tree, "follow", fail_after_the_move)
        await laptop.done("sync_storage")
        await laptop.synced()
        assert failures
        main = "projects/app/main.md"
        assert (laptop.home / main).read_text() == "remote's\n"
        assert (
            laptop.git("show", f"HEAD:{main}") == git(remote, "show", f"main:{main}") == "remote's"
        )
        assert await state_of(laptop)


async def test_a_rewritten_history_of_the_remote_takes_nothing_away(tmp_path, remote, homes):
    async with running(homes[0]) as laptop:
        await laptop.done("create_knowledge_file", **DOCUMENT)
        await laptop.synced()
        before = laptop.git("rev-parse", "HEAD")
        stranger = tmp_path / "stranger"
        git(tmp_path, "clone", "--quiet", str(remote), str(stranger))
        git(stranger, "checkout", "--quiet", "--orphan", "new")
        git(stranger, "rm", "-rqf", ".")
        (stranger / "projects" / "new").mkdir(parents=True)
        (stranger / "projects" / "new" / "main.md").write_text("rewritten\n")
        git(stranger, "add", ".")
        git(stranger, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "rewritten")
        git(stranger, "push", "--quiet", "--force", "origin", "new:main")
        await laptop.synced()
        assert set(await laptop.chapters("app", "api.md")) == {"Auth", "Limits"}
        found = await laptop.done("get_project_main", project_id="new")
        assert found["content"] == "rewritten\n"
        assert before in laptop.git("for-each-ref", "--format=%(objectname)", "refs/rescue")
        assert "refs/rescue/" in await laptop.details()


async def test_what_somebody_edited_by_hand_is_merged_too(remote, homes):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        await desktop.done(
            "add_chapter", project_id="app", filename="api.md", chapter_title="D", content="d"
        )
        await desktop.synced()
        path = laptop.home / "projects/app/knowledge/api.md"
        path.write_text(path.read_text().replace("None.", "Ten a second."))
        await laptop.synced()
        chapters = await laptop.chapters("app", "api.md")
        assert chapters == {"Auth": "Basic.", "Limits": "Ten a second.", "D": "d"}


@pytest.mark.long
@pytest.mark.parametrize("is_gone", [False, True], ids=["changed", "removed"])
@pytest.mark.parametrize("have_both_written", [False, True])
async def test_what_somebody_saves_while_the_remotes_commits_are_taken_is_merged_too(
    homes, monkeypatch, have_both_written, is_gone
):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        if is_gone:
            await desktop.done("delete_knowledge_file", project_id="app", filename="api.md")
        else:
            given = {"project_id": "app", "filename": "api.md"}
            await desktop.done("add_chapter", **given, chapter_title="D", content="d")
        await desktop.synced()
        if have_both_written:
            await laptop.done("update_project_main", project_id="mine", content="ours\n")
        path, do = laptop.home / "projects/app/knowledge/api.md", coming.LineEnds.as_checked_out

        def saved(*arguments):
            monkeypatch.setattr(coming.LineEnds, "as_checked_out", do)
            path.write_text(path.read_text().replace("None.", "Ten a second."))
            return do(*arguments)

        monkeypatch.setattr(coming.LineEnds, "as_checked_out", saved)
        await laptop.synced()
        chapters = await laptop.chapters("app", "api.md")
        added = {} if is_gone else {"D": "d"}
        assert chapters == {"Auth": "Basic.", "Limits": "Ten a second.", **added}
        await sync_all(desktop, laptop)
        assert await state_of(laptop) == await state_of(desktop)


@pytest.mark.parametrize("have_both_written", [False, True])
async def test_a_branch_that_is_checked_out_during_a_fetch_is_left_alone(
    homes, monkeypatch, have_both_written
):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        await laptop.done("update_project_main", project_id="new", content="theirs\n")
        await laptop.synced()
        if have_both_written:
            desktop.git("remote", "set-url", "origin", str(homes[0] / "nowhere"))
            await desktop.done("update_project_main", project_id="mine", content="ours\n")
            desktop.git("remote", "set-url", "origin", laptop.git("remote", "get-url", "origin"))
        fetch = Remote.fetch

        def fetched(remote, address, branch):
            fetch(remote, address, branch)
            monkeypatch.setattr(Remote, "fetch", fetch)
            desktop.git("switch", "--quiet", "--create", "experiment")

        before = desktop.git("rev-parse", "HEAD")
        monkeypatch.setattr(Remote, "fetch", fetched)
        answer = await desktop.done("sync_storage")
        assert "another branch than main was checked out" in answer["message"]
        assert desktop.git("rev-parse", "experiment") == before
        assert not (desktop.home / "projects/new").exists()


async def test_a_rejected_push_is_merged_and_pushed_again(remote, homes):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        for number in range(5):  # each pushes behind its answer, and one of them comes too late
            await laptop.done("update_project_main", project_id=f"l{number}", content="l")
            await desktop.done("update_project_main", project_id=f"d{number}", content="d")
        await sync_all(laptop, desktop)
        assert await state_of(laptop) == await state_of(desktop)
        assert git(remote, "rev-parse", "main") == laptop.git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    "url",
    [
        "ext::touch {marker}",
        "{home}/inner.git",
        "file://{home}/inner%2egit",
        "file:///no%00where.git",
        "--upload-pack=touch {marker}",
        "foo://x/y",
        "~no-such-user/notes.git",
    ],
)
async def test_an_address_that_runs_something_or_makes_no_sense_is_not_followed(tmp_path, url):
    home = joined(tmp_path / "store", tmp_path / "none")
    marker = tmp_path / "marker"
    inner = remote_at(home / "inner.git")
    hook = inner / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    config = home / ".git" / "config"
    config.write_text(f'[remote "origin"]\n\turl = {url.format(marker=marker, home=home)}\n')
    (home / "projects" / "app" / "knowledge").mkdir(parents=True)
    async with running(home) as machine:
        await machine.done("update_project_main", project_id="app", content="x")
        answer = await machine.done("sync_storage")
        assert not answer["pushed"]
        assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("my notes.git", "my%20notes.git"), ("100%25.git", "100%2525.git"), ("5%z.git", "5%z.git"),
     ("café.git", "caf%C3%A9.git"), ("a+b.git", "a+b.git")],
)  # fmt: skip
async def test_the_address_of_a_folder_is_decoded_as_git_does(tmp_path, name, spelled):
    remote = remote_at(tmp_path / name)
    home = joined(tmp_path / "store", f"file://{tmp_path}/{spelled}")
    git(home, "ls-remote", "origin")
    async with running(home) as machine:
        await machine.done("update_project_main", project_id="app", content="# App\n")
        await machine.synced()
    assert "Created main.md" in git(remote, "log", "--format=%s")


async def test_an_address_that_is_refused_is_told_beside_the_rest_of_the_status(tmp_path):
    home = joined(tmp_path / "store", "foo://x/y")
    (home / "projects").mkdir()
    async with running(home) as machine:
        await machine.done("update_project_main", project_id="app", content="x\n")
        (home / "projects/app/main.md").write_text("by hand\n")
        of_service = await machine.done("get_storage_status")
        of_command = await anyio.to_thread.run_sync(overview.status, machine.notes.store)
    for status in (of_service, of_command):
        assert status["current_branch"] == "main"
        assert "Created main.md" in status["last_commit"]
        assert status["uncommitted_files"] == 1
        assert "begins with foo://, which is not supported" in status["remote_status"]


async def test_hooks_and_settings_of_a_remote_on_this_machine_do_not_run(tmp_path, remote, homes):
    marker = tmp_path / "marker"
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        hook = remote / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
        hook.chmod(0o755)
    git(remote, "config", "core.alternateRefsCommand", f"touch {marker};:")
    git(remote, "config", "core.fsmonitor", f"touch {marker};:")
    async with running(homes[0]) as laptop:
        await laptop.done("update_project_main", project_id="app", content="x")
        await laptop.synced()
        assert git(remote, "log", "--format=%s")
    assert not marker.exists()


async def test_a_save_before_the_remotes_commits_are_put_is_taken_in_at_once(homes, monkeypatch):
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        await desktop.done("update_project_main", project_id="app", content="theirs\n")
        await desktop.synced()
        do = syncing.by_moving

        def saved(*arguments):
            monkeypatch.setattr(syncing, "by_moving", do)
            found = do(*arguments)
            (laptop.home / "projects/app/main.md").write_text("mine\n")
            return found

        monkeypatch.setattr(syncing, "by_moving", saved)
        assert "rename it here" not in (await laptop.done("sync_storage"))["message"]
        await sync_all(desktop, laptop)
        assert "mine" in git(desktop.home, "show", "HEAD:projects/app/main.md")


async def test_no_push_checks_files_out_at_a_remote_on_this_machine(tmp_path):
    """That would run its filters, and what looks for changed files."""
    other = joined(tmp_path / "other", tmp_path / "unused")
    marker = tmp_path / "marker"
    (other / ".gitattributes").write_text("* filter=x\n")
    git(other, "add", "--all")
    git(other, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first")
    for name in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "gc.recentObjectsHook"):
        git(other, "config", name, f"touch {marker};cat")
    git(other, "config", "receive.denyCurrentBranch", "updateInstead")
    git(other, "config", "gc.auto", "1")
    async with running(joined(tmp_path / "laptop", other)) as laptop:
        await laptop.done("update_project_main", project_id="app", content="x")
        said = (await laptop.done("sync_storage"))["message"]
    assert "use a bare one" in said
    assert not marker.exists()
    assert git(other, "log", "--format=%s") == "first"


async def test_credentials_of_an_address_are_never_told(tmp_path, caplog):
    home = joined(tmp_path / "store", "https://user:s3cr3t-t0ken@127.0.0.1:9/notes.git")
    (home / "projects").mkdir()
    async with running(home) as machine:
        await machine.done("update_project_main", project_id="app", content="x")
        answers = [await machine.done("sync_storage"), await machine.done("get_storage_status")]
        log = (home / "activity.log").read_text()
    assert "not pushed" in answers[0]["message"]
    for text in (str(answers), caplog.text, log):
        assert "s3cr3t" not in text
        assert "user:" not in text


async def test_who_asks_while_a_push_is_under_way_gets_what_came_after_it(homes):
    """That push has looked at the remote before, and cannot answer for what is there now."""
    async with running(homes[0]) as laptop, running(homes[1]) as desktop:
        await both_begin(laptop, desktop)
        remote = desktop.notes.syncing._remote
        push, is_pushed, may_end = remote.push, threading.Event(), threading.Event()

        def push_and_linger(*arguments):
            push(*arguments)
            is_pushed.set()
            may_end.wait()

        remote.push = push_and_linger
        try:
            await desktop.done("update_project_main", project_id="desktop", content="# D\n")
            await anyio.to_thread.run_sync(is_pushed.wait)
            await laptop.synced()
            await laptop.done("update_project_main", project_id="laptop", content="# L\n")
            await laptop.synced()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(desktop.synced)
                await eventually(lambda: not desktop.notes.syncing._asked.empty())
                may_end.set()
        finally:
            may_end.set()
        assert (desktop.home / "projects/laptop/main.md").exists()


async def test_a_service_does_not_end_in_the_middle_of_a_push(homes):
    async with running(homes[0]) as laptop:
        await laptop.synced()
        notes, may_end = laptop.notes, threading.Event()
        push, is_pushing = notes.syncing._remote.push, threading.Event()

        def push_slowly(*arguments):
            is_pushing.set()
            may_end.wait()
            push(*arguments)

        notes.syncing._remote.push = push_slowly
        try:
            await laptop.done("update_project_main", project_id="app", content="# App\n")
            await anyio.to_thread.run_sync(is_pushing.wait)
            await eventually(lambda: not notes.staging.is_busy)
            assert notes.is_busy
        finally:
            may_end.set()
        await eventually(lambda: not notes.is_busy)
