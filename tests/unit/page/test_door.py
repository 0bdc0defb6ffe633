"""Links work once and for minutes, sessions keep to their room, foreigners are refused."""

import pytest

from vector_index_mcp.page.door import TOKEN_SECONDS, Door, refusal

PORT = 4711
HOST = f"127.0.0.1:{PORT}"
FROM_A_FILE = {"host": HOST, "origin": "null", "sec-fetch-site": "cross-site"}
every_path = pytest.mark.parametrize("path", ["/", "/room/"])


def test_a_token_is_exchanged_once():
    door = Door()
    token = door.issue(0.0)
    session = door.admit(token, 1.0)
    assert session is not None
    assert door.knows(session.room, {session.cookie: session.key})
    assert door.admit(token, 1.0) is None


@pytest.mark.parametrize(("after", "is_good"), [(TOKEN_SECONDS, True), (TOKEN_SECONDS + 1, False)])
def test_a_token_is_good_for_minutes(after, is_good):
    door = Door()
    token = door.issue(100.0)
    assert (door.admit(token, 100.0 + after) is not None) == is_good


def test_a_token_is_awaited_while_it_is_good():
    door = Door()
    assert not door.is_awaited(0.0)
    token = door.issue(0.0)
    assert door.is_awaited(TOKEN_SECONDS)
    assert not door.is_awaited(TOKEN_SECONDS + 1)
    door.admit(token, 1.0)
    assert not door.is_awaited(1.0)


@pytest.mark.parametrize("guess", ["", "a", "ä" * 43, "\udc80"])
def test_a_guess_is_refused_and_costs_nobody_the_token(guess):
    door = Door()
    token = door.issue(0.0)
    assert door.admit(guess, 0.0) is None
    assert door.admit(token[:-1], 0.0) is None
    assert door.admit(token, 0.0) is not None


def test_of_too_many_tokens_the_oldest_is_void():
    door = Door()
    tokens = [door.issue(0.0) for _ in range(100)]
    assert door.admit(tokens[0], 0.0) is None
    assert door.admit(tokens[-1], 0.0) is not None


def test_of_too_many_sessions_the_oldest_ends():
    door = Door()
    sessions = [door.admit(door.issue(0.0), 0.0) for _ in range(100)]
    known = [s for s in sessions if door.knows(s.room, {s.cookie: s.key})]
    assert sessions[0] not in known
    assert sessions[-1] in known


def test_a_key_opens_its_own_room_only():
    door = Door()
    one, other = (door.admit(door.issue(0.0), 0.0) for _ in range(2))
    assert not door.knows(one.room, {})
    assert not door.knows(one.room, {one.cookie: ""})
    assert not door.knows(one.room, {one.cookie: other.key})
    assert not door.knows(one.room, {other.cookie: other.key})
    assert not door.knows("", {"": ""})
    assert not door.knows("elsewhere", {one.cookie: one.key})


@every_path
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": f"localhost:{PORT}"},
        {"origin": f"http://{HOST}"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_the_page_itself_may_ask(headers, path):
    assert refusal("GET", path, {"host": HOST} | headers, PORT) is None


@every_path
@pytest.mark.parametrize(
    "headers",
    [
        {"host": ""},
        {"host": "127.0.0.1"},
        {"host": f"127.0.0.1:{PORT + 1}"},
        {"host": f"evil.example:{PORT}"},
        {"host": f"127.0.0.1.evil.example:{PORT}"},
        {"host": f"127.0.0.1:{PORT}@evil.example"},
        {"origin": "http://evil.example"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"https://{HOST}"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_others_may_not(headers, path):
    refused = refusal("GET", path, {"host": HOST} | headers, PORT)
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://localhost:1"])
def test_only_the_page_itself_changes_something(origin):
    headers = {"host": HOST} | ({"origin": origin} if origin else {})
    refused = refusal("POST", "/room/api/make", headers, PORT)
    assert refused is not None
    assert refused.status == 403
    own = {"host": HOST, "origin": f"http://{HOST}"}
    assert refusal("POST", "/room/api/make", own, PORT) is None


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "get"])
def test_other_methods_are_not_understood(method):
    refused = refusal(method, "/room/", {"host": HOST}, PORT)
    assert refused is not None
    assert refused.status == 405


def test_a_token_may_be_sent_from_a_file():
    whole_tab = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert refusal("POST", "/", FROM_A_FILE, PORT) is None
    assert refusal("POST", "/", FROM_A_FILE | whole_tab, PORT) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec-fetch-mode": "no-cors"},
        {"sec-fetch-mode": "cors"},
        {"sec-fetch-dest": "iframe"},
        {"sec-fetch-dest": "empty"},
    ],
    ids=str,
)
def test_but_not_by_a_site_a_script_or_a_frame(headers):
    refused = refusal("POST", "/", FROM_A_FILE | headers, PORT)
    assert refused is not None
    assert refused.status == 403


def test_nothing_else_may_be_sent_from_a_file():
    assert refusal("POST", "/room/", FROM_A_FILE, PORT) is not None
    assert refusal("GET", "/", FROM_A_FILE, PORT) is not None


def test_a_token_is_good_until_it_is_used_or_too_old():
    door = Door()
    token = door.issue(0.0)
    assert door.is_good(token, TOKEN_SECONDS)
    assert not door.is_good(token, TOKEN_SECONDS + 1)
    assert not door.is_good("another", 0.0)
    door.admit(token, 1.0)
    assert not door.is_good(token, 1.0)
