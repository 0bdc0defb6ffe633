"""Every client's files before and after: what is written, and that all the rest stays.

`files/CLIENT.SCOPE.before` is a configuration as a person may have it, `.after` what it has to be
with an entry for /home/ada/web.
"""

import json
import tomllib
from pathlib import Path

import pytest

from vector_index_mcp.clients import configs, plan
from vector_index_mcp.clients.catalog import CLIENTS, PROJECT, USER
from vector_index_mcp.clients.launch import Launch
from vector_index_mcp.clients.places import places
from vector_index_mcp.clients.served import Collections, Project
from vector_index_mcp.errors import ConfigFileError

FILES = Path(__file__).parent / "files"
EVERY_FILE = [(client, scope) for client in CLIENTS for scope in client.files]
BOM = b"\xef\xbb\xbf"
every_file = pytest.mark.parametrize(
    ("client", "scope"), EVERY_FILE, ids=[f"{c.name}-{s}" for c, s in EVERY_FILE]
)
every_user_file = pytest.mark.parametrize(
    "client", [c for c in CLIENTS if USER in c.files], ids=lambda client: client.name
)
# How the same file may lie on somebody's disk.
VARIANTS = {
    "as it is": lambda data: data,
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "byte order mark": lambda data: BOM + data,
    "no newline at its end": lambda data: data.removesuffix(b"\n"),
}


class Machine:
    """A user's home, a project and the program, in a folder of the test."""

    def __init__(self, folder: Path, project: str = "web") -> None:
        self.folder = folder
        self.project = folder / "home" / "ada" / project
        self.project.mkdir(parents=True)
        program = folder / "bin" / "vector-index-mcp"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        self.launch = Launch(Project(self.project), (str(program),))
        self.places = places(self.project, folder / "home" / "ada", "linux", {})

    def path(self, client, scope, data: bytes | None = None) -> Path:
        """The client's file; it holds `data` if that is given."""
        path = client.paths(scope, self.places)[0]
        if data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return path

    def fixture(self, client, scope, when: str) -> bytes:
        """What the example says, for this machine's paths."""
        text = (FILES / f"{client.name}.{scope}.{when}").read_text(encoding="utf-8")
        text = text.replace("/usr/local/bin/vector-index-mcp", self.launch.program[0])
        return text.replace("/home/ada/web", str(self.project)).encode()

    def install(self, client, scope):
        [step] = plan.install(client, scope, self.places, self.launch)
        return step

    def installed(self, client, scope) -> bytes:
        configs.apply(self.install(client, scope).change)
        return self.path(client, scope).read_bytes()

    def uninstall(self, client, scope) -> None:
        path, served = self.path(client, scope), self.launch.served
        for step in plan.uninstall(client, scope, path, self.project, served):
            configs.apply(step.change)

    def everything(self) -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def servers(client, data: bytes) -> dict:
    """The servers in a file that has no comments."""
    read = tomllib.loads if client.name == "codex" else json.loads
    return read(data.decode())[client.servers]


@pytest.mark.parametrize("variant", VARIANTS)
@every_file
def test_the_entry_is_written_as_the_client_reads_it_and_all_else_stays(
    machine, client, scope, variant
):
    before = VARIANTS[variant](machine.fixture(client, scope, "before"))
    path = machine.path(client, scope, before)
    others = machine.everything()
    expected = VARIANTS[variant](machine.fixture(client, scope, "after"))
    assert machine.installed(client, scope) == expected
    assert machine.install(client, scope).change is None  # the second time
    backup = path.with_name(path.name + ".bak")
    assert machine.everything() == others | {path: expected, backup: before}


@pytest.mark.parametrize("variant", VARIANTS)
@every_file
def test_uninstalling_leaves_every_byte_as_it_was(machine, client, scope, variant):
    machine.path(client, scope, VARIANTS[variant](machine.fixture(client, scope, "before")))
    before = machine.everything()
    machine.installed(client, scope)
    machine.uninstall(client, scope)
    assert machine.everything() == before


@pytest.mark.parametrize("before", [None, b"", b"\n"], ids=["missing", "empty", "an empty line"])
@every_file
def test_a_file_that_says_nothing_gets_the_entry_alone(machine, client, scope, before):
    path = machine.path(client, scope, before)
    after = machine.installed(client, scope)
    assert servers(client, after) == {"web": client.shape(machine.launch.words)}
    assert after.endswith(b"\n")
    machine.uninstall(client, scope)
    assert (path.read_bytes() if path.exists() else None) == before


@every_file
def test_what_somebody_writes_later_survives_uninstalling(machine, client, scope):
    before = machine.fixture(client, scope, "before")
    path = machine.path(client, scope, before)
    later = b"# later\n" if client.name == "codex" else b"\n\n"
    path.write_bytes(machine.installed(client, scope) + later)
    machine.uninstall(client, scope)
    said, says = (client.syntax.read(data.decode()) for data in (before, path.read_bytes()))
    if client.servers in said:
        assert path.read_bytes() == before + later
    else:  # the object that had to be made for the entry stays
        assert says == {**said, client.servers: {}}


@every_user_file
def test_two_projects_of_the_same_name(tmp_path, client):
    one, other = Machine(tmp_path, "one/web"), Machine(tmp_path, "other/web")
    one.installed(client, USER)
    both = servers(client, other.installed(client, USER))
    assert both == {
        "web": client.shape(one.launch.words),
        "web-2": client.shape(other.launch.words),
    }
    one.uninstall(client, USER)
    assert servers(client, one.path(client, USER).read_bytes()) == {"web-2": both["web-2"]}


@every_user_file
def test_documents_and_a_project_beside_each_other(machine, client):
    project = machine.launch
    documents = Launch(Collections("work"), project.program)
    before = machine.installed(client, USER)
    machine.launch = documents
    both = servers(client, machine.installed(client, USER))
    assert both == {
        "web": client.shape(project.words),
        "documents-work": client.shape(documents.words),
    }
    assert machine.install(client, USER).said.startswith("already there, as `documents-work` in")
    machine.uninstall(client, USER)
    assert machine.path(client, USER).read_bytes() == before


@pytest.mark.parametrize(
    "client", [c for c in CLIENTS if len(c.files) > 1], ids=lambda client: client.name
)
def test_a_name_in_the_users_file_is_not_hidden_by_the_projects(machine, client):
    other = Machine(machine.folder, "other/web")
    other.installed(client, USER)
    assert list(servers(client, machine.installed(client, PROJECT))) == ["web-2"]


@every_user_file
def test_an_entry_in_the_users_file_is_enough(machine, client):
    machine.installed(client, USER)
    step = machine.install(client, client.scope)
    assert step.change is None
    assert str(machine.path(client, USER)) in step.said


@every_file
def test_an_entry_that_was_renamed_is_still_ours(machine, client, scope):
    path = machine.path(client, scope)
    text = machine.installed(client, scope).decode()
    path.write_text(text.replace("web", "my-code", 1), encoding="utf-8")
    assert machine.install(client, scope).said.startswith("already there, as `my-code` in")
    machine.uninstall(client, scope)
    assert not path.exists()  # there was nothing else in it


@every_file
def test_an_entry_whose_program_is_gone_gets_this_one_and_keeps_its_options(machine, client, scope):
    path = machine.path(client, scope)
    gone = Launch(
        Project(machine.project), ("/gone/python", "-m", "vector_index_mcp"), ("--env-file", "e")
    )
    [step] = plan.install(client, scope, machine.places, gone)
    old = json.dumps("/gone/python")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(step.change.after)
    assert old.encode() in step.change.after
    after = servers(client, machine.installed(client, scope))
    words = [*machine.launch.program, "--env-file", "e", str(machine.project)]
    assert after == {"web": client.shape(words)}


@every_file
def test_a_malformed_file_is_told_and_not_touched(machine, client, scope):
    broken = b"a = 1\nb = = 2\n" if client.name == "codex" else b'{\n  "a": }\n'
    path = machine.path(client, scope, broken)
    before = machine.everything()
    for attempt in (machine.install, machine.uninstall):
        with pytest.raises(ConfigFileError) as caught:
            attempt(client, scope)
        assert str(caught.value).startswith(f"{path}, line 2: ")
        assert str(caught.value).endswith("; correct that and run this again")
    assert machine.everything() == before


@every_user_file
def test_servers_that_are_no_table_are_told_and_not_touched(machine, client):
    text = f"{client.servers} = 1\n" if client.name == "codex" else f'{{"{client.servers}": 1}}'
    path = machine.path(client, USER, text.encode())
    with pytest.raises(ConfigFileError, match="not a table of servers"):
        machine.install(client, USER)
    assert path.read_text() == text


def test_every_example_is_of_a_client():
    expected = {f"{c.name}.{s}.{when}" for c, s in EVERY_FILE for when in ("before", "after")}
    assert {path.name for path in FILES.iterdir()} == expected
