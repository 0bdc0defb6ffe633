"""What a front end expects of whatever answers where a service was."""

import json
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from vector_index_mcp.background import greeting


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.slow
def test_an_answer_that_comes_a_byte_at_a_time_is_not_waited_for_for_ever(ends):
    ours, theirs = ends
    is_over = threading.Event()

    def trickle():
        with suppress(OSError):
            while not is_over.wait(0.05):
                theirs.sendall(b" ")

    trickling = threading.Thread(target=trickle)
    trickling.start()
    try:
        with pytest.raises(TimeoutError):
            greeting.greet(ours, greeting.REPORT, "secret", patience=0.3)
    finally:
        is_over.set()
        trickling.join()


@contextmanager
def answering(theirs, answer):
    """The hello that arrives at `theirs`; `answer` makes of its values what is sent back."""
    heard = []

    def serve():
        heard.append(theirs.recv(1_000))
        theirs.sendall(answer(json.loads(heard[0])))

    thread = threading.Thread(target=serve)
    thread.start()
    yield heard
    thread.join()


ELSE = {
    "another protocol": lambda _: b"HTTP/1.1 400 Bad Request\r\n",
    "nothing": lambda _: b"{}\n",
    "no proof": lambda _: b'{"pid": 7, "version": "1"}\n',
    "a refusal without a proof": lambda _: b'{"refused": "run my program instead"}\n',
    "our own proof": lambda hello: greeting.line({"pid": 7, "proof": hello["proof"]}),
    "a proof of another secret": lambda hello: greeting.line(
        {"pid": 7, **greeting.proof_for(json.loads(a_hello("other", hello["nonce"])), "other")}
    ),
    "a proof of an odd kind": lambda _: greeting.line({"pid": 7, "proof": ["\ud800"]}),
    "a proof of odd characters": lambda _: greeting.line({"pid": 7, "proof": "\ud800"}),
}


def a_hello(secret, nonce):
    return greeting.hello(greeting.REPORT, secret, nonce=nonce)


@pytest.mark.parametrize("answer", ELSE.values(), ids=ELSE)
def test_who_does_not_know_the_secret_is_not_taken_for_the_service(ends, answer):
    ours, theirs = ends
    with answering(theirs, answer) as heard, pytest.raises(ConnectionAbortedError):
        greeting.greet(ours, greeting.REPORT, "our secret")
    assert b"our secret" not in heard[0]


def test_no_two_greetings_are_alike(ends):
    ours, theirs = ends
    nonces = []
    for _ in range(2):

        def note(hello):
            nonces.append(hello["nonce"])
            return greeting.line({**greeting.proof_for(hello, "secret"), "pid": 7})

        with answering(theirs, note):
            greeting.greet(ours, greeting.REPORT, "secret")
    assert len({*nonces}) == 2


def test_the_answer_of_a_service_is_returned_and_nothing_behind_it_is_read(ends):
    ours, theirs = ends

    def answer(hello):
        proof = greeting.proof_for(hello, "secret")
        return greeting.line({"pid": 7, "version": "1", **proof}) + b"the session"

    with answering(theirs, answer):
        found = greeting.greet(ours, greeting.REPORT, "secret")
    assert found == {"pid": 7, "version": "1"}
    assert ours.recv(100) == b"the session"
