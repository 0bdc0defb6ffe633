"""The terminal session in the README is what a terminal shows."""

import re
import shlex
from pathlib import Path

from processes import environment, needs_model, run
from writing import write

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PROGRAM = "vector-index-mcp"
SHOP = {
    "shop/client.py": '''\
import time

import requests


def fetch(url, attempts=5):
    """Get a page of the supplier; wait longer after each failure."""
    for attempt in range(attempts):
        try:
            return requests.get(url, timeout=10).json()
        except requests.ConnectionError:
            time.sleep(0.1 * 2**attempt)
    raise SupplierUnreachable(url)


class SupplierUnreachable(Exception):
    pass
''',
    "shop/cart.py": '''\
class Cart:
    def __init__(self):
        self.lines = []

    def total(self, tax_rate):
        """What is to be paid, tax included."""
        return sum(line.price for line in self.lines) * (1 + tax_rate)
''',
    "tests/test_cart.py": "def test_an_empty_cart_is_free():\n    assert Cart().total(0) == 0\n",
    "README.md": "# The shop\n\nSells what its supplier has.\n",
}


def session():
    """The commands of the session, each with what it prints."""
    [block] = re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == ""
    return list(zip(parts[1::2], parts[2::2], strict=True))


def as_pattern(shown):
    """What is printed for `shown`: "[...]" stands for any lines, or the rest of one."""
    lines = [re.escape(line) + "\n" for line in shown.splitlines()]
    anything = re.escape("[...]")
    pattern = "".join("(?:.*\n)*?" if line == anything + "\n" else line for line in lines)
    figure = r"\d+\\\.\d+(?=\\ s\n|\\\)\n)"  # a time or a score
    return re.sub(figure, r"\\d+[.]\\d+", pattern.replace(anything, ".*"))


def seen(done):
    """What a terminal shows; progress is a bar there."""
    told = [line for line in done.stderr.splitlines(True) if not re.match(r"\w+ing \w+: ", line)]
    return "".join(told) + done.stdout


def test_three_commands_lead_to_the_first_answer():
    assert 1 <= len(session()) <= 3


@needs_model
def test_the_session_is_what_a_terminal_shows(tmp_path):
    project = write(tmp_path / "shop", SHOP)
    variables = environment(tmp_path)
    ran = 0
    for command, shown in session():
        program, *arguments = shlex.split(command)
        if program != PROGRAM:  # we are there already
            continue
        done = run(*arguments, cwd=project, variables=variables)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(as_pattern(shown), seen(done)), seen(done)
        ran += 1
    assert ran == 2
    stopped = run("stop", project, cwd=project, variables=variables)
    assert stopped.stdout.startswith("ended the service of ")
