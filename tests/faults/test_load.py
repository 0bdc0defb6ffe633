"""Edits with four clients searching, for seconds or for hours.

Nothing fails, nothing grows, nothing is wrong.
"""

import os
import sys

import pytest
import under_load
from processes import FAKE_WORKER, NO_FORKS, place_of, with_import_hook
from serving import contents, differences, without_time

SECONDS = float(os.environ.get("LOAD_SECONDS", "8"))
MOST_GROWTH = 1.15  # of a median; the same figures again differ by up to a tenth
MOST_DESCRIPTORS = 400
MOST_INDEX_MEGABYTES = 50  # for 0.1 MB of source: versions live for half a minute

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(SECONDS + 300)]


@pytest.mark.skipif(sys.platform == "win32", reason="counts descriptors")
async def test_a_project_under_load_stays_right_and_small():
    # A fork shares memory, and would seem smaller than a service of a user.
    with place_of(under_load.files_of(300), **NO_FORKS) as place:
        place.variables = with_import_hook(place.folder / "hook", FAKE_WORKER, place.variables)
        seen = await under_load.run(place, SECONDS)
        await under_load.end(place)
        kept = await contents(place.project / ".lancedb")
        fresh = place.folder / "fresh"
        ran = await place.run("index", place.project, VECTOR_INDEX_LANCEDB_URI=str(fresh))
        assert ran.returncode == 0, ran.stderr
        assert differences(without_time(kept), without_time(await contents(fresh))) == []
    samples = seen.samples
    sys.stdout.write(f"{dict(seen.edits)}, {dict(seen.calls)}\n")  # for whoever runs it with -s
    assert seen.errors == []
    assert len(seen.edits) > 5  # kinds of edits: the load was one
    assert min(seen.calls["search_index"], seen.calls["get_status"]) > 0
    assert max(samples.descriptors) < MOST_DESCRIPTORS
    assert max(samples.index_megabytes) < MOST_INDEX_MEGABYTES
    assert seen.growth("megabytes") < MOST_GROWTH
