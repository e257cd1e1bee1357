"""The first request makes one order at once and another 0.5 s after its response."""

import time

from sender import send, serve, span


def handle(caller, answer):
    answer()
    request = span(caller, "POST /orders", "server")
    send("shop", request, span(request, "make"))
    time.sleep(0.5)
    send("shop", span(request, "make"))


serve(handle)
