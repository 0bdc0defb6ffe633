"""Which precision a model is computed in is decided by what it costs and how near it comes."""

import time

import numpy as np
import pytest

from vector_index_mcp.engine.models.trial import Reduced, fastest

EXACT = np.array([[1.0, 0.0]], dtype="<f4")
NEARLY = np.array([[0.9999, 0.01]], dtype="<f4")
FAR = np.array([[0.0, 1.0]], dtype="<f4")
USUAL = Reduced(0.9, lambda one, other: bool((one * other).sum() > 0.999))
SURER = Reduced(0.5, lambda one, other: bool((one * other).sum() > 0.9))


class Clock:
    """The processor's time, which only models take."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "process_time", lambda: self.now)

    def model(self, seconds, vectors=EXACT):
        def compute(times):
            if isinstance(vectors, Exception):
                raise vectors
            self.now += seconds * times
            return vectors

        return compute


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def chosen(full, **reduced):
    tried = {name: (limits, lambda model=model: model) for name, (limits, model) in reduced.items()}
    model, name = fastest(full, tried, lambda model, times: model(times))
    assert model is (full if name == "float32" else reduced[name][1])
    return name


def test_the_fastest_that_is_near_is_taken(clock):
    full = clock.model(1.0)
    assert chosen(full) == "float32"
    assert chosen(full, half=(USUAL, clock.model(0.5, NEARLY))) == "half"
    assert chosen(full, half=(USUAL, clock.model(0.95, NEARLY))) == "float32"
    assert chosen(full, half=(USUAL, clock.model(0.1, FAR))) == "float32"


def test_one_alone_is_not_computed(clock):
    start = clock.now
    assert chosen(clock.model(1.0)) == "float32"
    assert clock.now == start


def test_each_later_one_has_to_be_faster_than_the_one_before(clock):
    full, half = clock.model(1.0), (USUAL, clock.model(0.5, NEARLY))
    assert chosen(full, half=half, eighth=(SURER, clock.model(0.3, NEARLY))) == "half"
    assert chosen(full, half=half, eighth=(SURER, clock.model(0.2, NEARLY))) == "eighth"
    slow = (USUAL, clock.model(2.0, NEARLY))
    assert chosen(full, half=slow, eighth=(SURER, clock.model(0.3, NEARLY))) == "eighth"


@pytest.mark.parametrize("error", [RuntimeError(), TypeError(), AttributeError()])
def test_one_that_cannot_be_computed_here_is_not_taken(clock, error):
    assert chosen(clock.model(1.0), half=(USUAL, clock.model(0.1, error))) == "float32"


def test_one_without_instructions_for_it_does_not_delay_the_start(clock):
    start = clock.now
    assert chosen(clock.model(1.0), half=(USUAL, clock.model(100.0))) == "float32"
    assert clock.now - start < 110
