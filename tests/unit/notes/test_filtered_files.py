"""What git keeps encrypted, or through any other filter, is never committed as it is."""

import os

import pytest
from kept import kept_by_hand
from processes import posix_only
from stores import answered, committed, done, git, notes_of, opened, serving
from writing import put

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import filters

pytestmark = pytest.mark.anyio

SECRET, OTHER = "projects/p/knowledge/secret.md", "projects/p/knowledge/other.md"
FILTER = {"clean": "sed s/secret/hidden/", "smudge": "sed s/hidden/secret/", "required": "true"}
SAID = f"git keeps {SECRET} through a filter"


@pytest.fixture
def filtering(tmp_path, monkeypatch):
    """The settings of a person who has such a filter, as git-crypt and LFS are."""
    settings = tmp_path / "gitconfig"
    lines = "".join(f'\t{name} = "{value}"\n' for name, value in FILTER.items())
    settings.write_text(f'[filter "crypt"]\n{lines}', encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return settings


@pytest.fixture
def kept(tmp_path, filtering):
    with kept_by_hand(tmp_path) as kept:
        kept.person("config", "include.path", str(filtering))
        kept.commit({".gitattributes": "secret* filter=crypt\n"})
        kept.commit({SECRET: "my secret\n", OTHER: "my secret\n"})
        assert committed(kept.home, SECRET) == "my hidden"
        yield kept


@pytest.mark.slow
def test_what_differs_only_by_the_filter_is_no_edit(kept):
    opened(kept.writer)
    assert committed(kept.home, SECRET) == "my hidden"


@pytest.mark.slow
def test_an_edit_and_a_new_file_are_left_to_git(kept):
    opened(kept.writer)
    kept.put(SECRET, "another secret\n")
    kept.put("projects/p/secret.md", "new secret\n")
    kept.put(OTHER, "another secret\n")
    assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 1
    assert committed(kept.home, OTHER) == "another secret"
    assert "secret.md" not in kept.person("log", "-1", "--name-only", "--format=")
    assert sorted(kept.writer.by_hand.filtered) == [SECRET, "projects/p/secret.md"]


def test_attributes_that_nobody_has_committed_count_as_well(tmp_path, filtering):
    with kept_by_hand(tmp_path) as kept:
        kept.put(".gitattributes", "secret* filter=crypt\n")
        kept.put(SECRET, "my secret\n")
        opened(kept.writer)
        assert SECRET not in kept.person("ls-tree", "-r", "--name-only", "HEAD")


@pytest.mark.parametrize("folder", ["projects", "projects/p", "projects/p/knowledge"])
def test_attributes_in_any_folder_count_before_they_are_committed(tmp_path, filtering, folder):
    with kept_by_hand(tmp_path) as kept:
        kept.put(f"{folder}/.gitattributes", "secret* filter=crypt\n")
        kept.put(SECRET, "my secret\n")
        opened(kept.writer)
        assert SECRET not in kept.person("ls-tree", "-r", "--name-only", "HEAD")
        kept.put(f"{folder}/.gitattributes", "secret* filter=crypt\n\n")
        with pytest.raises(Refusal, match=SAID):
            kept.change({SECRET: "x"})


@pytest.mark.slow
def test_a_damaged_index_hides_no_attributes(kept):
    opened(kept.writer)
    (kept.home / ".git" / "index").write_bytes(b"DIRC, and nothing that follows")
    kept.put(SECRET, "another secret\n")
    assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0
    assert committed(kept.home, SECRET) == "my hidden"


@pytest.mark.slow
def test_attributes_that_are_not_checked_out_count(kept):
    kept.person("update-index", "--skip-worktree", ".gitattributes")
    (kept.home / ".gitattributes").unlink()
    opened(kept.writer)
    kept.put(SECRET, "another secret\n")
    assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0


@pytest.mark.slow
def test_git_is_not_asked_where_no_attributes_name_a_filter(kept, monkeypatch):
    kept.commit({".gitattributes": "* text=auto\n"})
    opened(kept.writer)
    monkeypatch.setattr(filters, "_is_used", None)
    kept.change({OTHER: "x"})
    assert committed(kept.home, OTHER) == "x"


@pytest.mark.slow
def test_no_call_writes_or_removes_such_a_file(kept):
    opened(kept.writer)
    for puts, drops in (({SECRET: "x"}, ()), ({}, (SECRET,))):
        with pytest.raises(Refusal) as refused:
            kept.change(puts, drops)
        assert refused.value.code is Code.GIT_ERROR
        assert str(refused.value).startswith(SAID)
    assert (kept.home / SECRET).read_text(encoding="utf-8") == "my secret\n"


@pytest.mark.slow
def test_a_filter_that_git_does_not_know_is_nothing(kept, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    kept.person("config", "--unset-all", "include.path")
    kept.change({SECRET: "x"})
    assert committed(kept.home, SECRET) == "x"


@pytest.fixture
def users(tmp_path, monkeypatch):
    """The user's settings, which are empty."""
    settings = tmp_path / "users"
    settings.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return settings


def included_by_the_user(kept, users, text):
    """Settings that the user has for this folder alone."""
    put(users.parent, "included", text)
    where = f'[includeIf "gitdir:{kept.home}/"]\n\tpath = {users.parent}/included\n'
    users.write_text(where, encoding="utf-8")


def of_the_work_tree(kept, _, text):
    kept.person("config", "extensions.worktreeConfig", "true")
    kept.put(".git/config.worktree", text)


def included_by_the_store(kept, _, text):
    """Settings that are not read, as a stranger may have them name anything."""
    kept.put(".git/more", text)
    kept.person("config", "include.path", "more")


def of_the_store(kept, _, text):
    kept.put(".git/config", (kept.home / ".git/config").read_text(encoding="utf-8") + text)


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["clean = cat", "process = cat", "required"])
@pytest.mark.parametrize(
    "have", [included_by_the_user, of_the_store, of_the_work_tree, included_by_the_store]
)
def test_a_filter_counts_wherever_git_would_find_its_settings(tmp_path, users, have, setting):
    with kept_by_hand(tmp_path) as kept:
        kept.commit({".gitattributes": "secret* filter=crypt\n"})
        kept.change({SECRET: "before"})
        have(kept, users, f'[filter "crypt"]\n\t{setting}\n')
        with pytest.raises(Refusal, match=SAID):
            kept.change({SECRET: "x"})


def info(kept, _, text):
    kept.put(".git/info/attributes", text)


def of_the_user(kept, users, text):
    put(users.parent, "xdg/git/attributes", text)


def named_by_the_user(kept, users, text):
    put(users.parent, "named", text)
    kept.person("config", "--file", str(users), "core.attributesFile", f"{users.parent}/named")


def named_by_the_user_for_this_folder(kept, users, text):
    put(users.parent, "named", text)
    included_by_the_user(kept, users, f"[core]\n\tattributesFile = {users.parent}/named\n")


def named_by_the_store(kept, users, text):
    of_the_user(kept, users, "secret* -filter\n")
    put(users.parent, "named", text)
    kept.person("config", "core.attributesFile", "../named")


@pytest.mark.slow
@pytest.mark.parametrize(
    "have",
    [
        info, of_the_user, named_by_the_user, named_by_the_user_for_this_folder, named_by_the_store
    ],
)  # fmt: skip
def test_attributes_count_wherever_git_would_find_them(tmp_path, users, have):
    with kept_by_hand(tmp_path) as kept:
        kept.change({SECRET: "before", OTHER: "before"})
        kept.person("config", "filter.crypt.clean", "cat")
        have(kept, users, "secret* filter=crypt\n")
        kept.put(SECRET, "by hand")
        assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0
        with pytest.raises(Refusal, match=SAID):
            kept.change({SECRET: "x"})
        kept.change({OTHER: "x"})
        assert committed(kept.home, SECRET) == "before"


@pytest.mark.slow
def test_what_git_ranks_first_counts(tmp_path, users):
    with kept_by_hand(tmp_path) as kept:
        kept.change({SECRET: "before"})
        kept.person("config", "filter.crypt.clean", "cat")
        info(kept, users, "secret* -filter\n")
        of_the_user(kept, users, "secret* filter=crypt\n")
        kept.put(".gitattributes", "secret* filter=crypt\n")
        kept.change({SECRET: "x"})
        assert committed(kept.home, SECRET) == "x"
        info(kept, users, "\n")
        with pytest.raises(Refusal, match=SAID):
            kept.change({SECRET: "y"})


@pytest.mark.slow
@posix_only
def test_a_store_that_names_a_device_for_its_attributes_keeps_nobody_waiting(tmp_path, users):
    with kept_by_hand(tmp_path) as kept:
        kept.change({SECRET: "before"})
        os.mkfifo(kept.home / ".git/pipe")
        for named in (".git/pipe", "/dev/zero"):
            kept.person("config", "core.attributesFile", named)
            kept.put(".gitattributes", f"* filter={named}\n")
            kept.change({SECRET: named})
        (kept.home / ".git/info/attributes").unlink(missing_ok=True)
        (kept.home / ".git/pipe").rename(kept.home / ".git/info/attributes")
        with pytest.raises(Refusal, match="info/attributes"):
            kept.change({SECRET: "x"})


# -- encodings and marks -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_in_another_encoding_is_left_to_git(tmp_path, users):
    with kept_by_hand(tmp_path) as kept:
        kept.put(".gitattributes", "*.md working-tree-encoding=UTF-16LE\nother* " + UTF_8)
        kept.put(SECRET, "one\n".encode("utf-16-le"))
        kept.person("add", "--all")
        kept.person("commit", "--quiet", "-m", "One")
        assert committed(kept.home, SECRET) == "one"
        opened(kept.writer)
        kept.put(SECRET, "two\n".encode("utf-16-le"))
        assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0
        said = f"git keeps {SECRET} in another encoding \\(UTF-16LE\\)"
        for puts, drops in (({SECRET: "x"}, ()), ({}, (SECRET,)), ({"projects/p/new.md": "x"}, ())):
            with pytest.raises(Refusal, match="in another encoding" if "x" not in puts else said):
                kept.change(puts, drops)
        kept.change({OTHER: "x"})
        assert committed(kept.home, OTHER) == "x"


UTF_8 = "working-tree-encoding=utf-8\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a $Id: 12 $ b\n", "$Id: a\n$ $Id:$ $Id$ $Id: $Id: x$\n", "$Id: 1$$Id: 2$Id: 3$\r\n",
        "$Id: never ended\n", "$id: 1 $ $Id : 1 $\n",
    ],
)  # fmt: skip
def test_what_git_writes_into_a_file_is_not_kept(tmp_path, users, text):
    with kept_by_hand(tmp_path) as kept:
        kept.commit({".gitattributes": "secret* ident\n", SECRET: text, OTHER: text})
        opened(kept.writer)
        assert kept.person("log", "-1", "--format=%s", "--", SECRET) == "Written"
        expected = kept.person("show", f"HEAD:{SECRET}")
        kept.change({SECRET: "", OTHER: ""})
        kept.change({SECRET: text, OTHER: text})
        assert kept.person("show", f"HEAD:{SECRET}") == expected
        assert kept.person("show", f"HEAD:{OTHER}") == text.rstrip("\n")
        (kept.home / SECRET).unlink()
        kept.person("checkout", "HEAD", "--", SECRET)
        assert kept.writer.alone(kept.writer.take_over_by_hand).result() == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_ahead", [False, True], ids=["forward", "merge"])
async def test_the_exchange_of_everything_else_goes_on(kept, tmp_path, is_ahead):
    origin = tmp_path / "origin.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(kept.home), str(origin))
    kept.person("remote", "add", "origin", str(origin))
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(origin), str(other))
    put(other, SECRET, "a new hidden\n")
    put(other, OTHER, "theirs\n")
    git(other, "commit", "--quiet", "-am", "Theirs")
    git(other, "push", "--quiet", "origin", "main")
    if is_ahead:
        kept.commit({"projects/p/knowledge/mine.md": "mine\n"})
    async with serving(notes_of(tmp_path)) as client:
        await done(client, "sync_storage")
        details = (await done(client, "get_storage_status"))["status_details"]
        assert f"`git checkout -- {SECRET}`" in details
        assert SAID in details
        arguments = {"project_id": "p", "filename": "other.md"}
        assert (
            "theirs"
            in (await done(client, "get_knowledge_file", **arguments))["document"]["full_content"]
        )
        said = await answered(client, "delete_knowledge_file", project_id="p", filename="secret.md")
        assert said["error"].startswith(SAID)
    assert (kept.home / SECRET).read_text(encoding="utf-8") == "my secret\n"
    assert committed(kept.home, SECRET) == "a new hidden"
    kept.person("checkout", "--", SECRET)
    assert (kept.home / SECRET).read_text(encoding="utf-8") == "a new secret\n"
