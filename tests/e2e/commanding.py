"""The documents' command line, over two collections in a place of its own."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from greeting import INITIALIZE
from processes import COMMAND, Place, run

CONFIGURATION = """\
global_context: Global ctx
collections:
  docs:
    path: {project}/docs
    pattern: "**/*.md"
    context:
      meetings: Meeting notes and transcripts
  notes:
    path: {project}/notes
    pattern: "**/*.md"
"""


class Qmd:
    """The program, over one configuration."""

    def __init__(self, place: Place) -> None:
        self.place = place
        configuration = place.folder / "configuration"
        configuration.mkdir()
        text = CONFIGURATION.format(project=place.project)
        (configuration / "index.yml").write_text(text, encoding="utf-8")
        place.variables["QMD_CONFIG_DIR"] = str(configuration)
        place.variables["INDEX_PATH"] = str(place.folder / "index.sqlite")

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        here = self.place.project
        return run("documents", *arguments, cwd=here, variables=self.place.variables)

    def succeeds(self, *arguments: str) -> str:
        done = self(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    @contextmanager
    def served(self) -> Iterator[None]:
        """The time in which an MCP client is there, and so a service."""
        with subprocess.Popen(
            [*COMMAND, "documents", "mcp"],
            cwd=self.place.project,
            env=self.place.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            try:
                client.stdin.write(json.dumps(INITIALIZE) + "\n")
                client.stdin.flush()
                assert json.loads(client.stdout.readline())["result"]["serverInfo"]["name"] == "qmd"
                yield
            finally:
                client.kill()
