"""Stand-ins on loopback: the API of GitHub for comments of a pull request, and the files of a release.

They answer what the documentation of GitHub describes, as far as the action uses it. GitHub itself was never called.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOOPBACK = "127.0.0.1"
TOKEN = "token-of-the-job"
BOT = "github-actions[bot]"
REPOSITORY = "shop/cart"
CHARACTERS_MAX = 65536


class Served:
    """A server in a thread, as long as the context."""

    def __init__(self, handler):
        self.server = ThreadingHTTPServer((LOOPBACK, 0), handler)
        self.url = f"http://{LOOPBACK}:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Forge(Served):
    """The comments of one pull request, and every request for them."""

    def __init__(self, status=None, writer=BOT):
        forge = self
        self.comments, self.requests = [], []
        self.status, self.writer = status, writer

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                forge.answer(self, "GET")

            def do_POST(self):
                forge.answer(self, "POST")

            def do_PATCH(self):
                forge.answer(self, "PATCH")

        super().__init__(Handler)

    def add(self, login, body):
        comment = {"id": 1000 + len(self.comments), "user": {"login": login}, "body": body}
        comment["html_url"] = f"https://github.example/{REPOSITORY}/pull/7#issuecomment-{comment['id']}"
        self.comments.append(comment)
        return comment

    def methods(self):
        return [method for method, _ in self.requests]

    def answer(self, handler, method):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.requests.append((method, handler.path))
        if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.send(handler, 401, {"message": "Bad credentials"})
        if self.status is not None and method != "GET":
            return self.send(handler, self.status, {"message": "Resource not accessible by integration"})
        if method != "GET":
            text = json.loads(body)["body"]
            if not text or len(text) > CHARACTERS_MAX:
                return self.send(handler, 422, {"message": "Validation Failed"})
        listed = re.fullmatch(rf"/repos/{REPOSITORY}/issues/7/comments(?:\?per_page=(\d+)&page=(\d+))?", handler.path)
        one = re.fullmatch(rf"/repos/{REPOSITORY}/issues/comments/(\d+)", handler.path)
        if method == "GET" and listed and listed.group(1):
            size, page = int(listed.group(1)), int(listed.group(2))
            is_more = len(self.comments) > size * page
            link = f'<{self.url}{handler.path[:-len(str(page))]}{page + 1}>; rel="next"' if is_more else None
            return self.send(handler, 200, self.comments[size * (page - 1):size * page], link)
        if method == "POST" and listed:
            return self.send(handler, 201, self.add(self.writer, text))
        found = one and [it for it in self.comments if it["id"] == int(one.group(1))]
        if method == "PATCH" and found:
            found[0]["body"] = text
            return self.send(handler, 200, found[0])
        return self.send(handler, 404, {"message": "Not Found"})

    def send(self, handler, status, value, link=None):
        text = json.dumps(value).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json; charset=utf-8")
        handler.send_header("Content-Length", str(len(text)))
        if link:
            handler.send_header("Link", link)
        handler.end_headers()
        handler.wfile.write(text)


class Download(Served):
    """The files of a release. `changed` has other bytes for some of them."""

    def __init__(self, folder, changed=None):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                name = self.path.rpartition("/")[2]
                file = Path(folder) / name
                if name in (changed or {}):
                    content = changed[name]
                elif name and file.is_file():
                    content = file.read_bytes()
                else:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        super().__init__(Handler)
