"""The shop calls the ledger; on `/lost` the ledger does not continue the trace, and fails."""

import time

from sender import MS, now, send, serve, span

PEER = {"server.address": "ledger", "server.port": 8080}


def handle(caller, answer):
    is_lost = caller["path"] == "/lost"
    began = now()
    time.sleep(0.05)
    ended = now()
    answer()
    request = span(caller, "POST /orders", "server")
    call = span(request, "POST", "client", start=began, end=ended, attributes=PEER)
    parent = None if is_lost else call
    send("shop", request, call)
    send("ledger", span(parent, "POST /entries", "server", start=began + 2 * MS, end=ended - 2 * MS, error=is_lost))


serve(handle)
