"""A repository whose format the notes cannot write stays as it is, and that is said."""

import pytest
from kept import kept_in
from stores import answered, git, log, notes_of, opened, serving, writer_of, wrote
from writing import put

from vector_index_mcp.notes.doctor import examining
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.formats import unknown_format

pytestmark = pytest.mark.anyio

SHA_256 = "extensions.objectformat = sha256"


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def sha_256(store):
    git(store, "init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    put(store, "projects/p/main.md", "theirs")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "Theirs")
    return store


def of_git(store):
    """Everything in the repository, without our folder."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in store.glob(".git/**/*")
        if path.is_file() and "vector-index-mcp" not in path.parts
    }


def refusal(tmp_path):
    with writer_of(tmp_path) as writer, pytest.raises(Refusal) as refused:
        wrote(writer, {"projects/p/main.md": "ours"})
    assert refused.value.code is Code.GIT_ERROR
    return str(refused.value)


def test_a_repository_with_longer_names_is_left_alone(sha_256, tmp_path):
    before = of_git(sha_256)
    assert SHA_256 in refusal(tmp_path)
    assert of_git(sha_256) == before
    assert (sha_256 / "projects/p/main.md").read_text(encoding="utf-8") == "theirs"
    assert len(log(sha_256)) == 1


def test_an_empty_one_is_left_alone_too(store, tmp_path):
    git(store, "init", "--quiet", "--object-format=sha256")
    before = of_git(store)
    assert SHA_256 in refusal(tmp_path)
    assert of_git(store) == before


@pytest.mark.slow
async def test_a_service_writes_nothing_to_it(sha_256, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    git(sha_256, "remote", "add", "origin", str(tmp_path / "remote.git"))
    before = of_git(sha_256)
    async with serving(notes_of(tmp_path)) as client:
        said = await answered(client, "update_project_main", project_id="p", content="ours\n")
        assert SHA_256 in said["error"]
        said = await answered(client, "sync_storage")
        assert SHA_256 in said["error"]
        said = await answered(client, "get_storage_status")
        assert SHA_256 in said["status_details"]
    assert of_git(sha_256) == before


def test_the_doctor_says_so_and_sends_nobody_to_move_it(sha_256, tmp_path):
    with kept_in(tmp_path) as kept:
        found = list(examining.examine(kept.store))
    [history] = [finding for finding in found if finding.name == "history"]
    assert SHA_256 in history.words
    assert not any("move" in finding.remedy for finding in found)


def test_settings_that_git_cannot_read_are_told(store, tmp_path):
    git(store, "init", "--quiet", "--initial-branch=main")
    put(store, ".git/config", "[core\n")
    assert "git cannot read .git/config" in refusal(tmp_path)


def test_a_repository_that_changes_its_format_under_a_writer_is_left_alone(store, tmp_path):
    with writer_of(tmp_path) as writer:
        opened(writer)
        git(store, "config", "core.repositoryformatversion", "1")
        git(store, "config", "extensions.refstorage", "reftable")
        with pytest.raises(Refusal, match="extensions.refstorage = reftable"):
            wrote(writer, {"projects/p/main.md": "ours"})
    assert not (store / "projects/p").exists()


@pytest.mark.parametrize(
    "setting",
    ["partialclone=origin", "worktreeConfig=true", "objectFormat=sha1", "preciousObjects=true"],
)
def test_formats_that_change_nothing_for_us_are_written(store, tmp_path, setting):
    git(store, "init", "--quiet", "--initial-branch=main")
    name, value = setting.split("=")
    git(store, "config", "core.repositoryformatversion", "1")
    git(store, "config", f"extensions.{name}", value)
    with writer_of(tmp_path) as writer:
        wrote(writer, {"projects/p/main.md": "ours"})
    assert git(store, "show", "HEAD:projects/p/main.md") == "ours"


V0, V1 = "core.repositoryformatversion\n0", "core.repositoryformatversion\n1"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], ""),
        ([V0, "extensions.unheardof\nx"], ""),
        ([V1, "extensions.unheardof\nx"], "extensions.unheardof = x"),
        ([V1, "extensions.unheardof"], "extensions.unheardof = "),
        ([V1, "extensions.a.b\n\x1b[2J"], "extensions.a.b = ?[2J"),
        ([V0, "extensions.objectformat\nsha256"], "extensions.objectformat = sha256"),
        (["extensions.objectformat\nsha256"], "extensions.objectformat = sha256"),
        ([V1, "extensions.compatobjectformat\nsha1"], "extensions.compatobjectformat = sha1"),
        ([V1, "extensions.refstorage\nfiles", "extensions.noop\n"], ""),
        (["core.repositoryformatversion\n2"], "core.repositoryformatversion = 2"),
        (["core.repositoryformatversion\nx"], "core.repositoryformatversion = x"),
        ([V0, V1, "user.name\nextensions.x"], ""),
    ],
)
def test_what_gives_a_repository_another_format(settings, expected):
    assert unknown_format("".join(f"{setting}\0" for setting in settings)) == expected
