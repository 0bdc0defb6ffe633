"""Which addresses of a remote are another machine's, a folder's, or nobody's."""

import sys

import pytest

from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store.remote import Remote


@pytest.fixture
def address(kept):
    """What an address in the store's settings is taken for."""
    kept.main("p", "x")

    def address(url):
        kept.person("config", "remote.origin.url", url)
        return Remote(kept.store.disk, kept.store.repository).address()

    return address


@pytest.mark.parametrize(
    "url",
    [
        "host:repo", "user@host:repo", "user@[fe80::1]:repo", "[::1]:repo", "[fe80::1%eth0]:a/b",
        "[user@host:22]:repo", "c:/repos/x.git", "ssh://host/repo", "https://host/repo",
    ],
)  # fmt: skip
def test_an_address_of_another_machine_is_given_to_git_as_it_is(address, url):
    found = address(url)
    assert (found.url, found.is_local) == (url, False)


@pytest.mark.parametrize("url", ["ext::touch x", "a::[b]:c", "ext::[::1]:c", "ext::user@[::1]:c"])
def test_an_address_that_names_a_program_is_refused(address, url):
    with pytest.raises(Refusal, match="names a program"):
        address(url)


def test_a_letter_and_a_colon_are_a_drive_on_windows(address, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert address("C:/../../x.git").is_local
    assert not address("host:repo").is_local


def test_of_several_addresses_the_one_counts_that_git_fetches_from(address, kept):
    kept.person("remote", "add", "origin", "https://host/first")
    kept.person("remote", "set-url", "--add", "origin", "https://host/mirror")
    found = Remote(kept.store.disk, kept.store.repository).address()
    assert found.url == "https://host/first"
