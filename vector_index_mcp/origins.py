"""Whether a request over HTTP comes from where it should: what every listener checks. No I/O.

Every site that a user's browser visits can reach the ports of the machine. It cannot forge two
things: the name in `Host`, which is the site's own if somebody points a DNS name at us, and what
the browser says of the page that asks.
"""

from collections.abc import Iterable, Mapping

LOOPBACK_NAMES = ("127.0.0.1", "localhost")
_PORT_LEFT_OUT = 80  # by clients, as it is that of HTTP


def hosts_of(names: Iterable[str], port: int) -> frozenset[str]:
    """What `Host` may be of a request to a listener.

    Args:
        names: The listener's names and addresses.
        port: Its port.
    """
    bare = [f"[{name}]" if ":" in name else name.lower() for name in names]
    found = {f"{name}:{port}" for name in bare}
    return frozenset(found | set(bare) if port == _PORT_LEFT_OUT else found)


def is_of_another_page(headers: Mapping[str, str], host: str) -> bool:
    """Whether a page that did not come from `host` has a browser ask.

    Args:
        headers: The request's, by names in lower case.
        host: As the request names it.
    """
    if headers.get("origin", f"http://{host}") != f"http://{host}":
        return True
    # `none`: somebody typed the address, or opened it from a terminal.
    return headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
