"""The echo service on the Python SDK, instrumented by `opentelemetry-instrument`. What it must send: ../README.md."""

import os
import urllib.error
import urllib.request

from flask import Flask
from opentelemetry import trace
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
BYTES = bytes([0x00, 0x7F, 0x80, 0xFF])

ATTRIBUTES = {
    "text": "plain",
    "text.empty": "",
    "text.unicode": "Grüße, 世界 🦀",
    "text.escapes": 'tab\t line\n quote" slash\\ bell\x07 del\x7f',
    "flag.true": True,
    "flag.false": False,
    "int.max": INT_MAX,
    "int.min": INT_MIN,
    "int.zero": 0,
    "int.safe.max": 2**53 - 1,
    "int.safe.min": -(2**53) + 1,
    "double.fraction": 0.1,
    "double.whole": 3.0,
    "double.negative": -2.5,
    "double.largest": 1.7976931348623157e308,
    "double.smallest": 5e-324,
    "double.infinite": float("inf"),
    "double.nan": float("nan"),
    "texts": ["a", "", "ß"],
    "texts.none": [],
    "flags": [True, False],
    "ints": [-1, 0, 2**53 - 1],
    "doubles": [0.5, -2.25, 1e-9],
    "bytes": BYTES,
    "bytes.empty": b"",
    "mixed": ["a", 1, True, 0.5, BYTES, None, ["inner"]],
    "map": {"text": "ß", "int": 1, "flag": True, "double": 0.5, "inner": {"list": [1, "two"]}, "nothing": None},
    "map.empty": {},
}

app = Flask(__name__)
tracer = trace.get_tracer("echo", "1.2.3")


@app.get("/echo")
def echo():
    kinds()
    failed_call()
    return "echo"


@app.get("/plain")
def plain():
    return "plain"


def kinds():
    linked = SpanContext(
        trace_id=0x0AF7651916CD43DD8448EB211C80319C,
        span_id=0xB7AD6B7169203331,
        is_remote=True,
        trace_flags=TraceFlags(1),
        trace_state=TraceState([("vendor", "value")]),
    )
    links = [Link(linked, {"link.text": "ß", "link.int": 7})]
    with tracer.start_as_current_span("kinds", kind=SpanKind.PRODUCER, links=links, attributes=ATTRIBUTES) as span:
        span.add_event("noted", {"event.text": "ß", "event.int": 7, "event.double": 0.25, "event.flags": [True, False]})
        span.set_status(Status(StatusCode.ERROR, "it went wrong: Größe 🚫"))


def failed_call():
    """Nobody listens on the port of `discard`."""
    try:
        urllib.request.urlopen("http://127.0.0.1:9/nobody", timeout=5)
    except urllib.error.URLError:
        pass


app.run(host="127.0.0.1", port=int(os.environ["PORT"]))
