"""Finds out from the text of an error why a bucket cannot be used.

LanceDB and obstore read buckets with the same library, object_store, which has only one kind of
error; the reason is in its text. The words that matter may be anywhere in it, often at the end.
"""

import re
from dataclasses import dataclass

from vector_index_mcp.errors import Problem


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a bucket cannot be used."""

    problem: Problem
    words: str


_OF_AUTHORS = re.compile(
    r"\b(?:lance error|LanceError\(\w{1,40}\)|Generic [\w/]{1,40} error|Wrapped error):\s"
    r"|, /[^\s,]*\.rs:\d{1,9}:\d{1,9}"
)
# In the text of an error, the server's answer or our request begins with one of these.
_QUOTED = re.compile(r"[<{\n?]|status", re.IGNORECASE)
_MOST_QUOTED = 200
_NO_KEY = "there is no key for it"
_WRONG_KEY = "it does not accept the key or its secret"
_OLD_KEY = "the key has expired"
_FORBIDDEN = "the key may not do this there"
_SILENT = "it does not answer"
_OVERLOADED = "it is overloaded"
# They are tried in this order, because errors of the first kinds also contain words of later ones.
_SIGNS = (
    (("BadScheme",), Problem.STORE_INSECURE, "its address is http://, which is not encrypted"),
    (("NoSuchBucket", "ContainerNotFound"), Problem.STORE_MISSING, "there is no such bucket"),
    (
        ("SignatureDoesNotMatch", "InvalidAccessKeyId", "AuthenticationFailed", "InvalidToken"),
        Problem.STORE_REFUSES,
        _WRONG_KEY,
    ),
    (("ExpiredToken", "TokenRefreshRequired"), Problem.STORE_REFUSES, _OLD_KEY),
    (("RequestTimeTooSkewed",), Problem.STORE_REFUSES, "this machine's clock is wrong"),
    (
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint"),
        Problem.STORE_REGION,
        "it lies in another region",
    ),
    (
        # The last two: if no key is set, the library asks the cloud's metadata service for one.
        (
            "Failed to get AWS credentials",
            "CredentialsNotLoaded",
            "MissingAccount",
            "Account must be specified",
            "169.254.169.254",
            "metadata.google.internal",
        ),
        Problem.STORE_REFUSES,
        _NO_KEY,
    ),
    (("SlowDown", "TooManyRequests", "503 Service"), Problem.STORE_SILENT, _OVERLOADED),
    (("QuotaExceeded", "507 Insufficient"), Problem.STORE_FULL, "there is no space left in it"),
    (
        ("AccessDenied", "lacked the necessary privileges", "403 Forbidden", "PermissionDenied"),
        Problem.STORE_FORBIDS,
        _FORBIDDEN,
    ),
    (("401 Unauthorized", "Unauthenticated"), Problem.STORE_REFUSES, _WRONG_KEY),
    (
        ("kind: Connect", "kind: Timeout", "error sending request", "dns error", "TimedOut"),
        Problem.STORE_SILENT,
        _SILENT,
    ),
    (("500 Internal", "502 Bad", "504 Gateway"), Problem.STORE_SILENT, "it fails"),
)


def reason_in(text: str) -> Reason | None:
    """Return why a bucket cannot be used, by the text of an error; None if unknown. Pure.

    The result never repeats the text, because a server's answer may quote anything, even keys.
    """
    for signs, problem, words in _SIGNS:
        if any(sign in text for sign in signs):
            return Reason(problem, words)
    return None


def quotable(text: str) -> str:
    """Return the beginning of an error, up to the server's answer; pure.

    An answer may quote our request, even keys.
    """
    return plain(_QUOTED.split(text, maxsplit=1)[0])[:_MOST_QUOTED].strip(" ,:") or (
        "nobody knows why"
    )


def plain(text: str) -> str:
    """Return an error of LanceDB or obstore in one line, without what only its authors need. Pure.

    That is the names of its kinds of errors, and the places in its source.
    """
    return " ".join(_OF_AUTHORS.sub("", text).split())
