"""Somebody who installs: a home, a project, and the program that they run."""

import os
import subprocess
from pathlib import Path

from processes import environment, run, with_import_hook
from writing import write

VARIABLES_OF_CLIENTS = (
    "APPDATA",
    "CLAUDE_CONFIG_DIR",
    "CLINE_DATA_DIR",
    "CLINE_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "QWEN_HOME",
)
# Ends the program when it writes anywhere but below the folder that is put in.
GUARD = """
import os, sys
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def guard(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and not arguments[2] & WRITES:
        return
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.chown", "os.link"):
        for name in arguments[:2]:
            if isinstance(name, (str, os.PathLike)) and os.path.isabs(name):
                if not os.fspath(name).startswith(({folder!r}, "/dev/")):
                    os.write(2, ("outside: %s %s" % (event, name)).encode())
                    os._exit(99)
sys.addaudithook(guard)
"""


class User:
    """Somebody with a project and a home of their own, on whose machine nothing is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = write(folder / "web", {"app.py": "def main():\n    pass\n"})
        settings = dict.fromkeys(VARIABLES_OF_CLIENTS, "")
        bare = environment(
            folder, PATH=str(folder / "bin"), PYTHONDONTWRITEBYTECODE="1", **settings
        )
        self.home = Path(bare["HOME"])
        self.variables = with_import_hook(
            folder / "hook", GUARD.replace("{folder!r}", repr(str(folder))), bare
        )

    def run(self, *arguments, **options) -> subprocess.CompletedProcess[str]:
        """Run a command in the project's folder."""
        where = {"cwd": self.project, "variables": self.variables}
        return run(*arguments, **where, is_hook_first=False, **options)

    def type(self, keys: str, *arguments) -> subprocess.CompletedProcess[str]:
        """Run a command on a terminal on which `keys` are typed."""
        ours, theirs = os.openpty()
        try:
            os.write(ours, keys.encode())
            return self.run(*arguments, stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)

    def has(self, *folders: str) -> "User":
        """Let the user have the clients that these folders of the home are of."""
        for folder in folders:
            (self.home / folder).mkdir(parents=True)
        return self

    def files(self) -> dict[str, bytes]:
        """Every file of the project and the home."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for root in (self.project, self.home)
            for path in root.rglob("*")
            if path.is_file()
        }
