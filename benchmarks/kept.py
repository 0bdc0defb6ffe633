"""Results on disk: `results/<what>-<date>-<machine>.json`."""

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def latest(what: str) -> dict[str, Any]:
    """The newest results that were kept of `what`.

    Raises:
        FileNotFoundError: If there are none.
    """
    newest = max(RESULTS.glob(f"{what}-????-??-??-*.json"), default=None)
    if newest is None:
        raise FileNotFoundError(f"nothing was kept of {what}")
    found: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
    return found


def keep(what: str, found: dict[str, Any], command: str = "") -> Path:
    """Write what was measured, with the command that measures it again: `make WHAT` by default."""
    found["command"] = command or f"make {what}"
    date = datetime.date.today().isoformat()
    target = RESULTS / f"{what}-{date}-{platform.machine()}-{os.cpu_count()}cores.json"
    target.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return target
