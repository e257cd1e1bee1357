"""The part of ClickHouse's HTTP interface that the tests need, over the engine in this process.

The arguments are the address, the port and the folder of the data. A request has its own connection, and so its own
settings. The header `X-Test-Profile` stands for the settings profile of a user: what it contains is set before the query.
"""

import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import chdb

HTTP_ONLY = {"query", "wait_end_of_query"}
STATUSES = {60: 404, 81: 404, 47: 404, 62: 400, 457: 400, 164: 403, 497: 403, 159: 408}


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, b"Ok.\n")

    def do_POST(self):
        given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        # A statement in the URL is that of an INSERT, whose data is the body.
        sql = f"{given['query']}\n{body}" if "query" in given else body
        bound = {name[len("param_"):]: value for name, value in given.items() if name.startswith("param_")}
        settings = {name: value for name, value in given.items() if not name.startswith("param_") and name not in HTTP_ONLY}
        connection = chdb.connect(DATA)
        try:
            if profile := self.headers.get("x-test-profile"):
                connection.query(f"SET {profile}")
            for name, value in settings.items():
                connection.query(f"SET {name} = '{value}'")
            self.answer(200, connection.query(sql, "JSONEachRow", params=bound).bytes() or b"")
        except Exception as error:
            code = int((re.search(r"Code: (\d+)", str(error)) or [0, 0])[1])
            headers = {"X-ClickHouse-Exception-Code": str(code)}
            self.answer(STATUSES.get(code, 500), f"{error}\n".encode(), headers)
        finally:
            connection.close()

    def answer(self, status, body, headers={}):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


HOST, PORT, DATA = sys.argv[1:]
# The engine stops with its last connection.
ENGINE = chdb.connect(DATA)
ThreadingHTTPServer((HOST, int(PORT)), Front).serve_forever()
