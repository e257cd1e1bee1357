"""Servers with all that both projects have on them before an attack begins, and the phases of one attack."""

import contextlib
import json
import secrets
import subprocess
import sys
import time
from pathlib import Path

from canaries import FileSearch
from nats import Nats
from world import HERE, LOOPBACK, Server, ask, environment, free_port, logged, probing, span, stop, waited

HOST_FIRST = 7  # alpha's system is on 127.0.0.7 and the next addresses; beta's is on 127.0.0.1
ELSEWHERE = f"127.0.0.{HOST_FIRST}"
STREAM_BYTES = {True: 64 << 20, False: 256 << 20}  # the bound of a stream, in the short form and in the long one
CARRIED_SECONDS = 20  # how long is waited until an attack has done all that it is to do; else the load begins without that
TAIL_SECONDS = 60  # how long a load may take to see its last runs end


class Stage:
    """One server, or several over one NATS, ready for attacks; `is_short` has less of everything that is large."""

    def __init__(self, binary, cluster, folder, is_short, replicas=1):
        self.is_short, self.folder, self.notes = is_short, folder, folder / "beta.notes"
        self.notes.touch()
        # The third project has no more than its name, and a run that has spans.
        self.canaries = {project: "cnry" + secrets.token_hex(12) for project in ("alpha", "beta", "name", "planted")}
        self.system, self.there = free_port(), free_port()
        self.servers, self.nats, self.others = [], None, []
        self.hosts = range(HOST_FIRST, HOST_FIRST + 2 * replicas)
        try:
            if replicas > 1:
                self.nats = Nats(folder, self.run, STREAM_BYTES[is_short])
            for number in range(replicas):
                place = folder / f"server-{number}"
                place.mkdir()
                first = self.servers[0] if self.servers else None
                self.servers.append(Server(binary, cluster, place, "loopback", self.nats and self.nats.section(), first))
            self.server = self.servers[0]
            self.prepare()
        except BaseException:
            self.close()
            raise

    def run(self, words):
        """Starts a process that belongs to no server."""
        with (self.folder / f"{len(self.others)}.log").open("wb") as log:
            process = subprocess.Popen([str(word) for word in words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=environment(HOME=str(self.folder)), start_new_session=True)
        process.log = Path(log.name)
        self.others.append(process)
        return process

    def ports(self):
        """The servers that each party calls: of several, each has one for itself, and both share the others."""
        of = lambda servers: {name: [getattr(it, name) for it in servers] for name in ("http", "otlp", "grpc")}  # noqa: E731
        return {"alpha": of(self.servers[:-1] or self.servers), "beta": of(self.servers[1:] or self.servers)}

    def prepare(self):
        server = self.server
        for last in self.hosts:
            server.beside("target", self.there, last, until_open=self.there)
        self.extra = [server.token(f"more-{number}", "editor", "alpha") for number in range(8)]
        for project in ("alpha", "beta"):
            server.tokens[f"{project} ingest"] = server.token("sender", "ingest", project)
        for name in ("expired", "revoked"):
            body = {"name": name, "role": "editor", "projects": ["alpha"]}
            made = json.loads(server.good(201, "POST", "/api/v1/tokens", "admin", body))
            server.tokens[name] = made["token"]
            server.good(200, "GET", "/api/v1/me", name)  # each was good once
            if name == "revoked" and server.api("DELETE", f"/api/v1/tokens/{made['id']}", "admin")[0] >= 300:
                raise RuntimeError("a token was not taken back")
        server.cluster.update(server.database, "update tokens set expires_at_ns = 1 where name = 'expired'")
        self.prepare_beta()
        self.prepare_alpha()
        if self.nats:
            self.prepare_name()
        # A server remembers a good token for some seconds, whatever the database says.
        asked = lambda: {ask(it.http, "GET", "/api/v1/me", server.tokens[name])[0]  # noqa: E731
                         for it in self.servers for name in ("expired", "revoked")}
        waited(20, "a token that is expired or revoked is still good", lambda: asked() == {401})

    def prepare_name(self):
        """A run of a project whose name must be in no file; its span goes to another server than the one that started it."""
        server, other, name = self.server, self.servers[-1], self.canaries["name"]
        who = f"{name} editor"
        server.tokens[who] = server.token("named", "editor", name)
        server.test(who, "named", "/slow?s=2", 'count(span[name="s"]) = 1', settle="4s", flush="500ms")
        run = server.begin(who, "named")
        trace, parent = server.traced(who, run)
        if (status := other.export(who, [span(trace, parent, "s", a=name)])[0]) != 200:
            raise RuntimeError(f"the export of the third project was answered {status}")
        if (told := server.ended(who, run))["verdict"] != "passed":
            raise RuntimeError(f"the run of the third project is {told['verdict']}: {json.dumps(told.get('outcome'))[:600]}")

    def prepare_beta(self):
        server, canary, who = self.server, self.canaries["beta"], "beta editor"
        server.put(who, "VariableSet", id="own", values=[{"key": "TOKEN", "value": f"{canary}-secret", "type": "secret"},
                                                       {"key": "OPEN", "value": f"{canary}-variable"}])
        claims = {"passes": ["response.status = 200", 'count(span[name="work"]) = 1', f'response.body contains "{canary}-response"'],
                  "fails-response": ["response.status = 201"],
                  "fails-span": ['no span[name="work"]'],
                  "fails-count": ['count(span[name="work"]) = 2']}
        for name, trace in claims.items():
            headers = [{"key": "x-key", "value": "${var:TOKEN}"}, {"key": "x-open", "value": "${var:OPEN}"}]
            request = {"method": "GET", "url": f"http://{LOOPBACK}:{self.system}/{canary}-path", "headers": headers}
            server.put(who, "Test", id=name, name=f"{canary}-name", description=f"{canary}-document",
                     settle={"timeout": "15s", "flush": "200ms"},
                     trigger={"type": "http", "timeout": "15s", "httpRequest": request}, trace=trace)
        # Half of them pass.
        self.tests = [test for name in claims if name != "passes" for test in (("passes", "passed"), (name, "failed"))]

    def prepare_alpha(self):
        server, who, canary = self.server, "alpha editor", self.canaries["alpha"]
        values = [{"key": f"S{number}", "value": secrets.token_hex(20), "type": "secret"} for number in range(499)]
        values.append({"key": "LAST", "value": "a" * 500, "type": "secret"})
        server.put(who, "VariableSet", id="many", values=values)
        size = 400_000 if self.is_short else 4_000_000
        there, url = f"http://{ELSEWHERE}:{self.there}", {}
        url["mask"] = url["hard"] = f"{there}/big?n={size}&c=a"
        url["large"] = f"{there}/big?n={size if self.is_short else 4 * size}&c=%01"
        url["quick"] = f"{there}/{canary}"
        self.hanging = ["hang", "hang-there"] + [f"hang-{last}" for last in self.hosts[2:]]
        for name, last in zip(self.hanging, self.hosts):
            url[name] = f"http://127.0.0.{last}:{self.there}/slow?s=900"
        url["hang-beta"] = f"http://{LOOPBACK}:{self.system}/hang"
        url["traced"], url["waits"] = f"{there}/slow?s=2", f"{there}/slow?s=15"
        hard = [f'response.body matches "(a{{1,{20 + number}}}){{1,9}}b"' for number in range(20)]
        for name, it in url.items():
            claims = hard if name == "hard" else ['count(span[name="s"]) = 1'] if name == "traced" else ["response.status = 200"]
            settle = {"timeout": "4s", "flush": "500ms"} if name == "traced" else {"timeout": "2s"}
            server.put(who, "Test", id=name, description=f"{canary}-document", settle=settle, trace=claims,
                     trigger={"type": "http", "timeout": "5m" if name.startswith("hang") else "30s",
                              "httpRequest": {"method": "GET", "url": it}})
        self.calls = {name: it for name, it in url.items() if not name.startswith("hang")}
        runs = [server.begin(who, name) for name in ("mask", "large", "traced")] + [server.begin(who, "quick") for _ in range(12)]
        trace, parent = server.traced(who, runs[2])
        for turn in range(1 if self.is_short else 3):
            spans = [span(trace, parent, f"{canary}-{turn}-{number}", a="x" * 400_000) for number in range(2 if self.is_short else 10)]
            if (status := server.export(who, spans)[0]) != 200:
                raise RuntimeError(f"alpha's large export was answered {status}")
        verdicts = [server.ended(who, run, limit=40)["verdict"] for run in runs]
        if set(verdicts[:2] + verdicts[3:]) != {"passed"}:
            raise RuntimeError(f"alpha's own runs are {verdicts}")
        if (size := len(server.seen(who, runs[2], "/trace", timeout=20)[1])) < 500_000:
            raise RuntimeError(f"alpha's large trace has {size} bytes")
        self.large, self.traced = runs[1], runs[2]
        self.ended = [[runs[0], None, None]] + [[run, *server.traced(who, run)] for run in runs[3:]]

    def context(self, **more):
        server = self.server
        told = {"ports": self.ports(), "system": self.system, "tokens": server.tokens, "hanging": self.hanging, "many": self.extra, "canaries": self.canaries, "notes": str(self.notes), "tests": self.tests, "ended": self.ended,
                "large": self.large, "traced": self.traced, "calls": self.calls, "part": 10 if self.is_short else 1} | more
        path = self.folder / f"context-{secrets.token_hex(4)}.json"
        path.write_text(json.dumps(told))
        return path

    def phase(self, name, seconds, shape=None):
        """Beta's load beside an attack on this server, or with a shape on a bare sink. What all of them saw."""
        more, sink = {}, None
        if shape is not None:
            port = free_port()
            sink, more = self.server.beside(port, until_open=port, program="sink.py"), {"sink": port, "shape": shape}
        context = self.context(**more)
        attacker = self.piped("attacks.py", name, context, seconds + CARRIED_SECONDS + TAIL_SECONDS)
        time.sleep(0.7 if self.is_short else 2)
        until = time.monotonic() + CARRIED_SECONDS
        while not context.with_suffix(".carried").exists() and time.monotonic() < until and attacker.poll() is None:
            time.sleep(0.05)
        try:
            with probing(*self.servers) as probes:
                seen = result(self.piped("load.py", context, seconds), seconds + TAIL_SECONDS, "the load")
            attacker.terminate()
            told = result(attacker, 30, "the attack")
        finally:
            for process in filter(None, (attacker, sink)):
                process.kill()
                process.wait()
        return seen | {"attack": told, "probes": probes, "memory": max(it.memory() for it in self.servers),
                       "journal": max(map(self.journal, self.servers)), "stream": self.nats.used() if self.nats else 0,
                       "isAlive": all(it.process.poll() is None for it in self.servers), "logLeaks": self.logged()}

    def piped(self, *words):
        return self.server.run([sys.executable, HERE / words[0], *words[1:]], out=subprocess.PIPE)

    def journal(self, server):
        """Bytes of spans on the disk of a server."""
        total = 0
        for path in server.data.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total

    def logged(self):
        """Bytes of secrets in what processes have written to their logs: nobody's may be there."""
        secret = f"{self.canaries['beta']}-secret".encode()
        return sum(path.read_bytes().count(secret) * len(secret) for path in self.folder.rglob("*.log"))

    def searched(self):
        """Ends servers and NATS, and searches their files for the canaries of all projects, and for one that is planted there."""
        planted = self.canaries["planted"]
        self.nats.plant(f"{planted}-secret")
        (self.server.data / "planted").write_text(f"{planted}-secret".encode().hex())
        for server in self.servers:
            stop(server.process)
        self.nats.close()
        of_projects = [it for name, it in self.canaries.items() if name != "planted"]
        stores = [FileSearch([*of_projects, planted]).folder(it) for it in self.nats.folders]
        data = [FileSearch([*of_projects, planted]).folder(it.data) for it in self.servers]
        found = [it for search in stores + data for it in search.found]
        has_planted = lambda searches: any(it[2] == planted for search in searches for it in search.found)  # noqa: E731
        return {"found": [it for it in found if it[2] != planted], "planted": has_planted(stores) + has_planted(data),
                "stores": sum(it.searched for it in stores), "data": sum(it.searched for it in data)}

    def close(self):
        for server in self.servers:
            server.close()
        for process in reversed(self.others):
            if process.poll() is None:
                process.kill()
            process.wait()


def result(process, limit, what):
    try:
        out, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
    lines = out.decode().strip().splitlines()
    if not lines:
        raise RuntimeError(f"{what} ended without a word: {logged(process)}")
    return json.loads(lines[-1])
