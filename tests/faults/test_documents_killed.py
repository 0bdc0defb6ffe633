"""A process that adds, indexes, renames, removes and embeds is killed: nothing is lost.

After each kill the configuration's file is whole and says what it said before or after the
operation under way; in the end the index equals one that is built anew.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from qmd import documents_of, settled
from serving import contents, differences
from writing import write

from vector_index_mcp.documents.configuration import read
from vector_index_mcp.documents.home import Home
from vector_index_mcp.indexing.role import Role

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]

KILLS = int(os.environ.get("KILLS", "4"))
FILES = 40
LONGEST_LIFE_SECONDS = 1.0
TESTS = Path(__file__).parents[1]
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]

# Says before each operation what the collections will be after it, and does so until it is killed.
KILLED = """
import json, random, sys
from pathlib import Path
import anyio
from fakes import FakeEmbedder
from qmd import documents_of
from vector_index_mcp.documents.configuration import Collection, read
from vector_index_mcp.documents.home import Home
from vector_index_mcp.indexing.role import Role

folder, seed = Path(sys.argv[1]), int(sys.argv[2])
home = Home("index", folder / "conf/index.yml", str(folder / "index.lancedb"))
chance = random.Random(seed)

def say(names, context):
    print(json.dumps([names, context]), flush=True)

async def work():
    documents = documents_of(home, FakeEmbedder())
    async with documents.running(Role.KEEPER):
        await documents.update()
        while True:
            found = read(home.configuration)
            names, context = [c.name for c in found.collections], found.global_context
            free = [n for n in "abcdefgh" if n not in names]
            act = chance.choice(["add", "remove", "rename", "rename", "update", "embed", "say"])
            if act == "add" and free and len(names) < 4:
                new = chance.choice(free)
                used = {c.path for c in found.collections}
                places = [folder / f"files/{number}" for number in range(4)]
                say([*names, new], context)
                await documents.add(Collection(new, next(p for p in places if p not in used)))
            elif act == "remove" and len(names) > 2:
                gone = chance.choice(names)
                say([n for n in names if n != gone], context)
                await documents.remove(gone)
            elif act == "rename" and names and free:
                old, new = chance.choice(names), chance.choice(free)
                say([new if n == old else n for n in names], context)
                await documents.rename(old, new)
            elif act == "say":
                text = f"said {chance.randrange(1000)}"
                say(names, text)
                await documents.set_context("", "", text)
            elif act == "update":
                say(names, context)
                await documents.update()
            else:
                say(names, context)
                await documents.embed(anew=chance.random() < 0.5)

anyio.run(work)
"""


def edit(folder, chance):
    """Change some files, make some, delete some."""
    for number in chance.sample(range(FILES), FILES // 3):
        path = folder / f"files/{number % 4}/{number}.md"
        if path.exists() and chance.random() < 0.2:
            path.unlink()
        else:
            words = " ".join(chance.choices(WORDS, k=100))
            path.write_text(f"# Note {number}\n\n{words}\n", "utf-8")


def said(home):
    """What the configuration says: names in order, and what is said of all documents."""
    found = read(home.configuration)
    return [c.name for c in found.collections], found.global_context


def killed(folder, seed, life):
    """What a process has announced that was killed `life` seconds after its first word."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), str(seed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        announced = [process.stdout.readline()]
        try:
            process.wait(life)
        except subprocess.TimeoutExpired:
            process.kill()
        announced += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [json.loads(line) for line in announced if line.endswith("\n")]


async def test_no_collection_no_context_and_no_document_is_lost(tmp_path):
    seed = int(os.environ.get("SEED", "7"))
    chance = random.Random(seed)
    home = Home("index", tmp_path / "conf/index.yml", str(tmp_path / "index.lancedb"))
    files = {f"files/{n % 4}/{n}.md": f"# Note {n}\n\nalpha\n" for n in range(FILES)}
    comment = "# by hand\nglobal_context: said 0\n"
    folders = "".join(f"  {n}:\n    path: {tmp_path}/files/{i}\n" for i, n in enumerate("ab"))
    write(tmp_path, files | {"conf/index.yml": f"{comment}collections:\n{folders}"})

    for kill in range(KILLS):
        edit(tmp_path, chance)
        before = [*said(home)]
        states = killed(tmp_path, seed + kill, chance.random() * LONGEST_LIFE_SECONDS)
        assert [*said(home)] in [before, *states][-2:], (kill, before, states)
    assert home.configuration.read_text("utf-8").startswith("# by hand\n")

    documents = documents_of(home, FakeEmbedder())
    async with documents.running(Role.KEEPER):
        await settled(documents)
        await documents.embed()
    anew = Home("index", home.configuration, str(tmp_path / "anew.lancedb"))
    fresh = documents_of(anew, FakeEmbedder())
    async with fresh.running(Role.VISITOR):
        await settled(fresh)
        await fresh.embed()
    found = [await contents(where.index) for where in (home, anew)]
    for rows, _ in found:
        for row in rows.values():
            row["last_modified_timestamp"] = None
    assert differences(*found) == []
    assert {key.partition("/")[0] for key in found[0][1]} == set(said(home)[0])
