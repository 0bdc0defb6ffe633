"""The command line of the documents against what was recorded of the program whose users it serves.

`qmd_transcript.txt` is that record: commands in a folder of seven documents, with what they wrote
to either stream, and their exit status. Where ours differs is said once, in `DIFFERENCES`.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest
from commanding import Qmd
from processes import COMMAND, NO_MODEL, place_of, run
from qmd import FILES
from writing import write

from vector_index_mcp.console.documents.usage import OURS

CORPUS = FILES | {
    "notes/plan.md": "# Plan\n\nNo heading match. The budget roadmap is here.\n"
    "line four\nline five\nline six\n",
}
README = CORPUS["docs/readme.md"]
TRANSCRIPT = (Path(__file__).parent / "qmd_transcript.txt").read_text(encoding="utf-8")


class Block(NamedTuple):
    """A command, and what it did."""

    command: str
    stdout: str
    stderr: str
    status: int


def blocks() -> list[Block]:
    found = []
    for text in re.split(r"^\$ qmd ", TRANSCRIPT, flags=re.MULTILINE)[1:]:
        command, _, rest = text.partition("\n")
        said, _, status = rest.rstrip("\n").rpartition("[exit ")
        stdout, _, stderr = said.partition("[stderr]\n")
        found.append(Block(command, stdout, stderr, int(status.removesuffix("]"))))
    return found


RECORDED = blocks()
GLOB = next(block for block in RECORDED if block.command == "multi-get qmd://docs/meetings/*.md")
DIFFERENCES = {
    "a score grows with the match: b / (1 + b), where the original had 1 / (1 + b)": (
        r"0\.7[01]\d\d|0\.71|71%",
        "SCORE",
    ),
    "the index is a folder of LanceDB, and as large as that is": (
        r"Index: .*\nSize:  .*\n",
        "INDEX\n",
    ),
    "the help names what the original does not have": (
        re.escape("- Output format (same as search)\n"),
        f"- Output format (same as search)\n{OURS}",
    ),
}
"""What differs in texts, by the reason: what was recorded, and what stands for it."""
MENDED = {
    "multi-get docs/meetings/*.md": Block("", GLOB.stdout, "", 0),
}
"""Commands that the original did not understand: a glob may begin with the collection's name."""
UNLIKE = r"0\.7[0-9]\d\d|0\.7[0-9]|7[0-9]%"  # our scores
PASSING = {r"\d+[smhd] ago": "AGO", r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d": "DATE"}


def expected(block: Block) -> Block:
    block = MENDED.get(block.command, block)
    stdout = block.stdout
    for pattern, instead in (*DIFFERENCES.values(), *PASSING.items()):
        stdout = re.sub(pattern, instead, stdout)
    return block._replace(stdout=stdout, command="")


def comparable(done: subprocess.CompletedProcess[str], project: Path) -> Block:
    stdout = done.stdout.replace(str(project), "/data/qmd-corpus")
    stdout = re.sub(r"Index: .*\nSize:  .*\n", "INDEX\n", stdout)
    stdout = re.sub(UNLIKE, "SCORE", stdout)
    for pattern, instead in PASSING.items():
        stdout = re.sub(pattern, instead, stdout)
    return Block("", stdout, done.stderr, done.returncode)


@contextmanager
def qmd_of(mode: str) -> Iterator[Qmd]:
    with place_of(CORPUS, **NO_MODEL) as place:
        qmd = Qmd(place)
        with qmd.served() if mode == "served" else nullcontext():
            yield qmd


@pytest.fixture(scope="module", params=["alone", "served"])
def recorded_qmd(request) -> Iterator[Qmd]:
    """One that the tests leave as it is."""
    with qmd_of(request.param) as qmd:
        # A service has indexed what there is before it is asked to.
        assert "6 new" in qmd.succeeds("update") or request.param == "served"
        yield qmd


@pytest.fixture(params=["alone", "served"])
def qmd(request) -> Iterator[Qmd]:
    """One of a test's own."""
    with qmd_of(request.param) as qmd:
        yield qmd


@pytest.mark.parametrize("block", RECORDED, ids=[block.command for block in RECORDED])
def test_a_command_does_what_was_recorded(recorded_qmd, block):
    done = recorded_qmd(*shlex.split(block.command))
    assert comparable(done, recorded_qmd.place.project) == expected(block)


def test_a_line_behind_the_end_is_told_beside_the_text(recorded_qmd):
    done = recorded_qmd("get", "meeting-2024-01.md:900")
    assert (done.returncode, done.stdout.count("\n---\n")) == (0, 1)
    assert re.fullmatch(r"The document has \d+ lines; line 900 is behind its end\n", done.stderr)


def test_no_command_prints_the_help_and_fails(recorded_qmd):
    done = recorded_qmd()
    assert (done.stdout, done.stderr, done.returncode) == (expected(RECORDED[0]).stdout, "", 1)


def test_a_glob_that_a_shell_has_made_names_of_is_understood(recorded_qmd):
    names = [f"docs/meetings/meeting-2024-0{number}.md" for number in (1, 2)]
    shown = recorded_qmd.succeeds("multi-get", *names, "--files").splitlines()
    assert [line.partition(",")[0] for line in shown if line.startswith("qmd")] == [
        f"qmd://{name}" for name in names
    ]


def test_numbers_of_lines_in_snippets_are_those_of_the_file(recorded_qmd):
    """The original numbered the line above the snippet as well, and began at the best line."""
    [found] = json.loads(
        recorded_qmd.succeeds("search", "budget", "-n", "1", "--json", "--line-numbers")
    )
    assert found["snippet"].split("\n")[1:] == [
        "2: ",
        "3: No heading match. The budget roadmap is here.",
        "4: line four",
        "5: line five",
    ]


def test_a_whole_document_can_be_had_of_a_search(recorded_qmd):
    [found] = json.loads(recorded_qmd.succeeds("search", "setup", "--json", "--full"))
    assert (found["body"], found.get("snippet")) == (README, None)


@pytest.mark.long
def test_collections_and_contexts_come_change_and_go(qmd):
    qmd.succeeds("update")
    folder = qmd.place.project / "More Notes"
    folder.mkdir()
    (folder / "Zebra Crossing.md").write_text("# Crossing\n\nA zebra.\n", encoding="utf-8")

    added = qmd.succeeds("collection", "add", "More Notes", "--name", "more")
    assert "Indexed: 1 new, 0 updated, 0 unchanged, 0 removed" in added
    assert added.endswith("✓ Collection 'more' created successfully\n")
    # As it is: the original showed names in lower case, with hyphens.
    assert qmd.succeeds("ls", "more").endswith("qmd://more/Zebra Crossing.md\n")
    assert qmd.succeeds("context", "add", "About animals", "More Notes").startswith(
        "✓ Added context for: qmd://more/\n"
    )
    assert "Context: Global ctx\n\nAbout animals\n" in qmd.succeeds("search", "zebra")
    assert "✓ Renamed" in qmd.succeeds("collection", "rename", "more", "zoo")
    assert qmd.succeeds("search", "zebra", "--files").startswith("#")
    assert qmd.succeeds("context", "rm", "qmd://zoo") == "✓ Removed context for: qmd://zoo/\n"
    assert qmd.succeeds("collection", "remove", "zoo").endswith("Deleted 1 documents\n")
    assert qmd.succeeds("search", "zebra") == "No results found.\n"
    gone = qmd("collection", "remove", "zoo")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr.startswith("Collection not found: zoo\n")


def test_a_collection_without_a_document_says_which_mask_would_take_some(qmd):
    write(qmd.place.project / "manual", {"a.rst": "A\n=\n", "deep/b.rst": "B\n", "c.txt": "C\n"})
    added = qmd("collection", "add", "manual")
    assert (added.returncode, added.stdout.splitlines()[-1][2:]) == (
        0,
        "Collection 'manual' created successfully",
    )
    _, there, what = added.stderr.splitlines()
    assert there == "There are: 2 .rst, 1 .txt"
    mask = "**/*.{rst,txt}"
    assert what == f"Remove the collection and add it again with --mask '{mask}'"
    qmd.succeeds("collection", "remove", "manual")
    assert "3 new" in qmd.succeeds("collection", "add", "manual", "--mask", mask)


def test_vectors_cannot_be_had_without_a_model(recorded_qmd):
    done = recorded_qmd("embed")
    assert (done.returncode, done.stdout) == (1, "")
    assert "VECTOR_INDEX_EMBEDDING_MODEL" in done.stderr


def test_another_index_is_chosen_anywhere_on_the_line(recorded_qmd):
    assert recorded_qmd.succeeds("ls", "--index", "other").startswith("No collections found.")
    assert recorded_qmd.succeeds("--index=index", "ls").startswith("Collections:")


def test_a_search_of_the_server_says_when_there_is_none(recorded_qmd):
    done = recorded_qmd("search", "x", "--mode", "server", "--port", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "http://127.0.0.1:1" in done.stderr


@pytest.fixture(scope="module")
def port(recorded_qmd) -> Iterator[int]:
    """The port of a server of the same documents."""
    place = recorded_qmd.place
    with subprocess.Popen(
        [*COMMAND, "documents", "server", "--transport", "http", "--port", "0"],
        cwd=place.project,
        env=place.variables,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            [number] = re.findall(r"listening on http://[0-9.]+:(\d+)", process.stderr.readline())
            yield int(number)
        finally:
            process.terminate()


@pytest.mark.parametrize("form", ["", "--json", "--csv", "--md", "--xml", "--files", "--full"])
@pytest.mark.parametrize(
    "words", ["search budget", "query --line-numbers budget", "search -c notes roadmap", "search q"]
)
def test_a_search_of_the_server_prints_the_same(recorded_qmd, port, words, form):
    command = [*words.split(), *form.split()]
    alone = recorded_qmd(*command)
    served = recorded_qmd(*command, "--mode", "server", "--port", str(port))
    assert (served.stdout, served.returncode) == (alone.stdout, 0)


@pytest.mark.parametrize("command", ["search", "vsearch", "query"])
def test_a_search_of_a_collection_that_is_not_there_fails(recorded_qmd, port, command):
    for mode in ([], ["--mode", "server", "--port", str(port)]):
        done = recorded_qmd(command, "x", "-c", "nope", *mode)
        told = ("", "Collection not found: nope\n", 1)
        assert (done.stdout, done.stderr, done.returncode) == told


@pytest.mark.long
def test_commands_at_once_wait_for_each_other_and_all_of_them_count():
    with qmd_of("alone") as qmd:
        names = [f"more{number}" for number in range(4)]
        for name in names:
            write(qmd.place.folder, {f"{name}/{name}.md": f"# {name}\n\nThe {name} zebra.\n"})
        commands = [
            ("collection", "add", str(qmd.place.folder / name), "--name", name) for name in names
        ]
        with ThreadPoolExecutor(len(names) + 1) as crowd:
            found = [*crowd.map(lambda words: qmd(*words), [*commands, ("update",)])]
        assert [(done.returncode, done.stderr) for done in found] == [(0, "")] * len(found)
        listed = qmd.succeeds("search", "zebra", "--files", "-n", "20")
        assert all(f"qmd://{name}/{name}.md" in listed for name in names)


def test_services_of_documents_are_listed_and_ended_with_the_others():
    with qmd_of("served") as qmd:
        variables = qmd.place.variables
        place = f"{variables['QMD_CONFIG_DIR']}/index.yml"
        listed = run("ps", cwd=qmd.place.folder, variables=variables)
        assert listed.stdout.endswith(f"{place}\n")
        ended = run("stop", "--all", cwd=qmd.place.folder, variables=variables)
        # The service may have started the worker that it shares by now, and that is ended last.
        lines = [line for line in ended.stdout.splitlines() if "embedding-worker" not in line]
        assert (lines, ended.returncode) == ([f"ended the service of {place}"], 0)
        assert qmd.succeeds("stop") == f"no background service is running for {place}\n"


def test_a_service_of_documents_is_ended_by_its_own_command():
    with qmd_of("served") as qmd:
        assert qmd.succeeds("stop").startswith("ended the service of ")
