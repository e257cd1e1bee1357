"""Large responses: 64 of 16 MB at once with verdicts that depend on them, and 500 secrets that are masked in one."""

import json
import secrets
import threading
import time
import urllib.parse
from datetime import datetime

from world import Server, ask, free_port

RUNS, BYTES = 64, 16_000_000
MEMORY_MIB_GOAL, MASK_SECONDS_GOAL, PROBE_MS_GOAL = 1024, 1.0, 200
END_SECONDS = 300
WHO = "alpha editor"


def large_responses(binary, cluster, folder):
    """64 runs at once whose responses have 16 MB, a third of which must fail; and 500 secrets over such a response."""
    server = Server(binary, cluster, folder, "loopback")
    try:
        port = free_port()
        for last in (7, 8):
            server.beside("target", port, last, until_open=port)
        probes, done = [], threading.Event()
        prober = threading.Thread(target=probe, args=(server, probes, done))
        prober.start()
        try:
            right, unended, took = flood(server, port)
            peak = server.memory()
            masked = [mask(server, port, text) for text in ("a", "a\\", server.secret[:39] + "-")]
        finally:
            done.set()
            prober.join()
    finally:
        server.close()
    probes = sorted(took * 1000 for took in probes)
    p99 = probes[len(probes) * 99 // 100]
    print(f"{RUNS} responses of {BYTES / 1e6:.0f} MB at once: {right} verdicts right, {unended} without an end, {took:.1f} s, "
          f"at most {peak} MiB; masked in {', '.join(f'{it:.2f} s' for it in masked)}; "
          f"probes {p99:.1f} ms, {probes[-1]:.1f} ms at most", flush=True)

    def row(what, value, unit, goal, met):
        return {"name": f"large_responses: {what}", "value": value, "unit": unit, "goal": goal, "met": met}
    return [row("right verdicts", right, "verdicts", RUNS, right == RUNS),
            row("runs that did not end", unended, "runs", 0, unended == 0),
            row("server's memory, most", peak, "MiB", MEMORY_MIB_GOAL, peak < MEMORY_MIB_GOAL),
            row("until the last verdict", round(took, 1), "s", None, None),
            row("500 secrets masked in 16 MB, longest of three texts", round(max(masked), 3), "s", MASK_SECONDS_GOAL,
                max(masked) < MASK_SECONDS_GOAL),
            row("probes, 99th percentile", round(p99, 1), "ms", PROBE_MS_GOAL, p99 < PROBE_MS_GOAL),
            row("probes, longest", round(probes[-1], 1), "ms", PROBE_MS_GOAL, probes[-1] < PROBE_MS_GOAL)]


def probe(server, probes, done):
    while not done.wait(0.05):
        status, _, took = ask(server.http, "GET", "/livez", timeout=10)
        probes.append(took if status == 200 else max(took, 10.0))


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
        status, body = server.put(WHO, "Test", id=f"large{number}", trigger=trigger, trace=claims, skipTraceCollection=True)
        if status >= 300:
            raise RuntimeError(f"a test was not taken: {status} {body[:300]}")
        expected[f"large{number}"] = right
    began = time.monotonic()
    runs = {server.begin(WHO, test): right for test, right in expected.items()}
    right, left = 0, set(runs)
    while left and time.monotonic() < began + END_SECONDS and server.process.poll() is None:
        status, body, _ = server.api("GET", "/api/v1/runs?project=alpha&limit=100", WHO, timeout=20)
        for item in json.loads(body)["items"] if status == 200 else []:
            if item["id"] in left and item["state"] == "ended":
                left.discard(item["id"])
                right += item["verdict"] == runs[item["id"]]
        time.sleep(0.5)
    return right, len(left), time.monotonic() - began


def mask(server, port, text):
    """Seconds from a response of 16 MB to its judgement, which is when its secrets are masked."""
    values = [{"key": f"S{number}", "value": secrets.token_hex(20), "type": "secret"} for number in range(498)]
    values += [{"key": "EQUAL", "value": "a" * 500, "type": "secret"}, {"key": "NEAR", "value": server.secret, "type": "secret"}]
    query = urllib.parse.urlencode({"n": BYTES, "c": text})
    trigger = {"type": "http", "httpRequest": {"method": "GET", "url": f"http://127.0.0.7:{port}/big?{query}"}}
    for kind, spec in (("VariableSet", {"id": "many", "values": values}),
                       ("Test", {"id": "mask", "trigger": trigger, "trace": ["response.status = 200"], "skipTraceCollection": True})):
        status, body = server.put(WHO, kind, **spec)
        if status >= 300:
            raise RuntimeError(f"`{spec['id']}` was not taken: {status} {body[:300]}")
    told = server.ended(WHO, server.begin(WHO, "mask", ["many"]), limit=60)
    if told["verdict"] != "passed":
        raise RuntimeError(f"the run with many secrets is {told['verdict']}")
    steps = {step["step"]: step for step in told["outcome"]["steps"]}
    at = lambda time_: datetime.fromisoformat(time_[:26].rstrip("Z") + "+00:00")  # noqa: E731
    return (at(steps["judge"]["began"]) - at(steps["trigger"]["ended"])).total_seconds()
