"""A server with the API of S3 for tests: moto, in a process of its own, or one that runs already.

BUCKETS_PORT names the port of such a one on this machine, BUCKETS_KEY and BUCKETS_SECRET its key.
"""

import os
import subprocess
import sys
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
        import boto3  # heavy, and needed only now

        name = f"b{uuid.uuid4().hex}"
        key, secret = (self.environment[f"AWS_{n}"] for n in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
        client = boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=name)
        return f"s3://{name}"


def variables(port: int) -> dict[str, str]:
    """The variables that lead a program to a server on this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": os.environ.get("BUCKETS_KEY", "somebody"),
        "AWS_SECRET_ACCESS_KEY": os.environ.get("BUCKETS_SECRET", "a-secret-of-a-test"),
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """A server of buckets in memory, which ends with the context; or the one that runs already."""
    if running := os.environ.get("BUCKETS_PORT"):
        yield BucketServer(int(running), 0)
        return
    command = [sys.executable, "-c", _SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            yield BucketServer(int(process.stdout.readline()), process.pid)
        finally:
            process.kill()
