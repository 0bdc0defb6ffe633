"""Two services, commands and somebody with an editor change one configuration at once."""

import copy
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from commanding import Qmd
from processes import NO_MODEL, place_of
from waiting import eventually
from writing import write

COUNT = 4
ADDED = "is listed, and will be indexed as soon as possible"


@pytest.fixture
def qmd():
    with place_of({"docs/readme.md": "# Read me\n", "notes/plan.md": "# Plan\n"}, **NO_MODEL) as at:
        yield Qmd(at)


def elsewhere(qmd: Qmd) -> Qmd:
    """The same collections to somebody whose services are met at another place."""
    other = copy.copy(qmd)
    other.place = copy.copy(qmd.place)
    runtime = qmd.place.folder / "r2"
    runtime.mkdir(mode=0o700)
    other.place.variables = qmd.place.variables | {"VECTOR_INDEX_RUNTIME_DIR": str(runtime)}
    return other


def add(qmd: Qmd, name: str) -> None:
    """By a command; the service that is asked need not be the one that writes the index."""
    done = qmd("collection", "add", str(qmd.place.folder / name), "--name", name)
    assert done.returncode == 0 or ADDED in done.stderr, done


def add_by_hand(qmd: Qmd, name: str) -> None:
    """As an editor that appends; somebody looks whether it is there."""
    file = qmd.place.folder / "configuration/index.yml"
    while f"  {name}:\n" not in file.read_text(encoding="utf-8"):
        with file.open("a", encoding="utf-8") as editor:
            editor.write(f"\n  {name}:\n    path: {qmd.place.folder / name}\n")


@pytest.mark.long
def test_no_collection_is_lost(qmd):
    other = elsewhere(qmd)
    names = {kind: [f"{kind}{n}" for n in range(COUNT)] for kind in ("one", "other", "hand")}
    for name in sum(names.values(), []):
        write(qmd.place.folder, {f"{name}/{name}.md": f"# The zebra of {name}\n"})
    with qmd.served(), other.served(), ThreadPoolExecutor(3) as crowd:
        work = [
            crowd.submit(lambda k=kind, f=function: [f(name) for name in names[k]])
            for kind, function in (
                ("one", lambda name: add(qmd, name)),
                ("other", lambda name: add(other, name)),
                ("hand", lambda name: add_by_hand(qmd, name)),
            )
        ]
        for each in work:
            each.result()
        for asked in (qmd, other):
            listed = asked.succeeds("collection", "list")
            lost = [n for n in sum(names.values(), []) if f"{n} (qmd://{n}/)" not in listed]
            assert not lost
        qmd.succeeds("stop")  # one of the two writes the index, and then the other one does

        def are_all_found() -> bool:
            ran = other("search", "zebra", "--files", "-n", "50")  # it may say what it still lacks
            assert ran.returncode == 0, ran
            return all(f"qmd://{name}/{name}.md" in ran.stdout for name in sum(names.values(), []))

        anyio.run(eventually, are_all_found)
        other.succeeds("stop")
