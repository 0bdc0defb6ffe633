"""What a profile of AWS says, and what it leaves to AWS's own tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects.opening import opened
from vector_index_mcp.objects.profile import options_of

CREDENTIALS = """
[default]
aws_access_key_id = AK-default
aws_secret_access_key = s%cret
[team]
aws_access_key_id = AK-team
aws_secret_access_key = a-secret-of-a-test
aws_session_token = token=with=signs
"""
CONFIG = """
[default]
region = eu-central-1
[profile team]
region = eu-west-1
endpoint_url = https://store.example
[profile person]
sso_session = company
region = us-east-1
"""


def test_keys_region_and_address_come_from_both_files():
    assert options_of("team", CREDENTIALS, CONFIG, {}) == {
        "access_key_id": "AK-team",
        "secret_access_key": "a-secret-of-a-test",
        "session_token": "token=with=signs",
        "region": "eu-west-1",
        "endpoint": "https://store.example",
    }
    assert options_of("default", CREDENTIALS, CONFIG, {})["region"] == "eu-central-1"
    assert options_of("default", CREDENTIALS, "", {})["secret_access_key"] == "s%cret"


KEYS = {"AWS_ACCESS_KEY_ID": "AK-mine", "AWS_SECRET_ACCESS_KEY": "mine"}
OVERRIDDEN = [
    ({"AWS_REGION": "us-west-2"}, {"region"}),
    ({"AWS_DEFAULT_REGION": "us-west-2"}, {"region"}),
    ({"AWS_ENDPOINT_URL": "https://e"}, {"endpoint"}),
    ({"AWS_ENDPOINT_URL_S3": "https://e"}, {"endpoint"}),
    ({"AWS_ENDPOINT": "https://e"}, {"endpoint"}),
    (KEYS, {"access_key_id", "secret_access_key", "session_token"}),
    ({"AWS_REGION": "", "AWS_ACCESS_KEY_ID": ""}, set()),
]


@pytest.mark.parametrize(("variables", "fields"), OVERRIDDEN)
def test_a_variable_overrides_the_profile_as_for_the_tools_of_aws(variables, fields):
    alone = options_of("team", CREDENTIALS, CONFIG, {})
    assert alone.keys() - options_of("team", CREDENTIALS, CONFIG, variables).keys() == fields


@pytest.mark.slow
def test_it_is_the_order_of_the_library_of_aws(tmp_path, monkeypatch):
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, text in (("AWS_SHARED_CREDENTIALS_FILE", CREDENTIALS), ("AWS_CONFIG_FILE", CONFIG)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.setenv(name, str(tmp_path / name))
    variables = {**KEYS, "AWS_DEFAULT_REGION": "us-west-2", "AWS_PROFILE": "team"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    import boto3  # heavy, and needed only now

    session = boto3.Session()
    keys = session.get_credentials()
    client = session.client("s3")
    assert (keys.access_key, keys.token, client.meta.region_name) == ("AK-mine", None, "us-west-2")
    assert client.meta.endpoint_url == "https://store.example"
    assert options_of("team", CREDENTIALS, CONFIG, variables) == {
        "endpoint": client.meta.endpoint_url
    }


def test_with_keys_of_the_environment_a_profile_need_not_have_any():
    assert options_of("person", CREDENTIALS, CONFIG, KEYS) == {"region": "us-east-1"}
    assert options_of("nobody", CREDENTIALS, CONFIG, KEYS) == {}


def test_a_profile_that_signs_in_is_refused_with_a_way_out():
    with pytest.raises(StorageError, match="export-credentials") as raised:
        options_of("person", CREDENTIALS, CONFIG, {})
    assert raised.value.problem is Problem.STORE_REFUSES


@given(st.text(), st.text())
def test_files_that_make_no_sense_hold_no_profile(credentials, config):
    with pytest.raises(StorageError, match="there is no profile"):
        options_of("a profile", credentials, config, {})


def test_a_bucket_is_opened_by_the_profile_that_is_chosen(tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, text in (("AWS_SHARED_CREDENTIALS_FILE", CREDENTIALS), ("AWS_CONFIG_FILE", CONFIG)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_PROFILE", "person")
    with pytest.raises(StorageError, match="export-credentials"):
        opened("s3://bucket/folder")
    monkeypatch.setenv("AWS_PROFILE", "team")
    assert opened("s3://bucket/folder")._store.config["access_key_id"] == "AK-team"
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert "region" not in opened("s3://bucket/folder")._store.config
