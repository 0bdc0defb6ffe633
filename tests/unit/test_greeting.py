"""What a front end expects of whatever answers where a service was."""

import socket
import threading
from contextlib import suppress

import pytest

from vector_index_mcp.background import greeting


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


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


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b"{}\n", b'{"pid": "7"}\n'])
def test_another_program_is_not_taken_for_the_service(ends, answer):
    ours, theirs = ends
    theirs.sendall(answer)
    with pytest.raises(ConnectionAbortedError):
        greeting.greet(ours, greeting.REPORT, "secret")


def test_the_answer_of_a_service_is_returned_and_nothing_behind_it_is_read(ends):
    ours, theirs = ends
    theirs.sendall(b'{"pid": 7, "version": "1"}\nthe session')
    assert greeting.greet(ours, greeting.REPORT, "secret") == {"pid": 7, "version": "1"}
    assert ours.recv(100) == b"the session"
