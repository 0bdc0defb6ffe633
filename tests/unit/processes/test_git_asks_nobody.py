"""Git asks nobody for a password, whatever it has inherited."""

import http.server
import os
import subprocess
import threading
from contextlib import contextmanager

import pytest

from vector_index_mcp.processes.git import lies_before

ONE, OTHER = "a" * 40, "b" * 40


class Locked(http.server.BaseHTTPRequestHandler):
    """Wants a password."""

    def do_GET(self):
        self.server.has_asked.set()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def locked_server():
    with http.server.HTTPServer(("127.0.0.1", 0), Locked) as server:
        server.has_asked = threading.Event()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def of_remote(folder, url):
    """A repository with this remote."""
    for arguments in (("init", "-q", folder), ("-C", folder, "remote", "add", "origin", url)):
        subprocess.run(["git", *arguments], check=True)
    return folder


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named_by", "is_asked"),
    [("GIT_ASKPASS", True), ("SSH_ASKPASS", False), ("core.askPass", False)],
)
def test_a_program_that_asks_people_is_not_run(tmp_path, monkeypatch, named_by, is_asked):
    monkeypatch.delenv("GIT_ASKPASS", raising=False)
    asks = program(tmp_path / "asks", f"touch {tmp_path}/asked; echo x")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    if "." in named_by:
        (tmp_path / "settings").write_text(f"[core]\n\taskPass = {asks}\n", encoding="utf-8")
    else:
        monkeypatch.setenv(named_by, asks)
    with locked_server() as server:
        url = f"http://127.0.0.1:{server.server_port}/x.git"
        assert not lies_before(of_remote(tmp_path / "ours", url), ONE, OTHER)
        assert server.has_asked.is_set()
    assert (tmp_path / "asked").exists() == is_asked


@pytest.mark.slow
def test_ssh_has_nothing_to_ask_with(tmp_path, monkeypatch):
    says = f"echo $SSH_ASKPASS_REQUIRE $(ps -o sid= -p $$) >{tmp_path}/said"
    monkeypatch.setenv("GIT_SSH_COMMAND", program(tmp_path / "ssh", says))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    assert not lies_before(of_remote(tmp_path / "ours", "ssh://host/x.git"), ONE, OTHER)
    how, session = (tmp_path / "said").read_text(encoding="utf-8").split()
    assert how == "never"
    assert int(session) != os.getsid(0)  # without the terminal of ours
