"""Large responses: 64 of 16 MB at once with verdicts that depend on them, and 500 secrets that are masked in one."""

import secrets
import time
import urllib.parse
from datetime import datetime

from goals import MEMORY_MIB_GOAL, centile, probe_rows, row
from world import Server, free_port, probing

RUNS, BYTES = 64, 16_000_000
MASK_SECONDS_GOAL = 1.0
END_SECONDS = 300
WHO = "alpha editor"


def large_responses(binary, cluster, folder):
    """64 runs at once whose responses have 16 MB, a third of which must fail; and 500 secrets over such a response."""
    server = Server(binary, cluster, folder, "loopback")
    try:
        port = free_port()
        for last in (7, 8):
            server.beside("target", port, last, until_open=port)
        with probing(server) as probes:
            right, unended, took = flood(server, port)
            peak = server.memory()
            masked = [mask(server, port, text) for text in ("a", "a\\", server.secret[:39] + "-")]
    finally:
        server.close()
    print(f"{RUNS} responses of {BYTES / 1e6:.0f} MB at once: {right} verdicts right, {unended} without an end, {took:.1f} s, "
          f"at most {peak} MiB; masked in {', '.join(f'{it:.2f} s' for it in masked)}; "
          f"probes {centile(99, probes):.1f} ms, {centile(100, probes):.1f} ms at most", flush=True)
    name = "large_responses"
    return [row(name, "right verdicts", right, "verdicts", RUNS, least=True),
            row(name, "runs that did not end", unended, "runs", 0),
            row(name, "server's memory, most", peak, "MiB", MEMORY_MIB_GOAL),
            row(name, "until the last verdict", round(took, 1), "s", None),
            row(name, "500 secrets masked in 16 MB, longest of three texts", round(max(masked), 3), "s", MASK_SECONDS_GOAL),
            *probe_rows(name, probes)]


def flood(server, port):
    """How many verdicts were right, how many runs did not end, and the seconds that all of it took."""
    expected = {}
    for number in range(RUNS):
        # The end of the body is in the claim, so that no part of it can be missing; each has its own.
        end, host = f"end-{number}.", f"127.0.0.{7 + number % 2}"
        claims, right = [(["response.status = 200", f'response.body ends-with "{end}"'], "passed"),
                         (["response.status = 201", f'response.body ends-with "{end}"'], "failed"),
                         (["response.status = 200", f'response.body ends-with "end-{number + 1}."'], "failed"),
                         (["response.status = 200", f'response.body contains "{end}"'], "passed")][number % 4]
        # All of them answer at about the same time, when all were called.
        query = urllib.parse.urlencode({"n": BYTES - len(end), "c": "abcdefghij\x01klmnop ", "s": 3, "end": end})
        trigger = {"type": "http", "timeout": "4m", "httpRequest": {"method": "GET", "url": f"http://{host}:{port}/big?{query}"}}
        server.put(WHO, "Test", id=f"large{number}", trigger=trigger, trace=claims, skipTraceCollection=True)
        expected[f"large{number}"] = right
    began = time.monotonic()
    runs = {server.begin(WHO, test): right for test, right in expected.items()}
    verdicts = server.verdicts(WHO, runs, END_SECONDS)
    right = sum(verdicts.get(run) == it for run, it in runs.items())
    return right, RUNS - len(verdicts), time.monotonic() - began


def mask(server, port, text):
    """Seconds from a response of 16 MB to its judgement, which is when its secrets are masked."""
    values = [{"key": f"S{number}", "value": secrets.token_hex(20), "type": "secret"} for number in range(498)]
    values += [{"key": "EQUAL", "value": "a" * 500, "type": "secret"}, {"key": "NEAR", "value": server.secret, "type": "secret"}]
    query = urllib.parse.urlencode({"n": BYTES, "c": text})
    trigger = {"type": "http", "httpRequest": {"method": "GET", "url": f"http://127.0.0.7:{port}/big?{query}"}}
    server.put(WHO, "VariableSet", id="many", values=values)
    server.put(WHO, "Test", id="mask", trigger=trigger, trace=["response.status = 200"], skipTraceCollection=True)
    told = server.ended(WHO, server.begin(WHO, "mask", ["many"]), limit=60)
    if told["verdict"] != "passed":
        raise RuntimeError(f"the run with many secrets is {told['verdict']}")
    steps = {step["step"]: step for step in told["outcome"]["steps"]}
    at = lambda time_: datetime.fromisoformat(time_[:26].rstrip("Z") + "+00:00")  # noqa: E731
    return (at(steps["judge"]["began"]) - at(steps["trigger"]["ended"])).total_seconds()
