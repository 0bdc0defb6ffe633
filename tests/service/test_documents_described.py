"""The REST interface against its own description: requests drawn from it, answers checked by it."""

import asyncio
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from drawn import examples
from fakes import FakeEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from over_http import client_at, ports_of, wish
from qmd import documents_of, written
from waiting import PATIENCE_SECONDS

from vector_index_mcp.documents.rest import application

# What a request names need not be there, and a collection may have been removed before.
_NOT_MEANT = {"positive_data_acceptance", "use_after_free", "ensure_resource_availability"}
DESCRIPTION = application(None).openapi()
# How we refuse: 413 is missing in what schemathesis takes for a refusal by itself.
REFUSED = {"negative_data_rejection": {"expected-statuses": [400, 404, 405, 413, 415, 422]}}
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, methods in DESCRIPTION["paths"].items()
    for method in methods
]


@dataclass(frozen=True)
class Described:
    """The description as the library reads it, which takes a second to be imported."""

    operations: dict[str, Any]
    """By their labels."""
    checks: list[Any]


@pytest.fixture(scope="module")
def described():
    import schemathesis
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    config = schemathesis.Config.from_dict({"checks": REFUSED})
    schema = schemathesis.openapi.from_dict(DESCRIPTION, config=config)
    operations = [each.ok() for each in schema.get_all_operations()]
    return Described(
        {each.label: each for each in operations},
        [check for check in CHECKS.get_all() if check.__name__ not in _NOT_MEANT],
    )


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


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_as_described(address, described, operation, mode):
    from schemathesis import GenerationMode

    drawn = described.operations[operation].as_strategy(generation_mode=GenerationMode(mode))

    @settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
    @given(case=drawn)
    def check(case):
        case.call_and_validate(base_url=address, checks=described.checks)

    try:
        check()
    except Unsatisfiable:  # nothing of this endpoint can be wrong
        assert mode == "negative"


def test_the_operations_of_the_description_are_all_tested(described):
    assert sorted(described.operations) == sorted(OPERATIONS)


def test_the_description_that_is_served_is_this_one(address):
    assert httpx.get(f"{address}/openapi.json").json() == DESCRIPTION
