"""`share` as somebody types it, and a second machine that uses what was shared; the real model."""

import json

import pytest
from processes import NO_MODEL, environment, run
from writing import write

pytestmark = pytest.mark.long

FILES = {f"m{n}.py": f"def name_{n}(): return {n}\n" for n in range(40)}


class Machine:
    """A project on a machine of its own."""

    def __init__(self, folder, **settings):
        self.project = write(folder / "project", FILES)
        self.variables = environment(folder, **settings)

    def __call__(self, *arguments):
        return run(*arguments, cwd=self.project, variables=self.variables)


@pytest.fixture
def machine(tmp_path):
    team = {"VECTOR_INDEX_SHARED_CACHE": str(tmp_path / "team")}
    return lambda name, **more: Machine(tmp_path / name, **{**team, **more})


def test_what_one_machine_shares_another_does_not_embed(machine):
    job, laptop = machine("job"), machine("laptop")
    assert job("index").returncode == 0
    shared = job("share")
    assert shared.returncode == 0, shared
    assert shared.stdout.startswith("40 vectors written to ")
    assert "0 vectors written to " in job("share").stdout

    assert laptop("index").returncode == 0
    checks = {
        each["name"]: each for each in json.loads(laptop("doctor", "--json").stdout)["checks"]
    }
    found = checks["team's vectors"]
    assert found["verdict"] == "ok"
    assert found["words"].endswith("1 pack of vectors of this model")
    kept = [*(laptop.project.parent).rglob("*.pack")]
    assert len(kept) == 1

    assert laptop("clear", "--all", "--yes").returncode == 0
    assert not kept[0].exists()


def test_what_cannot_be_shared_is_said(machine):
    alone = machine("alone", VECTOR_INDEX_SHARED_CACHE="")
    done = alone("share")
    assert done.returncode == 2
    assert "set VECTOR_INDEX_SHARED_CACHE" in done.stderr
    done = machine("new")("share")
    assert done.returncode == 1
    assert "is not indexed" in done.stderr
    without = machine("without", **NO_MODEL)
    without("index")
    done = without("share")
    assert done.returncode == 1
    assert "has no vectors yet" in done.stderr
