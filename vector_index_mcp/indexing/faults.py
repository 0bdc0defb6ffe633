"""Turns bugs of this program into errors of the index, which are reported and end no service."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from vector_index_mcp import errors
from vector_index_mcp.errors import Problem, ProjectError, StoreError

_log = logging.getLogger(__name__)


@contextmanager
def reporting_faults() -> Iterator[None]:
    """Turn an unexpected exception into a `StoreError`, which is reported and ends no service.

    Raises:
        StoreError: In place of the unexpected exception, with the problem `FAULT` if it is a bug.
    """
    try:
        yield
    except (ProjectError, StoreError):
        raise
    except Exception as error:
        if errors.is_of_machine(error):
            raise errors.StorageError(errors.sentence(error)) from error
        _log.exception("an error of this program")
        kind = type(errors.first_of(error)).__name__
        what = f"an error of this program keeps the index ({kind})"
        raise StoreError(what, Problem.FAULT) from error
