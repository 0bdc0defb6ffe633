"""A server of LanceDB's own for tests: as much of its API as the program asks for.

Tables are kept in memory; a query returns all rows, whatever it asks for.
"""

import io
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pyarrow.compute as pc

KEY = "sk-of-a-test"
_TYPES = {pa.string(): "string", pa.int32(): "int32", pa.int64(): "int64", pa.float64(): "double"}
_TYPES |= {pa.bool_(): "bool", pa.float32(): "float"}


def _type_of(kind):
    if pa.types.is_fixed_size_list(kind):
        fields = [{"name": "item", "type": _type_of(kind.value_type), "nullable": True}]
        return {"type": "fixed_size_list", "fields": fields, "length": kind.list_size}
    if pa.types.is_list(kind):
        fields = [{"name": "item", "type": _type_of(kind.value_type), "nullable": True}]
        return {"type": "list", "fields": fields}
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field_of(field) for field in kind]}
    return {"type": _TYPES[kind]}


def _field_of(field):
    return {"name": field.name, "type": _type_of(field.type), "nullable": field.nullable}


class LanceServer:
    """What it holds, and what it was asked."""

    def __init__(self):
        self.tables = {}
        self.asked = []
        self.indices = {}
        """The columns of each table that are indexed, or will be."""
        self.looks_until_indexed = 0
        """How often it says that an index is not there yet."""
        self.status = 0
        """Of every answer; 0 for those that are deserved."""

    def answer(self, path, body):
        """The status and the content of an answer."""
        self.asked.append(path)
        if path.endswith("/table/list"):
            return 200, {"tables": sorted(self.tables)}
        name, _, verb = re.fullmatch(r"/v1/table/([^/]+)/(([a-z_]+)/?.*)", path).groups()
        name, verb = name.rpartition("$")[2], path.split("/")[4]
        if verb == "create":
            self.tables[name] = pa.ipc.open_stream(body).read_all()
        table = self.tables.get(name)
        if table is None:
            return 404, {"error": "not found"}
        return 200, self._done(name, table, verb, path, body)

    def _done(self, name, table, verb, path, body):
        if verb == "describe":
            fields = [_field_of(field) for field in table.schema]
            return {"table": name, "version": 1, "schema": {"fields": fields}}
        if verb == "count_rows":
            return table.num_rows
        if verb == "create_index":
            self.indices.setdefault(name, []).append(json.loads(body)["column"])
        if verb == "index":
            return self._index(name, path)
        if verb == "query":
            return _queried(table, json.loads(body))
        if verb in {"insert", "merge_insert"}:
            self._insert(name, table, pa.ipc.open_stream(body).read_all(), verb)
        if verb == "add_columns" and "vector" not in table.column_names:
            kind = pa.list_(pa.float32(), 64)
            added = table.append_column("vector", pa.nulls(table.num_rows, kind))
            self.tables[name] = added
        return {"version": 8}

    def _index(self, name, path):
        """What is said of one index, or of all that a table has."""
        if path.endswith("/stats/"):
            return {"num_indexed_rows": 0, "num_unindexed_rows": 0, "index_type": "BTREE"}
        self.looks_until_indexed -= 1
        columns = self.indices.get(name, []) if self.looks_until_indexed < 0 else []
        return {"indexes": [{"index_name": f"{c}_idx", "columns": [c]} for c in columns]}

    def _insert(self, name, table, rows, verb):
        key = "file_path" if verb == "merge_insert" else "document_id"
        is_new = pc.invert(pc.is_in(table.column(key), rows.column(key)))
        kept = table.filter(is_new)
        self.tables[name] = pa.concat_tables([kept, rows.select(kept.column_names)])


def _queried(table, query):
    wanted = query.get("columns") or table.column_names
    wanted = wanted.get("column_names", []) if isinstance(wanted, dict) else wanted
    for score in {"_score", "_distance"} & set(wanted):
        table = table.append_column(score, pa.array([0.5] * table.num_rows, pa.float32()))
    table = table.select(wanted)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: LanceServer

    def _answer(self):
        body = self._body()
        status, content = self.served.status, {"error": str(self.headers)}
        if self.headers.get("x-api-key") != KEY:
            status = 401
        if not status:
            status, content = self.served.answer(self.path.partition("?")[0], body)
        is_file = isinstance(content, bytes)
        kind = "application/vnd.apache.arrow.file" if is_file else "application/json"
        data = content if is_file else json.dumps(content).encode()
        self.send_response_only(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self):
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = _answer

    def log_message(self, *arguments):
        """Say nothing."""


@contextmanager
def lancedb_server():
    """Such a server, and its address."""
    served = LanceServer()
    handler = type("Handler", (_Handler,), {"served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield served, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
