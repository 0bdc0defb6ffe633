"""The grammar of the command `publish`."""

import argparse
from collections.abc import Callable


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command by `add`, which takes its name and what `ArgumentParser` takes."""
    publish = add(
        "publish",
        help="put the index where a team fetches it from",
        description="Bring the index up to date and publish it, for services that have "
        "VECTOR_INDEX_SHARED_INDEX set to URI. Made for jobs that run after each push: what is "
        "published already is fetched first and not uploaded again, and several may run at once. "
        "Status 0 when it is published, also when a later commit is published already; 1 when it "
        "could not be; 2 when an argument or a setting is wrong.",
    )
    publish.add_argument("path", metavar="PATH", help="the project's folder")
    publish.add_argument(
        "uri", metavar="URI", help="a folder, s3://bucket/folder, gs://... or az://..."
    )
    publish.add_argument(
        "--branch",
        metavar="NAME",
        default="",
        help="the branch that it is the index of (the one that is checked out)",
    )
    publish.add_argument(
        "--keep",
        metavar="HOURS",
        type=_hours,
        default=24.0,
        help="how long what is replaced stays for those who are fetching it, 1 at least (24)",
    )
    publish.add_argument("--json", action="store_true", help="print what was done as JSON")


def _hours(text: str) -> float:
    hours = float(text)
    if not 1 <= hours < float("inf"):  # no job and no fetch takes longer
        raise ValueError
    return hours
