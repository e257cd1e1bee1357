"""What the programs of `traps` and `tenants` share: their arguments, ports, processes, and a Postgres of their own."""

import contextlib
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LOOPBACK = "127.0.0.1"


class Impossible(Exception):
    """The case cannot be played here."""


class TooLong(Exception):
    """Something took longer than it may."""


def options_of(reader, known):
    """Reads `--only`, `--list` and the program's own arguments, and does what `--list` asks for. `known(options)` gives by name what
    each case is about. The options have the names to be played, and the binary under test."""
    reader.add_argument("--only", nargs="+", metavar="NAME", help="these, and no others")
    reader.add_argument("--list", action="store_true", help="tells what each is about, and runs nothing")
    options = reader.parse_args()
    cases = known(options)
    options.only = options.only or list(cases)
    if unknown := [name for name in options.only if name not in cases]:
        sys.exit(f"there is no {', '.join(unknown)}; there are: {', '.join(cases)}")
    if options.list:
        for name in options.only:
            print(f"{name}: {cases[name]}")
        sys.exit(0)
    binary = os.environ.get("QUALITYTRACE", "")
    if not os.access(binary, os.X_OK):
        sys.exit(f"say which binary is meant: QUALITYTRACE=/path/to/qualitytrace {sys.argv[0]}")
    options.binary = Path(binary).resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    return options


def free_port():
    """A port that nobody listens on, below those that systems give to outgoing connections: one of those may take it at any moment."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with socket.socket() as taken, contextlib.suppress(OSError):
            taken.bind((LOOPBACK, port))
            return port


def environment(**more):
    """Ours, without what would steer the program under test or the SDK variables it sets."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("QUALITYTRACE", "OTEL_"))}
    return kept | {"NO_COLOR": "1", "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"} | more


def waited(limit, what, attempt, pause=0.1, process=None):
    """What an attempt gives, made again until it gives something. `what` tells what did not come in time, or never will since a
    process ended, whose log tells why."""
    until = time.monotonic() + limit
    while not (found := attempt()):
        if time.monotonic() > until or process and process.poll() is not None:
            raise TooLong(what + (f": {logged(process)}" if process else ""))
        time.sleep(pause)
    return found


def logged(process):
    """The end of what a process has written to its log."""
    return process.log.read_text(errors="replace")[-500:]


def stop(process, first=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(first)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
    if process.poll() is None:
        process.kill()
        process.wait()


class Cluster:
    """A Postgres of our own: in a temporary folder, on a free loopback port, under another user where we are root."""

    def __init__(self, name):
        self.name, self.bin, self.user = name, binaries(), {}
        if os.geteuid() == 0:
            account = unprivileged()
            self.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.folder = Path(tempfile.mkdtemp(prefix=f"{name}-postgres-"))
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        self.port, self.made = free_port(), 0
        self.place = ("-h", LOOPBACK, "-p", str(self.port))
        data = str(self.folder / "data")
        self.call("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.process = subprocess.Popen(
            [self.bin / "postgres", "-D", data, *self.place, "-k", str(self.folder), "-F"],
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env=environment(), **self.user)
        try:
            self.wait()
        except BaseException:
            self.close()
            raise

    def wait(self, limit=30):
        until = time.monotonic() + limit
        while self.call("pg_isready", *self.place, check=False).returncode:
            if time.monotonic() > until or self.process.poll() is not None:
                raise Impossible("a Postgres was found and did not start")
            time.sleep(0.1)

    def call(self, name, *words, check=True):
        done = subprocess.run([self.bin / name, *words], cwd="/", env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, **self.user)
        if check and done.returncode:
            raise Impossible(f"{name}: {(done.stderr or done.stdout).strip()[-200:]}")
        return done

    def database(self):
        """The keys under `postgres` of a server's configuration, for a new database."""
        self.made += 1
        name = f"{self.name}_{self.made}"
        self.call("createdb", *self.place, "-U", "postgres", name)
        return {"host": LOOPBACK, "port": self.port, "user": "postgres", "password": "unused", "dbname": name}

    def update(self, database, statement):
        """Changes one row."""
        done = self.call("psql", *self.place, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-c", statement)
        if done.stdout.strip() != "UPDATE 1":
            raise RuntimeError(f"`{statement}` was answered `{done.stdout.strip()}`, and not `UPDATE 1`")

    def close(self):
        stop(self.process, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)


def binaries():
    needed = ("initdb", "postgres", "pg_isready", "createdb", "psql")
    places = [os.environ.get("QUALITYTRACE_TEST_POSTGRES_BIN", ""), os.path.dirname(shutil.which("initdb") or "")]
    places += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    for place in filter(None, places):
        if all(os.access(os.path.join(place, name), os.X_OK) for name in needed):
            return Path(place)
    raise Impossible("no Postgres: install one, or say where with QUALITYTRACE_TEST_POSTGRES_BIN")


def unprivileged():
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Impossible("Postgres does not run as root, and there is no other user")
