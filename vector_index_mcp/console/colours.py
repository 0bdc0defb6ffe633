"""The escape sequences that colour a terminal, and their empty substitutes."""

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colours:
    """Escape sequences for a terminal; each is empty if colours are off."""

    reset: str = ""
    bold: str = ""
    dim: str = ""
    red: str = ""
    green: str = ""
    yellow: str = ""
    cyan: str = ""


PLAIN = Colours()
ON_TERMINAL = Colours(
    reset="\x1b[0m",
    bold="\x1b[1m",
    dim="\x1b[2m",
    red="\x1b[31m",
    green="\x1b[32m",
    yellow="\x1b[33m",
    cyan="\x1b[36m",
)


def of_output() -> Colours:
    """Return the colours for standard output: none if it is no terminal or NO_COLOR is set."""
    is_coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return ON_TERMINAL if is_coloured else PLAIN
