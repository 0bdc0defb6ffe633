"""Finds files that git keeps in another form, such as encrypted ones (git-crypt) and those of LFS.

A filter is a program, which is never run here, and no encoding is changed. So such files are left
to git.
"""

from collections.abc import Collection

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.attributes import UNSPECIFIED, attributes
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.history import Tree
from vector_index_mcp.notes.store.settings import Settings, is_true

_FILTER, _ENCODING = "filter", "working-tree-encoding"
_NO_NAMES = frozenset({"set", "unset", UNSPECIFIED, ""})
_NO_OTHER_ENCODING = frozenset({UNSPECIFIED, "", "utf-8", "utf8"})


def filtered(disk: Disk, tree: Tree, paths: Collection[str]) -> dict[str, str]:
    """Return those of the files that git keeps in another form, each with a sentence about it.

    Raises:
        Refusal: If git is not installed, does not end in time, or cannot read its settings.
    """
    told = attributes(disk, tree, (_FILTER, _ENCODING), paths)
    settings, found = tree.repository.settings, dict[str, str]()
    for (path, attribute), value in told.items():
        if attribute == _FILTER and value not in _NO_NAMES and _is_used(settings, value):
            found[path] = _about(
                f"git keeps {path} through a filter, such as that of git-crypt or LFS, which is not"
                " run here"
            )
        elif attribute == _ENCODING and value.lower() not in _NO_OTHER_ENCODING:
            found.setdefault(path, _about(f"git keeps {path} in another encoding ({value})"))
    return found


def _is_used(settings: Settings, name: str) -> bool:
    """Return whether git would change a file with this filter, or refuse to keep it without."""
    has_program = any(settings.get(f"{_FILTER}.{name}.{key}") for key in ("clean", "process"))
    is_required = is_true(settings.get(f"{_FILTER}.{name}.required"))
    return has_program or is_required or settings.may_have_more


def _about(reason: str) -> str:
    return f"{reason}, so the file stays as it is; change and commit it with git"


def check_unfiltered(disk: Disk, tree: Tree, paths: Collection[str]) -> None:
    """Check that git keeps the files as they are.

    Raises:
        Refusal: If git keeps one in another form.
    """
    for path, words in sorted(filtered(disk, tree, paths).items()):
        raise Refusal(Code.GIT_ERROR, words, path=path)
