"""A project of a module's own files (`PROJECT`), with a service and without."""

from collections.abc import AsyncIterator, Iterator

import pytest
from processes import NO_MODEL, Place, place_of


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
