"""`search --mode server`: asks the REST service for a search. Uses the standard library only.

Our service adds to its results what the command line prints of them (`detailed`). For a server that
does not, the numbered lines of its results are taken.
"""

import http.client
import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from vector_index_mcp.errors import BackgroundError, SettingsError

DEFAULT_PORT = 18_765
_HOST = "127.0.0.1"
_SECONDS = 120.0  # the service may have to load the model first
_MOST_RESULTS = 1_000
_NOT_READY, _NOT_FOUND = 503, 404
_NUMBERED = re.compile(r"(\d+): (.*)", re.DOTALL)
_COMMENTS = ("<!-- Context: ", "<!-- Links to: ", "<!-- Linked from: ")
_END_OF_COMMENT = " -->\n\n"


def search(
    command: str, wanted: Mapping[str, Any], port: int | None, token: str = ""
) -> dict[str, Any]:
    """Search by REST; return an answer like that of the same call in `documents.calls`.

    Args:
        command: `search`, `vsearch` or `query`.
        wanted: The arguments of the call.
        port: The port of the service; None for the default port.
        token: The token that the service wants to see, if any.

    Raises:
        BackgroundError: If no service answers, or it answers with an error.
        SettingsError: If there is no such collection.
    """
    body = {
        "query": wanted["query"],
        "limit": wanted["limit"] or _MOST_RESULTS,
        "min_score": wanted["min_score"],
        "detailed": True,
    }
    ask = partial(_asked, DEFAULT_PORT if port is None else port, token)
    if name := wanted["collection"]:  # a search in one that is not there would only find nothing
        if ask("GET", f"/collections/{quote(name, safe='')}")[0] == _NOT_FOUND:
            raise SettingsError(f"Collection not found: {name}")
        body["collection"] = name
    status, answer = ask("POST", f"/{command}", body)
    if status == _NOT_READY and command == "vsearch":
        return {"results": [], "lack": _detail(status, answer)}
    hits = _hits(_checked(status, answer), wanted["query"])
    if wanted["full"]:
        for hit in hits:
            got = _checked(*ask("POST", "/get", {"file": hit["key"]}))
            hit["body"] = _without_comments(str(got["document"]["text"]))
    return {"results": hits, "lack": "", "note": answer.get("note") or ""}


def _without_comments(text: str) -> str:
    """Return a document without the comments with its context and links that REST puts first."""
    for start in (_COMMENTS[:1], _COMMENTS[1:]):
        if text.startswith(start):
            text = text.partition(_END_OF_COMMENT)[2]
    return text


def _asked(
    port: int, token: str, method: str, path: str, body: Mapping[str, Any] | None = None
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = http.client.HTTPConnection(_HOST, port, timeout=_SECONDS)
    try:
        if body is None:
            connection.request(method, path, headers=headers)
        else:
            headers["Content-Type"] = "application/json"
            connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise BackgroundError(
            f"no server of documents answers at http://{_HOST}:{port}; start it with "
            "'qmd server --transport http', or search without '--mode server'"
        ) from error
    finally:
        connection.close()


def _checked(status: int, answer: Any) -> dict[str, Any]:
    if status != http.client.OK or not isinstance(answer, dict):
        raise BackgroundError(_detail(status, answer))
    return answer


def _detail(status: int, answer: Any) -> str:
    detail = answer.get("detail") if isinstance(answer, dict) else None
    return str(detail or f"the server of documents answered with HTTP status {status}")


def _hits(answer: Mapping[str, Any], query: str) -> list[dict[str, Any]]:
    """Return the results of a search as `documents.calls` has them."""
    hits = [_hit(item, query) for item in answer.get("results", [])]
    detailed = answer.get("hits")
    if not isinstance(detailed, list) or len(detailed) != len(hits):
        return hits
    return [
        {name: known.get(name, value) for name, value in hit.items()}
        for hit, known in zip(hits, detailed, strict=True)
    ]


def _hit(item: Mapping[str, Any], query: str) -> dict[str, Any]:
    """Return a result of the contract, which has the lines only with their numbers."""
    numbered = [_NUMBERED.fullmatch(line) for line in str(item["snippet"]).split("\n")]
    lines = [found[2] for found in numbered if found]
    start = next((int(found[1]) for found in numbered if found), 1)
    words = query.casefold().split()
    with_words = [at for at, line in enumerate(lines) if any(w in line.casefold() for w in words)]
    return {
        "docid": str(item["docid"]),
        "key": str(item["file"]),
        "title": str(item["title"]),
        "score": float(item["score"]),
        "context": str(item.get("context") or ""),
        "line": start + (with_words[0] if with_words else 0),
        "has_words": bool(with_words),
        "header": f"@@ -{start},{len(lines)} @@",
        "start": start,
        "lines": lines,
        "body": None,
    }
