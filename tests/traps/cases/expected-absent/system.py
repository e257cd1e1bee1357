"""Answers with a span of its own; the mailer, which the test expects, never sends."""

from sender import send, serve, span


def handle(caller, answer):
    answer()
    send("shop", span(caller, "POST /orders", "server"))


serve(handle)
