"""`load.py CONTEXT SECONDS`: what beta does all the time, as a process of its own: it starts runs, waits for their verdicts and
reads. Its system sends its spans and tries again where it is told to, as SDKs do. Prints what it saw as one line of JSON."""

import asyncio
import json
import random
import sys
import time

from wire import LOOPBACK, Caller, Ledger, every, export_of, span

READS_EACH = 1 / 40  # seconds
STARTS_EACH = 1 / 4
FOLLOWS_EACH = 1.0
WAIT_SECONDS = 0.15  # until a run is first asked whether it has ended; then twice as long each time, up to a second
END_SECONDS = 40  # a run that has not ended by then did not end; half of it where the load is short
RETRY_SECONDS = 10  # for so long an SDK tries to send a span


class Beta:
    def __init__(self, context, seconds):
        self.context, self.seconds, self.canary = context, seconds, context["canaries"]["beta"]
        self.ledger = Ledger(context["canaries"]["alpha"])
        self.times, self.ends, self.wrong, self.unended, self.runs, self.unstarted, self.failed = [], [], [], 0, 0, 0, 0
        self.refused, self.follows, self.unfollowed, self.known = 0, 0, [], []
        self.notes = open(context["notes"], "a", encoding="ascii")

    async def ask(self, kind, method, path, who, timed=True, **more):
        """Each on a new connection: whoever comes new must be served too."""
        caller = Caller(self.ledger)
        status, data, took = await caller.ask(kind, self.port("http"), method, path, self.context["tokens"][who], kept=False, **more)
        if timed:
            self.times.append((kind, took))
        return status, data

    def port(self, name):
        """Of one of the servers that beta calls."""
        return random.choice(self.context["ports"]["beta"][name])

    async def system(self, reader, writer):
        """The system under test: it sends one span for each request, and then answers."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            if head.startswith("GET /hang"):  # alpha calls the same system
                await asyncio.sleep(900)
            parent = next(line for line in head.lower().split("\r\n") if line.startswith("traceparent:"))
            _, trace, parent, _ = parent.partition(":")[2].strip().split("-")
            self.notes.write(f"trace {trace} {parent}\n")
            self.notes.flush()
            await self.export(trace, parent, "\n".join(line for line in head.split("\r\n") if line.startswith("x-")))
            body = f"answer {self.canary}-response".encode()
            writer.write(f"HTTP/1.1 200 OK\r\nx-from: {self.canary}-header\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, StopIteration, ValueError):
            pass
        writer.close()

    async def export(self, trace, parent, headers):
        """Sends one span. It has the secret that was in a header of the request."""
        attributes = {"order": f"{self.canary}-attribute", "headers": headers}
        body = export_of(f"{self.canary}-service", [span(trace, parent, "work", **attributes)])
        until = time.monotonic() + RETRY_SECONDS
        while True:
            status, _, _ = await Caller(self.ledger).ask(
                "export", self.port("otlp"), "POST", "/v1/traces", self.context["tokens"]["beta ingest"], body,
                {"content-type": "application/json"}, kept=False)
            if status == 200 or time.monotonic() > until:
                return
            self.refused += 1
            await asyncio.sleep(0.3)

    async def run(self):
        """One run, from its start to its verdict, which must be the right one."""
        test, right = self.context["tests"][self.runs % len(self.context["tests"])]
        self.runs += 1
        began, pause = time.monotonic(), WAIT_SECONDS
        status, data = await self.ask("start", "POST", f"/api/v1/tests/{test}/runs?project=beta", "beta editor",
                                      body={"variableSets": ["own"]}, headers={"content-type": "application/json"})
        if status != 202:
            self.unstarted += 1
            self.failed += 1
            return
        run = json.loads(data)["id"]
        self.notes.write(f"run {run}\n")
        self.notes.flush()
        while time.monotonic() < began + (END_SECONDS if self.seconds > 5 else END_SECONDS / 2):
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1)
            status, data = await self.ask("wait", "GET", f"/api/v1/runs/{run}?project=beta", "beta editor", timed=False)
            self.failed += status != 200
            if status == 200 and (told := json.loads(data))["state"] == "ended":
                self.ends.append(time.monotonic() - began)
                self.known.append(run)
                if told["verdict"] != right:
                    self.wrong.append([test, right, told["verdict"], reasons(told)])
                return
        self.unended += 1

    async def read(self):
        paths = ["/api/v1/me", "/api/v1/tests?project=beta", "/api/v1/runs?project=beta&limit=20",
                 f"/api/v1/tests/{self.context['tests'][0][0]}/trend?project=beta"]
        if self.known:
            run = random.choice(self.known)
            paths += [f"/api/v1/runs/{run}?project=beta", f"/api/v1/runs/{run}/report?project=beta&format=junit",
                      f"/api/v1/runs/{run}/events?project=beta", f"/api/v1/runs/{run}/trace?project=beta"]
        status, _ = await self.ask("read", "GET", random.choice(paths), "beta viewer")
        self.failed += status != 200

    async def follow(self):
        """Follows a run that has ended by its live stream, which must come to its end."""
        if not self.known:
            return
        self.follows += 1
        path = f"/api/v1/runs/{self.known[-1]}/events?project=beta"
        status, data = await self.ask("follow", "GET", path, "beta viewer", timed=False, headers={"accept": "text/event-stream"}, limit=10)
        if status != 200 or b"event: end" not in data:
            self.unfollowed.append(status)

    async def play(self):
        system = await asyncio.start_server(self.system, LOOPBACK, self.context["system"], backlog=512)
        acts = [(STARTS_EACH, self.run), (READS_EACH, self.read), (FOLLOWS_EACH, self.follow)]
        broken = await asyncio.gather(*(every(each, round(self.seconds / each), act) for each, act in acts))
        broken.append(await every(0, 1, self.follow))  # one at least, however long the first run took
        system.close()
        return {"times": [took for _, took in self.times], "starts": [took for kind, took in self.times if kind == "start"],
                "ends": self.ends, "runs": self.runs, "planned": round(self.seconds / STARTS_EACH), "wrong": self.wrong,
                "unended": self.unended, "unstarted": self.unstarted, "failed": self.failed, "broken": sum(broken, []),
                "refused": self.refused, "follows": self.follows, "unfollowed": self.unfollowed,
                "leaks": self.ledger.leaks, "searched": self.ledger.searched, "statuses": self.ledger.statuses}


def reasons(told):
    return json.dumps(told.get("outcome") or {})[:600]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    print(json.dumps(asyncio.run(Beta(given, float(sys.argv[2])).play())))
