"""The doctor of the notes: it finds what is wrong, says what to do, and mends without losing."""

import json
import os
import shutil
import time
from types import SimpleNamespace

import pytest
from kept import kept_by_hand, kept_copy, kept_in
from stores import committed, git, log, removed, state_of
from waiting import PATIENCE_SECONDS

from vector_index_mcp.notes.doctor import examining, repairing, rights
from vector_index_mcp.notes.doctor.findings import Verdict
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.merging.chapters import MARK
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.texts.projects import Projects

OK, WARNING, FAILURE = Verdict.OK, Verdict.WARNING, Verdict.FAILURE
CHECKS = [
    "git", "notes", "index", "folders", "documents", "to-dos", "history", "branch", "locks",
    "staging", "commits", "remote",
]  # fmt: skip
TODO = "projects/shop/TODO/1"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The folder of a store with a bit of everything, all of it as it should be."""
    folder = tmp_path_factory.mktemp("sound")
    with kept_in(folder) as kept:
        kept.main("shop", "one")
        kept.document("shop", "setup")
        kept.todo("shop", "list", "first", "second")
        kept.main("My Other", "x")
    return folder


@pytest.fixture
def kept(sound, tmp_path):
    """A copy of that store, with a writer."""
    with kept_copy(sound, tmp_path) as kept:
        kept.stage()
        yield kept


def problems(kept):
    """What is not well: check, verdict and words of each finding."""
    found = list(examining.examine(kept.store))
    assert all(finding.remedy for finding in found if finding.verdict != OK)
    return [(f.name, f.verdict, f.words) for f in found if f.verdict != OK]


def only_problem(kept):
    [found] = problems(kept)
    return found


def remedy(kept):
    [found] = [f for f in examining.examine(kept.store) if f.verdict != OK]
    return found.remedy


def mended(kept):
    """What was said of a repair that has been made, and the store examined after it."""
    found = repairing.repair_of(kept.store, kept.head)
    if found.said:
        asked = kept.writer.ask(
            lambda: repairing.plan_of(found, kept.store, kept.writer.tree.commit)
        )
        asked.result(PATIENCE_SECONDS)
    return found.said


def write_index(kept, **folders):
    kept.put("index.json", json.dumps({"projects": folders}))


def titles(kept):
    [todo] = todos.lists(kept.store.disk, "projects/shop/TODO")
    return {task.number: task.title for task in todo.tasks}


def is_nowhere(kept, data):
    """Whether no commit holds a file with these contents."""
    name = kept.person("hash-object", "--stdin", given=data)
    return name not in kept.person("rev-list", "--objects", "--all")


# -- all is well -----------------------------------------------------------------------------


@pytest.mark.slow
def test_each_check_says_that_all_is_well(kept):
    found = list(examining.examine(kept.store))
    assert [finding.name for finding in found] == CHECKS
    assert {finding.verdict for finding in found} == {OK}
    words = {finding.name: finding.words for finding in found}
    assert words["notes"] == f"2 projects in {kept.home}"
    assert words["history"] == "sound, 5 commits"
    assert words["git"].startswith("git version ")


@pytest.mark.slow
def test_examining_and_looking_for_repairs_change_nothing(kept):
    kept.put("projects/shop/main.md", b"\xff")
    before = state_of(kept.home)
    problems(kept)
    repairing.repair_of(kept.store, kept.head)
    assert state_of(kept.home) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", [".git/HEAD", ".git/config", "index.json"])
def test_what_is_no_file_is_named_and_it_is_told_what_to_do(kept, name):
    place = kept.store.disk.root / name
    place.unlink()
    os.mkfifo(place)
    found = [f for f in examining.examine(kept.store) if f.verdict != OK]
    assert found
    assert all(f.words.startswith(f"{name}: a link, a pipe or the like") for f in found)
    assert {f.remedy for f in found} == {
        "move it away, and bring back what belongs there from a backup or a clone"
    }


def test_where_nobody_has_written_a_note_there_is_nothing_to_examine(tmp_path):
    with kept_in(tmp_path) as kept:
        found = [(f.name, f.verdict, f.words) for f in examining.examine(kept.store)]
        assert found[1:] == [("notes", OK, "Nobody has written a note yet")]
        assert repairing.repair_of(kept.store, "").said == []
        assert not kept.home.exists()


@pytest.mark.slow
def test_notes_without_a_history_are_examined_and_mended(tmp_path):
    with kept_in(tmp_path) as kept:
        kept.put("projects/shop/main.md", "by hand")
        assert [name for name, _, _ in problems(kept)] == ["index", "history"]
        found = repairing.repair_of(kept.store, "")
        asked = kept.writer.ask(lambda: repairing.plan_of(found, kept.store, ""))
        asked.result(PATIENCE_SECONDS)
        assert problems(kept) == []


# -- the index -------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_index_that_cannot_be_understood_is_built_anew(kept):
    kept.put("projects/byhand/main.md", "copied here")
    kept.put("index.json", '{"projects": {"shop": ')
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("index", FAILURE)
    assert words.startswith("index.json cannot be read")

    assert mended(kept) == [
        "index.json: rebuilt from its last good version and the folders",
        "index.json: project byhand gets the folder projects/byhand",
    ]
    assert problems(kept) == []
    assert Projects(kept.store.disk).entries == {
        "shop": "shop", "My Other": "my-other", "byhand": "byhand",
    }  # fmt: skip
    assert committed(kept.home, "index.json", "HEAD~1") == '{"projects": {"shop": '


@pytest.mark.slow
def test_it_keeps_what_else_it_said_and_not_what_was_deleted_since(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        good = json.dumps({"version": 3, "projects": {"A": "a", "B": "b"}})
        kept.commit({"index.json": good, "projects/a/main.md": "x", "projects/b/main.md": "x"})
        kept.commit({"index.json": "[]"}, ["projects/b/main.md"])
        (kept.home / "projects/b").rmdir()
        mended(kept)
        found = json.loads((kept.home / "index.json").read_text(encoding="utf-8"))
        assert found == {"version": 3, "projects": {"A": "a"}}


@pytest.mark.slow
def test_an_index_that_is_missing_is_built_anew(kept):
    (kept.home / "index.json").unlink()
    name, verdict, _ = only_problem(kept)
    assert (name, verdict) == ("index", WARNING)
    mended(kept)
    assert problems(kept) == []
    assert Projects(kept.store.disk).entries == {"shop": "shop", "My Other": "my-other"}


# -- folders ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_folder_without_an_entry_is_entered(kept):
    kept.put("projects/byhand/main.md", "copied here")
    assert only_problem(kept)[:2] == ("folders", WARNING)
    assert mended(kept) == ["index.json: project byhand gets the folder projects/byhand"]
    assert problems(kept) == []
    assert Projects(kept.store.disk).entries == {
        "shop": "shop", "My Other": "my-other", "byhand": "byhand",
    }  # fmt: skip


@pytest.mark.slow
def test_a_folder_that_nobody_can_reach_becomes_a_project_of_another_name(kept):
    kept.put("projects/elsewhere/main.md", "copied here")
    write_index(kept, **{"shop": "elsewhere", "My Other": "my-other", "shop-1": "elsewhere"})
    assert ("folders", FAILURE) in [found[:2] for found in problems(kept)]
    mended(kept)
    assert Projects(kept.store.disk).entries["shop-2"] == "shop"


@pytest.mark.slow
def test_a_project_without_a_folder_is_told_how_it_comes_back(kept):
    last = kept.head
    (kept.home / "projects/my-other/main.md").unlink()
    (kept.home / "projects/my-other").rmdir()
    assert only_problem(kept)[1:] == (FAILURE, "project My Other has no folder projects/my-other")
    expected = f"notes restore --to {last[:12]} -- 'My Other'` brings it back"
    assert expected in remedy(kept)
    kept.commit(message="Deleted")
    commit = remedy(kept).partition("--to ")[2].partition(" ")[0]
    assert committed(kept.home, "projects/my-other/main.md", commit) == "x"
    assert mended(kept) == []


@pytest.mark.slow
def test_a_project_whose_folder_never_was_is_told_so(kept):
    write_index(kept, **{"shop": "shop", "My Other": "my-other", "none": "none"})
    assert only_problem(kept)[1:] == (FAILURE, "project none has no folder projects/none")
    assert "restore" not in remedy(kept)


@pytest.mark.slow
def test_two_projects_in_one_folder_are_found(kept):
    write_index(kept, **{"shop": "shop", "My Other": "my-other", "twin": "shop"})
    words = "the projects shop and twin have the same folder projects/shop"
    assert only_problem(kept) == ("folders", FAILURE, words)
    assert mended(kept) == []


@pytest.mark.slow
def test_an_entry_that_names_no_folder_is_mended_if_there_is_one_of_its_name(kept):
    write_index(kept, **{"shop": "../..", "My Other": "my-other", "lost": "a/b"})
    assert [found[1] for found in problems(kept)] == [FAILURE, FAILURE, FAILURE]
    assert mended(kept) == ["index.json: project shop gets the folder projects/shop"]
    assert [words for _, _, words in problems(kept)] == [
        "index.json gives project lost the folder 'a/b', which is not a valid folder name"
    ]


# -- files -----------------------------------------------------------------------------------

BROKEN = {
    "documents": {
        "projects/shop/main.md": b"\xff",
        "projects/shop/knowledge/setup.md": b"text \xc3(",
    },
    "to-dos": {
        f"{TODO}/index.json": b"{",
        f"{TODO}/TASK-001-first.json": b"[]",
        f"{TODO}/TASK-002-second.json": b"\xff",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "path", "data"),
    [(check, path, data) for check, files in BROKEN.items() for path, data in files.items()],
)
def test_a_file_that_cannot_be_read_is_found_and_its_last_good_version_comes_back(
    kept, check, path, data
):
    good = kept.texts[path]
    kept.put(path, data)
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == (check, FAILURE)
    assert words.startswith(path)

    assert mended(kept) == [f"{path}: its last readable version comes back"]

    assert problems(kept) == []
    assert kept.texts[path] == good
    assert not is_nowhere(kept, data)
    assert mended(kept) == []


@pytest.mark.slow
def test_all_is_mended_in_one_commit(kept):
    for files in BROKEN.values():
        for path, data in files.items():
            kept.put(path, data)
    kept.put("index.json", "{")
    kept.put("projects/byhand/main.md", "x")
    before = len(log(kept.home))
    said = mended(kept)
    assert len(said) == 7
    assert problems(kept) == []
    by_hand, ours = log(kept.home)[1], log(kept.home)[0]
    assert len(log(kept.home)) == before + 2
    assert by_hand[1].startswith("Edited by hand: index.json")
    assert ours[1].startswith("Repaired index.json")
    assert all(line in git(kept.home, "log", "-1", "--format=%b") for line in said)


@pytest.mark.slow
def test_of_several_versions_the_last_good_one_comes_back(tmp_path):
    with kept_by_hand(tmp_path) as kept:
        path = "projects/p/TODO/1/index.json"
        for text in ('{"description": "1"}', '{"description": "2"}', "{", "["):
            kept.commit({path: text, "index.json": '{"projects": {"p": "p"}}'})
        mended(kept)
        assert json.loads(kept.texts[path]) == {"description": "2"}


@pytest.mark.slow
def test_a_list_that_says_nothing_of_itself_gets_that_back(kept):
    (kept.home / TODO / "index.json").unlink()
    assert only_problem(kept) == ("to-dos", FAILURE, f"{TODO}/index.json is missing")
    mended(kept)
    assert problems(kept) == []


@pytest.mark.slow
def test_what_never_was_good_stays_for_somebody_to_correct(kept):
    kept.put("projects/shop/knowledge/new.md", b"\xff")
    assert mended(kept) == []
    assert only_problem(kept)[1] == FAILURE
    assert kept.texts["projects/shop/knowledge/new.md"] == b"\xff"


@pytest.mark.slow
def test_what_the_history_could_not_keep_is_not_replaced(kept):
    place = kept.home / "projects/shop/main.md"
    with place.open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    assert only_problem(kept)[:2] == ("documents", FAILURE)
    assert mended(kept) == []
    assert place.stat().st_size == LARGEST_FILE_BYTES + 1


def test_a_semicolon_in_a_name_does_not_end_what_is_wrong(kept):
    place = kept.home / "projects/shop/knowledge/here; there.md"
    with place.open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("documents", FAILURE)
    assert words.startswith("projects/shop/knowledge/here; there.md has more than ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\ntitle: x\n\ntext\n", "begins with --- and has no second ---"),
        ("---\nkeywords: [a]\n---\ntext\n", "has front matter without a readable title"),
        (f"# T\n\n## A (origin)\n\n{MARK}\n\ntext\n", '"A (origin)" was changed on two machines'),
    ],
)
def test_what_is_odd_in_a_document_is_a_warning(kept, text, words):
    kept.put("projects/shop/knowledge/odd.md", text)
    name, verdict, said = only_problem(kept)
    assert (name, verdict) == ("documents", WARNING)
    assert words in said


def test_a_text_without_front_matter_is_well(kept):
    kept.put("projects/shop/knowledge/plain.md", "# Plain\n\n---\n\ntext\n")
    kept.put("projects/shop/knowledge/rules.md", "---\n\ntext\n\n---\n\nmore\n")
    assert problems(kept) == []


# -- numbers ---------------------------------------------------------------------------------


def add_task(kept, name, title, created):
    values = {"title": title, "completed": False, "created": created}
    kept.put(f"{TODO}/{name}", json.dumps(values))


@pytest.mark.slow
def test_of_two_tasks_with_one_number_the_later_gets_another(kept):
    add_task(kept, "TASK-001-earlier.json", "earlier", "2001-01-01T00:00:00.000Z")
    add_task(kept, "TASK-002-a-later.json", "later", "2999-01-01T00:00:00.000Z")
    add_task(kept, "TASK-2-undated.json", "undated", None)
    kept.put(f"{TODO}/TASK-002-markdown.md", "---\ncreated: '2001-01-01'\n---\n# markdown\n")
    assert [words for _, _, words in problems(kept)] == [
        f"{TODO} has 2 tasks with the number 1",
        f"{TODO} has 4 tasks with the number 2",
    ]
    before = kept.texts
    mended(kept)
    assert problems(kept) == []
    assert titles(kept) == {
        1: "earlier", 2: "markdown", 3: "first", 4: "second", 5: "later", 6: "undated",
    }  # fmt: skip
    assert sorted(kept.texts.values()) == sorted(before.values())


@pytest.mark.slow
def test_who_has_a_number_keeps_it(kept):
    add_task(kept, "TASK-007-late.json", "late", "2999-01-01T00:00:00.000Z")
    add_task(kept, "TASK-001-later.json", "later", "2999-01-01T00:00:00.000Z")
    mended(kept)
    assert titles(kept) == {1: "first", 2: "second", 7: "late", 8: "later"}


@pytest.mark.slow
def test_after_the_largest_number_the_smallest_that_is_free_is_given(kept):
    add_task(kept, "TASK-999999-early.json", "early", "2001-01-01T00:00:00.000Z")
    add_task(kept, "TASK-999999-late.json", "late", "2999-01-01T00:00:00.000Z")
    mended(kept)
    assert titles(kept) == {1: "first", 2: "second", 3: "late", 999_999: "early"}


# -- the history -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_damaged_object_is_found_and_hinders_no_other_check(kept):
    objects = kept.home / ".git/objects"
    blob = git(kept.home, "rev-parse", "HEAD:projects/shop/main.md")
    loose = objects / blob[:2] / blob[2:]
    place = loose if loose.exists() else next(objects.glob("pack/*.pack"))
    place.chmod(0o644)
    place.write_bytes(place.read_bytes()[:-25])
    found = list(examining.examine(kept.store))
    assert [f.name for f in found] == CHECKS
    [failed] = [f for f in found if f.name == "history"]
    assert failed.verdict == FAILURE
    assert failed.words.startswith("damaged: ")


def test_what_this_user_may_not_write_is_found_and_is_no_damage(kept, monkeypatch):
    """As after `sudo`: the history cannot be read, and is as sound as before."""
    may = os.access
    head = kept.home / ".git/refs/heads/main"
    projects = kept.home / "projects"

    def forbidden(path, how):
        denied = {str(head): os.R_OK, str(projects): os.W_OK}
        return may(path, how) and not how & denied.get(str(path), 0)

    monkeypatch.setattr(os, "access", forbidden)
    before = head.read_bytes()
    head.write_bytes(b"")  # what git makes of a file that it may not read
    found = {finding.words: finding for finding in examining.examine(kept.store)}
    head.write_bytes(before)
    for path in (".git/refs/heads/main", "projects"):
        finding = found[f"you may not read or write {path}"]
        assert finding.verdict is Verdict.FAILURE
        assert "chown -R" in finding.remedy
    assert "you may not read or write .git/refs/heads/main, so it cannot be examined" in found
    assert not any("backup" in finding.remedy for finding in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2, 9])
def test_packs_that_git_replaces_meanwhile_are_no_damage(kept, monkeypatch, times):
    git(kept.home, "repack", "-a", "-d", "-q")
    packs, aside = kept.home / ".git/objects/pack", kept.home.with_name("aside")
    examined = []
    run = kept.store.repository.run

    def run_while_packing(*arguments, **options):
        if arguments[0] != "fsck":
            return run(*arguments, **options)
        examined.append(arguments)
        if len(examined) > times:
            return run(*arguments, **options)
        packs.rename(aside)
        packs.mkdir()
        result = run(*arguments, **options)
        assert result.status
        for file in aside.iterdir():
            file.rename(packs / f"pack-{len(examined):040x}{file.suffix}")
        aside.rmdir()
        return result

    monkeypatch.setattr(type(kept.store.repository), "run", staticmethod(run_while_packing))
    found = {found.name: found for found in examining.examine(kept.store)}["history"]
    if times < 3:
        assert (found.verdict, len(examined)) == (OK, times + 1)
    else:
        assert (found.verdict, len(examined)) == (WARNING, 3)
        assert "another git command is packing it" in found.words


def test_a_repository_that_is_somewhere_else_is_found_and_not_to_be_moved_away(kept):
    removed(kept.home / ".git")
    kept.put(".git", "gitdir: /elsewhere\n")
    [found] = [f for f in examining.examine(kept.store) if f.name == "history"]
    assert found.verdict == FAILURE
    assert "but share that of another folder" in found.words
    assert found.remedy.startswith("name another folder, or make a clone")


def test_a_home_that_is_no_folder_is_found(tmp_path):
    (tmp_path / "store").write_text("a file", encoding="utf-8")
    with kept_in(tmp_path) as kept:
        assert ("notes", FAILURE, f"{kept.home} is no folder") in problems(kept)


def test_a_damaged_reference_is_found(kept):
    (kept.home / ".git/refs/heads/main").write_text("nonsense\n", encoding="utf-8")
    assert ("history", FAILURE) in [found[:2] for found in problems(kept)]


def test_a_store_without_a_branch_is_found(kept):
    git(kept.home, "update-ref", "--no-deref", "HEAD", kept.head)
    found = problems(kept)
    assert ("branch", FAILURE) in [each[:2] for each in found]
    assert any("no branch is checked out" in words for _, _, words in found)


@pytest.mark.parametrize("name", ["MERGE_HEAD", "rebase-merge"])
def test_what_somebody_has_under_way_is_found(kept, name):
    kept.put(f".git/{name}", "x")
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("branch", FAILURE)
    assert "under way" in words


def test_a_rebase_that_waits_for_somebody_is_named_since_git_refuses_to_switch(kept):
    git(
        kept.home, "-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "--interactive", "--root"
    )
    assert not (kept.home / ".git/HEAD").read_text().startswith("ref:")
    with pytest.raises(Refusal, match="a merge or a rebase is under way"):
        kept.store.repository.branch()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_that_was_left_is_found_and_one_in_use_is_not(kept, path):
    kept.put(f".git/{path}", "")
    assert problems(kept) == []
    long_ago = time.time() - 3_600
    os.utime(kept.home / ".git" / path, (long_ago, long_ago))
    words = f"a git command has left a lock: .git/{path}"
    assert only_problem(kept) == ("locks", WARNING, words)


def test_a_change_that_was_cut_off_is_told(kept):
    kept.writer.stop()  # whoever waits is answered a moment before the mark of a change goes
    kept.put(".git/vector-index-mcp/changing", "")
    os.utime(kept.home / ".git/vector-index-mcp/changing", (1, 1))
    assert only_problem(kept)[:2] == ("locks", WARNING)


def test_what_is_not_committed_is_told_and_is_well(kept):
    kept.put("projects/shop/main.md", "edited")
    [found] = [f for f in examining.examine(kept.store) if f.name == "commits"]
    assert found.verdict == OK
    assert found.words.startswith("1 file will be committed")
    assert found.words.endswith("projects/shop/main.md")


def test_the_remote_is_told_and_not_asked(kept, tmp_path):
    git(kept.home, "remote", "add", "origin", str(tmp_path / "nowhere.git"))
    [found] = [f for f in examining.examine(kept.store) if f.name == "remote"]
    assert found.verdict == OK
    assert found.words == "origin/main (nothing pushed yet as of the last fetch)"


def test_a_machine_without_git_is_told_to_install_it(kept, monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = {f.name: f for f in examining.examine(kept.store)}
    assert list(found) == CHECKS
    assert found["git"].verdict == FAILURE
    assert "not installed" in found["git"].words
    assert found["documents"].verdict == OK


def test_an_old_git_is_a_warning(kept, tmp_path, monkeypatch):
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho git version 2.30.2\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    [found] = [f for f in examining.examine(kept.store) if f.name == "git"]
    assert found.verdict == WARNING
    assert "2.36" in found.remedy


# -- repairs in general ----------------------------------------------------------------------


def test_many_problems_of_a_kind_are_not_all_listed(kept):
    for number in range(30):
        kept.put(f"projects/shop/knowledge/{number:02}.md", b"\xff")
    found = problems(kept)
    assert len(found) == 21
    assert found[-1][2] == "… 30 in all"


def test_what_has_changed_since_it_was_shown_is_not_repaired(kept):
    kept.put(f"{TODO}/TASK-001-first.json", "{")
    found = repairing.repair_of(kept.store, kept.head)
    kept.put(f"{TODO}/TASK-001-first.json", '{"title": "somebody was faster"}')
    asked = kept.writer.ask(lambda: repairing.plan_of(found, kept.store, kept.writer.tree.commit))
    with pytest.raises(Refusal, match="since the preview"):
        asked.result(PATIENCE_SECONDS)
    assert titles(kept)[1] == "somebody was faster"


# -- git's index -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_damaged_index_of_git_is_found_and_made_anew(kept):
    index = kept.home / ".git/index"
    index.write_bytes(b"DIRC" + index.read_bytes()[5:])
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("staging", FAILURE)
    assert "checksum of .git/index is wrong" in words
    assert "--repair" in remedy(kept)
    found = repairing.repair_of(kept.store, kept.head)
    assert found.said == [f"{words.partition(':')[0]}: it is made anew from the last commit"]
    assert not found.is_of_files
    before = kept.head
    repairing.repair(found, kept.writer, kept.store)
    assert problems(kept) == []
    assert kept.head == before
    assert git(kept.home, "status", "--porcelain") == ""


@pytest.mark.slow
def test_an_index_of_git_that_lags_behind_is_found_and_brought_up_to_date(kept, monkeypatch):
    monkeypatch.setattr("vector_index_mcp.notes.store.index_lock._SECONDS", 0.0)
    lock = kept.home / ".git/index.lock"
    lock.touch()  # as long as it is there, the index stays as it is
    kept.main("shop", "two")
    lock.unlink()
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("staging", WARNING)
    assert "newer state of 1 file than git's index (projects/shop/main.md)" in words
    repairing.repair(repairing.repair_of(kept.store, kept.head), kept.writer, kept.store)
    assert problems(kept) == []
    assert git(kept.home, "status", "--porcelain") == ""


def test_what_somebody_has_staged_is_no_problem_of_the_index(kept):
    kept.put("projects/shop/main.md", "mine")
    kept.person("add", "--all")
    assert [name for name, _, _ in problems(kept)] == []
    assert repairing.repair_of(kept.store, kept.head).said == []


@pytest.mark.slow
def test_files_and_the_index_of_git_are_repaired_together(kept):
    kept.put("index.json", "{")
    (kept.home / ".git/index").write_bytes(b"broken")
    found = repairing.repair_of(kept.store, kept.head)
    assert found.is_of_files
    assert found.has_index
    repairing.repair(found, kept.writer, kept.store)
    assert problems(kept) == []


# -- the place -----------------------------------------------------------------------------------


def test_notes_that_are_gone_are_a_failure_and_the_only_finding(tmp_path):
    with kept_in(tmp_path) as kept:
        trouble = "there were notes, and they are gone; mount their disk"
        found = list(examining.examine(kept.store, trouble=trouble))
    assert [(f.name, f.verdict) for f in found] == [("git", OK), ("notes", FAILURE)]
    assert found[-1].words == "there were notes, and they are gone"
    assert found[-1].remedy == "mount their disk"


def test_too_little_space_is_found(kept, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("notes", FAILURE)
    assert "1.0 MB of free space" in words


def test_a_read_only_file_system_is_found_once(kept, monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    name, verdict, words = only_problem(kept)
    assert (name, verdict) == ("notes", FAILURE)
    assert "is read-only" in words


def test_a_mark_that_goes_during_the_look_is_not_forbidden(kept, monkeypatch):
    mark, access = kept.home / ".git/mark", os.access
    mark.touch()

    def gone_meanwhile(path, how):
        if path == str(mark):
            mark.unlink(missing_ok=True)
        return access(path, how)

    monkeypatch.setattr(os, "access", gone_meanwhile)
    assert list(rights.lacking(kept.home)) == []
    assert not mark.exists()
