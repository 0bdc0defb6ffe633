"""A credential in an ordinary file: neither stored nor embedded nor returned, but counted."""

import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, contents, serving, settled
from writing import write

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "a1B2" * 9


async def test_a_credential_is_masked_before_anything_sees_it(tmp_path):
    root, embedder = tmp_path / "project", FakeEmbedder()
    write(root, {"login.py": f"def login(client):\n    client.login('{SECRET}', retries=3)\n"})

    async with serving(codebase_of(root, embedder)) as client:
        status = await settled(client)
        answer = await call(client, "search_index", query="login client retries")

    assert (status["masked_credential_count"], status["masked_files"]) == (1, ["login.py"])
    [hit] = answer["results"]
    masked = "*" * len(SECRET)
    assert hit["extracted_text_chunk"] == (
        f"def login(client):\n    client.login('{masked}', retries=3)\n"
    )
    assert not any(SECRET in text for text in embedder.texts)
    rows, records = await contents(root / ".lancedb")
    assert SECRET not in str(rows)
    assert records["login.py"].masked == 1


async def test_the_count_goes_down_when_the_credential_is_gone(tmp_path):
    root = tmp_path / "project"
    write(root, {"login.py": f"token = '{SECRET}'\n", "other.py": "x = 1\n"})

    async with serving(codebase_of(root, FakeEmbedder())) as client:
        await settled(client)
        write(root, {"login.py": "token = read_token()\n"})
        await call(client, "trigger_index")

        status = await settled(client)
        assert (status["masked_credential_count"], status["masked_files"]) == (0, [])
