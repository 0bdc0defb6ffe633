"""The package's own rules, as tests."""

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from other_process import printed_by

ROOT = Path(__file__).parent.parent / "vector_index_mcp"
PACKAGE, PRODUCT = ROOT.name, "vector-index-mcp"
MODULES = sorted(ROOT.rglob("*.py"))
MOST_LINES_OF_A_MODULE = 400
MOST_MODULES_OF_A_FOLDER = 40
MOST_LINES_OF_A_FUNCTION = 60

# The rooms, and what each stands on directly; it may import what that stands on as well. The order
# is the order of reading.
STANDS_ON = {
    "errors": set(),
    "checks": set(),
    "protocol": {"errors"},
    "foreign": set(),
    "origins": set(),
    "editors": set(),
    "settings": {"editors", "errors"},
    "processes": {"errors"},
    "objects": {"processes"},
    "engine": {"objects"},
    "files": {"errors"},
    "indexing": {"engine", "files"},
    "codebase": {"foreign", "indexing", "protocol"},
    "documents": {"foreign", "indexing", "checks", "protocol"},
    "notes": {"indexing", "checks", "protocol"},
    "datasets": {"indexing", "checks", "protocol"},
    "background": {"errors"},
    "sharing": {"engine", "processes", "background"},
    "page": {"codebase", "datasets", "documents", "editors", "foreign", "notes", "origins"},
    "serving": {"codebase", "documents", "notes", "datasets", "page", "settings", "sharing"},
    "console": {"serving", "background", "foreign"},
    "clients": {"console", "serving"},
    "doctor": {"console", "serving"},
    "cli": {"clients", "doctor", "console", "serving"},
    "__main__": {"cli"},
    "__init__": set(),
}
# Within a room: what must not be imported by whom, each with the invariant that says so.
MUST_NOT_IMPORT = {
    **dict.fromkeys(  # 9
        [f"codebase/{m}.py" for m in ("service", "answer", "finding", "recent", "wanted")],
        {f"codebase.{m}" for m in ("wire", "hits", "rendering", "text", "tools")},
    ),
    **dict.fromkeys(
        ("codebase/wire.py", "codebase/rendering.py"), {"codebase.text", "codebase.tools"}
    ),
    **dict.fromkeys(
        ("documents/service.py", "documents/asking.py", "documents/retrieval.py"),
        {f"documents.{m}" for m in ("wire", "text", "tools", "rendering", "rest", "rest_models")},
    ),
    "documents/tools.py": {"documents.rest", "documents.rest_models", "documents.rest_errors"},
    "documents/wire.py": {"documents.text", "documents.tools", "documents.service"},
    # The store knows files and commits, and nothing of what stands in them.
    **dict.fromkeys(
        [f"notes/store/{m}.py" for m in ("disk", "repository", "history", "writer", "remote")],
        {f"notes.{m}" for m in ("calls", "texts", "service", "tools", "merging")},
    ),
    # What files say is understood without git, and merged without files.
    **dict.fromkeys(
        [f"notes/texts/{m}.py" for m in ("parts", "matter", "knowledge", "sections", "todos")],
        {f"notes.{m}" for m in ("calls", "service", "past", "store.repository", "store.writer")},
    ),
    **dict.fromkeys(
        [f"notes/merging/{m}.py" for m in ("trees", "projects", "numbers", "chapters", "tasks")],
        {f"notes.{m}" for m in ("calls", "service", "past", "store")},
    ),
    "notes/service.py": {"notes.tools", "notes.arguments"},
    # Foreign files are read in a process of their own.
    **dict.fromkeys(
        [f"datasets/{m}.py" for m in ("service", "registry", "tools", "conversion")],
        {"datasets.flat", "datasets.metadata"},
    ),
    "codebase/text.py": {"codebase.service", "codebase.tools"},
    "indexing/preparing/file.py": {"indexing.preparing.crew", "indexing.preparing.child"},
    "engine/chunk/cut.py": {"engine.chunk.syntax"},
    "engine/ranking/rank.py": {"engine.store"},
}
MOST_LOOSE_MODULES = 10
# Third-party modules, and what of the standard library deserves it, that have one home each.
HOMES = {
    "lancedb": {"engine/store/"},
    "pyarrow": {
        "engine/store/",
        "engine/ranking/pattern.py",  # for RE2, which no expression keeps busy
        "datasets/packing.py",  # for zstd
    },
    "sqlite3": {"engine/models/cache.py"},
    "unicodedata": {
        "engine/text/spelling.py",
        "files/glob.py",
        "clients/launch.py",
        "notes/texts/slugs.py",
    },
    "torch": {f"engine/models/{m}.py" for m in ("library", "packed_bert", "worker")},
    "sentence_transformers": {"engine/models/library.py"},
    "transformers": {"engine/models/library.py"},
    "huggingface_hub": {"engine/models/model.py"},
    "watchdog": {"files/watch.py", "files/inotify.py"},
    "Stemmer": {"engine/prose/stems.py"},
    "bs4": {"files/conversion.py"},
    "mammoth": {"files/conversion.py"},
    "markdown_it": {"page/markup.py"},
    "markdownify": {"files/conversion.py"},
    "pypdfium2": {"files/conversion.py"},
    "pathspec": {"files/glob.py"},
    "re2": {"files/secrets/linear.py"},
    "tree_sitter": {f"engine/chunk/{m}.py" for m in ("syntax", "naming", "exports")},
    "semble_grammars": {"engine/chunk/syntax.py"},
    "fastapi": {"documents/rest.py", "documents/rest_errors.py"},
    "filelock": {
        "indexing/opening/locks.py",
        "indexing/opening/local.py",
        "background/host.py",
        "objects/folder.py",
        "engine/models/cache.py",
        "documents/editing.py",
        "notes/store/turns.py",
        "notes/store/index_lock.py",
    },
    "obstore": {"objects/bucket.py"},
    "psutil": {
        "files/mounts.py",
        "processes/confined.py",
        "processes/memory.py",
        "processes/priority.py",
        "processes/stopping.py",
    },
    "mcp": {
        "codebase/tools.py",
        "documents/tools.py",
        "notes/tools.py",
        "datasets/tools.py",
        "protocol.py",
        "serving/ports.py",
        "serving/server.py",
        "serving/session.py",
        "serving/sets.py",
    },
    "mcp_types": {
        "serving/server.py",
        "codebase/tools.py",
        "documents/tools.py",
        "notes/tools.py",
        "protocol.py",
        "serving/session.py",
    },
    "platformdirs": {"serving/folders.py"},
    "pydantic": {
        "settings.py",
        "protocol.py",
        "serving/server.py",
        "serving/session.py",
        "engine/deferred.py",
        "codebase/hits.py",
        "codebase/wire.py",
        "codebase/arguments.py",
        "codebase/tools.py",
        "documents/arguments.py",
        "documents/rest_models.py",
        "documents/wire.py",
        "documents/tools.py",
    },
    "dotenv": {"settings.py"},
    "rapidfuzz": {"documents/names.py"},
    "rich": {
        "console/progress.py",
        "console/view.py",
        "console/monitor.py",
        "console/documents/watching.py",
        "doctor/examine.py",
        "clients/screen.py",
    },
    "starlette": {"page/routes.py", "documents/rest_errors.py", "datasets/rest.py"},
    "h11": {"serving/guest.py"},
    "httpx2": {"engine/models/openai_api.py"},
    "uvicorn": {"serving/guest.py"},
    "yaml": {"documents/yaml_text.py", "engine/text/front_matter.py"},
}
# What the engine must not speak of: it says what is wrong, and who uses it what to do.
NOT_THE_ENGINES = ("VECTOR_INDEX_", "trigger_index", "get_status", "search_index", PRODUCT)
# LanceDB's functions that read; see `engine/store/reach.to_the_end`.
READS = {"open_table", "to_arrow", "to_batches", "to_list", "to_pandas"}
# Who may catch everything, and how often: a batch must survive one bad file, and a panic inside
# lance is not an Exception.
BROAD_EXCEPTS = {
    "datasets/workshop.py": 1,  # a dataset that cannot be made must not end the others
    "datasets/registry.py": 2,  # nor one that cannot be loaded; the folder is looked at again
    "documents/pulling.py": 1,  # however the wait for git ends, git ends with it
    "background/host.py": 1,  # one client's session must not end those of the others
    "files/conversion.py": 1,  # what libraries raise for broken files
    "indexing/preparing/file.py": 1,
    "indexing/opening/local.py": 1,  # an index that was not opened must not hold its folder
    "indexing/vectors/team.py": 1,  # the service goes on without what a team shares
    "indexing/faults.py": 1,  # a fault of ours is told; what is indexed is searched on
    "doctor/examine.py": 1,  # a check that breaks off must not stop the others
    "engine/models/worker.py": 1,  # a request that cannot be read ends the process
    "engine/models/bert.py": 1,  # what a tokenizer that cannot be read raises
    "engine/models/queries.py": 1,  # what a model's files raise that do not fit together
    "engine/chunk/syntax.py": 1,  # whatever a grammar does, text is still cut by its lines
    "engine/store/faults.py": 1,
    "objects/store.py": 1,  # the error of one of many jobs, raised as it is
    "processes/detached.py": 1,  # raised where the result is asked for
    # Who waits for a change is told, and the next one is served; what has begun is undone.
    "notes/store/writer.py": 5,
    "notes/store/git_index.py": 1,  # the index of people's git is none of our change
    "notes/store/applying.py": 3,
    "notes/store/program.py": 1,
    # A thread or the watching goes on, and tries again.
    "notes/syncing.py": 1,
    "notes/store/staging.py": 1,
    "notes/watching.py": 1,
    # The contract has a code for what nobody foresaw; a store that does not open ends no service.
    # An index that cannot be loaded costs the calls that need it.
    "notes/service.py": 3,
    "serving/lazily.py": 1,
    "documents/service.py": 1,  # an error in following collections must not end the service
}
# The command line reads the settings; the others follow conventions of somebody else.
READS_ENVIRONMENT = {
    "settings.py",  # for variables that are no settings
    "console/ui.py",  # whether there is a screen
    "console/results.py",  # whether its user wants colours
    "console/colours.py",  # likewise
    "__main__.py",  # how many threads numpy has, unless its user says
    "cli.py",  # where the settings file lies
    "console/hosting.py",  # how much the notes log, as their contract says
    "console/datasets/arguments.py",  # the variables of the program whose place it takes
    "console/datasets/making.py",  # where what is exported lies: documents, notes
    "serving/loading.py",  # where a user's documents and their index lie
    "files/repository.py",  # XDG_CONFIG_HOME, as git does
    "processes/children.py",  # passed on to them
    "background/births.py",  # passed on to `ps`
    "processes/git.py",  # passed on to git, without what names another repository
    "background/endpoint.py",  # XDG_RUNTIME_DIR, and what stands in for it
    "background/launching.py",  # passed on to the service
    "objects/bucket.py",  # AWS_ALLOW_HTTP, which obstore forgets, and AWS_PROFILE
    "sharing/place.py",  # what of it shapes how a model is found and computed
    "clients/places.py",  # where each client keeps its configuration
    "engine/store/lean_lancedb.py",  # what lance reads when it is imported
    "doctor/places.py",  # TMPDIR, to tell that another folder is used
}
HEAVY = ["lancedb", "lance", "pyarrow", "torch", "sentence_transformers", "transformers"]
# What a client starts once per session.
FRONT_END = [
    "asked",
    "births",
    "catalogue",
    "connection",
    "contact",
    "endpoint",
    "greeting",
    "launching",
    "messages",
    "refusal",
    "relay",
]


def name_of(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


@functools.cache
def parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(module: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parse(module)))


def broken_by(offences: Callable[[Path], object]) -> dict[str, object]:
    """What `offences` finds wrong with modules, by their names; without those it finds good.

    One test for all modules: a test for each, and there are thousands, costs more than the rule.
    """
    found = {name_of(module): offences(module) for module in MODULES}
    return {name: wrong for name, wrong in found.items() if wrong}


@functools.cache
def imports(module: Path) -> set[str]:
    """Every module name that `module` imports, at top level or inside a function."""
    names: set[str] = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def is_or_is_below(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + ".")


def test_imports_point_down() -> None:
    def upward(module: Path) -> list[str]:
        here = module.relative_to(ROOT).parts[0].removesuffix(".py")
        allowed = below(here) | {here, "__version__"}
        return [name for name in own_imports(module) if name.partition(".")[0] not in allowed]

    assert broken_by(upward) == {}


def test_within_rooms_nobody_imports_what_he_must_not_know() -> None:
    def forbidden(module: Path) -> list[str]:
        unwanted = MUST_NOT_IMPORT.get(name_of(module), ())
        imported = own_imports(module)
        return [name for name in imported if any(is_or_is_below(name, u) for u in unwanted)]

    assert broken_by(forbidden) == {}


def own_imports(module: Path) -> set[str]:
    """What `module` imports of this package, without the package's name."""
    prefix = f"{PACKAGE}."
    return {name.removeprefix(prefix) for name in imports(module) if name.startswith(prefix)}


def below(room: str) -> set[str]:
    """Everything that `room` stands on, directly or not."""
    found: set[str] = set()
    pending = set(STANDS_ON[room])
    while pending:
        found |= pending
        pending = set().union(*(STANDS_ON[each] for each in pending)) - found
    return found


def test_no_room_stands_on_itself() -> None:
    assert {room for room in STANDS_ON if room in below(room)} == set()


def test_every_room_is_there_and_no_other() -> None:
    names = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.name[0] not in ".A"}
    assert names - {"__pycache__", "py.typed"} == STANDS_ON.keys()
    assert len([*ROOT.glob("*.py")]) <= MOST_LOOSE_MODULES


def test_the_rules_within_rooms_name_modules_that_exist() -> None:
    forbidden = (name.replace(".", "/") for names in MUST_NOT_IMPORT.values() for name in names)
    named = {*(name.removesuffix(".py") for name in MUST_NOT_IMPORT), *forbidden}
    assert {
        n for n in named if not (ROOT / n).is_dir() and not (ROOT / f"{n}.py").is_file()
    } == set()


def test_modules_import_each_other_in_no_circle() -> None:
    """Be it inside a function; only what is imported for types alone does not count."""
    graph = {module_name(module): runtime_imports(module) for module in MODULES}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " → ".join((*way[way.index(name) :], name))
        if name not in done:
            for other in graph[name] & graph.keys():
                visit(other, (*way, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def module_name(module: Path) -> str:
    return ".".join(module.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def runtime_imports(module: Path) -> set[str]:
    """The modules of this package that `module` imports, other than for types."""
    for_types = {
        id(inner)
        for node in nodes_of(module)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    nodes = [node for node in nodes_of(module) if isinstance(node, ast.ImportFrom)]
    ours = [n for n in nodes if is_or_is_below(n.module or "", PACKAGE) and id(n) not in for_types]
    names = {f"{node.module}.{alias.name}" for node in ours for alias in node.names}
    return {name if is_module(name) else name.rpartition(".")[0] for name in names}


def is_module(name: str) -> bool:
    path = ROOT.parent / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_folders_within_a_room_import_each_other_in_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        here, names = folder_in_a_room(module_name(module)), runtime_imports(module)
        graph.setdefault(here, set()).update(map(folder_in_a_room, names))
    for folder, others in graph.items():
        others -= {folder, ""}

    assert {*TopologicalSorter(graph).static_order()} >= graph.keys() - {""}


def folder_in_a_room(name: str) -> str:
    """`engine.store` for the modules in that folder; nothing for those of the room itself."""
    parts = name.removeprefix(f"{PACKAGE}.").split(".")[:2]
    return ".".join(parts) if len(parts) == 2 and (ROOT / Path(*parts)).is_dir() else ""


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    modules = Counter(name_of(module.parent) for module in MODULES)
    assert {folder: n for folder, n in modules.items() if n > MOST_MODULES_OF_A_FOLDER} == {}


def test_a_room_says_what_it_must_not_know() -> None:
    silent = [
        room.name
        for room in ROOT.iterdir()
        if (room / "__init__.py").exists()
        and "Must not" not in (ast.get_docstring(parse(room / "__init__.py")) or "")
    ]
    assert silent == []


def test_a_library_is_imported_in_its_home_only() -> None:
    def strangers(module: Path) -> list[str]:
        here = name_of(module)
        homes = {name: HOMES.get(name.partition(".")[0], [""]) for name in imports(module)}
        return [name for name in homes if not any(map(here.startswith, homes[name]))]

    assert broken_by(strangers) == {}


@pytest.mark.parametrize("module", FRONT_END)
def test_the_front_end_needs_the_standard_library_alone(module: str) -> None:
    parts = {name.partition(".")[0] for name in imports(ROOT / "background" / f"{module}.py")}
    assert parts <= sys.stdlib_module_names | {PACKAGE}


def test_every_home_is_lived_in() -> None:
    used = {
        (name.partition(".")[0], name_of(module)) for module in MODULES for name in imports(module)
    }
    deserted = [
        (library, home)
        for library, homes in HOMES.items()
        for home in homes
        if not any(lib == library and module.startswith(home) for lib, module in used)
    ]
    assert deserted == []


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether the handler catches every exception."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(t is None or ast.unparse(t) in {"Exception", "BaseException"} for t in caught)


def test_broad_excepts_are_the_listed_ones() -> None:
    found: dict[str, int] = {}
    for module in MODULES:
        handlers = [n for n in nodes_of(module) if isinstance(n, ast.ExceptHandler)]
        if count := sum(map(is_broad, handlers)):
            found[name_of(module)] = count
    assert found == BROAD_EXCEPTS


def test_a_module_can_be_read_in_one_sitting() -> None:
    lengths = {name_of(m): len(m.read_text(encoding="utf-8").splitlines()) for m in MODULES}
    assert {name: n for name, n in lengths.items() if n > MOST_LINES_OF_A_MODULE} == {}


def own_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without those of the functions it defines."""
    inner = [n for n in ast.iter_child_nodes(function) if isinstance(n, type_of_functions)]
    return extent(function) - sum(map(extent, inner))


type_of_functions = (ast.FunctionDef, ast.AsyncFunctionDef)


def extent(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    return function.end_lineno - first + 1


def test_a_function_can_be_seen_at_once() -> None:
    def long(module: Path) -> dict[str, int]:
        functions = [n for n in nodes_of(module) if isinstance(n, type_of_functions)]
        lengths = {function.name: own_lines(function) for function in functions}
        return {name: n for name, n in lengths.items() if n > MOST_LINES_OF_A_FUNCTION}

    assert broken_by(long) == {}


def cuts_off(node: ast.AST) -> bool:
    """Whether the node awaits a read of a table that ends with whoever waits for it."""
    if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    # Without a filter, a count comes from the table's description.
    return name in READS or (name == "count_rows" and bool(call.args or call.keywords))


def test_what_reads_a_table_is_not_cut_off() -> None:
    def cut_off(module: Path) -> bool:
        return any(cuts_off(node) for node in nodes_of(module))

    # `examine` runs in a process of its own, which ends with it.
    assert broken_by(cut_off).keys() == {"engine/store/foreign.py"}


def test_nothing_is_printed() -> None:
    def prints(module: Path) -> bool:
        return any(isinstance(n, ast.Name) and n.id == "print" for n in nodes_of(module))

    assert broken_by(prints) == {}


def test_the_environment_is_read_in_the_listed_places_only() -> None:
    readers = {
        name_of(module)
        for module in MODULES
        if any(
            (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"})
            or (isinstance(node, ast.alias) and node.name in {"environ", "environb", "getenv"})
            for node in nodes_of(module)
        )
    }
    assert readers == READS_ENVIRONMENT


def test_the_engine_names_no_setting_tool_or_command() -> None:
    def named(module: Path) -> list[str]:
        if module.relative_to(ROOT).parts[0] != "engine":
            return []
        constants = [node.value for node in nodes_of(module) if isinstance(node, ast.Constant)]
        texts = [value for value in constants if isinstance(value, str)]
        return [text for text in texts if any(name in text for name in NOT_THE_ENGINES)]

    assert broken_by(named) == {}


def test_a_module_says_what_it_is_for() -> None:
    assert broken_by(lambda module: ast.get_docstring(parse(module)) is None) == {}


def test_no_two_modules_of_tests_have_one_name() -> None:
    """They are no packages: pytest imports each by its name alone, and one of two not at all."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("*.py"))
    assert [name for name, count in names.items() if count > 1 and name != "conftest.py"] == []


def test_a_folder_with_modules_is_a_package() -> None:
    assert [f for f in {m.parent for m in MODULES} if not (f / "__init__.py").is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("vector_index_mcp", ["pydantic", "mcp", "anyio", "numpy", *HEAVY]),
        ("vector_index_mcp.cli", ["mcp", "anyio", "numpy", "rich", *HEAVY]),
        ("vector_index_mcp.background.relay", ["mcp", "anyio", "pydantic", "psutil", *HEAVY]),
        ("vector_index_mcp.serving.server", ["watchdog", "sqlite3", "rich", "pygments", *HEAVY]),
        ("vector_index_mcp.serving.listener", ["watchdog", "sqlite3", "rich", *HEAVY]),
        ("vector_index_mcp.engine.models.embed", HEAVY),
        ("vector_index_mcp.serving.embedding_server", HEAVY),
        ("vector_index_mcp.codebase.service", ["tree_sitter", "semble_grammars", "torch"]),
        ("vector_index_mcp.console.commands", ["mcp", "anyio", "psutil", "rich", *HEAVY]),
        ("vector_index_mcp.console.output", ["mcp", "anyio", "psutil", "rich", *HEAVY]),
        ("vector_index_mcp.console.documents.commands", ["yaml", "anyio", "pydantic", *HEAVY]),
        ("vector_index_mcp.console.local", ["mcp", "mcp_types", "starlette", "uvicorn"]),
        ("vector_index_mcp.doctor.examine", HEAVY),  # whether lancedb can be imported is a check
    ],
)
def test_importing_is_light(module: str, unwanted: list[str]) -> None:
    code = f"import sys, {module}; print(*(set({unwanted!r}) & set(sys.modules)))"
    assert printed_by(code) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["install", "--help"],
        ["indx"],
        ["search", ".", "x", "--top-k", "0"],
        ["documents", "--help"],
        ["documents", "get"],
    ],
)
def test_help_and_typos_wait_for_nothing(arguments: list[str]) -> None:
    unwanted = ["pydantic", "mcp", "anyio", "numpy", "rich", *HEAVY]
    code = (
        "import contextlib, os, sys\n"
        "from vector_index_mcp import cli\n"
        "with open(os.devnull, 'w') as sink, contextlib.suppress(SystemExit), "
        "contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):\n"
        f"    cli.run({arguments!r})\n"
        f"print('ended', *(set({unwanted!r}) & set(sys.modules)))"
    )
    assert printed_by(code) == ["ended"]
