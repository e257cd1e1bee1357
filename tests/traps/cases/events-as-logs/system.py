"""Fails with an exception, as a span event or as a log record by its path; else it is healthy."""

import time

from sender import now, pairs, send, send_logs, serve, span

EXCEPTION = {"exception.type": "TimeoutError", "exception.message": "the bank did not answer"}


def handle(caller, answer):
    time.sleep(0.005)
    answer()
    events = []
    if caller["path"] == "/events":
        events = [{"timeUnixNano": str(now()), "name": "exception", "attributes": pairs(EXCEPTION)}]
    request = span(caller, "POST /orders", "server", events=events)
    if caller["path"] == "/logs":
        ids = {"traceId": request["traceId"], "spanId": request["spanId"]}
        send_logs("shop", {"timeUnixNano": str(now()), "eventName": "exception", "attributes": pairs(EXCEPTION)} | ids)
    send("shop", request)


serve(handle)
