"""What of a project a person means: all of it, its main text, a document or a to-do list. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vector_index_mcp.errors import SettingsError

MAIN = "main.md"
KNOWLEDGE, TODO = "knowledge", "TODO"
_LIST = "todo"
_ENDING = ".md"
_MOST_DIGITS = 6
_UNUSABLE = frozenset({"", ".", "..", _ENDING})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a project, or all of it."""

    path: str = ""
    """Of the file or folder, below the project's; empty for all."""
    words: str = "all"
    """What it is called."""
    todo: int = 0
    """The number, if it is a to-do list."""

    def holds(self, path: str) -> bool:
        """Whether the file belongs to it."""
        return not self.path or path == self.path or path.startswith(f"{self.path}/")

    def among(self, paths: Iterable[str]) -> bool:
        """Whether one of the files belongs to it."""
        return any(map(self.holds, paths))


ALL = Piece()
MAIN_TEXT = Piece(MAIN, MAIN)


def piece_of(written: Sequence[str]) -> Piece:
    """What the words `written`, which a person wrote behind the project, mean.

    Raises:
        SettingsError: If they mean nothing.
    """
    match written:
        case []:
            return ALL
        case [words] if words.startswith(f"{_LIST} "):  # one argument, as `list` shows it
            return _todo(words.removeprefix(_LIST).strip())
        case [name]:
            return _document(name)
        case [kind, number] if kind == _LIST:
            return _todo(number)
    raise SettingsError(
        "name one document (setup.md) or one to-do list (todo 3) behind the project"
    )


def document(name: str) -> Piece:
    """The document in the file `name`."""
    return Piece(f"{KNOWLEDGE}/{name}", name)


def _todo(number: str) -> Piece:
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    if not is_number or not int(number):
        raise SettingsError(f"{number!r} is no number of a to-do list; write `todo 3`")
    return Piece(f"{TODO}/{int(number)}", f"todo {int(number)}", int(number))


def _document(written: str) -> Piece:
    name = written.removeprefix(f"{KNOWLEDGE}/")
    if not name.endswith(_ENDING):
        name += _ENDING
    # A document may be called like the main text; then its folder tells them apart.
    if name == MAIN and written in {MAIN, MAIN.removesuffix(_ENDING)}:
        return MAIN_TEXT
    if name in _UNUSABLE or "/" in name or "\0" in name:
        raise SettingsError(f"{written!r} is no name of a document; write it as `list` does")
    return document(name)
