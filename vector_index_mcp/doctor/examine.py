"""Runs all checks, one after the other, and prints their findings.

A check that raises or hangs becomes a finding, too, and stops no other check: each check runs in a
thread of its own, which is abandoned if it hangs.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vector_index_mcp.console.terminal import prepared, write
from vector_index_mcp.doctor import index, machine, model, places, team
from vector_index_mcp.doctor.finding import (
    Case,
    Finding,
    Verdict,
    failed,
    failed_by,
    failed_unexpectedly,
    not_tried,
)
from vector_index_mcp.doctor.subject import Documents, Subject
from vector_index_mcp.documents.home import Home
from vector_index_mcp.errors import VectorIndexError, counted
from vector_index_mcp.foreign import visible_values
from vector_index_mcp.serving.folders import cache_folder, state_folder
from vector_index_mcp.settings import Settings, mistyped, origins

Check = Callable[[Case], Finding]
Checks = Sequence[tuple[str, Check, float]]
"""Each check with its name and how many seconds it may take."""

_SECONDS = 30.0  # for a check that reads a few files
_LONG_SECONDS = 180.0  # for a check that walks a large project, or loads or downloads a model
CHECKS: Checks = (
    ("versions", machine.versions, _SECONDS),
    ("processor", machine.processor, _SECONDS),
    ("file system", machine.file_system, _SECONDS),
    ("ignore rules", places.git_rules, _SECONDS),
    ("watching", machine.watches, _LONG_SECONDS),
    ("open files", machine.descriptors, _SECONDS),
    ("disk", machine.disk, _SECONDS),
    ("index folder", places.index_folder, _SECONDS),
    ("cache folder", places.cache_folder, _SECONDS),
    ("state folder", places.state_folder, _SECONDS),
    ("temporary files", places.temporary_files, _SECONDS),
    ("runtime folder", places.runtime_folder, _SECONDS),
    ("service", index.service, _SECONDS),
    ("index", index.index, _LONG_SECONDS),
    ("model", model.model, _LONG_SECONDS),
    ("team's vectors", team.vectors, _SECONDS),
    ("team's index", team.index, _SECONDS),
    ("first answer", index.first_answer, _LONG_SECONDS),
    ("settings", places.settings, _SECONDS),
)
CHECKS_OF_DOCUMENTS: Checks = (("collections", places.collections, _SECONDS), *CHECKS)
NEED_LANCEDB = {"service", "index", "first answer", "team's index"}
_STYLES = {
    Verdict.OK: "green",
    Verdict.WARNING: "bold magenta",
    Verdict.FAILED: "bold red",
    Verdict.NOT_TRIED: "dim",
}
_MARK_COLUMNS = 9


def run_for_documents(
    home: Home, settings: Settings, env_file: str | None, *, as_json: bool
) -> int:
    """Examine the documents of `home`; see `run`."""
    subject = Documents(home, settings)
    return run(subject, settings, env_file, as_json=as_json, checks=CHECKS_OF_DOCUMENTS)


def run(
    subject: Subject,
    settings: Settings,
    env_file: str | None,
    *,
    as_json: bool,
    checks: Checks = CHECKS,
) -> int:
    """Examine `subject` and the machine, and print the findings.

    Args:
        subject: The index to examine.
        settings: The settings.
        env_file: The env file from which settings were read, if any.
        as_json: Whether to print JSON.
        checks: The checks to run.

    Returns:
        The exit status: 1 if a check failed.
    """
    case = Case(
        subject,
        settings,
        origins(env_file),
        cache_folder(settings),
        state_folder(),
        tuple(mistyped(env_file)),
    )
    found: dict[str, Finding] = {}
    console = Console(file=prepared(sys.stdout), highlight=False)
    for name, finding in findings(case, checks):
        found[name] = finding
        if not as_json:
            show(console, name, finding)
    verdicts = [finding.verdict for finding in found.values()]
    if as_json:
        listed = [{"name": name, **asdict(finding)} for name, finding in found.items()]
        write(json.dumps({"ok": Verdict.FAILED not in verdicts, "checks": listed}, indent=2))
    else:
        counts = [_told(verdict, n) for verdict in Verdict if (n := verdicts.count(verdict))]
        write(f"{counted(len(found), 'check')}: {', '.join(counts)}")
    return 1 if Verdict.FAILED in verdicts else 0


def _told(verdict: Verdict, number: int) -> str:
    return counted(number, verdict) if verdict is Verdict.WARNING else f"{number} {verdict}"


def findings(case: Case, checks: Checks) -> Iterator[tuple[str, Finding]]:
    """Run the checks; yields the name and the finding of each as soon as it ends."""
    can_run_lancedb = True
    for name, check, seconds in checks:
        if name in NEED_LANCEDB and not can_run_lancedb:
            yield name, not_tried("LanceDB would crash on this processor")
            continue
        finding = _bounded(check, case, seconds)
        if check is machine.processor:
            can_run_lancedb = finding.verdict is not Verdict.FAILED
        yield name, finding


def _bounded(check: Check, case: Case, seconds: float) -> Finding:
    """Run a check for at most `seconds`; if it raises or hangs, the finding says so."""
    outcome: list[Finding] = []

    def examine() -> None:
        try:
            outcome.append(check(case))
        except VectorIndexError as error:
            outcome.append(failed_by(error, case.subject.remedies))
        except Exception as error:  # noqa: BLE001 - no error may stop the other checks
            outcome.append(failed_unexpectedly(error))

    thread = threading.Thread(target=examine, daemon=True)
    thread.start()
    thread.join(seconds)
    if outcome:
        return outcome[0]
    remedy = "find out what the machine waits for: a disk, a network, too little memory"
    return failed(f"the check did not end within {seconds:g} s", remedy)


def show(console: Console, name: str, finding: Finding) -> None:
    """Print a finding. The verdict is a word, so that it is readable without colours, too."""
    lines = [f"{name}: {finding.words}", *finding.details]
    if finding.remedy:
        lines.append(f"do: {finding.remedy}")
    text = "\n".join(visible_values(lines))
    if not console.is_terminal:
        write(f"{finding.verdict:<{_MARK_COLUMNS}}" + text.replace("\n", f"\n{'':{_MARK_COLUMNS}}"))
        return
    table = Table.grid()
    table.add_column(width=_MARK_COLUMNS, no_wrap=True, style=_STYLES[finding.verdict])
    table.add_column(width=max(console.width - _MARK_COLUMNS, 1), overflow="fold")
    table.add_row(finding.verdict.value, Text(text))
    console.print(table)
