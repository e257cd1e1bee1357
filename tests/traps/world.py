"""What cases stand in: folders, processes that are stopped by their pid, and a Postgres where there is one."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
from common import LOOPBACK, Cluster, Impossible, TooLong, environment, free_port, options_of, stop  # noqa: E402, F401


@dataclass
class Done:
    """What came of a command."""

    code: int
    text: str
    cpu: float
    outcomes: list = field(default_factory=list)

    def unheard(self, least=1, answers=True):
        """Why a verdict says nothing about the product: the case's own system did not answer, or sent too little."""
        if not self.outcomes:
            return ["there is a verdict, and no outcome in the report"]
        silent = [it for it in self.outcomes if answers and "noAnswer" in (it["answer"] or {})]
        lines = ["the system under test did not answer" for _ in silent]
        few = [it["settlement"]["spans"] for it in self.outcomes if it["settlement"]["spans"] < least]
        return lines + [f"{count} spans of the system came, and {least} should" for count in few]

    @property
    def causes(self):
        return {it["cause"] for outcome in self.outcomes for it in outcome.get("diagnoses") or []}

    @property
    def claims(self):
        """Verdicts of claims by their name, and of assertions by the name of their spec."""
        told = {}
        for outcome in self.outcomes:
            judged = outcome.get("judgement") or {"claims": [], "specs": []}
            told |= {it["name"] or it["claim"]: it["verdict"] for it in judged["claims"]}
            told |= {it["name"] or it["selector"]: it["verdict"] for it in judged["specs"]}
        return told


@dataclass
class Server:
    """A server that is ready."""

    http: int
    otlp: int
    config: Path

    @property
    def url(self):
        return f"http://{LOOPBACK}:{self.http}"

    @property
    def endpoint(self):
        return f"http://{LOOPBACK}:{self.otlp}"


class World:
    """What all cases share."""

    def __init__(self, binary, here):
        self.binary, self.here, self.cluster = binary, here, None
        self.turn = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.cluster:
            self.cluster.close()

    def database(self):
        """The keys under `postgres` of a server's configuration: a database to be written to."""
        url = os.environ.get("QUALITYTRACE_TEST_POSTGRES_URL") or os.environ.get("QUALITYTRACE_TEST_POSTGRES")
        if url:
            parts = urllib.parse.urlsplit(url)
            password = os.environ.get("QUALITYTRACE_TEST_POSTGRES_PASSWORD", "")
            return {"host": parts.hostname, "port": parts.port or 5432, "user": parts.username or "postgres",
                    "password": urllib.parse.unquote(parts.password or "") or password,
                    "dbname": parts.path.strip("/") or "postgres"}
        with self.turn:
            self.cluster = self.cluster or Cluster("traps")
            return self.cluster.database()


class Stage:
    """One playing of one case: its folder, its ports, its processes."""

    def __init__(self, around, case, folder):
        self.around, self.folder = around, folder
        shutil.copytree(case, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        self.port, self.otlp, self.running = free_port(), free_port(), []
        self.names = {"python": sys.executable, "qualitytrace": around.binary, "port": self.port, "otlp": self.otlp}

    def environment(self):
        return environment(PORT=str(self.port), PYTHONPATH=str(self.around.here),
                           HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder / "config"))

    def filled(self, words):
        return [word.format(**self.names) for word in words]

    def make(self):
        """Lets the case write what is too large to be kept."""
        subprocess.run([sys.executable, "make.py"], cwd=self.folder, env=self.environment(), check=True, timeout=60)

    def start(self, words, until_open, env=None):
        """Starts a process beside, and waits until it listens."""
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{LOOPBACK}:{self.otlp}"} | (env or {})
        log = (self.folder / f"beside-{len(self.running)}.log").open("wb")
        process = subprocess.Popen(
            self.filled(words), cwd=self.folder, env=self.environment() | env,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self.running.append((process, log))
        wait_open(until_open, process, Path(log.name))
        return process

    def serve(self, database, **server):
        """Starts a server of the program under test, and waits until it is ready."""
        made = Server(free_port(), free_port(), self.folder / f"server-{len(self.running)}.yaml")
        keys = {"httpPort": made.http, "otlpHttpPort": made.otlp, "otlpGrpcPort": free_port(),
                "dataDirectory": str(made.config.with_suffix("")), "triggers": {"networks": {"allow": ["loopback"]}},
                **server}
        made.config.write_text(json.dumps({"postgres": database, "server": keys}))
        process = self.start(["{qualitytrace}", "serve", "--config", str(made.config)], until_open=made.http)
        wait_ready(made, process)
        return made

    def qualitytrace(self, words, limit=60, env=None):
        """Runs the program under test to its end; where it judges, it is asked for its outcome as JSON too."""
        words, file = self.filled(words), self.folder / "outcome.json"
        file.unlink(missing_ok=True)
        if words[0] == "run" or "--trace" in words:
            at = words.index("--") if "--" in words else len(words)
            words[at:at] = ["--report", "plain", "--report", f"json={file}"]
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(
                [str(self.around.binary), *words], cwd=self.folder, env=self.environment() | (env or {}),
                stdin=subprocess.DEVNULL, stdout=told, stderr=subprocess.STDOUT, start_new_session=True)
            code, cpu = wait(process, limit)
            told.seek(0)
            text = told.read().decode(errors="replace")
        lines = file.read_text().splitlines() if file.exists() else []
        return Done(code, text, cpu, [json.loads(line)["outcome"] for line in lines if line.strip()])

    def close(self):
        for process, log in reversed(self.running):
            stop(process)
            log.close()


def wait(process, limit):
    """Exit code and processor time. What takes too long is ended."""
    until = time.monotonic() + limit
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used.ru_utime + used.ru_stime
        if time.monotonic() > until:
            stop(process)
            raise TooLong(f"`{' '.join(process.args[1:3])} …` took longer than {limit} s")
        time.sleep(0.005)


def wait_open(port, process, log, limit=20):
    until = time.monotonic() + limit
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
            return
        time.sleep(0.02)
    raise TooLong(f"nothing listens on its port: {log.read_text(errors='replace')[-500:]}")


def wait_ready(server, process, limit=30):
    until = time.monotonic() + limit
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{server.url}/readyz", timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.05)
    raise TooLong("a server did not get ready")
