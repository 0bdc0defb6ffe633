"""Half an hour of edits with four clients searching, with the real model: what grows, what fails?

    PYTHONPATH=tests:tests/e2e python benchmarks/load.py [--minutes 30] [--keep]

What happens is in `tests/under_load.py`, a minute of which is part of the tests. At the end the
index is compared with the files, chunk by chunk.
"""

import argparse
import statistics
import sys
from typing import Any

import anyio
import under_load
from kept import keep
from processes import place_of

FILES = 1_000
PERCENT = 100


async def measure(seconds: float) -> dict[str, Any]:
    with place_of(under_load.files_of(FILES)) as place:
        seen = await under_load.run(place, seconds)
        await under_load.end(place)
        verified = await place.run("verify", place.project)
    samples, taken = seen.samples, sorted(seen.query_ms)
    found: dict[str, Any] = {
        "minutes": seconds / 60,
        "edits": dict(seen.edits),
        "calls": dict(seen.calls),
        "errors": len(seen.errors),
        "verified": verified.stdout.strip(),
        "query, median ms": statistics.median(taken),
        "query, 95th percentile ms": taken[95 * len(taken) // PERCENT],
        "query, longest ms": taken[-1],
    }
    for what in ("megabytes", "descriptors", "threads", "index_megabytes", "index_files"):
        values = getattr(samples, what)
        found[what] = {"at most": max(values), "at the end": values[-1]}
        found[what]["growth of the last third over the second"] = seen.growth(what)
    return found


def show(found: dict[str, Any]) -> list[tuple[str, str]]:
    edits, calls = sum(found["edits"].values()), sum(found["calls"].values())
    memory = found["megabytes"]
    growth = memory["growth of the last third over the second"]
    return [
        (
            f"{found['minutes']:.0f} minutes with {under_load.CLIENTS} clients",
            f"{edits} edits, {calls} calls, {found['errors']} errors",
        ),
        ("a query meanwhile, median", f"{found['query, median ms']:.0f} ms"),
        ("memory of the service, at most; growth", f"{memory['at most']:.0f} MB; {growth:.2f}"),
        ("descriptors, at most", f"{found['descriptors']['at most']}"),
        ("the index, at most", f"{found['index_megabytes']['at most']:.0f} MB"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--keep", action="store_true", help="write the results to results/")
    arguments = parser.parse_args()
    found = anyio.run(measure, 60 * arguments.minutes)
    for name, value in found.items():
        print(f"{name}: {value}")
    found["table"] = show(found)
    if arguments.keep:
        print(f"kept in {keep('load', found).name}")
    return 0 if found["errors"] == 0 and "as the files are" in found["verified"] else 1


if __name__ == "__main__":
    sys.exit(main())
