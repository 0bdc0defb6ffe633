"""Changes the file that lists the collections, in place, one process at a time.

Each change takes a lock, which ends with its process, reads the file again, splices its text, and
parses the result. Only if the result means exactly what was intended does it replace the file,
atomically. So an unreadable file is never overwritten, a kill leaves either the old or the new
file, and a file that cannot be spliced correctly stays as it is, for its owner to edit.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import filelock

from vector_index_mcp.documents.configuration import (
    COLLECTIONS,
    CONTEXT,
    GLOBAL_CONTEXT,
    Collection,
    Configuration,
    check,
    not_read,
    text_of,
    understood,
)
from vector_index_mcp.documents.contexts import normalized
from vector_index_mcp.documents.yaml_edits import Value, drop, put, renamed
from vector_index_mcp.documents.yaml_text import YamlError
from vector_index_mcp.errors import SettingsError, UnknownError, sentence

_Edit = Callable[[str, Configuration], tuple[str, Configuration]]
"""From a text and its configuration, makes a new text and the configuration it should mean."""
_WAIT_FOR_OTHERS_SECONDS = 10  # a change takes only a hundredth of a second
_PERMISSIONS = 0o777
_BOM = "\ufeff"


def add(path: Path, collection: Collection) -> None:
    """Add a collection.

    Raises:
        SettingsError: If the collection is invalid, its name is taken, another collection has the
            same files, or the file cannot be changed.
    """
    check(collection)
    collection = replace(collection, path=Path(os.path.normpath(collection.path)))

    def edit(text: str, old: Configuration) -> tuple[str, Configuration]:
        _check_is_new(collection, old, path)
        new = replace(old, collections=(*old.collections, collection))
        return put(text, [COLLECTIONS, collection.name], _written(collection)), new

    _change(path, edit)


def remove(path: Path, name: str) -> None:
    """Remove the collection `name`.

    Raises:
        SettingsError: If there is no such collection, or the file cannot be changed.
    """

    def edit(text: str, old: Configuration) -> tuple[str, Configuration]:
        gone = old.named(name)
        others = tuple(each for each in old.collections if each is not gone)
        return drop(text, [COLLECTIONS, name]), replace(old, collections=others)

    _change(path, edit)


def rename(path: Path, name: str, new: str) -> None:
    """Rename the collection `name` to `new`.

    Raises:
        SettingsError: If there is no such collection, the new name is taken or invalid, or the file
            cannot be changed.
    """

    def edit(text: str, old: Configuration) -> tuple[str, Configuration]:
        collection = replace(old.named(name), name=new)
        check(collection)
        for other in old.collections:
            if other.name == new:
                raise _taken(other, path)
        return renamed(text, [COLLECTIONS, name], new), _with(old, name, collection)

    _change(path, edit)


def set_context(path: Path, name: str, prefix: str, text: str) -> None:
    """Set the context of the collection `name` below `prefix`; an empty prefix means all of it.

    Raises:
        SettingsError: If there is no such collection, or the file cannot be changed.
    """

    def edit(yaml: str, old: Configuration) -> tuple[str, Configuration]:
        collection = old.named(name)
        known = _prefixes(collection, prefix)
        key = known[-1] if known else f"/{normalized(prefix)}"
        new = replace(collection, contexts={**collection.contexts, key: text})
        return put(yaml, [COLLECTIONS, name, CONTEXT, key], text), _with(old, name, new)

    _change(path, edit)


def remove_context(path: Path, name: str, prefix: str) -> None:
    """Remove the context of the collection `name` below `prefix`.

    Raises:
        SettingsError: If there is no such context, or the file cannot be changed.
    """

    def edit(yaml: str, old: Configuration) -> tuple[str, Configuration]:
        collection = old.named(name)
        known = _prefixes(collection, prefix)
        if not known:
            raise UnknownError(
                f"there is no context for qmd://{name}/{normalized(prefix)}; "
                "'qmd context list' shows the contexts"
            )
        left = {key: text for key, text in collection.contexts.items() if key not in known}
        way = [COLLECTIONS, name, CONTEXT]
        for key in known if left else [None]:
            yaml = drop(yaml, [*way, key] if key is not None else way)
        return yaml, _with(old, name, replace(collection, contexts=left))

    _change(path, edit)


def set_global_context(path: Path, text: str) -> None:
    """Set the context of all documents; an empty text removes it.

    Raises:
        SettingsError: If the file cannot be changed.
    """

    def edit(yaml: str, old: Configuration) -> tuple[str, Configuration]:
        new = replace(old, global_context=text)
        if text:
            return put(yaml, [GLOBAL_CONTEXT], text), new
        return (drop(yaml, [GLOBAL_CONTEXT]) if old.global_context else yaml), new

    _change(path, edit)


def _check_is_new(collection: Collection, known: Configuration, path: Path) -> None:
    for other in known.collections:
        if other.name == collection.name:
            raise _taken(other, path)
        if (other.path, other.pattern) == (collection.path, collection.pattern):
            raise SettingsError(
                f"the collection {other.name!r} has these files already; "
                "run 'qmd update' to index them anew"
            )


def _taken(other: Collection, path: Path) -> SettingsError:
    what_to_do = "choose another name, or remove it first"
    if not os.path.exists(other.path):
        what_to_do = f"its folder {other.path} is gone; if it was moved, correct the path in {path}"
    return SettingsError(f"there is a collection {other.name!r} already; {what_to_do}")


def _prefixes(collection: Collection, prefix: str) -> list[str]:
    """Return the keys of a collection's contexts that mean `prefix`, in any spelling."""
    return [key for key in collection.contexts if normalized(key) == normalized(prefix)]


def _with(old: Configuration, name: str, new: Collection) -> Configuration:
    found = tuple(new if each.name == name else each for each in old.collections)
    return replace(old, collections=found)


def _written(collection: Collection) -> Value:
    written: dict[str, Value] = {"path": str(collection.path), "pattern": collection.pattern}
    if collection.ignore:
        written["ignore"] = collection.ignore
    if collection.contexts:
        written[CONTEXT] = dict(collection.contexts)
    if collection.update is not None:
        written["update"] = collection.update
    return written


def _change(path: Path, edit: _Edit) -> None:
    """Make one change of the file at `path`, or of the file that it links to.

    An editor does not take our lock. If it has saved the file meanwhile, the change starts again.
    """
    real = Path(os.path.realpath(path))
    with _locked(path, real):
        while True:
            text = text_of(real)
            old = understood(path, text)
            bom = text[: text.startswith(_BOM)]
            try:
                after, meant = edit(text.removeprefix(_BOM), old)
            except YamlError as error:
                raise SettingsError(f"{path} is left as it is: {error}") from error
            data = _checked(path, text, bom + after, meant)
            if bom + after == text:
                return
            with _system_errors(path):
                if _replace(real, data, text):
                    return


def _checked(path: Path, before: str, text: str, meant: Configuration) -> bytes:
    """Return the bytes of a new text, after checking that it means `meant`.

    Keys that mean nothing to us must keep their values, too: an anchor may lead to any value.

    Raises:
        SettingsError: If it does not.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        raise SettingsError(
            f"{path} cannot contain {wrong!a}, which is not UTF-8; use another name"
        ) from error
    try:
        if understood(path, text) == meant and _keeps_others(before, text):
            return data
        why = "the change would alter other entries too"
    except SettingsError as error:
        why = f"after the change it could not be read any more ({error})"
    raise SettingsError(f"{path} is left as it is: {why}; edit it by hand")


def _keeps_others(before: str, after: str) -> bool:
    """Return whether all collections that stay have the other keys that they had, and the file."""
    old, new = not_read(before), not_read(after)
    if len(old) == len(new):  # one may have another name
        return [*old.values()] == [*new.values()]
    return all(new[name] == others for name, others in old.items() if name in new)


@contextmanager
def _locked(path: Path, real: Path) -> Iterator[None]:
    """Keep other processes from changing the file `real` meanwhile."""
    with _system_errors(path):
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = filelock.FileLock(
            real.with_name(f".{real.name}.lock"), _WAIT_FOR_OTHERS_SECONDS, mode=0o600
        )
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise SettingsError(
                f"another process has been changing {path} for {_WAIT_FOR_OTHERS_SECONDS} s; "
                "try again when it is done"
            ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _system_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise SettingsError(sentence(error)) from error


def _replace(real: Path, data: bytes, before: str) -> bool:
    """Replace the file at `real`; mode and owner stay.

    Returns:
        False if the text of the file is no longer `before`; the file is then left alone.
    """
    like = _writable(real)
    new = real.with_name(f".{real.name}.new")
    new.unlink(missing_ok=True)  # a killed process left it: no other can write it, we have the lock
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(new, flags, 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
            if like is not None:
                with suppress(PermissionError):  # the file of another user in a shared folder
                    os.fchown(descriptor, like.st_uid, like.st_gid)
                os.fchmod(descriptor, like.st_mode & _PERMISSIONS)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if text_of(real) != before:
            new.unlink()
            return False
        new.replace(real)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    _keep_names(real.parent)
    return True


def _writable(real: Path) -> os.stat_result | None:
    """Return the status of the file at `real`; None if there is no file.

    Raises:
        SettingsError: If the file is read-only.
    """
    try:
        status = real.stat()
    except FileNotFoundError:
        return None
    # We could replace it, since its folder is writable; but somebody made it read-only on purpose.
    if not (os.access(real, os.W_OK) and status.st_mode & (stat.S_IWUSR | stat.S_IWGRP)):
        raise SettingsError(f"{real} is read-only; make it writable, or edit it by hand")
    return status


def _keep_names(folder: Path) -> None:
    """Write the folder to disk, so that a rename in it survives a crash of the system."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
