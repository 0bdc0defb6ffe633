"""What is wrong with a bucket, from the text of an error.

LanceDB and obstore read buckets by the same library, object_store, which says everything in the
text of one kind of error. The words that matter stand anywhere in it, often at its end.
"""

import re
from dataclasses import dataclass

from vector_index_mcp.errors import Problem


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a bucket cannot be used."""

    problem: Problem
    words: str


# Where a server's answer begins, or what was asked of it.
_QUOTED = re.compile(r"[<{\n?]|status", re.IGNORECASE)
_MOST_QUOTED = 200
_NO_KEY = "there is no key for it"
_WRONG_KEY = "it does not accept the key or its secret"
_OLD_KEY = "the key has expired"
_FORBIDDEN = "the key may not do this there"
_SILENT = "it does not answer"
_OVERLOADED = "it is overloaded"
# In the order in which they are looked for: the first ones also contain words of later ones.
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
        # The last ones: where no key is set, the cloud's own service is asked for one.
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
    (("QuotaExceeded", "507 Insufficient"), Problem.STORE_FORBIDS, "there is no space left in it"),
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
    """Why a bucket cannot be used, by the text of the error; None if that does not show it. Pure.

    Never repeats the text: a server's answer may quote anything, also keys.
    """
    for signs, problem, words in _SIGNS:
        if any(sign in text for sign in signs):
            return Reason(problem, words)
    return None


def quotable(text: str) -> str:
    """The beginning of an error that no server has written; pure.

    What a server answers may quote what it was asked, also keys.
    """
    return _QUOTED.split(text, maxsplit=1)[0][:_MOST_QUOTED].strip(" ,:") or "nobody knows why"
