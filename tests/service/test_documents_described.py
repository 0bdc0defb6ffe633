"""The REST interface against its own description: requests drawn from it, answers checked by it."""

import asyncio
import threading
from contextlib import ExitStack

import httpx
import pytest
import schemathesis
from drawn import examples
from fakes import FakeEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from over_http import client_at, ports_of, wish
from qmd import documents_of, written
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from waiting import PATIENCE_SECONDS

from vector_index_mcp.documents.rest import application

load_all_checks()

# What a request names need not be there, and a collection may have been removed before.
_NOT_MEANT = {"positive_data_acceptance", "use_after_free", "ensure_resource_availability"}
CHECKS_THAT_HOLD = [check for check in CHECKS.get_all() if check.__name__ not in _NOT_MEANT]
DESCRIPTION = application(None).openapi()
# How we refuse: 413 is missing in what schemathesis takes for a refusal by itself.
REFUSED = {"negative_data_rejection": {"expected-statuses": [400, 404, 405, 413, 415, 422]}}
SCHEMA = schemathesis.openapi.from_dict(
    DESCRIPTION, config=schemathesis.Config.from_dict({"checks": REFUSED})
)
OPERATIONS = [each.ok() for each in SCHEMA.get_all_operations()]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the documents are served, by a thread with an event loop of its own."""
    home = written(tmp_path_factory.mktemp("described"))
    ready, ended, loops, told = threading.Event(), [], [], []

    async def serve():
        end = asyncio.Event()
        loops.append(asyncio.get_running_loop())
        ended.append(end)
        documents = documents_of(home, FakeEmbedder())
        async with ports_of(documents) as ports, ports.opened(wish()) as opened:
            told.append(opened["port"])
            async with client_at(opened["port"]) as client:
                await client.get("/collections")  # the documents are loaded for the first request
            await documents.embed()  # until then, a search by meaning is refused
            ready.set()
            await end.wait()

    with ExitStack() as after:
        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        after.callback(thread.join, PATIENCE_SECONDS)
        assert ready.wait(PATIENCE_SECONDS)
        after.callback(lambda: loops[0].call_soon_threadsafe(ended[0].set))
        yield f"http://127.0.0.1:{told[0]}"


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=str)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.label)
def test_every_answer_is_as_described(address, operation, mode):
    @settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(base_url=address, checks=CHECKS_THAT_HOLD)

    try:
        check()
    except Unsatisfiable:  # nothing of this endpoint can be wrong
        assert mode is GenerationMode.NEGATIVE


def test_the_description_that_is_served_is_this_one(address):
    assert httpx.get(f"{address}/openapi.json").json() == DESCRIPTION
