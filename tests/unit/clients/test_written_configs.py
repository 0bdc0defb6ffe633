"""Every client's files before and after: what is written, and that all the rest stays.

`files/CLIENT.SCOPE.before` is a configuration as a person may have it, `.after` what it has to be
with an entry for /home/ada/web. In a file that a team shares that is one without paths of this
machine, if the program is on the PATH and the client has a word for the project's folder.
"""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from vector_index_mcp.clients import configs, plan
from vector_index_mcp.clients.catalog import CLIENTS
from vector_index_mcp.clients.client import PRIVATE, PROJECT, SCOPES, USER
from vector_index_mcp.clients.launch import Launch, words_of
from vector_index_mcp.clients.places import places
from vector_index_mcp.clients.served import Collections, Project, Shelf
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

    def entry(self, client, scope) -> dict:
        """The entry that the client gets in a file of `scope`."""
        words = self.launch.words
        if scope == PROJECT:
            words = ["vector-index-mcp", client.folder or str(self.project)]
        return client.shape(words)

    def servers(self, client, scope, data: bytes) -> dict:
        """The servers of `scope` in a file that has no comments."""
        said = (tomllib.loads if client.name == "codex" else json.loads)(data.decode())
        for key in client.forms(scope, self.places)[0].keys:
            said = said[key]
        return said

    def installed(self, client, scope) -> bytes:
        configs.apply(self.install(client, scope).change)
        return self.path(client, scope).read_bytes()

    def uninstall(self, client, scope) -> None:
        path, served = self.path(client, scope), self.launch.served
        for step in plan.uninstall(client, [scope], path, self.places, served):
            configs.apply(step.change)

    def everything(self) -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}


@pytest.fixture(autouse=True)
def _on_the_path(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


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
    assert machine.servers(client, scope, after) == {"web": machine.entry(client, scope)}
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
    if scope == PRIVATE or client.servers in said:
        assert path.read_bytes() == before + later
    else:  # the object that had to be made for the entry stays
        assert says == {**said, client.servers: {}}


@every_user_file
def test_two_projects_of_the_same_name(tmp_path, client):
    one, other = Machine(tmp_path, "one/web"), Machine(tmp_path, "other/web")
    one.installed(client, USER)
    both = other.servers(client, USER, other.installed(client, USER))
    assert both == {
        "web": client.shape(one.launch.words),
        "web-2": client.shape(other.launch.words),
    }
    one.uninstall(client, USER)
    left = one.servers(client, USER, one.path(client, USER).read_bytes())
    assert left == {"web-2": both["web-2"]}


@every_user_file
def test_documents_and_a_project_beside_each_other(machine, client):
    project = machine.launch
    documents = Launch(Collections("work"), project.program)
    before = machine.installed(client, USER)
    machine.launch = documents
    both = machine.servers(client, USER, machine.installed(client, USER))
    assert both == {
        "web": client.shape(project.words),
        "documents-work": client.shape(documents.words),
    }
    assert machine.install(client, USER).remark.startswith("already there, as `documents-work` in")
    machine.uninstall(client, USER)
    assert machine.path(client, USER).read_bytes() == before


@pytest.mark.parametrize(
    "client", [c for c in CLIENTS if {PROJECT, USER} <= {*c.files}], ids=lambda client: client.name
)
def test_a_name_in_the_users_file_is_not_hidden_by_the_projects(machine, client):
    other = Machine(machine.folder, "other/web")
    other.installed(client, USER)
    after = machine.installed(client, PROJECT)
    assert list(machine.servers(client, PROJECT, after)) == ["web-2"]


@every_user_file
def test_an_entry_in_the_users_file_is_enough(machine, client):
    machine.installed(client, USER)
    step = machine.install(client, client.scope)
    assert step.change is None
    assert str(machine.path(client, USER)) in step.remark


@every_file
def test_an_entry_that_was_renamed_is_still_ours(machine, client, scope):
    path = machine.path(client, scope)
    text = machine.installed(client, scope).decode()
    path.write_text(re.sub(r'(["\.])web(["\]])', r"\1my-code\2", text, count=1), encoding="utf-8")
    assert machine.install(client, scope).remark.startswith("already there, as `my-code` in")
    machine.uninstall(client, scope)
    assert not path.exists()  # there was nothing else in it


@every_file
def test_an_entry_whose_program_is_gone_gets_this_one_and_keeps_its_options(machine, client, scope):
    gone = Launch(
        Project(machine.project), ("/gone/python", "-m", "vector_index_mcp"), ("--env-file", "e")
    )
    form = client.forms(scope, machine.places)[0]
    text = client.syntax.add("", (*form.keys, "web"), form.shape(gone.words))
    machine.path(client, scope, text.encode())
    after = machine.servers(client, scope, machine.installed(client, scope))
    folder = client.folder if scope == PROJECT and client.folder else str(machine.project)
    program = "vector-index-mcp" if scope == PROJECT else machine.launch.program[0]
    assert after == {"web": client.shape([program, "--env-file", "e", folder])}


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


# -- files that a team shares ----------------------------------------------------------------

in_a_team_s_file = pytest.mark.parametrize(
    "client", [c for c in CLIENTS if PROJECT in c.files], ids=lambda client: client.name
)


@in_a_team_s_file
def test_a_team_s_file_gets_no_path_of_this_machine_or_says_so(machine, client):
    step = machine.install(client, PROJECT)
    is_there = str(machine.folder).encode() in step.change.after
    assert is_there == (not client.folder)
    assert bool(step.warning) == is_there
    if is_there:
        assert step.warning.startswith(
            f"this path exists only on this machine: {machine.project}; "
        )


@in_a_team_s_file
def test_without_the_program_on_the_path_its_path_is_written_and_told(machine, client, monkeypatch):
    monkeypatch.setenv("PATH", str(machine.folder))
    step = machine.install(client, PROJECT)
    assert machine.launch.program[0].encode() in step.change.after
    assert machine.launch.program[0] in step.warning
    assert "have `vector-index-mcp` on the PATH" in step.warning


@in_a_team_s_file
def test_what_an_activated_environment_has_on_the_path_is_not_what_others_have(
    machine, client, monkeypatch
):
    monkeypatch.setenv("VIRTUAL_ENV", str(machine.folder))  # its `bin` is on the PATH
    step = machine.install(client, PROJECT)
    assert machine.launch.program[0] in step.warning
    assert "on the PATH of every shell" in step.warning
    monkeypatch.setenv("VIRTUAL_ENV", str(machine.folder / "other"))
    assert machine.launch.program[0] not in machine.install(client, PROJECT).warning


@every_user_file
def test_a_file_of_the_users_own_names_paths_and_warns_of_none(machine, client):
    step = machine.install(client, USER)
    assert str(machine.project).encode() in step.change.after
    assert step.warning == ""


@in_a_team_s_file
@pytest.mark.parametrize("word", ["{project}", ".", "${workspaceFolder}", "${CLAUDE_PROJECT_DIR}"])
@pytest.mark.parametrize("program", ["vector-index-mcp", "{bin}"])
def test_both_kinds_of_entries_are_ours(machine, client, word, program):
    words = [
        program.replace("{bin}", machine.launch.program[0]),
        word.replace("{project}", str(machine.project)),
    ]
    text = client.syntax.add("", (client.servers, "web"), client.shape(words))
    path = machine.path(client, PROJECT, text.encode())
    assert machine.install(client, PROJECT).remark.startswith("already there, as `web` in")
    machine.uninstall(client, PROJECT)
    assert not path.exists() or machine.servers(client, PROJECT, path.read_bytes()) == {}


@in_a_team_s_file
def test_whoever_lacks_the_program_leaves_the_team_s_entry_alone(machine, client, monkeypatch):
    machine.installed(client, PROJECT)
    monkeypatch.setenv("PATH", str(machine.folder))
    step = machine.install(client, PROJECT)
    assert step.change is None
    assert "`vector-index-mcp` is not on your PATH" in step.remark


@in_a_team_s_file
@pytest.mark.parametrize("is_on_the_path", [True, False])
def test_a_project_to_serve_too_is_added_to_the_team_s_entry(
    machine, client, monkeypatch, is_on_the_path
):
    machine.installed(client, PROJECT)
    if not is_on_the_path:
        monkeypatch.setenv("PATH", str(machine.folder))
    other = machine.folder / "other"
    both = replace(machine.launch, served=Project(machine.project, (other,)))
    [step] = plan.install(client, PROJECT, machine.places, both)
    words = ["vector-index-mcp", client.folder or str(machine.project), str(other)]
    [entry] = machine.servers(client, PROJECT, step.change.after).values()
    assert entry == client.shape(words)
    assert str(other) in step.warning
    assert ("is not on your PATH" in step.warning) is not is_on_the_path


def test_an_env_file_of_the_project_is_named_from_its_folder(machine):
    client = next(c for c in CLIENTS if c.name == "vscode")
    inside, outside = str(machine.project / "a" / "settings"), str(machine.folder / "settings")
    for env_file, written in {inside: "${workspaceFolder}/a/settings", outside: outside}.items():
        machine.launch = Launch(
            Project(machine.project), machine.launch.program, ("--env-file", env_file)
        )
        step = machine.install(client, PROJECT)
        after = machine.servers(client, PROJECT, step.change.after)
        assert after["web"]["args"] == ["--env-file", written, "${workspaceFolder}"]
        assert (outside in step.warning) == (env_file == outside)


def test_datasets_in_the_project_are_named_from_its_folder(machine):
    client = next(c for c in CLIENTS if c.name == "cursor")
    machine.launch = Launch(Shelf(machine.project / "datasets"), machine.launch.program)
    after = machine.servers(client, PROJECT, machine.installed(client, PROJECT))
    assert after["datasets"]["args"] == ["datasets", "serve", "${workspaceFolder}/datasets"]
    assert machine.install(client, PROJECT).remark.startswith("already there, as `datasets` in")
    machine.uninstall(client, PROJECT)
    assert not machine.path(client, PROJECT).exists()


# -- other scopes, forms and places ----------------------------------------------------------


def test_the_private_scope_is_of_the_repository_s_folder(machine):
    client = next(c for c in CLIENTS if PRIVATE in c.files)
    (machine.project.parent / ".git").mkdir()
    machine.places = places(machine.project, machine.folder / "home" / "ada", "linux", {})
    said = json.loads(machine.installed(client, PRIVATE))
    assert said == {
        "projects": {
            machine.project.parent.as_posix(): {
                "mcpServers": {"web": client.shape(machine.launch.words)}
            }
        }
    }
    assert machine.install(client, PROJECT).remark.startswith("already there, as `web` in")


def test_of_two_scopes_in_one_file_the_one_that_is_named_is_undone(machine):
    client = next(c for c in CLIENTS if PRIVATE in c.files)
    path = machine.path(client, USER)
    machine.installed(client, USER)
    entry = client.shape(machine.launch.words)
    keys = (*client.forms(PRIVATE, machine.places)[0].keys, "web")
    both = client.syntax.add(path.read_text(), keys, entry)
    path.write_text(both)
    machine.uninstall(client, PRIVATE)
    assert machine.servers(client, USER, path.read_bytes()) == {"web": entry}
    assert machine.servers(client, PRIVATE, path.read_bytes()) == {}
    path.write_text(both)
    [step] = plan.uninstall(client, SCOPES, path, machine.places, machine.launch.served)
    configs.apply(step.change)
    assert "vector-index-mcp" not in path.read_text()


OPENCODE = next(c for c in CLIENTS if c.name == "opencode")


@pytest.mark.parametrize("scope", [PROJECT, USER])
def test_the_second_form_is_used_where_the_file_has_it(machine, scope):
    before = b'{ // ours\n  "mcp": {\n    "timeout": { "startup": 1 },\n    "servers": {}\n  }\n}\n'
    path = machine.path(OPENCODE, scope, before)
    said = OPENCODE.syntax.read(machine.installed(OPENCODE, scope).decode())
    assert said["mcp"].keys() == {"timeout", "servers"}
    entry = said["mcp"]["servers"]["web"]
    words = machine.entry(OPENCODE, scope)["command"]
    timeout = {"startup": 30_000, "request": 60_000}
    assert entry == {"type": "local", "command": words, "timeout": timeout}
    assert machine.install(OPENCODE, scope).remark.startswith("already there, as `web` in")
    machine.uninstall(OPENCODE, scope)
    assert path.read_bytes() == before


def test_the_object_of_the_second_form_takes_no_name_away(tmp_path):
    machine = Machine(tmp_path, "servers")
    path = machine.path(OPENCODE, PROJECT, b'{"mcp": {"servers": {}}}')
    machine.installed(OPENCODE, PROJECT)
    assert list(json.loads(path.read_bytes())["mcp"]["servers"]) == ["servers"]


def test_entries_in_both_forms_are_taken_out_together(machine):
    docs = {"type": "remote", "url": "https://mcp.example.com"}
    first, second = (machine.entry(OPENCODE, PROJECT) for _ in range(2))
    said = {"mcp": {"old": first, "servers": {"web": second, "docs": docs}, "docs": docs}}
    path = machine.path(OPENCODE, PROJECT, json.dumps(said).encode())
    machine.uninstall(OPENCODE, PROJECT)
    assert json.loads(path.read_bytes()) == {"mcp": {"servers": {"docs": docs}, "docs": docs}}


def test_a_server_that_is_called_servers_is_no_second_form(machine):
    said = {"mcp": {"servers": {"type": "local", "command": ["servers-mcp"]}}}
    machine.path(OPENCODE, PROJECT, json.dumps(said).encode())
    after = machine.servers(OPENCODE, PROJECT, machine.installed(OPENCODE, PROJECT))
    assert after == {**said["mcp"], "web": machine.entry(OPENCODE, PROJECT)}


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("devin", ".codeium/windsurf/mcp_config.json"),
        ("antigravity", ".gemini/antigravity/mcp_config.json"),
        ("gemini", ".gemini/settings.json"),
    ],
)
def test_what_lies_at_an_old_place_is_used_and_undone_there(machine, name, old):
    client = next(c for c in CLIENTS if c.name == name)
    path = machine.folder / "home" / "ada" / old
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {}}')
    machine.installed(client, USER)
    assert "vector-index-mcp" in path.read_text()
    steps = [
        plan.uninstall(client, [USER], found, machine.places, machine.launch.served)
        for found in client.paths(USER, machine.places)
    ]
    for [step] in filter(None, steps):
        configs.apply(step.change)
    assert path.read_text() == '{"mcpServers": {}}'


# -- several projects ------------------------------------------------------------------------


@every_user_file
def test_another_project_is_added_to_the_entry_that_is_there(machine, client):
    api, web = machine.project.with_name("api"), machine.project
    path = machine.path(client, USER, machine.install(client, USER).change.after)
    machine.launch = Launch(Project(web, (api,)), machine.launch.program)
    step = machine.install(client, USER)
    [entry] = machine.servers(client, USER, step.change.after).values()
    assert words_of(entry)[1:] == [str(web), str(api)]
    path.write_bytes(step.change.after)
    assert machine.install(client, USER).remark.startswith("already there")


@every_user_file
def test_an_entry_is_of_the_project_that_it_names_first(machine, client):
    api, web = machine.project.with_name("api"), machine.project
    api.mkdir()
    machine.launch = Launch(Project(web, (api,)), machine.launch.program)
    path = machine.path(client, USER, machine.install(client, USER).change.after)
    assert plan.uninstall(client, SCOPES, path, machine.places, Project(api)) == []
    [step] = plan.uninstall(client, SCOPES, path, machine.places, Project(web))
    assert step.change is not None
