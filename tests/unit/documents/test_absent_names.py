"""Names in a query over documents, and whether texts have them."""

import pytest

from vector_index_mcp.documents.absent import names_in, names_outside


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("what does PAY-CERT-18 mean", ["PAY-CERT-18"]),
        ("ERR_CODE in HttpClient v2.1.0", ["ERR_CODE", "HttpClient", "v2.1.0"]),
        ("the 2nd budget at 10am of 2024-01-02", []),
        ("AB-1 und größe_x1", []),  # short; of several spellings
        (" ".join(f"name_{n}" for n in range(9)), ["name_0", "name_1", "name_2"]),
        ("x" * 101 + "_1", []),
        ("", []),
    ],
)
def test_words_of_letters_and_digits_or_with_underscores_are_names(query, names):
    assert names_in(query) == names


@pytest.mark.parametrize(
    ("name", "text", "is_there"),
    [
        ("PAY-CERT-18", "of pay-cert-18.", True),
        ("PAY-CERT-18", "of PAY-CERT-17 and 18", False),
        ("PAY-CERT-1", "of PAY-CERT-17", False),
        ("7-ELEVEN", "17-eleven", False),
        ("HttpClient", "two HttpClients", True),
        ("err_code_8", r"err\_code\_8", True),
        ("err_code_8", "err&#95;code&lowbar;8", True),
        ("err_code_8", "**err**_code_<b>8</b>", True),
        ("err_code_8", "err" + " " * 7 + "code_8", False),
    ],
)
def test_a_name_stands_there_however_it_is_written(name, text, is_there):
    assert names_outside([name], ["other", text]) == ([] if is_there else [name])


def test_of_no_names_no_text_is_read():
    assert names_outside([], (1 / 0 for _ in range(1))) == []
