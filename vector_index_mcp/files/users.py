"""Tells whose a path is: what strangers put into a shared folder must not decide for its users."""

import os
from pathlib import Path


def is_of_another_user(path: Path) -> bool:
    """Return whether a path belongs to another user of this machine, as far as the system says so.

    Raises:
        OSError: If there is nothing.
    """
    return os.name == "posix" and path.lstat().st_uid != os.geteuid()


def may_decide(paths: tuple[Path, ...], about: Path) -> bool:
    """Return whether what lies at `paths` may decide how the files in a folder are treated.

    Git refuses to let others decide, too (CVE-2022-24765). But the owner of the folder may: whoever
    works there has chosen to, as root does in a container with the files of somebody else.

    Args:
        paths: What was found in the folder or above it. A link counts as what it is itself.
        about: The folder.
    """
    if os.name != "posix":
        return True
    try:
        trusted = {os.geteuid(), about.stat().st_uid}
        return all(path.lstat().st_uid in trusted for path in paths)
    except (OSError, ValueError):
        return False
