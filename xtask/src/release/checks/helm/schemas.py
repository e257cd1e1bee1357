"""Makes JSON Schemas for kubeconform from the OpenAPI document of Kubernetes: schemas.py SWAGGER FOLDER.

The schemas that kubeconform downloads by default are made in the same way, and are not reachable everywhere. One file
for each kind, with all definitions that it needs, and no property that the document does not have.
"""

import json
import sys
from pathlib import Path

PREFIX = "#/definitions/"
# Both are written as a string or as a number.
LOOSE = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
}


def strict(node):
    """Refuses unknown properties below a schema."""
    if isinstance(node, list):
        return [strict(it) for it in node]
    if not isinstance(node, dict):
        return node
    # The names of properties are not keywords: a JSONSchemaProps has one that is named `$ref`.
    made = {
        key: {name: strict(it) for name, it in value.items()} if key == "properties" else strict(value)
        for key, value in node.items()
    }
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def references(node):
    """Yields the names of the definitions that a schema uses."""
    if isinstance(node, list):
        for it in node:
            yield from references(it)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "properties":
                for it in value.values():
                    yield from references(it)
            elif key == "$ref" and isinstance(value, str):
                yield value.removeprefix(PREFIX)
            else:
                yield from references(value)


def closure(name, definitions):
    found, pending = set(), [name]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(references(definitions[name]))
    return found


def main(swagger, folder):
    definitions = {}
    for name, schema in json.loads(Path(swagger).read_text())["definitions"].items():
        definitions[name] = {"type": ["string", "number"]} if name in LOOSE else strict(schema)
    kinds = 0
    for name, schema in definitions.items():
        own = schema.get("x-kubernetes-group-version-kind", [])
        # A definition with several of them is a list or an option of requests, and no document.
        if len(own) != 1 or "metadata" not in schema.get("properties", {}):
            continue
        group, version, kind = own[0]["group"], own[0]["version"], own[0]["kind"]
        parts = [kind, group.split(".")[0], version] if group else [kind, version]
        whole = dict(schema, definitions={it: definitions[it] for it in sorted(closure(name, definitions))})
        whole["required"] = sorted({"apiVersion", "kind", *schema.get("required", [])})
        Path(folder, "-".join(parts).lower() + ".json").write_text(json.dumps(whole))
        kinds += 1
    print(kinds)


main(*sys.argv[1:])
