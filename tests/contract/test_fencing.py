"""What Lance refuses once a table is fenced: every commit of whoever opened it before."""

import lancedb
import pyarrow as pa
import pytest
from lancedb.index import BTree

from vector_index_mcp.engine.store.fencing import fence

pytestmark = pytest.mark.anyio

ROWS = pa.table({"key": ["a", "b", "c"], "value": [1, 2, 3]})
MORE = pa.table({"key": ["c", "d"], "value": [30, 40]})


async def merge(table):
    merging = table.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    await merging.execute(MORE)


COMMITS = {
    "add": lambda table: table.add(MORE),
    "merge": merge,
    "delete": lambda table: table.delete("key = 'a'"),
    "update": lambda table: table.update({"value": 9}),
    "new index": lambda table: table.create_index("key", config=BTree()),
    "new column": lambda table: table.add_columns({"other": "value + 1"}),
}


async def opened(folder):
    """The table as one more writer opens it, who sees what is committed later only by its own."""
    db = await lancedb.connect_async(str(folder))
    return await db.open_table("some")


@pytest.fixture
async def table(tmp_path):
    db = await lancedb.connect_async(str(tmp_path))
    await db.create_table("some", ROWS)
    return await opened(tmp_path)


async def rows_in(folder):
    return (await (await opened(folder)).to_arrow()).to_pydict()


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
async def test_no_commit_of_an_earlier_writer_arrives(table, tmp_path, commit):
    later = await opened(tmp_path)
    await fence(later)
    with pytest.raises((RuntimeError, ValueError), match=r"(?i)conflict|incompatible"):
        await commit(table)
    assert await rows_in(tmp_path) == ROWS.to_pydict()
    await commit(later)  # whereas who has fenced goes on


async def test_maintenance_of_an_earlier_writer_changes_no_row(table, tmp_path):
    for number in range(5):
        await table.add(pa.table({"key": [f"n{number}"], "value": [number]}))
    before = await rows_in(tmp_path)
    later = await opened(tmp_path)
    await fence(later)
    with pytest.raises(RuntimeError, match=r"(?i)conflict|incompatible"):
        await table.optimize()
    assert await rows_in(tmp_path) == before


async def test_what_is_committed_while_one_fences_is_kept(table, tmp_path):
    """An earlier writer's commit may arrive between the look at the version and its restoring."""
    later = await opened(tmp_path)
    real = later.restore

    class Slow:
        async def restore(self, version):
            if not self.late:
                self.late = True
                await table.add(MORE)
            await real(version)

        late = False

        async def version(self):
            return await later.version()

    await fence(Slow())
    found = await rows_in(tmp_path)
    assert found["key"] == ["a", "b", "c", "c", "d"]
    with pytest.raises(RuntimeError):
        await table.add(MORE)
