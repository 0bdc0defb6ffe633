"""A search that the REST service answers, with a service that answers what the contract says."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from vector_index_mcp.console.colours import PLAIN
from vector_index_mcp.console.documents import commands, rest, server
from vector_index_mcp.console.documents.formats import Hit, of_hits
from vector_index_mcp.errors import BackgroundError, SettingsError

WANTED = {"query": "budget", "limit": 5, "min_score": 0.0, "collection": "", "full": False}
ITEM = {
    "docid": "#306409",
    "file": "notes/plan.md",
    "title": "Plan",
    "score": 0.71,
    "context": None,
    "snippet": "2: \n3: The Budget: 5: five\n4: more",
}


@contextmanager
def answering(
    answers: dict[str, tuple[int, Any]], shown: set[Any] | None = None
) -> Iterator[tuple[int, list[Any]]]:
    """The port of a server that answers so, and what it is asked; `shown` gets the tokens."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(*answers[self.path])

        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(*answers[self.path])

        def answer(self, status, body):
            if shown is not None:
                shown.add(self.headers["Authorization"])
            data = json.dumps(body).encode() if not isinstance(body, bytes) else body
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


def test_a_result_is_shown_as_one_of_our_own():
    answers = {"/query": (200, {"results": [ITEM], "content": ""}), "/collections/notes": (200, {})}
    with answering(answers) as (port, asked):
        found = rest.search("query", WANTED | {"collection": "notes"}, port)
    sent = {"query": "budget", "limit": 5, "min_score": 0.0, "collection": "notes"}
    assert asked == [sent | {"detailed": True}]
    shown = of_hits([Hit.of(each) for each in found["results"]], "cli")
    assert shown == (
        "qmd://notes/plan.md:3 #306409\nTitle: Plan\nScore:  71%\n\n"
        "@@ -2,3 @@\n\nThe Budget: 5: five\nmore\n"
    )


def test_a_whole_document_is_asked_for_without_what_is_said_of_it():
    document = {"text": "<!-- Context: a\n\nb -->\n\n# Plan\n"}
    answers = {"/search": (200, {"results": [ITEM]}), "/get": (200, {"document": document})}
    with answering(answers) as (port, asked):
        found = rest.search("search", WANTED | {"full": True, "limit": None}, port)
    assert (asked[0]["limit"], asked[1]) == (1_000, {"file": "notes/plan.md"})
    assert found["results"][0]["body"] == "# Plan\n"


def test_no_vectors_are_no_failure():
    with answering({"/vsearch": (503, {"detail": "Run 'qmd embed'", "status_code": 503})}) as (
        port,
        _,
    ):
        assert rest.search("vsearch", WANTED, port) == {"results": [], "lack": "Run 'qmd embed'"}


@pytest.mark.parametrize("name", ["nope", "a/b ü"])
@pytest.mark.parametrize("command", ["search", "vsearch", "query"])
def test_a_collection_that_is_not_there_is_no_search_that_finds_nothing(name, command):
    answers = {f"/collections/{quote(name, safe='')}": (404, {"detail": "no", "status_code": 404})}
    refused = pytest.raises(SettingsError, match=f"^Collection not found: {name}$")
    with answering(answers) as (port, asked), refused:
        rest.search(command, WANTED | {"collection": name}, port)
    assert asked == []


def test_hits_of_another_version_of_the_service_are_shown_as_far_as_they_are_known():
    hits = [{"header": "@@ -3,1 @@ (2 before, 9 after)", "start": 3, "lines": ["x"], "new": 1}]
    answers = {"/search": (200, {"results": [ITEM], "hits": hits, "note": "a note"})}
    with answering(answers) as (port, _):
        found = rest.search("search", WANTED, port)
    shown = of_hits([Hit.of(each) for each in found["results"]], "cli")
    assert shown.endswith("\n\n@@ -3,1 @@ (2 before, 9 after)\nx\n")
    assert found["note"] == "a note"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((400, {"detail": "limit is wrong", "status_code": 400}), "limit is wrong"),
        ((500, {}), "status 500"),
        ((200, b"<html>"), "no server of documents answers"),
    ],
)
def test_what_the_server_refuses_is_told(answer, said):
    with answering({"/search": answer}) as (port, _), pytest.raises(BackgroundError, match=said):
        rest.search("search", WANTED, port)


@pytest.mark.parametrize(("token", "header"), [("secret", "Bearer secret"), ("", None)])
def test_the_server_is_shown_the_token_of_the_settings(capsys, token, header):
    class Desk:
        colours = PLAIN

        def load_settings(self):
            return SimpleNamespace(http_token=token)

    shown = set()
    answers = {"/search": (200, {"results": []}), "/collections/notes": (200, {})}
    with answering(answers, shown) as (port, _):
        words = ["search", "budget", "--mode", "server", "--port", str(port), "-c", "notes"]
        assert commands.run(words, lambda index: Desk()) == 0
    assert capsys.readouterr() == ("No results found.\n", "")
    assert shown == {header}


def test_the_server_gets_its_arguments_as_they_are(monkeypatch):
    got = []
    monkeypatch.setattr(server, "run", lambda *arguments: got.append(arguments) or 7)

    class Desk:
        home, host_arguments = "home", ["--env-file", "x"]

    assert commands.run(["server", "--port", "1"], lambda index: Desk) == 7
    assert got == [(("--port", "1"), "home", ["--env-file", "x"])]
