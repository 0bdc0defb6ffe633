"""The grammar of the command `publish`."""

import argparse
from collections.abc import Callable


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command with `add`, which takes a name and the arguments of `ArgumentParser`."""
    publish = add(
        "publish",
        description="Bring the index up to date and publish it, for services that have "
        "VECTOR_INDEX_SHARED_INDEX set to URI. Made for jobs that run after each push: a job first "
        "fetches what is published already and does not upload it again; several jobs may run at "
        "once. Status 0 when the index is published, or a later commit was published already; 1 "
        "when it could not be published; 2 when an argument or a setting is wrong.",
    )
    publish.add_argument("path", metavar="PATH", help="the project's folder")
    publish.add_argument(
        "uri", metavar="URI", help="a folder, s3://bucket/folder, gs://... or az://..."
    )
    publish.add_argument(
        "--branch",
        metavar="NAME",
        default="",
        help="the branch that the index belongs to (the one that is checked out)",
    )
    publish.add_argument(
        "--keep",
        metavar="HOURS",
        type=_hours,
        default=24.0,
        help="how long replaced objects stay, for machines that still fetch them; at least 1 (24)",
    )
    publish.add_argument("--json", action="store_true", help="print what was done as JSON")


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 1 <= hours < float("inf"):  # 1 hour: no job and no fetch takes longer
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours from 1 on")
    return hours
