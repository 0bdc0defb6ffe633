"""A server with the API of S3 for tests: moto, in a process of its own."""

import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# On a port that the system chooses; moto says nothing until it listens.
_SERVER = """
import logging, sys, threading
logging.disable()
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class BucketServer:
    """A server of buckets; any key is right."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead a program to it."""
        return variables(self.port)

    def new_bucket(self) -> str:
        """The URI of a new, empty bucket."""
        name = f"b{uuid.uuid4().hex}"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return f"s3://{name}"


def variables(port: int) -> dict[str, str]:
    """The variables that lead a program to a server on this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "a-secret-of-a-test",
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """A server of buckets in memory; it ends with the context."""
    command = [sys.executable, "-c", _SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            yield BucketServer(int(process.stdout.readline()), process.pid)
        finally:
            process.kill()
