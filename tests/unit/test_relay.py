"""The front end's session when services end at the worst moment."""

import queue
import threading

from vector_index_mcp.background import relay


class Noted:
    """Notes in which order things are used."""

    def __init__(self, thing, name, uses):
        self._thing, self._name, self._uses = thing, name, uses

    def __enter__(self):
        self._uses.append(self._name)
        return self._thing.__enter__()

    def __exit__(self, *error):
        return self._thing.__exit__(*error)

    def put(self, item):
        self._uses.append(self._name)
        self._thing.put(item)

    def __getattr__(self, name):
        return getattr(self._thing, name)


def test_a_new_service_is_not_read_before_it_is_the_sessions():
    """If it has ended already, its end would be noted first, and it be used for ever after."""
    former, uses = object(), []
    session = relay._Session(former, lambda: None)
    session._services = Noted(queue.SimpleQueue(), "read from now on", uses)
    session._sending = Noted(threading.Condition(), "locked", uses)
    service = object()
    session._use(service)
    assert uses == ["locked", "read from now on"]
    assert session._service is service
