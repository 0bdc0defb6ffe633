"""A project of a module's own files (`PROJECT`), with a service and without."""

from collections.abc import AsyncIterator, Iterator

import pytest
from processes import NO_MODEL, Place, place_of, processes_below, reaped


@pytest.fixture(autouse=True, scope="module")
def _no_service_outlives_its_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A search starts a service, wherever it is made."""
    yield
    while left := processes_below(tmp_path_factory.getbasetemp()):
        reaped(left)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A project without a service."""
    with place_of(request.module.PROJECT, **NO_MODEL) as place:
        yield place


@pytest.fixture(scope="module")
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """A project with a running service and a client, for the tests that leave them alone."""
    with place_of(request.module.PROJECT, **NO_MODEL) as place:
        async with place.relayed() as client:
            await client.initialize()
            await client.call("trigger_index")
            yield place
