"""Writes a folder as a wheel: the same files and the same time give the same bytes.

Usage: write.py FOLDER WHEEL SECONDS
"""

import base64
import hashlib
import pathlib
import sys
import time
import zipfile

folder, wheel = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
moment = time.gmtime(int(sys.argv[3]))[:6]

files = sorted(path for path in folder.rglob("*") if path.is_file())
contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
facts = next(name.split("/")[0] for name in contents if name.split("/")[0].endswith(".dist-info"))

lines = []
for name, content in contents.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    lines.append(f"{name},sha256={digest},{len(content)}\n")
# The list cannot have its own checksum.
lines.append(f"{facts}/RECORD,,\n")
contents[f"{facts}/RECORD"] = "".join(lines).encode()

# Readers stop early when the facts come last.
order = sorted(contents, key=lambda name: (name.startswith(facts), name))
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name in order:
        entry = zipfile.ZipInfo(name, moment)
        entry.create_system = 3  # Unix, whose modes follow.
        entry.compress_type = zipfile.ZIP_DEFLATED
        is_program = "/scripts/" in name
        entry.external_attr = (0o100755 if is_program else 0o100644) << 16
        archive.writestr(entry, contents[name], compresslevel=9)
