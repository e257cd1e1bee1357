"""Searches files for texts that must not be in them, in plain and obvious encodings."""

import base64
import mmap
import os
from pathlib import Path

from wire import forms

MADE_BYTES = 100_000


def encodings(text):
    """The forms in which a text may be in a file, by the names of encodings."""
    data = text.encode()
    plain, reverse, *coded = forms(text)
    found = {"plain": plain, "backwards": reverse, "capitals": data.upper(), "hex": data.hex().encode(),
             "hex in capitals": data.hex().upper().encode(), "UTF-16 LE": text.encode("utf-16-le"),
             "UTF-16 BE": text.encode("utf-16-be"), "escaped": "".join(f"\\u{it:04x}" for it in data).encode(),
             "percent": "".join(f"%{it:02x}" for it in data).encode()}
    for offset, it in enumerate(coded):
        found[f"Base64 at {offset}"] = it
        found[f"Base64 for URLs at {offset}"] = it.replace(b"+", b"-").replace(b"/", b"_")
    return found


class FileSearch:
    """Searches for some texts; what was found, and how many bytes were searched."""

    def __init__(self, texts):
        self.patterns = {form: (text, name) for text in texts for name, form in encodings(text).items()}
        self.found, self.searched = [], 0

    def folder(self, folder):
        """Searches the names and the contents of all files in a folder, and of those in its folders."""
        for path in sorted(Path(folder).rglob("*")):
            self.data(path, os.fsencode(path.relative_to(folder)))
            if path.is_file() and path.stat().st_size:
                with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    self.data(path, data)
        return self

    def data(self, path, data):
        self.searched += len(data)
        for form, (text, name) in self.patterns.items():
            if (at := data.find(form)) >= 0:
                self.found.append([str(path), name, text, at])


def check(folder):
    """Shows that the search finds each encoding of a text, between other bytes and across the pages of a file, and nothing in
    others. How many it found, and how many there are."""
    text, found = "cnry" + os.urandom(12).hex(), 0
    known = encodings(text)
    for number, form in enumerate(known.values()):
        part = folder / f"planted-{number}"
        part.mkdir()
        (part / "without").write_bytes(os.urandom(MADE_BYTES))
        # Across a border of pages.
        (part / "with").write_bytes(os.urandom(mmap.PAGESIZE - len(form) // 2) + form + os.urandom(MADE_BYTES))
        paths = {Path(it[0]).name for it in FileSearch([text]).folder(part).found}
        found += paths == {"with"}
    whole = base64.b64encode(b"x" + text.encode() + b"-secret")
    (folder / "whole").mkdir()
    (folder / "whole" / "with").write_bytes(whole)
    found += bool(FileSearch([text]).folder(folder / "whole").found)
    return found, len(known) + 1
