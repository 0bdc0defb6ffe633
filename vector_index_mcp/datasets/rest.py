"""The HTTP interface of the datasets, the same as that of the original program's console.

Paths, names and texts are the contract's. Requests that a web page must not make are refused before
they get here.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vector_index_mcp.datasets import listing, making, workshop
from vector_index_mcp.datasets.remedies import REMEDIES
from vector_index_mcp.errors import (
    SYSTEM_ERRORS,
    BusyError,
    QueryError,
    SettingsError,
    VectorIndexError,
    sentence,
)

if TYPE_CHECKING:  # the service imports LanceDB
    from vector_index_mcp.datasets.service import Datasets

GetService = Callable[[], Awaitable["Datasets"]]

_WELCOME = """\
The datasets over HTTP.
  GET /api/datasets            list all datasets
  POST /api/datasets           make a dataset: sourcePath, datasetId, name
  DELETE /api/datasets/ID      delete a dataset
  /mcp                         the Model Context Protocol
To see them in a browser, run `vector-index-mcp datasets ui FOLDER`.
"""


def application(get_service: GetService) -> Starlette:
    """Return the ASGI application; `get_service` waits for the running service."""

    async def welcome(_: Request) -> Response:
        return PlainTextResponse(_WELCOME)

    async def list_(_: Request) -> Response:
        return _json({"datasets": await listing.listed(await get_service())})

    async def make(request: Request) -> Response:
        datasets = await get_service()
        order = await _order(await request.body(), allow_broad=datasets.workshop.allow_broad)
        made = await datasets.make(order)
        return _json(making.facts_about(made), 201)

    async def delete(request: Request) -> Response:
        await (await get_service()).delete(request.path_params["id"])
        return Response(status_code=204)

    routes = [
        Route("/", welcome),
        Route("/api/datasets", list_, methods=["GET"]),
        Route("/api/datasets", make, methods=["POST"]),
        Route("/api/datasets/{id}", delete, methods=["DELETE"]),
    ]
    handlers: dict[Any, Any] = dict.fromkeys((QueryError, SettingsError), _refused)
    handlers[BusyError] = _busy
    handlers[HTTPException] = _http
    handlers[Exception] = _unforeseen
    handlers |= dict.fromkeys((VectorIndexError, *SYSTEM_ERRORS), _failed)
    return Starlette(routes=routes, exception_handlers=handlers)


async def _order(body: bytes, *, allow_broad: bool) -> workshop.Order:
    try:
        given = json.loads(body or b"{}")
    except RecursionError as error:
        raise QueryError("the body is no JSON that we read: it is nested too deeply") from error
    except ValueError as error:
        raise QueryError(f"the body is no JSON ({error})") from error
    if not isinstance(given, dict):
        raise QueryError("the body is no JSON object")
    return await anyio.to_thread.run_sync(lambda: workshop.order_of(given, allow_broad=allow_broad))


async def _refused(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 400)


async def _http(_: Request, error: Any) -> Response:
    return _json({"error": error.detail}, error.status_code, error.headers)


async def _unforeseen(_: Request, __: Exception) -> Response:
    return _json({"error": "this is an error of the server; its log says more"}, 500)


async def _busy(_: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 503)


async def _failed(_: Request, error: Exception) -> Response:
    message = REMEDIES.message(error) if isinstance(error, VectorIndexError) else sentence(error)
    return _json({"error": message}, 500)


def _json(values: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    # As ASCII with escapes: file names may contain bytes that are not valid UTF-8.
    return Response(json.dumps(values), status, headers, media_type="application/json")
