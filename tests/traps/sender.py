"""A service made by hand: it answers HTTP and sends spans as OTLP/JSON. Standard library only.

A case's `system.py` calls `serve(handle)`. `handle(caller, answer)` runs in a thread for each request; it answers when
it likes, and may go on working behind the answer. On SIGTERM requests in flight are finished, as a good service does.
"""

import json
import os
import secrets
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
MS = 1_000_000
LIFETIME_S = 300

now = time.time_ns


def span(parent, name, kind="internal", start=None, end=None, error=False, attributes=None, **fields):
    """A span below `parent`: a span, or the caller. None begins a trace of its own."""
    made = {
        "traceId": parent["traceId"] if parent else secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": name,
        "kind": KINDS[kind],
        "startTimeUnixNano": str(start or (parent["startTimeUnixNano"] if parent else now())),
        "endTimeUnixNano": str(end or now()),
        "attributes": pairs(attributes or {}),
        "status": {"code": 2, "message": "boom"} if error else {},
    }
    if parent:
        made["parentSpanId"] = parent["spanId"]
    return made | fields


def pairs(attributes):
    def value(it):
        return {"intValue": str(it)} if isinstance(it, int) else {"stringValue": it}

    return [{"key": key, "value": value(it)} for key, it in attributes.items()]


def send(service, *spans, to=None, token=None):
    """Sends spans as one export, and returns the status of the answer; 0 where nobody answered."""
    return post("/v1/traces", body_of(service, *spans), to, token)


def body_of(service, *spans):
    """The body of an export."""
    scopes = [{"scope": {"name": "by hand"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": resource(service), "scopeSpans": scopes}]}


def send_logs(service, *records, to=None):
    """Sends log records as one export."""
    scopes = [{"scope": {"name": "by hand"}, "logRecords": list(records)}]
    return post("/v1/logs", {"resourceLogs": [{"resource": resource(service), "scopeLogs": scopes}]}, to)


def resource(service):
    given = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    attributes = dict(pair.split("=", 1) for pair in given.split(",") if "=" in pair)
    attributes |= {"service.name": service, "host.name": "host-1", "process.pid": os.getpid()}
    return {"attributes": pairs(attributes)}


def post(path, body, to=None, token=None, method="POST"):
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    address = (to or os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]).rstrip("/") + path
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def serve(handle):
    """Answers on 127.0.0.1:$PORT until SIGTERM, or until whoever started this process is gone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            trace, parent = (self.headers.get("traceparent") or "--").split("-")[1:3]
            caller = {"traceId": trace, "spanId": parent, "startTimeUnixNano": str(now()), "path": self.path}
            handle(caller, self.answer)

        do_POST = do_GET

        def answer(self, body=b'{"ok":true}'):
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False
        request_queue_size = 64

    def leave(*_):
        sys.exit(0)

    def watch(parent, until):
        while os.getppid() == parent and time.monotonic() < until:
            time.sleep(0.5)
        os._exit(1)

    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=watch, args=(os.getppid(), time.monotonic() + LIFETIME_S), daemon=True).start()
    with Server(("127.0.0.1", int(os.environ["PORT"])), Handler) as server:
        server.serve_forever(poll_interval=0.05)
