"""Checks the service, the index, and how fast answers come.

A running service is asked. None is started: without one, this process opens the index read-only.
"""

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from vector_index_mcp import __version__
from vector_index_mcp.background import contact, greeting
from vector_index_mcp.console.awaiting import awaited
from vector_index_mcp.doctor.finding import (
    Case,
    Finding,
    Verdict,
    failed,
    failed_by,
    not_tried,
    ok,
    warning,
)
from vector_index_mcp.doctor.subject import Subject
from vector_index_mcp.errors import (
    BackgroundError,
    DamagedIndexError,
    OtherVersionError,
    Problem,
    SettingsError,
    StoreError,
    counted,
)
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.opening.locks import lock_of
from vector_index_mcp.indexing.opening.writers import WriterNote
from vector_index_mcp.indexing.reasons import FAILED, INDEXED, SKIPPED
from vector_index_mcp.serving.keys import remote_of
from vector_index_mcp.settings import PREFIX

if TYPE_CHECKING:  # imports LanceDB, which crashes on a processor without AVX2 or FMA
    from vector_index_mcp.engine.store import Index
    from vector_index_mcp.indexing.opening.local import Opener
    from vector_index_mcp.indexing.opening.remote import RemoteOpener

# The token is asked for by the front end that opens the port, with its own settings.
_WITHOUT_EFFECT_ON_ANSWERS = frozenset(
    {
        "allow_broad_path",
        "editor",
        "embedding_cache_dir",
        "embedding_cache_max_mb",
        "http_token",
        "log_level",
        "service_idle_minutes",
        "worker_idle_minutes",
    }
)
_SLOW_SECONDS = 2.0
_COMMIT_SECONDS = 2.0  # rows and records may differ during a commit, but not after it


def service(case: Case) -> Finding:
    """Check whether the service runs, has this version and answers, and what it reports."""
    subject = case.subject
    endpoint = subject.endpoint()
    began = time.monotonic()
    try:
        answer = contact.ask(endpoint, greeting.REPORT)
    except BackgroundError as error:
        return failed(str(error), f"look at {endpoint.log}")
    took = time.monotonic() - began
    if answer is None and (pid := endpoint.keeper) is not None:
        words = f"process {pid} does not answer"
        return failed(words, f"look at {endpoint.log}; then {subject.stop}")
    if answer is None:
        return _absent(case)
    words = f"version {answer['version']}, process {answer['pid']}, {answer['state']}"
    if answer["version"] != __version__:
        return warning(
            f"{words}; this program is of version {__version__}",
            f"{subject.stop}; the next client starts one of this version",
        )
    try:
        wrong, poor = subject.complaints()
    except BackgroundError as error:
        return failed_by(error, subject.remedies)
    if wrong:
        return failed(words, wrong)
    if poor:
        return warning(words, poor)
    if others := _other_settings(case, answer.get("settings")):
        return warning(
            f"{words}; it was started with another value of {', '.join(others)}",
            f"{subject.stop}, if what is given here is right; the next use starts one with its own",
        )
    clients = counted(answer["clients"], "client")
    return ok(f"{words}, {clients}, answers in {took * 1000:.0f} ms")


def _other_settings(case: Case, stamps: Any) -> list[str]:
    """The settings that count in answers and that the service with these stamps has otherwise."""
    if not isinstance(stamps, dict):
        return []
    own = case.settings.stamps()
    counting = [field for field in own if field not in _WITHOUT_EFFECT_ON_ANSWERS]
    return [f"{PREFIX}{field.upper()}" for field in counting if own[field] != stamps.get(field)]


def _absent(case: Case) -> Finding:
    try:
        is_taken = awaited(_opener(case).has_writer)
    except StoreError as error:
        return failed_by(error, case.subject.remedies)
    if is_taken:
        return ok("none runs; another process writes the index")
    return ok("none runs; the first client starts one")


def _opener(case: Case) -> "Opener | RemoteOpener":
    from vector_index_mcp.indexing.opening.local import Opener
    from vector_index_mcp.indexing.opening.remote import RemoteOpener
    from vector_index_mcp.indexing.opening.server import ServerOpener

    subject = case.subject
    if case.index_folder is None:
        is_server = subject.place.uri.startswith("db://")
        opener = ServerOpener if is_server else RemoteOpener
        return opener(subject.place, "", case.state_folder, remote_of(case.settings))
    return Opener(subject.place, "", case.state_folder, subject.remedies)


def index(case: Case) -> Finding:
    """Check whether the index is readable, and its tables match each other."""
    try:
        return awaited(partial(_index, case))
    except DamagedIndexError as error:
        words, _ = case.subject.remedies.split(str(error))
        return failed(words, f"{case.subject.build} builds it anew")
    except StoreError as error:
        return failed_by(error, case.subject.remedies)


async def _index(case: Case) -> Finding:
    from vector_index_mcp.engine.store import Index
    from vector_index_mcp.indexing.opening.ownership import Standing
    from vector_index_mcp.indexing.opening.remote import RemoteOpener

    opener, place, build = _opener(case), case.subject.place, case.subject.build
    standing = Standing.OURS if isinstance(opener, RemoteOpener) else opener.locate()
    if standing is Standing.COPY:
        return warning("it is a copy of another index", f"{build} makes it your own")
    server = remote_of(case.settings).server
    try:
        opened = await Index.open(opener.uri, server=server) if standing is Standing.OURS else None
    except OtherVersionError:
        return warning("another version of this program wrote it", f"{build} builds it anew")
    if opened is None:
        return warning("nothing is indexed yet", f"{build}, or connect a client")
    try:
        ledger = await _ledger(opened)
        if ledger.distrusted:
            await anyio.sleep(_COMMIT_SECONDS)
            ledger = await _ledger(opened)
        size = await opened.size_bytes()
        owner = opened.manifest.owner
    finally:
        opened.close()
    if owner != place.owner and await anyio.to_thread.run_sync(os.path.exists, owner):
        remedy = case.subject.remedies.of(Problem.INDEX_OF_ANOTHER)
        return failed(f"it belongs to {owner}", remedy)
    finding = _judged(ledger, size, build)
    writer = WriterNote(lock_of(place.uri, case.state_folder)).read()
    if writer is not None and (stop := writer.stop):
        return warning(finding.words, stop)
    if isinstance(opener, RemoteOpener):
        return await _elsewhere(opener, finding)
    if opener.displaced and finding.verdict is Verdict.OK:
        return warning(f"{finding.words}, in {opener.uri}", opener.displaced)
    return finding


async def _elsewhere(opener: "RemoteOpener", finding: Finding) -> Finding:
    """The finding for an index that does not lie on this machine."""
    await opener.has_writer()
    words = f"{finding.words}, at {opener.uri}, written by {opener.writer}"
    if finding.verdict is not Verdict.OK:
        return replace(finding, words=words)
    if obstacle := await opener.obstacle():
        return warning(words, f"it can only be read from here: {obstacle}")
    return ok(words)


async def _ledger(opened: "Index") -> Ledger:
    return Ledger.reconciled(await opened.store.records(), await opened.store.holdings())


def _judged(ledger: Ledger, size: int | None, build: str) -> Finding:
    vectors = ledger.chunk_count - ledger.unembedded_count
    words = (
        f"{counted(ledger.chunk_count, 'chunk')} of {counted(ledger.count(INDEXED), 'file')}, "
        f"{counted(vectors, 'vector')}, {counted(ledger.count(SKIPPED), 'file')} skipped, "
        f"{ledger.count(FAILED):,} failed"
    )
    if size is not None:
        words += f", {size / 1e6:,.1f} MB"
    if wrong := ledger.distrusted:
        have = f"{counted(len(wrong), 'file')} {'has' if len(wrong) == 1 else 'have'}"
        return failed(
            f"{words}; {have} other rows than recorded: {', '.join(wrong[:3])}",
            f"{build} reads them again",
        )
    return ok(words)


def first_answer(case: Case) -> Finding:
    """Measure how long answers take: of the service, or of an index that is opened for this."""
    subject = case.subject
    try:
        if answer := contact.ask(subject.endpoint(), greeting.REPORT):
            if answer["version"] != __version__:
                return not_tried("the service is of another version")
            took = awaited(partial(_timed_twice, subject.ask_service))
            how = "of the service"
        else:
            took = awaited(partial(_times_here, subject))
            how = "with the index opened for it"
    except (StoreError, SettingsError) as error:
        return not_tried(subject.remedies.split(str(error))[0])
    except BackgroundError as error:
        return failed_by(error, subject.remedies)
    words = f"{took[0]:.2f} s {how}, the next {took[1]:.2f} s"
    if took[1] > _SLOW_SECONDS:
        return warning(words, "check what else keeps the machine busy, and whether memory is short")
    return ok(words)


async def _times_here(subject: Subject) -> list[float]:
    from vector_index_mcp.indexing.role import Role

    opened = await subject.open()
    async with opened.running(Role.READER):
        return await _timed_twice(partial(subject.ask, opened))


async def _timed_twice(ask: Callable[[], Awaitable[None]]) -> list[float]:
    times = []
    for _ in range(2):
        began = time.monotonic()
        await ask()
        times.append(time.monotonic() - began)
    return times
