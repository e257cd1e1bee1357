"""`attacks.py RESOURCE CONTEXT SECONDS`: what alpha does, by the resource that it is after, as a process of its own, until it is
asked to end. It calls from another address of loopback than beta. Everything that it gets is searched for beta's canary. Prints
what it saw as one line of JSON.

With a `sink` in the context all of it goes there, with a header that says what the real server answered, and when."""

import asyncio
import collections
import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from wire import SOURCE, Caller, Ledger, export_of, grpc_head, heard, many_files, request, span, unread

ATTACKS = {}
Attack = collections.namedtuple("Attack", "play did refused is_shared")
REFILL_MAX = 20
OWN_EXPORTS = 20
FORMATS = ("pretty", "plain", "json", "ndjson", "junit", "tap", "markdown", "github", "html")
YAML = {"content-type": "application/yaml"}
JSON = {"content-type": "application/json"}


def attack(did, refused=(), is_shared=False):
    """An attack by the name of its function. `did` proves that it was carried out: answers by kind of request and status, and
    `held`, connections at a time; so many of each at the least. Every request of a kind in `refused` must be refused. Attacks that
    `is_shared` names need servers that share something."""
    def kept(play):
        ATTACKS[play.__name__] = Attack(play, did, refused, is_shared)
        return play
    return kept


class Alpha:
    def __init__(self, context, seconds):
        self.context, self.until = context, time.monotonic() + seconds
        self.tokens = context["tokens"]
        self.ledger = Ledger(context["canaries"]["beta"])
        self.held, self.most_held, self.turn = [], 0, 0

    @property
    def goes_on(self):
        return time.monotonic() < self.until

    def told(self):
        ledger = self.ledger
        return {"kinds": ledger.kinds, "statuses": ledger.statuses, "leaks": ledger.leaks, "searched": ledger.searched,
                "held": self.most_held}

    def caller(self):
        return Caller(self.ledger, SOURCE, self.aim)

    def aim(self, name, kind, call):
        """The port of one of the servers that alpha calls, or of the sink."""
        if "sink" not in self.context:
            return self.port(name), {}
        seen = self.context["shape"].get(kind, {"0": (1, 0, 20.0)})  # or it never was answered
        (status, (count, size, seconds)), = random.choices(list(seen.items()), [it[0] for it in seen.values()])
        headers = {"x-shape": f"{size // count},{seconds / count:.4f},{status}"}
        return self.context["sink"], headers | ({"x-call": call} if call else {})

    def sized(self, count):
        """So much, or of the short form a tenth."""
        return count // self.context["part"]

    def port(self, name):
        return self.context.get("sink") or random.choice(self.context["ports"]["alpha"][name])

    def token(self):
        """Each in turn: alpha has several, and there is a rate for each."""
        self.turn += 1
        return self.context["many"][self.turn % len(self.context["many"])]

    async def api(self, caller, kind, method, path, body=b"", headers=None, token=None, call=None):
        path += ("&" if "?" in path else "?") + "project=alpha"
        return await caller.ask(kind, "http", method, path, token or self.token(), body, headers, call)

    async def export(self, caller, kind, body, headers=None, token=None, port="otlp"):
        return await caller.ask(kind, port, "POST", "/v1/traces", token or self.tokens["alpha editor"], body,
                                headers or JSON)

    async def start(self, caller, test, sets=()):
        """A run; its id, or None where it is too early for one more."""
        body = {"variableSets": list(sets)} if sets else b""
        status, data, _ = await self.api(caller, f"start {test}", "POST", f"/api/v1/tests/{test}/runs", body, JSON,
                                         call=self.context["calls"].get(test))
        if "sink" in self.context:
            return self.context["ended"][0][0]
        if status not in (202, 429):
            raise RuntimeError(f"the start of {test} was answered {status}: {data[:200]}")
        return json.loads(data)["id"] if status == 202 else None

    async def loop(self, act, pause=0.0):
        caller = self.caller()
        while self.goes_on:
            await act(caller)
            await asyncio.sleep(pause)

    async def runs(self, test, sets=()):
        """Runs of a test, one after the other; each is read once it has ended."""
        caller = self.caller()
        while self.goes_on:
            run, data, turns = await self.start(caller, test, sets), b"", self.turns(test)
            while run and self.goes_on and turns and b'"state":"ended"' not in data:
                await asyncio.sleep(0.25)
                turns -= 1
                _, data, _ = await self.api(caller, f"run {test}", "GET", f"/api/v1/runs/{run}")
            await asyncio.sleep(0)

    def turns(self, test):
        """How often a run is asked for at the most: where a sink answers, as often as the real server was on the average."""
        if "sink" not in self.context:
            return 40
        shape = self.context["shape"]
        started, asked = (sum(it[0] for it in shape.get(f"{kind} {test}", {}).values()) for kind in ("start", "run"))
        return max(1, round(asked / max(1, started)))

    async def hold(self, count, port, message):
        """Keeps so many connections that are not read, and makes new ones for those that are closed or refused: of the refused a
        few at a time, since to ask as often as possible is another attack."""
        statuses, place = {}, len(self.held)  # by connection; None where no answer has come yet
        self.held.append(0)
        room = count
        while self.goes_on:
            for number in range(min(room, count - len(statuses))):
                if (line := await unread(self.port(port), message())) is None:
                    break
                statuses[line] = None
                if number % 50 == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.25)
            room = count
            for line in [line for line in statuses if not self.is_held(line, port, statuses)]:
                if statuses.pop(line):
                    room = REFILL_MAX
                line.close()
            self.held[place] = len(statuses)
            self.most_held = max(self.most_held, sum(self.held))

    def is_held(self, line, port, statuses):
        """Whether the other side keeps a connection. The status of its answer is counted as `hold PORT STATUS`."""
        data = heard(line)
        if statuses[line] is None and data and data.startswith(b"HTTP/1.1 ") and len(data) == 12:
            statuses[line] = int(data[9:])
            self.ledger.add(f"hold {port}", statuses[line], 0, 0)
        return data != b"" and statuses[line] in (None, 200)

    async def snoop(self):
        """What alpha may ask for, and what it may not, about beta and about itself."""
        caller, viewer = self.caller(), self.tokens["alpha viewer"]
        while self.goes_on:
            runs, traces = noted(self.context["notes"])
            run = random.choice(runs or [self.context["ended"][0][0]])
            trace = random.choice(traces or [("0af7651916cd43dd8448eb211c80319c", "")])[0]
            test = random.choice(self.context["tests"])[0]
            own = random.choice(self.context["ended"])[0]
            paths = [f"/api/v1/runs/{run}{part}?project={project}" for project in ("alpha", "beta")
                     for part in ("", "/trace", "/report", "/events")]
            paths += [f"/api/v1/tests/{test}?project={project}" for project in ("alpha", "beta")]
            paths += [f"/api/v1/{kind}?project={project}" for project in ("alpha", "beta", "default")
                      for kind in ("tests", "variable-sets", "runs", "trace-stores", "tests/x/versions", f"tests/{test}/trend")]
            paths += [f"/api/v1/runs?project=alpha&trace={trace}", "/api/v1/variable-sets/own?project=beta", "/readyz", "/livez",
                      "/metrics", "/api/v1/openapi.json", "/api/v1/audit", "/api/v1/tokens", "/api/v1/me", "/api/v1/nothing"]
            report = f"/report?format={random.choice(FORMATS)}"
            paths += [f"/api/v1/runs/{own}{part}?project=alpha" for part in ("", "/events", "/trace", report)]
            for path in random.sample(paths, 4):
                path = path.replace("?project=alpha", "&project=alpha") if path.count("?") > 1 else path
                await caller.ask("snoop", "http", "GET", path, viewer)
            await self.api(caller, "snoop put", "PUT", "/api/v1/documents", f"type: Test\nspec: {{id: {test}, name: [}}", YAML)
            await asyncio.sleep(0.2)


def noted(path):
    """Runs and traces of beta so far: alpha is given all of them."""
    runs, traces = [], []
    with open(path, encoding="ascii") as file:
        for words in map(str.split, file.readlines()[-200:]):
            if words[0] == "run":
                runs.append(words[1])
            elif len(words) == 3:
                traces.append((words[1], words[2]))
    return runs, traces


def spans(context, traces, count=1, size=10):
    """An export of alpha's as JSON: so many spans of each of these traces, with attributes of so many bytes."""
    canary = context["canaries"]["alpha"]
    made = [span(trace, parent or f"{7:016x}", "work", a=canary + "x" * size) for trace, parent in traces for _ in range(count)]
    return json.dumps(export_of(f"{canary}-service", made)).encode()


def hard_test(claims):
    """A test of many claims by patterns that cost much."""
    lines = [f'response.body matches "(a{{1,{20 + number % 30}}}|[a-m]{{2,9}}){{1,{10 + number % 20}}}b{number}"'
             for number in range(claims)]
    return json.dumps({"type": "Test", "spec": {"id": "hard", "name": "hard", "trigger": {"type": "http", "httpRequest": {
        "method": "GET", "url": "http://127.0.0.1:9/"}}, "trace": lines}})


@attack({"start mask 202": 1, "start hard 202": 1, "judge 200": 1})
async def threads(alpha):
    """500 secrets over large responses, many claims by expensive patterns, and judgements of them."""
    own, claims = alpha.context["ended"][0][0], hard_test(alpha.sized(400))
    judge = lambda caller: alpha.api(caller, "judge", "POST", f"/api/v1/runs/{own}/judgements", claims, YAML)  # noqa: E731
    return [alpha.runs("mask", ["many"]) for _ in range(4)] + [alpha.runs("hard", ["many"]) for _ in range(2)] + [
        alpha.loop(judge) for _ in range(6)]


@attack({"list 200": 100, "held": 50})
async def database_pool(alpha):
    """Lists, trends and histories by 16 callers with eight tokens, without a pause, and 100 bodies that stop to come."""
    kinds = ["/api/v1/runs?limit=100", "/api/v1/tests/mask/trend?last=100", "/api/v1/tests?limit=100", "/api/v1/tests/mask/versions",
             "/api/v1/variable-sets?limit=100", "/api/v1/runs?limit=100&verdict=failed"]
    ask = lambda caller: alpha.api(caller, "list", "GET", random.choice(kinds))  # noqa: E731
    return [alpha.loop(ask) for _ in range(16)] + [alpha.hold(100, "http", lambda: slow_body(alpha))]


def slow_body(alpha):
    message = request("PUT", "/api/v1/documents?project=alpha", alpha.token(), b"x" * 500_000, YAML)
    return message[:-400_000]


@attack({"start large 202": 1, "read large 200": 1, "export large 200": 1})
async def memory(alpha):
    """Responses of 16 MB, outcomes of that size that are read, exports of 15 MB."""
    own = alpha.context["large"]
    read = lambda caller: alpha.api(caller, "read large", "GET", f"/api/v1/runs/{own}{random.choice(('', '/report'))}")  # noqa: E731
    export = spans(alpha.context, [(f"{7:032x}", None)], 15, alpha.sized(1_000_000))
    send = lambda caller: alpha.export(caller, "export large", export)  # noqa: E731
    return [alpha.runs("large") for _ in range(8)] + [alpha.loop(read) for _ in range(6)] + [alpha.loop(send, 0.05) for _ in range(3)]


@attack({"held": 1500})
async def connections(alpha):
    """Silent and slow connections to all ports, more than one address is served: 600 to the API, 700 and 800 to OTLP."""
    head = lambda: b"GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: "  # noqa: E731
    slow = request("POST", "/v1/traces", alpha.tokens["alpha editor"], b"{" + b" " * 5_000_000, JSON)[:-4_900_000]
    return [alpha.hold(300, port, message) for port in ("http", "otlp", "grpc") for message in (bytes, head)] + [
        alpha.hold(200, "grpc", lambda: grpc_head(alpha.tokens["alpha editor"])),
        alpha.hold(100, "otlp", lambda: slow)]


@attack({"start hang 202": 1, "hold http 200": 100, "held": 100})
async def live_streams(alpha):
    """400 streams of events of a run that goes on, which nobody reads; one project may have 128."""
    while not (run := await alpha.start(alpha.caller(), "hang")):
        await asyncio.sleep(0.1)

    def follow():
        headers = {"accept": "text/event-stream", "x-hold": "1"}
        return request("GET", f"/api/v1/runs/{run}/events?project=alpha", alpha.token(), headers=headers)
    return [alpha.hold(400, "http", follow)]


@attack({"hold http 200": 4, "held": 30})
async def places(alpha):
    """60 readers of traces and reports that do not read, readers that do, and judgements."""
    run, claims = alpha.context["traced"], hard_test(alpha.sized(100))

    def unread_answer():
        part = random.choice(("/trace", "/report?format=html", "/report?format=json"))
        path = f"/api/v1/runs/{run}{part}{'&' if '?' in part else '?'}project=alpha"
        return request("GET", path, alpha.token(), headers={"x-shape": "12000000,0,200"})
    judge = lambda caller: alpha.api(caller, "judge", "POST", f"/api/v1/runs/{run}/judgements", claims, YAML)  # noqa: E731
    read = lambda caller: alpha.api(caller, "read trace", "GET", f"/api/v1/runs/{run}/trace")  # noqa: E731
    return [alpha.hold(60, "http", unread_answer)] + [alpha.loop(judge) for _ in range(8)] + [alpha.loop(read) for _ in range(4)]


@attack({"stranger 401": 1, "stranger's export 401": 1, "open to strangers 200": 1}, refused=("stranger", "stranger's export"))
async def strangers(alpha):
    """No token, tokens that are expired, revoked or made up, and bytes that are no request."""
    shown = [None, alpha.tokens["expired"], alpha.tokens["revoked"]]

    async def ask(caller):
        token = random.choice([*shown, f"qtt_{random.getrandbits(200):050x}", "x" * 7000])
        path = random.choice(("/api/v1/me", "/api/v1/runs?project=beta", "/metrics", "/api/v1/audit", "/readyz", "/auth/login"))
        kind = "open to strangers" if path in ("/readyz", "/auth/login") else "stranger"
        await caller.ask(kind, "http", "GET", path, token)

    async def send(caller):
        body = spans(alpha.context, noted(alpha.context["notes"])[1][-5:])
        token = random.choice([*shown, f"qtt_{random.getrandbits(200):050x}"])
        await caller.ask("stranger's export", "otlp", "POST", "/v1/traces", token, body, JSON)
    return [alpha.loop(ask) for _ in range(8)] + [alpha.loop(send) for _ in range(4)] + [
        alpha.hold(40, port, lambda: os.urandom(3000)) for port in ("http", "otlp", "grpc")]


@attack({"write test 200": 1, "write set 200": 1, "make token 403": 1}, refused=("make token",))
async def database_size(alpha):
    """Versions of 50 tests of 400 kB, and of 50 sets of 200 secrets of 600 bytes; and tokens, which alpha may not make."""
    async def write(caller):
        alpha.turn += 1
        spec = {"id": f"doc{alpha.turn % 50}", "name": "n",
                "description": f"{alpha.turn} " + os.urandom(alpha.sized(200_000)).hex(),
                "trigger": {"type": "http", "httpRequest": {"method": "GET", "url": "http://127.0.0.1:9/"}},
                "trace": ["response.status = 200"]}
        await alpha.api(caller, "write test", "PUT", "/api/v1/documents", json.dumps({"type": "Test", "spec": spec}), YAML)
        values = [{"key": f"K{number}", "value": os.urandom(300).hex(), "type": "secret"} for number in range(alpha.sized(200))]
        spec = {"id": f"set{alpha.turn % 50}", "name": "n", "values": values}
        await alpha.api(caller, "write set", "PUT", "/api/v1/documents", json.dumps({"type": "VariableSet", "spec": spec}), YAML)
        await alpha.api(caller, "make token", "POST", "/api/v1/tokens", {"name": "more", "role": "viewer", "projects": ["alpha"]}, JSON)
    return [alpha.loop(write) for _ in range(6)]


@attack({"export ended 1/1 200": 1, "export stolen 200": 1, "export many 200": 1, "export garbage 400": 1})
async def bus(alpha):
    """Spans for ended runs, for beta's, for very many ids, and bytes that cannot be read."""
    ended = [(trace, parent) for _, trace, parent in alpha.context["ended"] if trace]
    # Where the large ones find no room any more, smaller ones do: nothing is to be left for others.
    bodies = {f"export ended 1/{part}": [spans(alpha.context, [one], 8, alpha.sized(1_000_000) // part) for one in ended]
              for part in (1, 8, 64, 1000)}

    async def ended_runs(caller):
        for kind, chosen in bodies.items():
            while alpha.goes_on and (await alpha.export(caller, kind, random.choice(chosen)))[0] == 200:
                pass

    async def stolen(caller):
        traces = noted(alpha.context["notes"])[1][-20:]
        if traces:
            who = random.choice(("alpha editor", "alpha ingest"))
            await alpha.export(caller, "export stolen", spans(alpha.context, traces, 2), token=alpha.tokens[who])
        await asyncio.sleep(0.1)

    async def many(caller):
        traces = [(f"{random.getrandbits(128) | 1:032x}", None) for _ in range(1000)]
        await alpha.export(caller, "export many", spans(alpha.context, traces))

    async def garbage(caller):
        await alpha.export(caller, "export garbage", os.urandom(2000), random.choice((JSON, {"content-type": "application/x-protobuf"})))
        await asyncio.sleep(0.05)

    return [alpha.loop(ended_runs) for _ in range(4)] + [alpha.loop(it) for it in (stolen, many, garbage)]


@attack({"export 200": 1})
async def disk(alpha):
    """As many spans as the journal takes: exports of 15 MB for the ids of ended runs."""
    ended = [(trace, parent) for _, trace, parent in alpha.context["ended"] if trace]
    bodies = [spans(alpha.context, [one], 15, alpha.sized(1_000_000)) for one in ended]
    return [alpha.loop(lambda caller: alpha.export(caller, "export", random.choice(bodies))) for _ in range(4)]


@attack({"start hang 202": 32, "start hang-there 202": 32})
async def run_slots(alpha):
    """Runs whose system does not answer, at two hosts for each server: as many as the servers work on at a time, and more."""
    async def flood(caller):
        await alpha.start(caller, random.choice(alpha.context["hanging"]))
    return [alpha.loop(flood, 0.02) for _ in range(4)]


@attack({"start hang-beta 202": 32})
async def host_slots(alpha):
    """Runs against the very system that beta tests, at a path that does not answer."""
    return [alpha.loop(lambda caller: alpha.start(caller, "hang-beta"), 0.05) for _ in range(2)]


@attack({"start waits 202": 1, "export own 200": 50}, is_shared=True)
async def stream(alpha):
    """Spans of alpha's own active runs, until its share of the stream in NATS is used, and then more."""
    async def flood(_):
        caller = alpha.caller()  # the server closes a connection that is idle while spans are sent
        if not (run := await alpha.start(caller, "waits")):
            return await asyncio.sleep(0.1)
        trace, turns = None if "sink" not in alpha.context else alpha.context["ended"][1][1], 50
        while not trace and alpha.goes_on and turns:
            await asyncio.sleep(0.1)
            turns -= 1
            _, data, _ = await alpha.api(caller, "run waits", "GET", f"/api/v1/runs/{run}")
            trace = json.loads(data or b"{}").get("traceId")
        body = spans(alpha.context, [(trace, None)], 8, alpha.sized(1_000_000)) if trace else b""
        for _ in range(OWN_EXPORTS if trace else 0):
            if alpha.goes_on:
                await alpha.export(caller, "export own", body)
    return [alpha.loop(flood) for _ in range(3)]


def missing(did, told, is_calm):
    """What an attack was to do and did not. A sink draws its statuses, so that any of them counts there."""
    kind_of = lambda key: key.rpartition(" ")[0]  # noqa: E731
    seen = told["statuses"] | {"held": told["held"]}
    counts = {what: sum(count for key, count in seen.items() if key == what or is_calm and kind_of(key) == kind_of(what))
              for what in did}
    return [f"`{what}` {counts[what]} times, and should be {least} times at least" for what, least in did.items()
            if counts[what] < least]


async def carried_out(alpha, did, note):
    """Writes a note once all of the attack is under way."""
    while missing(did, alpha.told(), "sink" in alpha.context):
        await asyncio.sleep(0.05)
    note.touch()


async def main(name, path, seconds):
    many_files()
    with open(path, encoding="utf-8") as file:
        alpha = Alpha(json.load(file), float(seconds))
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    note = carried_out(alpha, ATTACKS[name].did, Path(path).with_suffix(".carried"))
    begun = [asyncio.create_task(it) for it in [*await ATTACKS[name].play(alpha), alpha.snoop(), note]]
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), max(0.1, alpha.until - time.monotonic()))
    for task in begun:
        task.cancel()
    ended = await asyncio.gather(*begun, return_exceptions=True)
    broken = [repr(it) for it in ended if isinstance(it, Exception) and not isinstance(it, asyncio.CancelledError)]
    print(json.dumps(alpha.told() | {"broken": broken}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
