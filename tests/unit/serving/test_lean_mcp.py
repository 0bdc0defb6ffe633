"""A server does without what only HTTP and clients need, and nobody else misses it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # each imports the SDK in a process of its own

LEFT_OUT = ["mcp.client", "sse_starlette", "starlette", "httpx2", "rich"]
BEGINNING = f"""
import sys
from vector_index_mcp.serving import lean_mcp

def there():
    return [name for name in {LEFT_OUT} if name in sys.modules]

def server():
    from vector_index_mcp.serving import lazily, server, sets
    return server.build_server(sets.named("codebase"), lazily.Lazily(None))

def stand_ins():
    return [
        f"{{name}}.{{key}}"
        for name in list(sys.modules)
        if name.partition(".")[0] == "mcp"
        for key, value in vars(sys.modules[name]).items()
        if isinstance(value, (lean_mcp._Later, lean_mcp._Absent))
    ]

def works():
    import anyio
    from mcp import Client

    async def names():
        async with Client(server()) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    return "search_index" in anyio.run(names)
"""


def ran(code: str) -> list[str]:
    """What `code` prints, in a process of its own."""
    command = [sys.executable, "-c", BEGINNING + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.long
def test_a_server_is_made_without_it() -> None:
    assert ran("lean_mcp.load(); server(); print(*there())") == []


@pytest.mark.long
def test_a_client_is_whole_for_whoever_imports_it() -> None:
    assert ran("lean_mcp.load(); assert works(); print(*there()[:1])") == ["mcp.client"]


def test_a_server_is_whole_once_it_serves_http() -> None:
    code = """
lean_mcp.load()
made = server()
assert stand_ins()
lean_mcp.complete()
from starlette.applications import Starlette
app = made.streamable_http_app(max_sessions=2, session_idle_timeout=9.0)
assert isinstance(app, Starlette) and made.session_manager.max_sessions == 2
print(*stand_ins())
"""
    assert ran(code) == []


def test_one_that_has_been_imported_stays_as_it_is() -> None:
    assert ran("import mcp; lean_mcp.load(); assert mcp.Client; print(*stand_ins())") == []


@pytest.mark.parametrize("broken", ["_Absent.__getattr__", "_Later.__new__"])
def test_one_that_needs_more_than_is_known_gets_everything(broken: str) -> None:
    code = f"""
def lacks(self, name, *_):
    raise AttributeError(name)

lean_mcp.{broken} = lacks
lean_mcp.load()
assert works()
print(*stand_ins())
"""
    assert ran(code) == []


def test_models_that_are_defined_afterwards_make_their_validators_at_once() -> None:
    code = """
import pydantic
usual = pydantic.TypeAdapter.__init__
lean_mcp.load()
assert pydantic.TypeAdapter.__init__ is usual
class Model(pydantic.BaseModel):
    number: int
from mcp_types import InitializeRequest, client_request_adapter
print(Model.__pydantic_complete__, InitializeRequest.__pydantic_complete__)
assert not client_request_adapter.pydantic_complete
assert client_request_adapter.validate_python({"method": "ping"}).method == "ping"
"""
    assert ran(code) == ["True", "False"]
