"""The package's own rules, as tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "vector_index_mcp"
PACKAGE = ROOT.name
MODULES = sorted(ROOT.rglob("*.py"))
MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 60

# What each part may import of the others. The order is the order of reading. A more exact name
# (a module of `codebase`) goes before its part's.
MAY_IMPORT = {
    "__init__": set(),
    "errors": set(),
    "causes": set(),
    "settings": {"errors"},
    "engine": {"errors"},
    "files": {"errors"},
    "codebase": {"errors", "engine", "files"},
    "background": {"errors", "causes", "__version__"},
    "page": {"errors", "engine", "codebase", "colours"},
    "transport": set(),
    "session": {"transport"},
    "lean_mcp": set(),
    "loading": {"errors", "settings", "engine", "codebase"},
    "server": {
        "errors",
        "settings",
        "engine",
        "codebase",
        "background",
        "page",
        "transport",
        "session",
        "lean_mcp",
        "loading",
        "__version__",
    },
    "terminal": set(),
    "colours": set(),
    "progress": {"codebase"},
    "results": {"codebase.text", "codebase.wire", "colours", "engine.words", "terminal"},
    "output": {"codebase", "engine.types", "results", "terminal"},
    "remote": {"errors", "codebase", "transport", "output", "progress"},
    "view": {"codebase.wire"},
    "monitor": {"errors", "codebase.wire", "background", "remote", "view", "output", "terminal"},
    "local": {"settings", "codebase", "loading", "output", "progress"},
    "doctor": {
        "errors",
        "settings",
        "engine",
        "files",
        "codebase",
        "background",
        "loading",
        "remote",
        "commands",
        "terminal",
        "__version__",
    },
    "commands": {"settings", "background", "remote", "local", "monitor"},
    "services": {"errors", "codebase.project", "background", "terminal"},
    "clients": {"errors", "codebase.project", "files.beneath"},
    "ui": {"errors", "background"},
    "arguments": {"codebase.limits", "__version__"},
    "cli": {
        "arguments",
        "errors",
        "causes",
        "settings",
        "codebase.limits",
        "codebase.project",
        "background",
        "transport",
        "lean_mcp",
        "loading",
        "server",
        "commands",
        "services",
        "clients",
        "doctor",
        "terminal",
        "ui",
        "__version__",
    },
    "__main__": {"cli"},
}
# Third-party modules, and what of the standard library deserves it, that have one home each.
HOMES = {
    "lancedb": {"engine/store/"},
    "pyarrow": {"engine/store/"},
    "sqlite3": {"engine/cache.py"},
    "unicodedata": {"engine/spelling.py", "files/glob.py", "clients/launch.py"},
    "torch": {"engine/worker.py"},
    "sentence_transformers": {"engine/worker.py"},
    "transformers": {"engine/worker.py"},
    "huggingface_hub": {"engine/model.py"},
    "watchdog": {"files/watch.py", "files/inotify.py"},
    "pathspec": {"files/glob.py"},
    "re2": {"files/secrets/linear.py"},
    "tree_sitter": {"engine/chunk/syntax.py"},
    "semble_grammars": {"engine/chunk/syntax.py"},
    "filelock": {"indexing/opening.py", "background/host.py", "engine/cache.py"},
    "psutil": {
        "indexing/preparing/child.py",
        "codebase/wire.py",
        "doctor/",
        "processes/confined.py",
        "processes/priority.py",
        "server.py",
    },
    "mcp": {
        "codebase/tools.py",
        "server.py",
        "session.py",
        "transport.py",
        "remote.py",
        "lean_mcp.py",
    },
    "mcp_types": {"codebase/tools.py", "session.py", "remote.py"},
    "platformdirs": {"loading.py"},
    "pydantic": {"settings.py", "session.py", "codebase/wire.py", "codebase/tools.py"},
    "pydantic_settings": {"settings.py"},
    "rich": {
        "progress.py",
        "results.py",
        "view.py",
        "monitor.py",
        "doctor/examine.py",
        "clients/screen.py",
    },
    "starlette": {"page/routes.py"},
    "uvicorn": {"page/listener.py"},
}
# Who may catch everything, and how often: a batch must survive one bad file, and a panic inside
# lance is not an Exception.
BROAD_EXCEPTS = {
    "background/host.py": 1,  # one client's session must not end those of the others
    "indexing/preparing/file.py": 1,
    "doctor/examine.py": 1,  # a check that breaks off must not stop the others
    "engine/chunk/syntax.py": 1,  # whatever a grammar does, text is still cut by its lines
    "engine/store/faults.py": 1,
}
# The command line reads the settings; the others follow conventions of somebody else.
READS_ENVIRONMENT = {
    "ui.py",  # whether there is a screen
    "cli.py",  # where the settings file lies
    "files/repository.py",  # XDG_CONFIG_HOME, as git does
    "engine/embed.py",  # passed on to the worker
    "background/endpoint.py",  # XDG_RUNTIME_DIR, and what stands in for it
    "background/relay.py",  # passed on to the service
    "clients/places.py",  # where each client keeps its configuration
    "engine/store/lean_lancedb.py",  # what lance reads when it is imported
}
HEAVY = ["lancedb", "lance", "pyarrow", "torch", "sentence_transformers", "transformers"]
# What a client starts once per session.
FRONT_END = ["greeting", "endpoint", "relay", "refusal"]

every_module = pytest.mark.parametrize(
    "module", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix()
)


def name_of(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


def parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def imports(module: Path) -> set[str]:
    """Every module name that `module` imports, at top level or inside a function."""
    names: set[str] = set()
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def is_or_is_below(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + ".")


@every_module
def test_imports_point_down(module: Path) -> None:
    here = module.relative_to(ROOT).parts[0].removesuffix(".py")
    for name in imports(module):
        if not is_or_is_below(name, PACKAGE):
            continue
        imported = name.removeprefix(PACKAGE).removeprefix(".")
        allowed = MAY_IMPORT[here] | ({here} if here != "__init__" else set())
        assert any(is_or_is_below(imported, part) for part in allowed), f"{here} imports {name}"


@every_module
def test_a_library_is_imported_in_its_home_only(module: Path) -> None:
    for name in imports(module):
        homes = HOMES.get(name.partition(".")[0])
        if homes is not None:
            assert any(name_of(module).startswith(home) for home in homes), (
                f"{name} outside {homes}"
            )


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
        handlers = [n for n in ast.walk(parse(module)) if isinstance(n, ast.ExceptHandler)]
        if count := sum(map(is_broad, handlers)):
            found[name_of(module)] = count
    assert found == BROAD_EXCEPTS


@every_module
def test_a_module_can_be_read_in_one_sitting(module: Path) -> None:
    lines = len(module.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES_OF_A_MODULE


def own_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without those of the functions it defines."""
    inner = [n for n in ast.iter_child_nodes(function) if isinstance(n, type_of_functions)]
    return extent(function) - sum(map(extent, inner))


type_of_functions = (ast.FunctionDef, ast.AsyncFunctionDef)


def extent(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    return function.end_lineno - first + 1


@every_module
def test_a_function_can_be_seen_at_once(module: Path) -> None:
    functions = [n for n in ast.walk(parse(module)) if isinstance(n, type_of_functions)]
    long = {f.name: own_lines(f) for f in functions if own_lines(f) > MOST_LINES_OF_A_FUNCTION}
    assert long == {}


@every_module
def test_nothing_is_printed(module: Path) -> None:
    names = {node.id for node in ast.walk(parse(module)) if isinstance(node, ast.Name)}
    assert "print" not in names


def test_the_environment_is_read_in_the_listed_places_only() -> None:
    readers = {
        name_of(module)
        for module in MODULES
        if any(
            (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"})
            or (isinstance(node, ast.alias) and node.name in {"environ", "environb", "getenv"})
            for node in ast.walk(parse(module))
        )
    }
    assert readers == READS_ENVIRONMENT


@every_module
def test_a_module_says_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(parse(module))


@pytest.mark.parametrize("folder", [p for p in [ROOT, *ROOT.rglob("*")] if p.is_dir()], ids=str)
def test_a_folder_with_modules_is_a_package(folder: Path) -> None:
    if any(folder.glob("*.py")):
        assert (folder / "__init__.py").is_file()


def printed_by(code: str) -> list[str]:
    """The words that `code` prints in a process of its own."""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("vector_index_mcp", ["pydantic", "mcp", "anyio", "numpy", *HEAVY]),
        ("vector_index_mcp.cli", ["mcp", "anyio", "numpy", "rich", *HEAVY]),
        ("vector_index_mcp.background.relay", ["mcp", "anyio", "pydantic", "psutil", *HEAVY]),
        ("vector_index_mcp.server", ["watchdog", "sqlite3", "rich", "pygments", *HEAVY]),
        ("vector_index_mcp.page.listener", ["watchdog", "sqlite3", "rich", *HEAVY]),
        ("vector_index_mcp.engine.embed", HEAVY),
        ("vector_index_mcp.codebase.service", ["tree_sitter", "semble_grammars", "torch"]),
        ("vector_index_mcp.remote", HEAVY),
        ("vector_index_mcp.local", ["mcp", "mcp_types", "starlette", "uvicorn"]),
        ("vector_index_mcp.doctor.examine", HEAVY),  # whether lancedb can be imported is a check
    ],
)
def test_importing_is_light(module: str, unwanted: list[str]) -> None:
    code = f"import sys, {module}; print(*(set({unwanted!r}) & set(sys.modules)))"
    assert printed_by(code) == []


def test_a_server_leaves_out_what_it_never_uses_and_nobody_else_misses_it() -> None:
    code = (
        "import sys; from vector_index_mcp import lean_mcp; lean_mcp.load()\n"
        "import vector_index_mcp.server\n"
        "print(*({'cryptography', 'sse_starlette', 'uvicorn'} & set(sys.modules)))\n"
        "import cryptography.exceptions, cryptography.hazmat.primitives.ciphers.aead as aead\n"
        "assert aead.AESGCM.generate_key(256)\n"
        "from sse_starlette import EventSourceResponse\n"
        "assert EventSourceResponse.__module__ == 'sse_starlette.sse'\n"
    )
    assert printed_by(code) == []


def test_an_index_leaves_out_what_it_never_uses_and_nobody_else_misses_it() -> None:
    code = (
        "import sys, vector_index_mcp.engine.store\n"
        "left_out = {'overrides', 'pyarrow._s3fs', 'lance_namespace_urllib3_client.api_client'}\n"
        "print(*(name for name in left_out if sys.modules.get(name)))\n"
        "from lance_namespace_urllib3_client.models import CreateTableRequest\n"
        "assert CreateTableRequest(id=['a']).to_dict()['id'] == ['a']\n"
    )
    assert printed_by(code) == []


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param("lean_mcp._UNUSED['cryptography.exceptions'] = ()", id="a name"),
        pytest.param("lean_mcp._UNUSED['sse_starlette'] = ('Other',)", id="another name"),
        pytest.param(
            "lean_mcp._UNUSED['starlette.responses'] = ('Response',)", id="what a class can do"
        ),
    ],
)
def test_an_mcp_that_needs_more_than_is_known_is_imported_whole(unknown: str) -> None:
    code = (
        "from vector_index_mcp import lean_mcp\n"
        f"{unknown}\n"
        "lean_mcp.load()\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "from mcp.server.request_state import InvalidTag\n"
        "assert InvalidTag.__module__ == 'cryptography.exceptions'\n"
        "from mcp.server.sse import EventSourceResponse\n"
        "assert EventSourceResponse.__module__ == 'sse_starlette.sse'\n"
        "MCPServer('whole')\n"
    )
    assert printed_by(code) == []
