"""A child that is asked one thing, and does not do as it should."""

import anyio
import pytest

from vector_index_mcp.processes import errand

pytestmark = pytest.mark.anyio
SOON_SECONDS = 20.0
CHILD = """
import os, sys, time
def main(source, sink, give_back):
    {does}
"""
LIVES_ON = "time.sleep(600)"
ANSWERS = {
    "a line that is too long": f"sink.write(b'x' * 5_000_000); sink.flush(); {LIVES_ON}",
    "nothing, and lives on": f"sink.close(); os.close(1); {LIVES_ON}",
    "half a line": f"sink.write(b'{{'); sink.close(); {LIVES_ON}",
    "no JSON": f"sink.write(b'[1\\n'); sink.flush(); {LIVES_ON}",
    "no object": f"sink.write(b'[1]\\n'); sink.flush(); {LIVES_ON}",
    "what is no text": f"sink.write(b'\\xff\\n'); sink.flush(); {LIVES_ON}",
    "what is too deep": f"sink.write(b'[' * 200_000 + b'\\n'); sink.flush(); {LIVES_ON}",
}


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Begins a child that does something."""

    def begin(does):
        (tmp_path / "odd_child.py").write_text(CHILD.format(does=does), encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return errand.begun("odd_child")

    return begin


@pytest.mark.slow
@pytest.mark.parametrize("what", ANSWERS)
async def test_whatever_a_child_writes_nobody_waits_for_it_for_ever(started, what):
    with anyio.fail_after(SOON_SECONDS):
        async with started(ANSWERS[what]) as child:
            with pytest.raises(errand.ErrandError):
                await child.answer(SOON_SECONDS / 2)
    assert child._process.returncode is not None


@pytest.mark.slow
async def test_a_child_that_writes_nothing_is_ended_in_time(started):
    with anyio.fail_after(SOON_SECONDS):
        async with started(LIVES_ON) as child:
            with pytest.raises(errand.ErrandError, match=r"within 0\.1 s"):
                await child.answer(0.1)
    assert child._process.returncode is not None


async def test_how_a_child_ended_by_itself_is_said(started):
    async with started("sys.exit(7)") as child:
        with pytest.raises(errand.ErrandError, match="status 7"):
            await child.answer(SOON_SECONDS)


async def test_a_child_that_answers_is_heard(started):
    async with started("sink.write(source.readline()); sink.flush()") as child:
        await child.tell({"a": "ü"})
        assert await child.answer(SOON_SECONDS) == {"a": "ü"}
