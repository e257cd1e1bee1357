"""A NATS of several nodes on loopback, with JetStream, whose files can be searched."""

import json
import os
import signal
import socket

from world import LOOPBACK, Impossible, ask, free_port, stop, waited

NODES = 3
VARIABLE = "QUALITYTRACE_TEST_NATS"
PREFIX = "qualitytrace"
PLANT_SECONDS = 20


class Nats:
    """The nodes write to disk before they acknowledge."""

    def __init__(self, folder, run, bytes_max):
        """`run` starts a process; `bytes_max` is the bound of a stream."""
        program = os.environ.get(VARIABLE, "")
        if not os.access(program, os.X_OK):
            raise Impossible(f"no NATS: `cargo xtask services up nats`, and {VARIABLE} names the program")
        self.bytes_max = bytes_max
        ports = [[free_port() for _ in range(3)] for _ in range(NODES)]
        self.ports, self.monitors = [it[0] for it in ports], [it[1] for it in ports]
        self.folders = [folder / f"nats-{node}" for node in range(NODES)]
        routes = ", ".join(f"nats://{LOOPBACK}:{route}" for _, _, route in ports)
        self.processes = []
        for node, (port, monitor, route) in enumerate(ports):
            config = folder / f"nats-{node}.conf"
            config.write_text(
                f'server_name: n{node}\nlisten: "{LOOPBACK}:{port}"\nhttp: "{LOOPBACK}:{monitor}"\n'
                f'jetstream {{ store_dir: "{self.folders[node]}", max_mem: 256M, max_file: 8G, sync_interval: always }}\n'
                f'cluster {{ name: c, listen: "{LOOPBACK}:{route}", routes: [{routes}] }}\n')
            self.processes.append(run([program, "-c", config]))
        for monitor, process in zip(self.monitors, self.processes):
            is_healthy = lambda: ask(monitor, "GET", "/healthz", timeout=2)[0] == 200  # noqa: E731, B023
            waited(30, "NATS did not get healthy", is_healthy, pause=0.05, process=process)

    def section(self):
        """The keys under `nats` of a server's configuration."""
        endpoint = ",".join(f"nats://{LOOPBACK}:{port}" for port in self.ports)
        return {"endpoint": endpoint, "synced": True, "maxBytes": self.bytes_max, "prefix": PREFIX}

    def used(self):
        """The bytes of the fullest stream."""
        most = 0
        for monitor in self.monitors:
            status, data, _ = ask(monitor, "GET", "/jsz?streams=true&accounts=true", timeout=5)
            accounts = json.loads(data).get("account_details") or [] if status == 200 else []
            streams = [stream for account in accounts for stream in account.get("stream_detail") or []]
            most = max([most, *(stream["state"]["bytes"] for stream in streams)])
        return most

    def plant(self, text):
        """Stores a text as it is in the stream of spans, beside those of the servers: at a slot that no server has."""
        def is_stored():
            try:
                return self.stored(f"{PREFIX}.spans.0.31.planted", text.encode())
            except OSError:
                return False
        waited(PLANT_SECONDS, "NATS did not store a message", is_stored)

    def stored(self, subject, payload):
        with socket.create_connection((LOOPBACK, self.ports[0]), timeout=5) as line, line.makefile("rb") as lines:
            line.sendall(b'CONNECT {"verbose":false}\r\nSUB planted.reply 1\r\n')
            line.sendall(f"PUB {subject} planted.reply {len(payload)}\r\n".encode() + payload + b"\r\n")
            while words := lines.readline().split():
                if words[0] == b"PING":
                    line.sendall(b"PONG\r\n")
                elif words[0] == b"MSG":
                    return "seq" in json.loads(lines.read(int(words[-1])))
        return False

    def close(self):
        """Ends the nodes so that all that they have is on disk."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            stop(process)
