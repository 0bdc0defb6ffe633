"""What the ledger has counted is what its records say."""

import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.ledger import Ledger, Stamps
from vector_index_mcp.indexing.reasons import FAILED, INDEXED, SKIPPED

REASONS = {INDEXED: [""], SKIPPED: ["binary", "too large"], FAILED: ["unreadable", "broken"]}


@st.composite
def records(draw):
    state = draw(st.sampled_from(sorted(REASONS)))
    return FileRecord(
        key=draw(st.sampled_from("abcd")),
        stamp=(0, 0, 0),
        content_hash="",
        chunk_count=draw(st.integers(0, 5)) if state == INDEXED else 0,
        state=state,
        reason=draw(st.sampled_from(REASONS[state])),
        masked=draw(st.integers(0, 3)) if state == INDEXED else 0,
    )


@given(st.lists(records() | st.sampled_from("abcd")))
def test_the_counts_are_those_of_the_records_however_they_came_and_went(steps):
    ledger, expected = Ledger(), {}
    for step in steps:
        if isinstance(step, str):
            ledger.forget(step)
            expected.pop(step, None)
        else:
            ledger.put(step, 0)
            expected[step.key] = step
    left = expected.values()
    assert ledger.chunk_count == sum(record.chunk_count for record in left)
    assert ledger.masked_count == sum(record.masked for record in left)
    for state in REASONS:
        assert ledger.count(state) == sum(record.state == state for record in left)
        assert ledger.reasons(state) == Counter(r.reason for r in left if r.state == state)
    assert ledger.failed == {key: r for key, r in expected.items() if r.state == FAILED}
    passed_over = {k: r for k, r in expected.items() if r.state == SKIPPED and r.reason != "binary"}
    assert ledger.passed_over == passed_over


def test_the_most_frequent_reason_comes_first():
    ledger = Ledger()
    for key, reason in [("a", "binary"), ("b", "too large"), ("c", "too large")]:
        ledger.put(FileRecord(key, (0, 0, 0), "", 0, SKIPPED, reason), 0)
    assert list(ledger.reasons(SKIPPED).items()) == [("too large", 2), ("binary", 1)]


@pytest.mark.parametrize("given_up", [0, 1, 3])
def test_a_file_whose_text_is_unchanged_lacks_the_vectors_it_lacked(given_up):
    ledger = Ledger()
    ledger.put(FileRecord("a", (1, 1, 1), "", 3, INDEXED, ""), 3)
    ledger.note_embedded("a", 0, given_up)
    again = FileRecord("a", (2, 2, 2), "", 3, INDEXED, "")

    ledger.put_unchanged(again)

    assert ledger.all() == [(again, 3)]
    assert (ledger.unembedded_count, ledger.waiting_of("a")) == (3, 3 - given_up)
    assert ledger.is_waiting == (given_up < 3)
    assert ledger.given_up_count == given_up


class Interrupted(dict):
    """A table in whose middle another thread may run, at the moment when it is used for a key."""

    def __init__(self, table, moment, key, do):
        super().__init__(table)
        self._moment, self._key, self._do = moment, key, do

    def __contains__(self, key):
        self._interrupt("asked", key)
        return super().__contains__(key)

    def __setitem__(self, key, value):
        self._interrupt("set", key)
        super().__setitem__(key, value)

    def _interrupt(self, moment, key):
        if (moment, key) == (self._moment, self._key):
            self._moment = ""
            self.thread = threading.Thread(target=self._do)
            self.thread.start()
            self.thread.join(0.2)  # it goes on later if it has to wait for this thread


@pytest.fixture
def ledger():
    ledger = Ledger()
    for key in ("a", "b", "c"):
        ledger.put(record(key), 0)
    assert ledger.below("") == ["a", "b", "c"]
    return ledger


def record(key):
    return FileRecord(key, (0, 0, 0), "", 0, INDEXED, "")


def interrupt(ledger, moment, key, do):
    ledger._records = Interrupted(ledger._records, moment, key, do)
    return ledger._records


@pytest.mark.slow
def test_two_threads_that_ask_at_the_same_time_lose_no_key(ledger):
    def put_and_ask():
        ledger.put(record("aa"), 0)
        ledger.below("")

    ledger.forget("b")
    table = interrupt(ledger, "asked", "b", put_and_ask)
    ledger.below("")
    table.thread.join()
    assert ledger.below("") == ["a", "aa", "c"]


@pytest.mark.slow
def test_a_thread_that_asks_while_a_record_is_put_makes_no_key_be_missing(ledger):
    table = interrupt(ledger, "set", "d", lambda: ledger.below(""))
    ledger.put(record("d"), 0)
    table.thread.join()
    assert ledger.below("") == ["a", "b", "c", "d"]


def test_the_records_of_a_state_are_listed_while_others_come(ledger):
    class Odd:
        """A record at whose look another one comes."""

        @property
        def state(self):
            ledger._records["new"] = record("new")
            return SKIPPED

    odd = ledger._records["odd"] = Odd()
    ledger._records["last"] = record("last")
    assert ledger.with_state(SKIPPED) == [odd]


class Coming(dict):
    """Files on their way into the index, which count how often all of them are gone through."""

    rounds = 0

    def __iter__(self):
        self.rounds += 1
        return super().__iter__()


def test_a_look_at_many_keys_goes_through_the_coming_files_once():
    coming = Coming.fromkeys(["a/b/d.py", "a.py", "a/c.py", "a0.py", "b/a/c.py"])
    stamps = Stamps(Ledger(), coming)
    assert sorted(stamps.below("a")) == ["a/b/d.py", "a/c.py"]
    assert sorted(stamps.below("")) == sorted(coming.keys())
    assert stamps.below("a/c.py") == stamps.below("z") == []
    before = coming.rounds
    for number in range(100):
        assert stamps.below(f"gone{number}.py") == []
    assert coming.rounds == before
