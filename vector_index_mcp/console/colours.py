"""The colours of a terminal, or none. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colours:
    """What a terminal obeys; each is empty where there is no terminal."""

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
