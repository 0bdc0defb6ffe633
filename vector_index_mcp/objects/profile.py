"""What a profile of AWS's own tools says, as far as it needs no program: keys, region, address.

LanceDB reads the profile that AWS_PROFILE names; obstore does not. The order is the documented one
of the AWS CLI: a variable overrides what a profile says of the same, also where AWS_PROFILE names
that profile (only `--profile`, which we do not have, would override the variables of keys).
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
# Each group is one thing: a token of a profile does not belong to a key of the environment.
_OVERRIDDEN = (
    (("AWS_ACCESS_KEY_ID",), ("access_key_id", "secret_access_key", "session_token")),
    (("AWS_REGION", "AWS_DEFAULT_REGION"), ("region",)),
    (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), ("endpoint",)),
)
_SIGNS_OF_A_PROGRAM = ("sso_session", "sso_start_url", "credential_process", "role_arn")


def options_of(
    name: str, credentials: str, config: str, variables: Mapping[str, str]
) -> dict[str, str]:
    """The options of a store for the profile `name`; pure.

    Args:
        name: As AWS_PROFILE has it.
        credentials: The text of AWS's file of credentials, empty if there is none.
        config: The text of its configuration.
        variables: Those of the environment, which a store reads by itself.

    Raises:
        StorageError: If there are no keys in `variables`, and there is no such profile, or its keys
            are got in another way.
    """
    has_keys = bool(variables.get("AWS_ACCESS_KEY_ID"))
    section = "default" if name == "default" else f"profile {name}"
    said = {**_section(config, section), **_section(credentials, name)}
    if not said and not has_keys:
        raise StorageError(f"there is no profile {name!a} in AWS's files", Problem.STORE_REFUSES)
    found = {ours: said[theirs] for theirs, ours in _FIELDS.items() if said.get(theirs)}
    if (
        not has_keys
        and "access_key_id" not in found
        and any(sign in said for sign in _SIGNS_OF_A_PROGRAM)
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
