#!/usr/bin/env python3
"""How many files a new trigger touches, shown by one: `tcp.patch` adds a trigger `tcp`. See README.md."""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATCH = HERE / "tcp.patch"
FILES_MAX = 4

DOCUMENT = """type: Test
spec:
  name: what the peer replies is judged
  skipTraceCollection: true
  trigger:
    type: tcp
    tcp:
      address: 127.0.0.1:{port}
      message: hello
  specs:
  - name: the reply
    assertions:
    - response.body = "HELLO"
    - response.status = 0
"""


def touched():
    """The files of the patch."""
    return re.findall(r"^diff --git a/\S+ b/(\S+)$", PATCH.read_text(), re.MULTILINE)


def copied(folder):
    """Copies the files of the checkout, and leaves equal ones untouched, so that cargo compiles the others only."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    names = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
    # What the patch added, and what the checkout no longer has.
    for directory in {name.split("/")[0] for name in names if "/" in name}:
        for copy in (folder / directory).rglob("*"):
            if copy.is_file() and copy.relative_to(folder).as_posix() not in names:
                copy.unlink()


def cargo(folder, *words):
    command = [os.environ.get("CARGO", "cargo"), *words]
    subprocess.run(command, cwd=folder, check=True)


def peer():
    """Replies to one message in capitals. Returns its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def reply():
        connection, _ = listener.accept()
        with connection:
            message = b""
            while received := connection.recv(1024):
                message += received
            connection.sendall(message.upper())

    threading.Thread(target=reply, daemon=True).start()
    return listener.getsockname()[1]


def fired(program, folder):
    """Runs a test with the new trigger, and a wrong expectation of it."""
    for wrong, code, words in (("", 0, "status 0 closed"), ("!", 1, "HELLO")):
        document = folder / "tcp.test.yaml"
        document.write_text(DOCUMENT.format(port=peer()).replace('"HELLO"', f'"HELLO{wrong}"'))
        ran = subprocess.run([program, "run", document], capture_output=True, text=True, timeout=60)
        output = ran.stdout + ran.stderr
        if ran.returncode != code or words not in output:
            sys.exit(f"expected code {code} and `{words}`, got {ran.returncode}:\n{output}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the patched copy is made and kept")
    parser.add_argument("--short", action="store_true", help="only compile the two crates that the patch touches")
    options = parser.parse_args()
    files = touched()
    if len(files) > FILES_MAX:
        sys.exit(f"a new trigger touches {len(files)} files, more than {FILES_MAX}: {', '.join(files)}")
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    copied(folder)
    # A checkout around the folder would make git ignore the patch.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    apply = ["git", "apply", "--whitespace=nowarn", str(PATCH)]
    if subprocess.run(apply, cwd=folder, env=environment).returncode != 0:
        sys.exit(f"`{PATCH.relative_to(ROOT)}` does not apply any more: make it again by hand, it is the proof")
    if options.short:
        cargo(folder, "check", "--quiet", "--locked", "-p", "lang", "-p", "drivers")
    else:
        target = folder / "target"
        cargo(folder, "build", "--quiet", "--locked", "-p", "cli", "--target-dir", str(target))
        fired(target / "debug/qualitytrace", folder)
    print(f"a new trigger touches {len(files)} files: {', '.join(files)}")


main()
