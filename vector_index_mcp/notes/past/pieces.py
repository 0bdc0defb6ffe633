"""Parses which part of a project a person means: all, main text, document or to-do list. Pure."""

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
    """The path of the file or folder, below the project's; empty for the whole project."""
    words: str = "all"
    """The name for people."""
    todo: int = 0
    """The number, if it is a to-do list; otherwise 0."""

    def holds(self, path: str) -> bool:
        """Return whether the file belongs to this piece."""
        return not self.path or path == self.path or path.startswith(f"{self.path}/")

    def among(self, paths: Iterable[str]) -> bool:
        """Return whether any of the files belongs to this piece."""
        return any(map(self.holds, paths))


ALL = Piece()
MAIN_TEXT = Piece(MAIN, MAIN)


def piece_of(written: Sequence[str]) -> Piece:
    """Parse the words that a person wrote after the project's name.

    Raises:
        SettingsError: If they name nothing that a project can have.
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
        "after the project, name one document (setup.md) or one to-do list (todo 3)"
    )


def document(name: str) -> Piece:
    """Return the piece for the document in the file `name`."""
    return Piece(f"{KNOWLEDGE}/{name}", name)


def _todo(number: str) -> Piece:
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    if not is_number or not int(number):
        raise SettingsError(f"{number!r} is not a to-do list's number; write for example `todo 3`")
    return Piece(f"{TODO}/{int(number)}", f"todo {int(number)}", int(number))


def _document(written: str) -> Piece:
    name = written.removeprefix(f"{KNOWLEDGE}/")
    if not name.endswith(_ENDING):
        name += _ENDING
    # A document may be called main.md, too; it is meant if the person also writes its folder.
    if name == MAIN and written in {MAIN, MAIN.removesuffix(_ENDING)}:
        return MAIN_TEXT
    if name in _UNUSABLE or "/" in name or "\0" in name:
        raise SettingsError(
            f"{written!r} is not a document's name; write it as `vector-index-mcp notes list` does"
        )
    return document(name)
