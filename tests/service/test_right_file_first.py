"""The right file comes first, in small projects of the shapes where it did not.

Each has large central files, which mention whatever there is, and files that use what is asked for,
beside the one that is about it. By words alone: what a fake model finds near says nothing.
"""

import pytest
from fakes import FakeEmbedder
from serving import codebase_of, converged
from writing import write

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import rank

pytestmark = pytest.mark.anyio

MENTIONS = (
    "Errors of the library are shown to the user in a panel of their own.",
    "Diffs are left to the view.",
    "State that has to be saved is put off until the disk is idle.",
    "The user's configuration says which keys do that.",
    "Loaded lazily, as the type of a panel is known only then.",
    "Applied to whatever is shown at startup.",
)
HUB = '"""The application: its panels, its keys, its views and how they are shown."""\n' + "".join(
    f'''

def on_event_{number}(app, index):
    """Called when a user has selected something in panel {number}.

    {MENTIONS[number % len(MENTIONS)]}
    """
    chosen = app.model.panels[{number}][index]
    app.main.show(chosen)
    app.status.set_text("showing {number}: " + str(chosen))
    app.refresh_views(keep_cursor=True, is_shown=True)
    return chosen
'''
    for number in range(60)
)
HUB += """

def on_close(app, panels):
    for number, each in enumerate(panels):
        if each.is_open:
            raise UsageError(
                "What was loaded has to be saved to disk "
                f"before the user closes panel {number}"
            )
"""
ABOUT = {
    "pad/views/diff.py": '''"""Diffs, side by side."""


class DiffView:
    """Shows the diff of two revisions: what was removed in red, what was added in green."""

    def show(self, hunks, width):
        for hunk in hunks:
            for line in hunk.lines:
                yield self.coloured(line, width)

    def coloured(self, line, width):
        return {"+": "green", "-": "red"}.get(line[:1], "dim"), line[:width]
''',
    "pad/pad_error.py": '''class PadError(Exception):
    """The base of the errors of this library."""


class NoRepositoryError(PadError):
    """There is no repository."""


class ConflictError(PadError):
    """Two changes of one type contradict each other."""
''',
    "pad/persistence/store.py": '''import json


class Store:
    """Keeps state on disk between two starts: saves it and loads it."""

    def save(self, path, state):
        path.write_text(json.dumps(state))

    def load(self, path):
        return json.loads(path.read_text()) if path.exists() else {}
''',
    "pad/config.py": '''import tomllib


class Config:
    """The configuration of a user, applied at startup."""

    @classmethod
    def read(cls, home):
        return cls(tomllib.loads((home / ".pad.toml").read_text()))

    def apply(self, app):
        for name, value in self.values.items():
            setattr(app.options, name, value)
''',
    "pad/closing.py": '''"""Closes panels."""


def may_close(panel, user):
    """Whether the panel may close: the user has saved to disk what was loaded before."""
    return panel.saved or not panel.loaded
''',
    "pad/Hunk.java": "public class Hunk {\n    private final List<String> lines;\n}\n",
    "pad/pipeline/parse.py": '''def parse(request):
    """The first step of the pipeline: the bytes of a request become its parts."""
    head, _, body = request.partition(b"\\r\\n")
    return head, body
''',
    "pad/pipeline/transform.py": '''def transform(parts, filters):
    """The second step of the pipeline: each filter transforms a request."""
    for each in filters:
        parts = each(parts)
    return parts
''',
}
USERS = {
    f"pad/commands/{name}.py": f'''from pad.pad_error import PadError


def {name}(remote, panel):
    """Run {name}, save to disk what was loaded, and show the user what has changed since.

    An error is raised to whoever has called, of the type that the library has for it.
    """
    panel.load()
    try:
        return remote.{name}()
    except OSError as error:
        raise PadError("{name} has failed with an error") from error
    finally:
        panel.save()
'''
    for name in ("fetch", "push", "clone", "pull")
}
SPLITS = "    Hunk split(Hunk hunk) { return new Hunk(hunk); }\n" * 4
JAVA_USERS = {
    f"pad/Tool{number}.java": f"import pad.Hunk;\n\npublic class Tool{number} {{\n{SPLITS}}}\n"
    for number in range(5)
}
FILES = {"pad/core.py": HUB, **ABOUT, **USERS, **JAVA_USERS}
SHAPES = [
    ("how are diffs shown", "pad/views/diff.py"),
    ("the library's own error types", "pad/pad_error.py"),
    ("how is state saved to disk and loaded from disk", "pad/persistence/store.py"),
    ("where is the configuration of the user applied at startup", "pad/config.py"),
]


@pytest.fixture
async def codebase(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    codebase = codebase_of(write(root, FILES), FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        yield codebase


async def files(codebase, query, *, without=()):
    """The files that a ranking has for `query`, best first, without steps of it."""
    asked = Query(query)
    async with codebase.index.reading() as (index, _):
        found = await index.store.matching(asked.matched, 100)
    return list(dict.fromkeys(hit.chunk.key for hit in rank(asked, found, [], without=without)))


@pytest.mark.parametrize(("query", "expected"), SHAPES)
async def test_a_file_about_the_subject_comes_before_those_that_mention_it(
    codebase, query, expected
):
    assert (await files(codebase, query))[0] == expected


async def test_without_an_order_of_files_a_hub_comes_first(codebase):
    query, expected = SHAPES[0]
    assert (await files(codebase, query, without=["files"]))[0] == "pad/core.py"
    assert (await files(codebase, query))[0] == expected


async def test_a_name_leads_to_its_file_before_its_users(codebase):
    assert (await files(codebase, "Hunk"))[0] == "pad/Hunk.java"


async def test_both_files_of_an_answer_come_first(codebase):
    found = await files(codebase, "how a request is transformed in the pipeline")
    assert set(found[:2]) == {"pad/pipeline/parse.py", "pad/pipeline/transform.py"}


async def test_the_message_of_an_error_leads_to_where_it_is_raised(codebase):
    """It stands in a hub, and its words in a small file about them."""
    message = "What was loaded has to be saved to disk before the user closes panel 7"
    assert (await files(codebase, message))[0] == "pad/core.py"
    assert (await files(codebase, message, without=["verbatim"]))[0] != "pad/core.py"


async def test_a_message_in_which_much_is_filled_in_leads_to_where_it_is_raised(tmp_path):
    """No four of its words stand in a row there."""
    table = {
        "net/table.go": "package net\n\nfunc (t *Table) check() error {\n\tif t.alive() {\n"
        '\t\treturn nil\n\t}\n\tt.log.Warn(fmt.Sprintf("all handlers for %s on %s are down",'
        " t.kind, t.host))\n\treturn errDown\n}\n",
        "net/state.go": "package net\n\n// Handlers of an interface are up, or down.\n"
        "type State struct {\n\tall []Handler\n}\n\n// Down tells whether handlers are down.\n"
        "func (s *State) Down() bool {\n\treturn len(s.all) == 0 // all are down\n}\n",
    }
    root = tmp_path / "project"
    root.mkdir()
    codebase = codebase_of(write(root, table), FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        message = "all handlers for tcp on eth0 are down"
        assert (await files(codebase, message))[0] == "net/table.go"
        assert (await files(codebase, message, without=["verbatim"]))[0] == "net/state.go"


METHODS = "".join(
    f"  step{n}(query) {{\n    const given = this.pool.take({n}, query);\n"
    f"    this.log.write('step {n}', given);\n    return given.then((row) => row.id);\n  }}\n\n"
    for n in range(30)
)
OWNED = {
    "lib/base.js": f"class Client extends Emitter {{\n{METHODS}"
    "  acquireConnection() {\n    if (!this.pool) {\n      throw new Error('no pool');\n    }\n"
    "    const taken = this.pool.take();\n    this.log.write('taken', taken);\n"
    "    return taken.then((found) => found.value);\n  }\n}\n",
    "lib/trx.js": "function makeClient(client, trx) {\n  const trxClient = copy(client);\n"
    "  trxClient.acquireConnection = () => trx.client.acquireConnection(client);\n"
    "  return trxClient;\n}\n",
}


async def test_a_method_is_found_in_the_class_that_is_named(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, OWNED)
    codebase = codebase_of(root, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        for query in ("Client.acquireConnection", "Client#acquireConnection"):
            assert (await files(codebase, query))[0] == "lib/base.js"


async def test_a_release_is_found_where_its_number_stands(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    numbers = "\n".join(f"    {n % 9}, {n % 7}, {n}, 69, 1.4, 1.4.{690 + n}," for n in range(9))
    news = "".join(f"## 1.{minor}.69\n\n- Mends number {minor}.\n\n" for minor in range(9))
    write(root, {"tables.h": f"int table[] = {{\n{numbers}\n}};\n", "NEWS.md": f"# News\n\n{news}"})
    codebase = codebase_of(root, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        for query in ("1.4.69", "what changed in 1.4.69", "what is new in v1.4.69"):
            [first, *_] = (await codebase.search(query, 3)).hits
            assert first.chunk.key == "NEWS.md"
            assert "1.4.69" in first.chunk.text
