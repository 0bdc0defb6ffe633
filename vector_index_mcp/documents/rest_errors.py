"""The error answers of the REST interface, and their descriptions.

What is wrong with a body is worded here: the libraries' own words are those of a program.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.rest_models import Error
from vector_index_mcp.errors import (
    BusyError,
    EmbeddingError,
    NoVectorsError,
    ProjectError,
    QueryError,
    SettingsError,
    UnknownError,
    VectorIndexError,
)
from vector_index_mcp.protocol import MOST_FAULTS, fault_of

# The first that fits counts. Any other error is a failure of ours or of the machine: status 500.
_STATUSES: tuple[tuple[type[VectorIndexError], int], ...] = (
    (UnknownError, 404),
    (NoVectorsError, 503),
    (BusyError, 503),
    (EmbeddingError, 503),
    (QueryError, 400),
    (SettingsError, 400),
    (ProjectError, 400),
)
_NO_BODY = "the body is missing; send a JSON object"
_NO_OBJECT = "the body must be a JSON object"
_NO_JSON = "the body is not valid JSON"
_INTERNAL = "this is an error of the server; its log says more"
_MEANINGS = {
    400: "The request is invalid.",
    401: "The token is missing or wrong.",
    403: "The request names another host, or comes from a page of another site.",
    404: "There is no such document, collection or context.",
    408: "The body took too long.",
    413: "The body is too long, or has too many texts.",
    415: "The body is not JSON.",
    500: "The server has failed.",
    503: "There are no vectors or no model yet, or too many operations are under way.",
}
_WITHOUT_BODY = (400, 401, 403, 500, 503)
_WITH_BODY = (*_WITHOUT_BODY, 408, 413, 415)


class Refused(Exception):
    """Raised to answer a request with a status and a sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def answers(*more: int, body: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return the error statuses of an endpoint for its OpenAPI description.

    Args:
        more: Statuses that not every endpoint has.
        body: Whether the endpoint takes a body.
    """
    statuses = sorted({*more, *(_WITH_BODY if body else _WITHOUT_BODY)})
    return {status: {"model": Error, "description": _MEANINGS[status]} for status in statuses}


def install(app: FastAPI) -> None:
    """Make `app` answer all errors in the same form."""
    handlers: Mapping[Any, Callable[[Request, Any], Awaitable[JSONResponse]]] = {
        Refused: _refused,
        RequestValidationError: _invalid,
        HTTPException: _http,
        VectorIndexError: _ours,
        Exception: _unforeseen,
    }
    for kind, handle in handlers.items():
        app.add_exception_handler(kind, handle)


async def _refused(_: Request, error: Refused) -> JSONResponse:
    return _answer(error.status, str(error))


async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    problems = [_problem(problem) for problem in error.errors()[:MOST_FAULTS]]
    return _answer(400, "; ".join(problems))


async def _http(_: Request, error: HTTPException) -> JSONResponse:
    # Only a body that is nested too deeply, or no text, has this status.
    detail = _NO_JSON if error.status_code == 400 else error.detail
    return _answer(error.status_code, detail, error.headers)


async def _ours(_: Request, error: VectorIndexError) -> JSONResponse:
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return _answer(status, REMEDIES.message(error))


async def _unforeseen(_: Request, __: Exception) -> JSONResponse:
    return _answer(500, _INTERNAL)


def _answer(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    error = Error(detail=detail, status_code=status)
    return JSONResponse(error.model_dump(), status, headers=headers)


def _problem(problem: MutableMapping[str, Any]) -> str:
    """What is wrong with a request, in words like those about the arguments of MCP's tools."""
    kind = problem["type"]
    place = ".".join(str(part) for part in problem["loc"] if part != "body")
    if kind == "json_invalid":
        return _NO_JSON
    if not place:
        return _NO_BODY if kind == "missing" else _NO_OBJECT
    return fault_of(problem, place)
