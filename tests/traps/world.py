"""What cases stand in: folders, ports, processes that are stopped by their pid, and a Postgres where there is one."""

import contextlib
import glob
import json
import os
import pwd
import shutil
import signal
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


class Impossible(Exception):
    """The case cannot be played here."""


class TooLong(Exception):
    """Something took longer than it may."""


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
        return f"http://127.0.0.1:{self.http}"

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.otlp}"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def environment(**more):
    """Ours, without what would steer the program under test or the SDK variables it sets."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("QUALITYTRACE", "OTEL_"))}
    return kept | {"NO_COLOR": "1", "NO_PROXY": "*"} | more


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
            self.cluster = self.cluster or Cluster()
            return self.cluster.database()


class Stage:
    """One playing of one case: its folder, its ports, its processes."""

    def __init__(self, around, case, folder):
        self.around, self.folder = around, folder
        shutil.copytree(case, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        self.port, self.otlp, self.running = free_port(), free_port(), []
        self.names = {"python": sys.executable, "qualitytrace": around.binary, "port": self.port, "otlp": self.otlp}

    def environment(self):
        return environment(PORT=str(self.port), PYTHONPATH=str(self.around.here), PYTHONDONTWRITEBYTECODE="1",
                           HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder / "config"))

    def filled(self, words):
        return [word.format(**self.names) for word in words]

    def make(self):
        """Lets the case write what is too large to be kept."""
        subprocess.run([sys.executable, "make.py"], cwd=self.folder, env=self.environment(), check=True, timeout=60)

    def start(self, words, until_open, env=None):
        """Starts a process beside, and waits until it listens."""
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.otlp}"} | (env or {})
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


def stop(process, first=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(first)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
    if process.poll() is None:
        process.kill()
        process.wait()


def wait_open(port, process, log, limit=20):
    until = time.monotonic() + limit
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
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


class Cluster:
    """A Postgres of our own: in a temporary folder, on a free loopback port, under another user where we are root."""

    def __init__(self):
        self.bin = binaries()
        self.user = {}
        if os.geteuid() == 0:
            account = unprivileged()
            self.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.folder = Path(tempfile.mkdtemp(prefix="verdict-traps-postgres-"))
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        self.port, self.made = free_port(), 0
        data = str(self.folder / "data")
        self.call("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.process = subprocess.Popen(
            [self.bin / "postgres", "-D", data, "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder), "-F"],
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env=environment(), **self.user)
        try:
            self.wait()
        except BaseException:
            self.close()
            raise

    def wait(self, limit=30):
        until = time.monotonic() + limit
        while self.call("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), check=False):
            if time.monotonic() > until or self.process.poll() is not None:
                raise Impossible("a Postgres was found and did not start")
            time.sleep(0.1)

    def call(self, name, *words, check=True):
        done = subprocess.run([self.bin / name, *words], cwd="/", env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, **self.user)
        if check and done.returncode:
            raise Impossible(f"{name}: {(done.stderr or done.stdout).strip()[-200:]}")
        return done.returncode

    def database(self):
        self.made += 1
        name = f"traps_{self.made}"
        self.call("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return {"host": "127.0.0.1", "port": self.port, "user": "postgres", "password": "unused", "dbname": name}

    def close(self):
        stop(self.process, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)


def binaries():
    needed = ("initdb", "postgres", "pg_isready", "createdb")
    places = [os.environ.get("QUALITYTRACE_TEST_POSTGRES_BIN", ""), os.path.dirname(shutil.which("initdb") or "")]
    places += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    for place in filter(None, places):
        if all(os.access(os.path.join(place, name), os.X_OK) for name in needed):
            return Path(place)
    raise Impossible("no Postgres: install one, or set QUALITYTRACE_TEST_POSTGRES_URL")


def unprivileged():
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Impossible("Postgres does not run as root, and there is no other user")
