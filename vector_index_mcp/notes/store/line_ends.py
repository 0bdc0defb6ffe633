"""Decides which text git keeps of a file with CRLF or `$Id$`, and with which ends one is written.

git itself converts nothing here: its filters would run programs of the store's choice. It only
tells what `core.autocrlf` and the attributes `text` and `eol` say. If they say nothing, a file
whose line ends are all CRLF, but LF in the history, was converted by somebody else's git.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store.attributes import UNSPECIFIED, attributes
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.history import Tree, contents, id_of

_SETTING = "core.autocrlf"
_CONVERTS = frozenset({"true", "yes", "on", "1", "input"})
# What git reads from the attribute `text`, or its old name `crlf`; another value says nothing.
_RULES = {"set": "set", "input": "set", "unset": "unset", "auto": "auto"}
_IDENT = re.compile(rb"\$Id:[^$\n]*\$")
# What git takes for binary has more than one of these bytes in 128 others (`convert_is_binary`).
_UNPRINTABLE = bytes({*range(32), 127} - {*b"\b\t\n\x0c\r\x1b"})
_END_OF_FILE = b"\x1a"  # of DOS, at the very end


def plain(data: bytes) -> bytes:
    """Return a text with LF for each CRLF, as git does; other content, such as binary, as it is."""
    if b"\r\n" not in data:
        return data
    found = data.replace(b"\r\n", b"\n")
    return data if b"\r" in found or _is_binary(found) else found


def _is_binary(data: bytes) -> bool:
    text = data.removesuffix(_END_OF_FILE)
    printable = text.translate(None, _UNPRINTABLE)
    count = len(printable) - printable.count(b"\n")
    return b"\0" in data or count >> 7 < len(text) - len(printable)


def has_only_crlf(data: bytes) -> bool:
    """Return whether a text has line ends, and all of them are CRLF."""
    return plain(data) != data and data.count(b"\r\n") == data.count(b"\n")


def with_crlf(data: bytes) -> bytes:
    """Return a text with CRLF for each line end; other content as it is."""
    found = data.replace(b"\r\n", b"\n")
    return data if b"\r" in found or _is_binary(found) else found.replace(b"\n", b"\r\n")


@dataclass(frozen=True, slots=True)
class Placed:
    """The files of a change, by path."""

    on_disk: dict[str, bytes]
    """The contents to write to the disk."""
    kept: dict[str, bytes]
    """The contents for the history."""


@dataclass(frozen=True, slots=True)
class LineEnds:
    """Decides about the line ends of one store. The methods block."""

    disk: Disk

    def kept(
        self, tree: Tree, files: Mapping[str, bytes], known: Mapping[str, bytes] | None = None
    ) -> dict[str, bytes]:
        """Return what git would keep of files, by path.

        Args:
            tree: The files of the last commit.
            files: The contents of files on the disk, by path.
            known: Contents of files in the history, by path; others are read if need be.

        Raises:
            Refusal: If git is not installed, or does not end in time.
        """
        having = {path: data for path, data in files.items() if b"\r\n" in data}
        found = {**files, **(self._with_ends(tree, having, known) if having else {})}
        return {**found, **self._without_ids(tree, found)}

    def _without_ids(self, tree: Tree, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the files in which git keeps `$Id$` for what it writes there (`ident`)."""
        having = [path for path, data in files.items() if _IDENT.search(data)]
        told = attributes(self.disk, tree, ("ident",), having)
        marked = (path for (path, _), value in told.items() if value == "set")
        return {path: _IDENT.sub(b"$Id$", files[path]) for path in marked}

    def _with_ends(
        self, tree: Tree, having: Mapping[str, bytes], known: Mapping[str, bytes] | None
    ) -> dict[str, bytes]:
        texts = ((path, plain(data)) for path, data in having.items())
        old = {path: text for path, text in texts if id_of(text) == tree.id_of(path)}
        old |= known or {}
        old |= self._old(tree, having.keys() - old.keys())
        rules = self._rules(tree, having, old)
        return {p: _kept(d, old.get(p), rules[p]) for p, d in having.items()}

    def _old(self, tree: Tree, paths: set[str]) -> dict[str, bytes]:
        names = {path: name for path in paths if (name := tree.id_of(path))}
        try:
            found = contents(tree.repository, list(names.values()))
        except Refusal:  # a damaged history is reported elsewhere
            return {}
        return {path: found[name] for path, name in names.items()}

    def _rules(
        self, tree: Tree, files: Mapping[str, bytes], old: Mapping[str, bytes]
    ) -> dict[str, str]:
        """Return "set", "unset", "auto" or "unspecified" by path, as git would apply it."""
        names, rules = ("text", "crlf", "eol"), dict[str, str]()
        told = attributes(self.disk, tree, names, files)
        for path in files:
            text, crlf, end = (told.get((path, name), UNSPECIFIED) for name in names)
            rule = _RULES.get(text) or _RULES.get(crlf, UNSPECIFIED)
            rules[path] = "set" if rule == UNSPECIFIED and end in {"lf", "crlf"} else rule
        # Of most files, the history tells the same as the setting would, which costs two processes.
        undecided = [
            path
            for path, rule in rules.items()
            if rule == UNSPECIFIED
            and len({_kept(files[path], old.get(path), each) for each in (UNSPECIFIED, "auto")}) > 1
        ]
        if undecided and self._setting(tree) in _CONVERTS:
            rules |= dict.fromkeys(undecided, "auto")
        return rules

    def _setting(self, tree: Tree) -> str:
        try:
            return tree.repository.settings.get(_SETTING).strip().lower()
        except Refusal:  # git does nothing else for this user, either, until they are mended
            return ""

    def placed(self, tree: Tree, puts: Mapping[str, bytes]) -> Placed:
        """Return new contents of files with the line ends of the files that they replace.

        Args:
            tree: The files of the last commit; those on the disk do not differ from it.
            puts: The new contents by path.

        Raises:
            Refusal: If a file cannot be read.
        """
        on_disk, known = dict(puts), {}
        for path, data in puts.items():
            present = self._present(path)
            if present is None or not has_only_crlf(present):
                continue
            on_disk[path] = with_crlf(data)
            text = plain(present)
            known[path] = text if id_of(text) == tree.id_of(path) else present
        return Placed(on_disk, self.kept(tree, on_disk, known))

    def _present(self, path: str) -> bytes | None:
        # What is there may also be a link, or a folder that becomes a file.
        return self.disk.read(path) if self.disk.is_file(path) else None

    def as_checked_out(self, tree: Tree, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return contents of the history as they are written to the disk.

        A file gets CRLF if git has given CRLF to the one that it replaces.

        Args:
            tree: The files of the last commit.
            files: The contents by path.

        Raises:
            Refusal: If a file cannot be read.
        """
        found = dict(files)
        for path, data in files.items():
            present = self._present(path)
            if present is not None and has_only_crlf(present):
                is_converted = id_of(plain(present)) == tree.id_of(path)
                found[path] = with_crlf(data) if is_converted else data
        return found


def _kept(data: bytes, old: bytes | None, rule: str) -> bytes:
    """Return what git keeps of a content in place of the content `old`; None if that is new."""
    if rule == "set":  # whatever it looks like
        return data.replace(b"\r\n", b"\n")
    # git leaves a file alone that has CRLF in the history.
    if rule == "unset" or (old is not None and b"\r\n" in old):
        return data
    is_converted = old is not None and b"\n" in old and has_only_crlf(data)
    return plain(data) if rule == "auto" or is_converted else data
