"""What the index knows of every file: the table `files` in memory, and which files lack vectors."""

import threading
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from vector_index_mcp.engine.types import FileRecord, Holding
from vector_index_mcp.files.conversion import NEEDS_EXTRA
from vector_index_mcp.files.scan import CLAIMED, DISTRUSTED, Stamp
from vector_index_mcp.indexing.reasons import (
    FAILED,
    INDEXED,
    SKIPPED,
    is_cut_by_lines,
    is_given_up,
    is_passed_over,
    lacks_extra,
)

# Up to so many changed keys are inserted one by one; if there are more, all keys are sorted again.
_FEW_KEYS = 1_000


class Ledger:
    """One record per file seen. Only the writer changes it, always after the commit."""

    def __init__(self) -> None:
        self._records: dict[str, FileRecord] = {}
        self._sorted: list[str] = []  # the keys at the last call of `below`
        self._unsorted: set[str] = set()  # keys that were added or removed since
        self._sorting = threading.Lock()  # for both, and for adding and removing keys
        self._without_vector: dict[str, int] = {}  # number of chunks, by file
        # The same without chunks that were given up; the file that changed last comes last.
        self._waiting: dict[str, int] = {}
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.failed: dict[str, FileRecord] = {}
        """The records of files that failed, by file."""
        self.cut_by_lines: dict[str, FileRecord] = {}
        """The records of files that could not be parsed, by file."""
        self.passed_over: dict[str, FileRecord] = {}
        """The records of files that are skipped though they may be texts, by file."""
        self.masked: dict[str, FileRecord] = {}
        """The records of files in which credentials were masked, by file."""
        self.chunk_count = 0
        self.masked_count = 0
        """How many credentials in the indexed texts were masked."""
        self.unembedded_count = 0
        self.claimed_count = 0
        """How many files have the stamp CLAIMED."""
        self.revision = 0
        """Grows with every change, so that a reader can notice changes."""

    @classmethod
    def reconciled(cls, records: Iterable[FileRecord], holdings: Mapping[str, Holding]) -> "Ledger":
        """The ledger of an index whose last writer may have been killed during a commit.

        A file whose rows do not match its record is distrusted: the next scan reads it again, or
        forgets it if it is gone.
        """
        ledger = cls()
        for record in records:
            holding = holdings.get(record.key, Holding("", 0, 0))
            sound = holding.rows == record.chunk_count and (
                record.chunk_count == 0 or holding.content_hash == record.content_hash
            )
            ledger.put(record if sound else _distrusted(record.key, holding), holding.unembedded)
        for key, holding in holdings.items():
            if key not in ledger._records:
                ledger.put(_distrusted(key, holding), holding.unembedded)
        return ledger

    def put(self, record: FileRecord, unembedded: int) -> None:
        """Note a file's new record and how many of its chunks have no vector."""
        self._put(record, unembedded, waiting=unembedded)

    def put_unchanged(self, record: FileRecord) -> None:
        """Note a file's new record; its rows have not changed."""
        lacking = self._without_vector.get(record.key, 0)
        self._put(record, lacking, waiting=self.waiting_of(record.key))

    def distrust(self, key: str) -> None:
        """Note that the rows of a file do not match its record, so that the next scan reads it."""
        record = self._records.get(key)
        if record is not None:
            stored = Holding("", record.chunk_count, 0)
            lacking, waiting = self._without_vector.get(key, 0), self.waiting_of(key)
            self._put(_distrusted(key, stored), lacking, waiting)

    def _put(self, record: FileRecord, unembedded: int, waiting: int) -> None:
        known = self._records.get(record.key)
        if known is not None:
            self._leave_out(known)
        with self._sorting:
            if known is None:
                self._unsorted.add(record.key)
            self._records[record.key] = record  # in one step: another thread may be reading
        self.revision += 1
        self._count(record, 1)
        if record.state == FAILED:
            self.failed[record.key] = record
        if is_cut_by_lines(record):
            self.cut_by_lines[record.key] = record
        if is_passed_over(record):
            self.passed_over[record.key] = record
        if record.masked:
            self.masked[record.key] = record
        if unembedded:
            self._without_vector[record.key] = unembedded
            self.unembedded_count += unembedded
        if waiting:
            self._waiting[record.key] = waiting

    def forget(self, key: str) -> None:
        """Note that the index does not hold this file any more."""
        self.revision += 1
        with self._sorting:
            record = self._records.pop(key, None)
            if record is not None:
                self._unsorted.add(key)
        if record is not None:
            self._leave_out(record)

    def _leave_out(self, record: FileRecord) -> None:
        """Subtract a record from all counts, and remove it from the other tables."""
        self._count(record, -1)
        self.failed.pop(record.key, None)
        self.cut_by_lines.pop(record.key, None)
        self.passed_over.pop(record.key, None)
        self.masked.pop(record.key, None)
        self.unembedded_count -= self._without_vector.pop(record.key, 0)
        self._waiting.pop(record.key, None)

    def _count(self, record: FileRecord, one: int) -> None:
        """Add `one` (1 or -1) times a record to the counts, which make the status cheap."""
        self.chunk_count += one * record.chunk_count
        self.masked_count += one * record.masked
        self.claimed_count += one * (record.stamp == CLAIMED)
        self._reasons[record.state][record.reason] += one

    def note_embedded(self, key: str, embedded: int, given_up: int = 0) -> None:
        """Note that `embedded` chunks of a file got a vector, and `given_up` will never get one."""
        self.revision += 1
        self._without_vector[key] = self._without_vector.get(key, 0) - embedded
        if self._without_vector[key] <= 0:
            del self._without_vector[key]
        self.unembedded_count -= embedded
        self._waiting[key] = self._waiting.get(key, 0) - embedded - given_up
        if self._waiting[key] <= 0:
            del self._waiting[key]

    def note_tried_again(self) -> None:
        """Note that chunks that were given up wait for a vector again, after all others."""
        self.revision += 1
        lacking = self._without_vector
        given_up = {key: count for key, count in lacking.items() if key not in self._waiting}
        self._waiting = given_up | {key: lacking.get(key, n) for key, n in self._waiting.items()}

    def note_dimension_changed(self) -> None:
        """Note that no chunk has a vector any more."""
        self.revision += 1
        counts = {key: r.chunk_count for key, r in self._records.items() if r.chunk_count}
        self._without_vector, self._waiting = counts, dict(counts)
        self.unembedded_count = self.chunk_count

    @property
    def distrusted(self) -> list[str]:
        """The files whose rows do not match their record."""
        return [key for key, record in self._records.items() if record.stamp == DISTRUSTED]

    @property
    def worth_another_try(self) -> set[str]:
        """The files that failed, but may succeed at the next try although they have not changed."""
        return {key for key, r in self.failed.items() if not is_given_up(r)}

    @property
    def lacking_extra(self) -> set[str]:
        """The files that were skipped because the extra `formats` was not installed."""
        if not self._reasons[SKIPPED][NEEDS_EXTRA]:
            return set()
        return {r.key for r in self.with_state(SKIPPED) if lacks_extra(r)}

    @property
    def lacking_count(self) -> int:
        """How many files have chunks without a vector."""
        return len(self._without_vector)

    @property
    def given_up_count(self) -> int:
        """How many chunks will get no vector, because the model failed on them."""
        return self.unembedded_count - sum(self._waiting.values())

    @property
    def is_waiting(self) -> bool:
        """Whether any chunk waits for its vector."""
        return bool(self._waiting)

    @property
    def newest_waiting(self) -> str | None:
        """The file that changed last among those with chunks that wait for a vector."""
        return next(reversed(self._waiting), None)

    def waiting_of(self, key: str) -> int:
        """How many chunks of a file wait for their vector."""
        return self._waiting.get(key, 0)

    def get(self, key: str) -> FileRecord | None:
        """The record of a file; None if the file is unknown."""
        return self._records.get(key)

    def keys(self) -> list[str]:
        """All known files. May be called in another thread while records change."""
        return list(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def below(self, key: str) -> list[str]:
        """The files in the folder with the key `key`; all of them for an empty one.

        Any thread may call it, also while records change. Its cost depends on the number of these
        files and of the changes since the last call, not on the number of all files.
        """
        with self._sorting:
            self._sort()
            return _below(self._sorted, key)

    def _sort(self) -> None:
        changed, self._unsorted = self._unsorted, set()
        if len(changed) > _FEW_KEYS:
            self._sorted = sorted(self._records)
            return
        for key in changed:
            place = bisect_left(self._sorted, key)
            is_there = place < len(self._sorted) and self._sorted[place] == key
            if key not in self._records and is_there:
                del self._sorted[place]
            elif key in self._records and not is_there:
                insort(self._sorted, key)

    def all(self) -> list[tuple[FileRecord, int]]:
        """Every record, with how many of its chunks have no vector."""
        return [(r, self._without_vector.get(key, 0)) for key, r in self._records.items()]

    def stamps(self, coming: Iterable[str] = ()) -> dict[str, Stamp]:
        """The stamp that each file had when it was last looked at, by file.

        Args:
            coming: Files on their way into the index. Those without a record get a stamp that no
                file can have.
        """
        known = {key: record.stamp for key, record in self._records.items()}
        return dict.fromkeys(coming, DISTRUSTED) | known

    def with_state(self, state: str) -> list[FileRecord]:
        """The records in `state`. May be called in another thread while records change."""
        return [record for record in list(self._records.values()) if record.state == state]

    def not_indexed(self) -> list[FileRecord]:
        """The records of files that are skipped or failed. May be called as `with_state`."""
        return [*self.with_state(SKIPPED), *self.with_state(FAILED)]

    def count(self, state: str) -> int:
        """How many files are in `state`."""
        return self._reasons[state].total()

    def reasons(self, state: str) -> dict[str, int]:
        """How many files are in `state` for which reason, most frequent first."""
        return dict((+self._reasons[state]).most_common())  # + leaves out what has become 0

    def newest_unembedded(self, chunks: int) -> list[str]:
        """Files that together lack about `chunks` vectors, the last changed ones first."""
        keys, total = [], 0
        for key in reversed(self._waiting):
            keys.append(key)
            total += self._waiting[key]
            if total >= chunks:
                break
        return keys


class Stamps:
    """The stamps of the files that an index holds or is about to hold, one at a time."""

    def __init__(self, ledger: Ledger, coming: Collection[str]) -> None:
        """Make a view; it shows later changes of the ledger, too.

        Args:
            ledger: What the index holds.
            coming: Files on their way into the index, which stay the same. Those without a record
                get a stamp that no file can have.
        """
        self._ledger = ledger
        self._coming = coming
        self._sorted: list[str] | None = None  # the coming ones; a look asks for each of its keys

    def __len__(self) -> int:
        return len(self._ledger) + sum(self._ledger.get(key) is None for key in self._coming)

    def get(self, key: str) -> Stamp | None:
        """The stamp of a file; None if nothing is known of it."""
        record = self._ledger.get(key)
        if record is not None:
            return record.stamp
        return DISTRUSTED if key in self._coming else None

    def below(self, key: str) -> list[str]:
        """The files in the folder with the key `key`; all of them for an empty one."""
        if self._sorted is None:
            self._sorted = sorted(self._coming)
        coming = _below(self._sorted, key)
        return [*self._ledger.below(key), *(k for k in coming if self._ledger.get(k) is None)]


def _below(ordered: list[str], key: str) -> list[str]:
    """Those of sorted keys that lie in the folder with the key `key`; all for an empty one."""
    if not key:
        return list(ordered)
    start = bisect_left(ordered, f"{key}/")
    return ordered[start : bisect_left(ordered, f"{key}0")]  # "0" is the character after "/"


def _distrusted(key: str, holding: Holding) -> FileRecord:
    return FileRecord(key, DISTRUSTED, "", holding.rows, INDEXED, "")
