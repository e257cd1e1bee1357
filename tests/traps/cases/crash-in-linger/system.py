"""Answers, sends its span, and dies 0.15 s later with the rest of its work."""

import os
import signal
import threading
import time

from sender import send, serve, span


def handle(caller, answer):
    answer()
    send("shop", span(caller, "POST /orders", "server"))
    time.sleep(0.15)
    os.kill(os.getpid(), signal.SIGSEGV)
    threading.Event().wait()


serve(handle)
