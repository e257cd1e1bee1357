"""What a bill of materials lists, compared with other sources of the same knowledge.

    supply.py embedded PROGRAM                    prints the list of crates in a program, as JSON
    supply.py parts SBOM EMBEDDED LICENCES PAGE < TREE
                                                  compares the parts: TREE is what `cargo tree --prefix none` prints, EMBEDDED
                                                  the list of `embedded`, PAGE the lockfile of the page
    supply.py program SBOM PROGRAM                the digest of the program is that of the document
    supply.py audit COUNT ADVISORY < REPORT       the JSON of cargo-audit has so many crates, and found that advisory alone
    supply.py schema SBOM                         CycloneDX's own JSON Schema; needs `jsonschema` and `cyclonedx`

Each fails with what differs.
"""

import hashlib
import json
import pathlib
import re
import struct
import sys
import zlib

# The section of `cargo-auditable`.
SECTION = b".dep-v0"
OURS = "qualitytrace:"


def embedded(program):
    """Reads the section of a 64-bit ELF file, by the tables that its header names."""
    data = pathlib.Path(program).read_bytes()
    if data[:5] != b"\x7fELF\x02":
        sys.exit(f"error: {program} is not a 64-bit ELF file")
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, offset + index * size) for index in range(count)]
    for name, _, _, _, start, length in sections:
        at = sections[names][4] + name
        if data[at : data.index(b"\0", at)] == SECTION:
            return json.loads(zlib.decompress(data[start : start + length]))
    sys.exit(f"error: {program} has no section {SECTION.decode()}: it was not built by cargo-auditable")


def same(what, found, expected):
    """Fails unless two sets are equal and not empty."""
    more, missing = sorted(found - expected), sorted(expected - found)
    if more or missing or not found:
        sys.exit(f"error: {what}: {len(found)} parts; missing {missing}; too many {more}")


def tree(text):
    """The crates of a tree: name, version, and whether the crate is ours."""
    crates = set()
    for line in text.splitlines():
        name, version = line.split()[:2]
        crates.add((name, version.removeprefix("v"), "(/" in line))
    return crates


def runtime_packages(lockfile):
    """The packages of a lockfile of npm that are not only for development. Optional ones may not be installed."""
    packages = json.loads(pathlib.Path(lockfile).read_text(encoding="utf-8"))["packages"]
    return {
        (path.rpartition("node_modules/")[2], entry["version"])
        for path, entry in packages.items()
        if path and not any(entry.get(key) for key in ("dev", "devOptional", "optional"))
    }


def parts(sbom, embedded_list, licences, page):
    document = json.loads(pathlib.Path(sbom).read_text(encoding="utf-8"))
    components = document["components"]
    by_url = lambda start: [it for it in components if it.get("purl", "").startswith(start)]
    pair = lambda it: (it["name"], it["version"])
    foreign = {pair(it) for it in by_url("pkg:cargo/")}
    ours = {pair(it) for it in components if it["bom-ref"].startswith(OURS)}
    npm = {pair(it) for it in by_url("pkg:npm/")}

    crates = tree(sys.stdin.read())
    root = {crate[:2] for crate in crates if crate[0] == "cli"}
    same("foreign crates and `cargo tree`", foreign, {it[:2] for it in crates if not it[2]})
    same("our crates and `cargo tree`", ours | root, {it[:2] for it in crates if it[2]})
    same("npm packages and the lockfile", npm, runtime_packages(page))
    if len(components) != len(foreign) + len(ours) + len(npm):
        sys.exit("error: a component is there twice, or is of no known kind")

    packages = json.loads(pathlib.Path(embedded_list).read_text(encoding="utf-8"))["packages"]
    same("the list in the program", {pair(it) for it in packages}, foreign | ours | root)
    linked = {pair(it) for it in packages if it.get("kind", "runtime") == "runtime"}
    required = {pair(it) for it in components if it["scope"] == "required"} - npm
    same("what of it is linked", linked, required | root)

    references = {it["bom-ref"] for it in components} | {document["metadata"]["component"]["bom-ref"]}
    edges = {it["ref"]: it["dependsOn"] for it in document["dependencies"]}
    reached, rest = set(), [document["metadata"]["component"]["bom-ref"]]
    while rest:
        reference = rest.pop()
        if reference not in reached:
            reached.add(reference)
            rest += edges.get(reference, [])
    same("what the dependencies reach", reached, references)

    text = pathlib.Path(licences).read_text(encoding="utf-8")
    listed = set(re.findall(r"^- (\S+) (\S+)$", text, re.MULTILINE))
    # The file is for all targets of the release, so it may list more.
    missing = sorted((foreign | npm) - listed)
    if missing:
        sys.exit(f"error: the file of licences: missing {missing}")
    print(f"{len(foreign)} crates, {len(ours)} of ours, {len(npm)} npm packages; {len(packages)} in the program")


def program(sbom, path):
    document = json.loads(pathlib.Path(sbom).read_text(encoding="utf-8"))
    stated = {it["content"] for it in document["metadata"]["component"]["hashes"]}
    same("the digest of the program", {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()}, stated)


def audit(count, advisory):
    report = json.load(sys.stdin)
    found = [it["advisory"]["id"] for it in report["vulnerabilities"]["list"]]
    read = report["lockfile"]["dependency-count"]
    if read != int(count) or found != [advisory]:
        sys.exit(f"error: cargo-audit read {read} crates of {count} and found {found}, expected {advisory}")


def schema(sbom):
    import cyclonedx.schema
    import jsonschema
    import referencing

    folder = pathlib.Path(cyclonedx.schema.__file__).parent / "_res"
    load = lambda name: json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text(encoding="utf-8"))
    # The schema names these two by files beside it.
    others = {f"http://cyclonedx.org/schema/{name}.SNAPSHOT.schema.json": load(name) for name in ("spdx", "jsf-0.82")}
    resources = [(url, referencing.Resource.from_contents(content)) for url, content in others.items()]
    registry = referencing.Registry().with_resources(resources)
    validator = jsonschema.Draft7Validator(load("bom-1.6"), registry=registry)
    errors = list(validator.iter_errors(json.loads(pathlib.Path(sbom).read_text(encoding="utf-8"))))
    if errors:
        sys.exit("error: " + "; ".join(f"{error.json_path}: {error.message[:200]}" for error in errors[:5]))


if __name__ == "__main__":
    commands = {
        "embedded": lambda path: print(json.dumps(embedded(path))),
        "parts": parts,
        "program": program,
        "audit": audit,
        "schema": schema,
    }
    commands[sys.argv[1]](*sys.argv[2:])
