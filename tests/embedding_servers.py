"""A server with OpenAI's API for embeddings, as tests need it: real HTTP, and no real model."""

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from fakes import vector_of


class EmbeddingServer(ThreadingHTTPServer):
    """Embeds with the fake model `seed`, and answers in reverse order.

    Attributes that tests set: `script`, what it answers to the next requests instead, each a
    function of the answer it would give that returns a status, headers and bytes; `noise`, what it
    adds to every number; `takes_base64`; `name`, what it calls its model.
    """

    daemon_threads = False  # so that closing waits for the last answers

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.seed, self.dimension, self.noise = "small", 64, 0.0
        self.name = "small"
        self.key = "geheim"
        self.takes_base64 = True
        self.meanings = {}
        """What a text is taken for."""
        self.script = []
        self.asked = []
        """The texts of every request."""
        self.heads = []
        self.paths = []
        self.released = threading.Event()
        self.released.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def embedding_of(self, text, encoding):
        numbers = (
            np.array(vector_of(self.meanings.get(text, text), self.seed, self.dimension)) * 3
            + self.noise
        )
        if encoding == "base64":
            return base64.b64encode(numbers.astype("<f4").tobytes()).decode()
        return numbers.tolist()

    def answer_to(self, body):
        if body["encoding_format"] == "base64" and not self.takes_base64:
            return None
        rows = [
            {"index": index, "embedding": self.embedding_of(text, body["encoding_format"])}
            for index, text in enumerate(body["input"])
        ]
        return {"object": "list", "data": rows[::-1], "model": self.name}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.paths.append(self.path)
        server.heads.append(dict(self.headers))
        server.asked.append(body["input"])
        server.released.wait(20)
        status, headers, data = self._reply(body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _reply(self, body):
        server = self.server
        if server.script:
            return server.script.pop(0)(server.answer_to(body))
        if self.headers.get("Authorization") != f"Bearer {server.key}":
            return refused(401)(body)
        answer = server.answer_to(body)
        return changed(lambda _: None)(answer) if answer else refused(400)(body)

    def log_message(self, *_):
        pass


def refused(status, **headers):
    """An answer with this status, which quotes what it was asked, as some servers do."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda answer: (status, told, json.dumps({"detail": answer}).encode())


def changed(change):
    """The right answer, but for what `change` does to it."""

    def reply(answer):
        change(answer)
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

    return reply


def said(data, **headers):
    """These bytes."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (200, told, data)


def served(port=0):
    """A server that runs meanwhile."""
    return running(EmbeddingServer(port))


@contextmanager
def running(server):
    """Have a server with an event `released` run meanwhile."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
