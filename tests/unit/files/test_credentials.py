"""How many credentials are masked, and how many texts that only look like one.

The texts are in `credentials`; the floors are what README.md of the tests publishes.
"""

import pytest
from credentials import HELD_OUT, TUNED, Half, Text
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from vector_index_mcp.files.secrets import masked

LONGEST_REST = 3  # letters and digits in a row; who knows these does not know the secret

halves = pytest.mark.parametrize(
    ("half", "recall", "most_masked"),
    [
        pytest.param(TUNED, 0.99, 1, id="tuned"),
        pytest.param(HELD_OUT, 0.97, 3, id="held out"),
    ],
)


def rest_of(case: Text) -> int:
    """The longest run of letters and digits of the secret that can still be read."""
    start = case.text.index(case.secret)
    found = masked(case.text)[0]
    longest = run = 0
    shown = found[start : start + len(case.secret)]
    for before, after in zip(case.secret, shown, strict=True):
        run = run + 1 if before == after and before.isalnum() else 0
        longest = max(longest, run)
    return longest


def is_changed_outside(case: Text) -> bool:
    before, _, behind = case.text.partition(case.secret)
    found = masked(case.text)[0]
    return not (found.startswith(before) and found.endswith(behind))


def test_there_are_enough_texts() -> None:
    assert len(TUNED.credentials) + len(HELD_OUT.credentials) >= 300
    assert min(len(half.lookalikes) for half in (TUNED, HELD_OUT)) >= 200
    assert all(case.secret for half in (TUNED, HELD_OUT) for case in half.credentials)


@pytest.mark.slow
@halves
def test_credentials_are_masked(half: Half, recall: float, most_masked: int) -> None:
    readable = [case.text for case in half.credentials if rest_of(case) > LONGEST_REST]
    assert len(readable) <= (1 - recall) * len(half.credentials), readable


@halves
def test_lookalikes_stay(half: Half, recall: float, most_masked: int) -> None:
    hidden = [masked(case.text)[0] for case in half.lookalikes if masked(case.text)[1]]
    assert len(hidden) <= most_masked, hidden


def test_of_all_lookalikes_one_in_two_hundred_is_masked_at_most() -> None:
    texts = [case.text for half in (TUNED, HELD_OUT) for case in half.lookalikes]
    assert 200 * sum(masked(text)[1] > 0 for text in texts) <= len(texts)


@pytest.mark.slow
@halves
def test_names_quotes_and_neighbours_stay(half: Half, recall: float, most_masked: int) -> None:
    changed = [masked(case.text)[0] for case in half.credentials if is_changed_outside(case)]
    assert len(changed) <= 1, changed


@pytest.mark.slow
@pytest.mark.parametrize("half", [TUNED, HELD_OUT], ids=["tuned", "held out"])
def test_a_credential_counts_once(half: Half) -> None:
    counts = [masked(case.text)[1] for case in half.credentials]
    assert max(counts) == 1


@pytest.mark.slow
@pytest.mark.parametrize("half", [TUNED, HELD_OUT], ids=["tuned", "held out"])
def test_nothing_is_left_to_mask(half: Half) -> None:
    for case in (*half.credentials, *half.lookalikes):
        found, _ = masked(case.text)
        assert masked(found) == (found, 0)
        assert [len(line) for line in found.split("\n")] == [len(x) for x in case.text.split("\n")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # Short keys of mixed letters and digits.
        ("export SECRET_TOKEN=Qw8xPz3rTyU7\n", "export SECRET_TOKEN=************\n"),
        ('const token = "Qw8xPz3rTyU7";\n', 'const token = "************";\n'),
        ('token = "RightParen1"\n', None),
        ('nonce_key = "Version12Beta"\n', None),
        # Words for a password in one that has more.
        ("DB_PASSWORD=hunter2secretpw99\n", "DB_PASSWORD=*****************\n"),
        (
            "postgres://admin:S3cretPassw0rd9@db.acme.io\n",
            f"postgres://admin:{'*' * 15}@db.acme.io\n",
        ),
        ("DB_PASSWORD=your-password-here-123\n", None),
        ("token = u2fTokenResponseV2Bytes4User\n", None),
        ("secret = tokenV2Sha1Utf8B64\n", None),
        ("SECRET=example-token-abc123\n", None),
        ('password = "user_secret_1a2b"\n', None),
        # Words with numbers, where nothing but a name stands before them.
        ("db:\n  password: hunter2hunter2\n", "db:\n  password: **************\n"),
        ("PASSWORD=sunflower77", "PASSWORD=***********"),
        ("  - password: sunflower77\r\n", "  - password: ***********\r\n"),
        ("password: sunflower77 # of the box\n", "password: *********** # of the box\n"),
        ("password = sunflower77\n", None),  # in code, a name
        ("x = {\n  password: sunflower77\n}\n", None),
        ("connect(\n    password=sunflower77\n)\n", None),
        ("connect(password=sunflower77)\n", None),
        ("    password: sunflower77,\n", None),
        ("password: sunflower\n", None),
        ("password: p1\n", None),
        ("if x: password: sunflower77\n", None),
    ],
)
def test_short_keys_and_numbered_words_are_told_from_names(text: str, shown: str | None) -> None:
    assert masked(text)[0] == (shown or text)


texts = st.sampled_from([t for case in TUNED.credentials for t in (case.text, case.secret)])
glue = st.one_of(st.text(max_size=6), st.sampled_from(list("\"'=: \n\t-*/\\<>_.@,;")))


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.lists(st.one_of(texts, glue), max_size=8).map("".join))
def test_nothing_moves_and_nothing_is_left(text: str) -> None:
    found, count = masked(text)

    assert len(found) == len(text)
    assert all(new in {old, "*"} for new, old in zip(found, text, strict=True))
    assert [c.isspace() for c in found] == [c.isspace() for c in text]
    assert (count > 0) == (found != text)
    assert masked(found) == (found, 0)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("sign", list("-_.:/@,?=!*$(<'\" "))
def test_no_value_keeps_us_busy(sign: str) -> None:
    masked(f"password = 'abcde1{sign * 1_900}!'\ntoken: abcde1{sign * 390}!\n")
    masked(f"https://ada:abcde1{sign * 1_900}!@x.io\n")


@pytest.mark.long
@pytest.mark.timeout(60)
def test_no_beginning_repeated_keeps_us_busy() -> None:
    for case in TUNED.credentials[::8]:
        for share in (4, 2, 1):
            beginning = case.text[: len(case.text) // share]
            masked(beginning * (50_000 // len(beginning) + 1))
    masked("-eyJ" * 50_000)
