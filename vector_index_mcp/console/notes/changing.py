"""The commands that write: restore, import, `doctor --repair`; and export, which writes elsewhere.

Restore and repair first show what would change, then ask, unless `--yes` is given.
"""

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from vector_index_mcp.console.notes import reports
from vector_index_mcp.console.notes.desk import Desk
from vector_index_mcp.console.notes.looking import Command, say, warn
from vector_index_mcp.console.terminal import confirmed, write
from vector_index_mcp.errors import UnknownError, counted
from vector_index_mcp.foreign import visible
from vector_index_mcp.notes import exchange, overview
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.doctor import examining, repairing
from vector_index_mcp.notes.doctor.findings import Finding, Verdict
from vector_index_mcp.notes.past import history, restoring
from vector_index_mcp.notes.past.pieces import piece_of
from vector_index_mcp.notes.past.restoring import Wanted
from vector_index_mcp.notes.past.states import Past, tree_of
from vector_index_mcp.notes.store.byhand import ByHand

_COMMIT_CHARS = 10


def _is_confirmed(line: argparse.Namespace, question: str) -> bool:
    unasked = (
        "nothing was changed: there is no terminal to ask on; give --yes to do it without being "
        "asked"
    )
    if line.yes or confirmed(question, unasked):
        return True
    write("Nothing was changed")
    return False


# -- restore ---------------------------------------------------------------------------------


def _restore(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    project, piece = line.words[0], piece_of(line.words[1:])
    if not overview.has_notes(store.disk):
        raise UnknownError(f"{overview.NOTHING} ({desk.home}); there is nothing to restore")
    head = history.head_of(store)
    if line.to is not None:
        commit = history.past_commit(store, head, project, line.to)
    else:
        commit = restoring.before_deletion(store, head, project, piece)
    past, wanted = Past(store.repository, commit), Wanted(project, piece, commit)
    tree, by_hand = tree_of(store.repository, head), ByHand(store.disk)
    found = restoring.restoring(store.disk, tree, by_hand, past, wanted)
    about = _about(store, commit)
    if not found.is_needed:
        write(visible(f"{project} is as it was at {about}; there is nothing to do"))
        return 0
    say(reports.of_restoring(found, about, desk.colours))
    if not _is_confirmed(line, "Restore this?"):
        return 1
    with desk.writing(store) as writer:
        writer.ask(lambda: restoring.plan_of(found, writer, past, wanted, about)).result()
        made = writer.tree.commit
    before = history.entry_of(store, made).parent[:_COMMIT_CHARS]
    write(f"Restored, in commit {made[:_COMMIT_CHARS]}. To undo it:")
    write(visible(f"  vector-index-mcp notes {_undoing(line, before)}"))
    return 0


def _undoing(line: argparse.Namespace, commit: str) -> str:
    """Return the command that undoes this one, quoted for a shell."""
    options = ["--to", commit, *(["--home", line.home] if line.home else [])]
    begins_like_option = any(word.startswith("-") for word in line.words)
    return shlex.join(["restore", *options, *(["--"] * begins_like_option), *line.words])


def _about(store: Store, commit: str) -> str:
    entry = history.entry_of(store, commit)
    return f"{reports.moment(entry.when)} ({commit[:_COMMIT_CHARS]})"


# -- out and in ------------------------------------------------------------------------------


def _export(line: argparse.Namespace, _: Desk, store: Store) -> int:
    project, folder = line.words[0], Path(line.words[1])
    found = exchange.exported(store, project)
    exchange.write(found.files, folder)
    write(visible(f"Wrote {counted(len(found.files), 'file')} into {folder}"))
    return _left_out(found.left_out)


def _import(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    place = Path(line.words[0])
    project = line.project or place.resolve().name
    exchange.check_project(project)
    folder = exchange.folder_of(place)
    if folder.is_empty:
        return _left_out(folder.skipped)
    with desk.writing(store) as writer:
        request = writer.ask(
            lambda: exchange.importing(store, project, folder, replaces=line.replace)
        )
        replaced = request.result()
        made = writer.tree.commit
    parts = ["the main text"] * (folder.main is not None)
    parts += [
        counted(len(folder.documents), "document"),
        counted(len(folder.lists), "to-do list"),
    ]
    replacing = f", {replaced} of them in place of what was there" if replaced else ""
    write(
        visible(
            f"Imported {', '.join(parts)} into project {project}{replacing}, "
            f"in commit {made[:_COMMIT_CHARS]}"
        )
    )
    return _left_out(folder.skipped)


def _left_out(reasons: Sequence[str]) -> int:
    for reason in reasons:
        warn(f"left out: {reason}")
    return 1 if reasons else 0


# -- doctor ----------------------------------------------------------------------------------


def _doctor(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    if not line.repair:
        return _examine(desk, store, as_json=line.json)
    found = repairing.repair_of(store, history.head_of(store))
    if not found.said:
        write("There is nothing that can be repaired")
        return _examine(desk, store, as_json=False)
    for sentence in found.said:
        write(visible(sentence))
    if not _is_confirmed(line, "Repair this?"):
        return 1
    with desk.writing(store) as writer:
        repairing.repair(found, writer, store)
        made = writer.tree.commit
    if found.is_of_files:
        before = "what was there before is in the history"
        write(f"Repaired, in commit {made[:_COMMIT_CHARS]}; {before}\n")
    else:
        write("Repaired\n")
    return _examine(desk, store, as_json=False)


def _examine(desk: Desk, store: Store, *, as_json: bool) -> int:
    findings: list[Finding] = []
    for finding in examining.examine(store, trouble=desk.trouble()):
        findings.append(finding)
        if not as_json:
            say(reports.of_finding(finding, desk.colours))
    has_failed = any(finding.verdict is Verdict.FAILURE for finding in findings)
    if as_json:
        listed = [asdict(finding) for finding in findings]
        write(json.dumps({"ok": not has_failed, "checks": listed}, indent=2))
    else:
        say(reports.of_counts(findings))
    return 1 if has_failed else 0


COMMANDS: Mapping[str, Command] = {
    "restore": _restore,
    "export": _export,
    "import": _import,
    "doctor": _doctor,
}
"""The functions that run the commands, by name."""
