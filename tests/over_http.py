"""What a tool set serves at a real port, as the service opens one, and a client of it."""

import json
from contextlib import asynccontextmanager

import anyio
import httpx
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.serving import sets
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.ports import Ports
from vector_index_mcp.serving.server import build_server


@asynccontextmanager
async def ports_of(served, tool_set=sets.DOCUMENTS):
    """The ports of what a tool set serves, which runs meanwhile."""

    async def load():
        return served

    service = Lazily(load)
    named = sets.named(tool_set)
    ports = Ports(named, build_server(named, service), service)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        tasks.start_soon(ports.run)
        await anyio.wait_all_tasks_blocked()
        yield ports
        tasks.cancel_scope.cancel()


def wish(**values):
    return {"host": "127.0.0.1", "port": 0, "token": ""} | values


@asynccontextmanager
async def client_of(served, headers=None, tool_set=sets.DOCUMENTS, **values):
    """An HTTP client of a port of what a tool set serves, both open meanwhile."""
    async with (
        ports_of(served, tool_set) as ports,
        ports.opened(wish(**values)) as told,
        client_at(told["port"], headers) as client,
    ):
        yield client


def client_at(port, headers=None):
    return httpx.AsyncClient(
        verify=False,  # else, each client reads the certificates of all authorities
        base_url=f"http://127.0.0.1:{port}",
        headers=headers,
        timeout=PATIENCE_SECONDS,
    )


async def post(client, path, /, **values):
    """What is answered to a request that is expected to succeed."""
    response = await client.post(path, json=values)
    assert response.status_code == 200, response.text
    return response.json()


async def read(client, path):
    """The same, for a request that only reads."""
    response = await client.get(path)
    assert response.status_code == 200, response.text
    return response.json()


def detail(response, status):
    """Why a request was refused, in the one form that all errors have."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == {"detail", "status_code"}
    assert body["status_code"] == status
    return body["detail"]


async def spoken(port, *data):
    """What a client is answered that sends bytes of its own making, until the server ends it."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        for part in data:
            await stream.send(part)
        answer = b""
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                try:
                    answer += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return answer


async def trickled(stream):
    """Send bytes, one by one, until the server ends the connection."""

    async def is_ended():
        try:
            await stream.send(b" ")
        except anyio.BrokenResourceError:
            return True
        return False

    await eventually(is_ended)


def request(method, path, port, body=b"", **headers):
    """A request as bytes that closes its connection, with headers as given."""
    given = {"host": f"127.0.0.1:{port}", "connection": "close"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in given.items() if v is not None)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def as_json(values):
    return json.dumps(values).encode()
