"""Where a request over HTTP comes from: its host, and the page that asks."""

import pytest

from vector_index_mcp.origins import LOOPBACK_NAMES, hosts_of, is_of_another_page

HOST = "127.0.0.1:18765"


def test_a_listener_is_named_with_its_port():
    assert hosts_of(LOOPBACK_NAMES, 18765) == {HOST, "localhost:18765"}
    assert hosts_of(["::1", "Desk.Example"], 1234) == {"[::1]:1234", "desk.example:1234"}


def test_the_port_of_http_may_be_left_out():
    assert hosts_of(["localhost"], 80) == {"localhost", "localhost:80"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": f"http://{HOST}"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin"},
    ],
    ids=str,
)
def test_programs_and_our_own_pages_may_ask(headers):
    assert not is_of_another_page(headers, HOST)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": ""},
        {"origin": f"https://{HOST}"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},
    ],
    ids=str,
)
def test_other_pages_may_not(headers):
    assert is_of_another_page(headers, HOST)
