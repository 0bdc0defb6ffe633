"""Reads keys, region and address from a profile of AWS's own tools.

LanceDB reads the profile that AWS_PROFILE names; obstore does not. The precedence is the documented
one of the AWS CLI: an environment variable overrides the same value of a profile, even a profile
that AWS_PROFILE names. (Only the option `--profile`, which we do not have, would override the
variables of keys.)
"""

import configparser
from collections.abc import Mapping

from vector_index_mcp.errors import Problem, StorageError

_FIELDS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}
# A variable on the left overrides the whole group on the right: a profile's token does not belong
# to a key of the environment.
_OVERRIDDEN = (
    (("AWS_ACCESS_KEY_ID",), ("access_key_id", "secret_access_key", "session_token")),
    (("AWS_REGION", "AWS_DEFAULT_REGION"), ("region",)),
    (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), ("endpoint",)),
)
_SIGNS_OF_A_PROGRAM = ("sso_session", "sso_start_url", "credential_process", "role_arn")


def options_of(
    name: str, credentials: str, config: str, variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of a store for the profile `name`; pure.

    Args:
        name: The value of AWS_PROFILE.
        credentials: The text of AWS's credentials file; empty if there is none.
        config: The text of AWS's config file; empty if there is none.
        variables: The environment variables, which a store reads by itself.

    Raises:
        StorageError: If `variables` have no keys, and there is no such profile, or only AWS's own
            tools can get its keys.
    """
    has_keys = bool(variables.get("AWS_ACCESS_KEY_ID"))
    section = "default" if name == "default" else f"profile {name}"
    profile = {**_section(config, section), **_section(credentials, name)}
    if not profile and not has_keys:
        raise StorageError(f"there is no profile {name!a} in AWS's files", Problem.STORE_REFUSES)
    found = {ours: profile[theirs] for theirs, ours in _FIELDS.items() if profile.get(theirs)}
    if (
        not has_keys
        and "access_key_id" not in found
        and any(sign in profile for sign in _SIGNS_OF_A_PROGRAM)
    ):
        raise StorageError(
            f"the profile {name!a} gets its keys by signing in, by a role or by a program, which "
            "only AWS's own tools do: `aws configure export-credentials --format env` prints them "
            "as variables",
            Problem.STORE_REFUSES,
        )
    for names, fields in _OVERRIDDEN:
        if any(variables.get(each) for each in names):
            found = {field: value for field, value in found.items() if field not in fields}
    return found


def _section(text: str, name: str) -> Mapping[str, str]:
    parser = configparser.RawConfigParser(strict=False, default_section="")
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    return dict(parser.items(name)) if parser.has_section(name) else {}
