"""Checks of the origin of an HTTP request, for every listener. No I/O.

Every site that a user visits can make the browser send requests to ports of this machine. The site
cannot forge two headers: `Host`, which holds the site's own name even if its DNS points here (DNS
rebinding), and `Origin` or `Sec-Fetch-Site`, in which the browser names the page that asks.
"""

from collections.abc import Iterable, Mapping

LOOPBACK_NAMES = ("127.0.0.1", "localhost")
_PORT_LEFT_OUT = 80  # HTTP's default port, which clients leave out of `Host`


def hosts_of(names: Iterable[str], port: int) -> frozenset[str]:
    """The values of `Host` that a listener accepts.

    Args:
        names: The listener's names and addresses.
        port: Its port.
    """
    bare = [f"[{name}]" if ":" in name else name.lower() for name in names]
    found = {f"{name}:{port}" for name in bare}
    return frozenset(found | set(bare) if port == _PORT_LEFT_OUT else found)


def is_of_another_page(headers: Mapping[str, str], host: str) -> bool:
    """Whether a browser sent the request for a page that did not come from `host`.

    Args:
        headers: The request's headers, by names in lower case.
        host: The value of the request's header `Host`.
    """
    if headers.get("origin", f"http://{host}") != f"http://{host}":
        return True
    # `none`: somebody typed the address, or opened it from a terminal.
    return headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
