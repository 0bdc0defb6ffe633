"""What `clear` says before it asks."""

from pathlib import Path

from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.console import belongings
from vector_index_mcp.console.belongings import Belongings
from vector_index_mcp.console.clear import of_user
from vector_index_mcp.settings import Settings
from vector_index_mcp.sharing.place import TOOL_SET


def test_services_are_called_what_they_are(tmp_path, monkeypatch, capsys):
    services = [
        Endpoint(tmp_path, "one", "codebase", "/code/shop"),
        Endpoint(tmp_path, "two", TOOL_SET, str(Path("/embedding-worker-8b30"))),
    ]
    monkeypatch.setattr(belongings, "of_user", lambda _: Belongings(services))
    of_user(Settings(), is_agreed=False, is_shown_only=True)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "ends    the background service of /code/shop",
        "ends    the embedding worker that all services share",
    ]
