"""Sends a span without an error, and does not answer before the trigger gives up."""

import time

from sender import send, serve, span


def handle(caller, answer):
    send("shop", span(caller, "POST /orders", "server"))
    time.sleep(3)
    answer()


serve(handle)
