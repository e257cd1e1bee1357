"""The shop calls the ledger, and both send their spans; others call both 200 times a second."""

import threading
import time

from sender import MS, now, send, serve, span

PEER = {"server.address": "ledger", "server.port": 8080}


def order(caller):
    began = now()
    time.sleep(0.01)
    ended = now()
    request = span(caller, "POST /orders", "server", start=began)
    call = span(request, "POST", "client", start=began, end=ended, attributes=PEER)
    entry = span(call, "POST /entries", "server", start=began + 2 * MS, end=ended - 2 * MS)
    return (request, call), entry


def handle(caller, answer):
    shop, ledger = order(caller)
    answer()
    send("shop", *shop)
    send("ledger", ledger)


def others():
    while True:
        began = time.monotonic()
        orders = [order(None) for _ in range(5)]
        send("shop", *(one for shop, _ in orders for one in shop))
        send("ledger", *(ledger for _, ledger in orders))
        time.sleep(max(0, began + 0.05 - time.monotonic()))


for _ in range(2):
    threading.Thread(target=others, daemon=True).start()
serve(handle)
