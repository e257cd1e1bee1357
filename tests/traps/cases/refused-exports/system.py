"""Sends a healthy span, and its failure so that it is refused; by its path."""

import time

from sender import body_of, now, pairs, post, send, serve, span

FAILURE = {"events": [{"timeUnixNano": str(now()), "name": "exception", "attributes": pairs({"exception.type": "Boom"})}]}


def handle(caller, answer):
    time.sleep(0.005)
    request = span(caller, "POST /orders", "server")
    failed = span(request, "charge", error=True, **FAILURE)
    match caller["path"]:
        case "/path":
            post("/v1/trace", body_of("shop", failed))
        case "/method":
            post("/v1/traces", body_of("shop", failed), method="PUT")
        case "/nameless":
            send("shop", failed | {"traceId": "0" * 32})
        case "/logs":
            post("/v1/logs", ["no export"])
        case "/probe":
            post("/", None, method="GET")
    send("shop", request)
    answer()


serve(handle)
