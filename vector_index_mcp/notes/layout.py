"""The names of files and folders in a store."""

import re

INDEX = "index.json"
"""In a store's folder, it maps projects to folders; in a to-do's, it has the list's description."""
PROJECTS = "projects"

# The store accepts numbers up to 999999, although it gives only 1 to 99999.
TODO_NUMBER = r"[1-9][0-9]{0,5}"
_TASK = re.compile(r"TASK-(?P<number>[0-9]{1,6})(?P<rest>(?:-[^/]*)?\.(?P<ending>json|md))")


def task_name(name: str) -> re.Match[str] | None:
    """Match the name of a task's file: its `number`, the `rest` and, as a part of it, `ending`."""
    return _TASK.fullmatch(name)
