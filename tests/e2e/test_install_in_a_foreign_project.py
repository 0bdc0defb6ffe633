"""`install` and `uninstall` in a repository whose files are links, pipes or monsters.

Outside of it lie files of the user's own. None of them may change, go away or appear.
"""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from installing import User
from processes import posix_only
from writing import write

pytestmark = [pytest.mark.long, posix_only]

CONFIG = '{"mcpServers": {}}\n'
OUTSIDE = {"bashrc.md": "alias ls=rm\n", "other/mcp.json": CONFIG, "mcp.json": CONFIG}
INSTALL = "install --client cursor claude-code zed --agents-md --yes".split()
UNINSTALL = "uninstall --agents-md --yes".split()


@pytest.fixture
def user(tmp_path) -> User:
    user = User(tmp_path)
    write(tmp_path / "outside", OUTSIDE)
    write(user.project, {".git/config": "[core]\n", "setup.py": "setup()\n"})
    return user


def link(name: str, to: str) -> Callable[[User], None]:
    """Makes `name` in the project a link to `to`, in which `{out}` is the folder outside."""

    def make(user: User) -> None:
        path = user.project / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(to.format(out=user.folder / "outside"))

    return make


def both(*makers: Callable[[User], None]) -> Callable[[User], None]:
    def make(user: User) -> None:
        for maker in makers:
            maker(user)

    return make


def special(name: str, make_it: Callable[[Path], object]) -> Callable[[User], None]:
    def make(user: User) -> None:
        make_it(user.project / name)

    return make


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


def grow(path: Path) -> None:
    path.touch()
    os.truncate(path, 10**12)


FOREIGN = {
    "a link to a file": link(".mcp.json", "{out}/mcp.json"),
    "a link from a folder up": link(".cursor/mcp.json", "../../outside/mcp.json"),
    "a link to a link": both(link("b.json", "{out}/mcp.json"), link(".mcp.json", "b.json")),
    "a link to a file that is not there": link(".mcp.json", "{out}/new.json"),
    "a link to a folder": link(".cursor", "{out}/other"),
    "a link to a folder that is not there": link(".cursor", "{out}/new/folder"),
    "a link through the system": link(".mcp.json", "/proc/self/cwd/../outside/mcp.json"),
    "a document": link("AGENTS.md", "{out}/bashrc.md"),
    "a document that one client reads": link("CLAUDE.md", "{out}/bashrc.md"),
    "a document that is not there": link("AGENTS.md", "{out}/new.md"),
    "a link back into the project from outside": both(
        link("../outside/other/back.json", "{out}/../web/b.json"),
        link(".mcp.json", "{out}/other/back.json"),
        link("b.json", "{out}/mcp.json"),
    ),
    "git's own": link("AGENTS.md", ".git/config"),
    "git's own by another name": link(".mcp.json", ".git/refs/new.json"),
    "a program": link("AGENTS.md", "setup.py"),
    "a circle": link(".mcp.json", ".mcp.json"),
    "a pipe": special(".mcp.json", os.mkfifo),
    "a pipe as a document": special("CLAUDE.md", os.mkfifo),
    "a pipe as a folder": special(".cursor", os.mkfifo),
    "a socket": special("AGENTS.md", listen),
    "a folder": special("AGENTS.md", Path.mkdir),
    "a terabyte": special("AGENTS.md", grow),
    "an endless device": link(".mcp.json", "/dev/zero"),
}


def everything(folder: Path) -> dict[str, tuple]:
    """What lies in `folder`, by its path: what it is, and what it holds."""
    return {path.relative_to(folder).as_posix(): state_of(path) for path in folder.rglob("*")}


def state_of(path: Path) -> tuple:
    status = path.lstat()
    kind = stat.S_IFMT(status.st_mode)
    holds: object = status.st_size
    if stat.S_ISLNK(kind):
        holds = path.readlink()
    elif stat.S_ISREG(kind) and status.st_size < 10**9:
        holds = path.read_bytes()
    return status.st_mode, status.st_nlink, holds if not stat.S_ISDIR(kind) else None


@pytest.mark.parametrize("name", FOREIGN)
def test_what_leaves_the_project_is_told_and_left_alone_and_the_rest_goes_on(
    user, name, monkeypatch
):
    monkeypatch.chdir(user.project)
    FOREIGN[name](user)
    outside, project = everything(user.folder / "outside"), everything(user.project)
    ran = user.run(*INSTALL)
    assert ran.returncode == 1, ran.stdout
    assert "vector-index-mcp: " in ran.stderr
    assert "Traceback" not in ran.stderr
    assert everything(user.folder / "outside") == outside
    now = everything(user.project)
    assert ".zed/settings.json" in now
    assert {path: now[path] for path in project} == project
    assert not [path for path in now if ".bak" in path]
    removed = user.run(*UNINSTALL)
    assert "Traceback" not in removed.stderr
    assert everything(user.folder / "outside") == outside
    assert everything(user.project) == project


@pytest.mark.parametrize(
    ("name", "real"),
    [
        ("a link to a link", "{out}/mcp.json"),
        ("a link to a folder", "{out}/other/mcp.json"),
        ("a document that is not there", "{out}/new.md"),
        ("a program", "{project}/setup.py"),
    ],
)
def test_where_it_really_leads_is_shown(user, name, real):
    FOREIGN[name](user)
    shown = real.format(out=user.folder / "outside", project=user.project)
    assert f" is a link to {shown}, " in user.run(*INSTALL).stderr


def test_another_name_of_a_file_outside_keeps_its_text(user):
    for name, source in {"AGENTS.md": "bashrc.md", ".mcp.json": "mcp.json"}.items():
        os.link(user.folder / "outside" / source, user.project / name)
    assert user.run(*INSTALL).returncode == 0
    holds = {p: (user.folder / "outside" / p).read_text("utf-8") for p in OUTSIDE}
    assert holds == OUTSIDE
    assert "alias" in (user.project / "AGENTS.md").read_text("utf-8")


def test_backups_that_are_links_are_neither_written_nor_read(user):
    write(user.project, {"AGENTS.md": "# Us\n", ".mcp.json": CONFIG})
    for name, to in {
        "AGENTS.md.bak": "{out}/new.md",
        "AGENTS.md.bak.2": "{out}/bashrc.md",
        ".mcp.json.BAK": "{out}/mcp.json",
        ".mcp.json.bak.999999999999999999": "{out}/new.json",
    }.items():
        link(name, to)(user)
    os.mkfifo(user.project / "AGENTS.md.bak.3")
    outside, project = everything(user.folder / "outside"), everything(user.project)
    installed = user.run(*INSTALL)
    assert (installed.returncode, installed.stderr) == (0, "")
    assert (user.project / "AGENTS.md.bak.4").read_text("utf-8") == "# Us\n"
    assert everything(user.folder / "outside") == outside
    assert user.run(*UNINSTALL).returncode == 0
    assert everything(user.folder / "outside") == outside
    now = everything(user.project)
    assert {path: now[path] for path in project} == project


def test_links_inside_of_the_project_are_followed_and_shown(user):
    write(user.project, {"docs/agents.md": "# Us\n", "config/mcp.json": CONFIG})
    link("AGENTS.md", "docs/agents.md")(user)
    link(".cursor", "config")(user)
    before = everything(user.project)
    installed = user.run("install", "--client", "cursor", "--agents-md", "--yes")
    assert (installed.returncode, installed.stderr) == (0, "")
    assert f"Cursor (a link to {user.project}/config/mcp.json)\n" in installed.stdout
    assert f"AGENTS.md (a link to {user.project}/docs/agents.md)\n" in installed.stdout
    assert "search_index" in (user.project / "docs" / "agents.md").read_text("utf-8")
    assert (user.project / "AGENTS.md").is_symlink()
    assert user.run(*UNINSTALL).returncode == 0
    assert everything(user.project) == before


def test_a_home_folder_may_be_made_of_links(user):
    write(user.folder / "dotfiles", {"cursor/mcp.json": CONFIG})
    (user.home / ".cursor").symlink_to(user.folder / "dotfiles" / "cursor")
    (user.home / ".gemini").mkdir()
    (user.home / ".gemini" / "settings.json").symlink_to(user.folder / "dotfiles" / "gemini.json")
    written = user.run(*"install --client cursor gemini --scope user --yes".split())
    assert (written.returncode, written.stderr) == (0, "")
    assert f"(a link to {user.folder}/dotfiles/cursor/mcp.json)" in written.stdout
    assert "web" in (user.folder / "dotfiles" / "cursor" / "mcp.json").read_text("utf-8")
    assert "web" in (user.folder / "dotfiles" / "gemini.json").read_text("utf-8")
    assert (user.home / ".gemini" / "settings.json").is_symlink()
