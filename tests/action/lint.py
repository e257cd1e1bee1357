#!/usr/bin/env python3
"""Lints the workflows, the GitHub action, the GitLab component and the examples of docs/ci.md.

The linters come from PATH: actionlint, zizmor, shellcheck and check-jsonschema. Each of them also gets a file with a planted fault,
and has to find it: a linter that reads nothing finds nothing.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ruamel.yaml import YAML

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from runner import Action, fill  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/ci.md"
COMPONENT = ROOT / "deploy/gitlab/templates/qualitytrace.yml"
ACTION = re.compile(r"uses: qualitytrace/qualitytrace@v(\S+)")
SCHEMAS = {"workflow": "vendor.github-workflows", "action": "vendor.github-actions", "gitlab": "vendor.gitlab-ci"}


class Wrong(Exception):
    """A linter found something, or did not find what was planted."""


def lint(*command, folder=ROOT):
    done = subprocess.run([str(it) for it in command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"{' '.join(str(it) for it in command)}\n{done.stdout}{done.stderr}")


def actionlint(project):
    """Lints all workflows of a project; it reads the scripts of steps with the shellcheck in PATH."""
    lint("actionlint", "-no-color", folder=project)


def zizmor(project):
    lint("zizmor", "--offline", "--strict-collection", "--collect=all", "--no-progress", "--color=never", "--quiet", ".", folder=project)


def shellcheck(project):
    files = sorted([*project.glob("deploy/action/*.sh"), *project.glob(".github/*.sh")])
    lint("shellcheck", "--external-sources", *files, folder=project)


def schema(kind, *files):
    lint("check-jsonschema", "--builtin-schema", SCHEMAS[kind], *files)


def copied(folder):
    """Copies what the linters read into a project of its own."""
    project = Path(folder) / "project"
    shutil.copytree(ROOT / ".github", project / ".github")
    shutil.copytree(ROOT / "deploy/action", project / "deploy/action")
    shutil.copy(ROOT / "action.yml", project)
    (project / ".git").mkdir()  # actionlint finds the root of a project by it
    return project


def documents(text, folder, name):
    """Writes each document of a file as a file: the schemas are for one document."""
    files = []
    for number, document in enumerate(re.split(r"^---\n", text, flags=re.MULTILINE)):
        files.append(Path(folder) / f"{name}-{number}.yml")
        files[-1].write_text(document)
    return files


def examples():
    """The examples of the page, by what they are for."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = {"workflow": [block for block in blocks if re.search(r"^jobs:", block, flags=re.MULTILINE)]}
    found["gitlab"] = [block for block in blocks if block not in found["workflow"]]
    if not all(found.values()):
        raise Wrong(f"{PAGE} has no example for {' and '.join(kind for kind, all_of_it in found.items() if not all_of_it)}")
    return found


def files():
    """The files of the repository."""
    actionlint(ROOT)
    shellcheck(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        zizmor(copied(folder))
        schema("workflow", *sorted((ROOT / ".github/workflows").glob("*.yml")))
        schema("action", ROOT / "action.yml")
        schema("gitlab", *documents(COMPONENT.read_text(), folder, "component"))


def page():
    """The examples of the page: as workflows that use the action of this checkout, so that its inputs are compared."""
    found = examples()
    with tempfile.TemporaryDirectory() as folder:
        project = copied(folder)
        shutil.rmtree(project / ".github/workflows")
        (project / ".github/workflows").mkdir()
        for number, text in enumerate(found["workflow"]):
            (project / f".github/workflows/example-{number}.yml").write_text(ACTION.sub("uses: ./", text))
        schema("workflow", *sorted((project / ".github/workflows").glob("*.yml")))
        actionlint(project)
        zizmor(project)
        for number, text in enumerate(found["gitlab"]):
            schema("gitlab", *documents(text, folder, f"example-{number}"))
            inputs, _ = YAML(typ="safe").load_all(COMPONENT.read_text())
            known = inputs["spec"]["inputs"]
            for included in YAML(typ="safe").load(text).get("include", []):
                given = set(included.get("inputs", {}))
                required = {name for name, it in known.items() if "default" not in it}
                if not required <= given <= set(known):
                    raise Wrong(f"an example gives {sorted(given)}, and the component has {sorted(known)}, of which {sorted(required)} are required")


def version(released):
    """The action installs the version that it is part of, and the page names that version."""
    default = YAML(typ="safe").load((ROOT / "action.yml").read_text())["inputs"]["version"]["default"]
    if default != released:
        raise Wrong(f"action.yml installs {default} by default, and the release is {released}")
    named = {it.rstrip(".,`)") for it in ACTION.findall(PAGE.read_text())}
    if named != {released}:
        raise Wrong(f"{PAGE} uses the action at {sorted(named)}, and the release is {released}")


def described():
    """Every input and output is on the page, and every output has a step that writes it."""
    action = Action(ROOT)
    for kind in ("inputs", "outputs"):
        for name in action.description[kind]:
            if f"| `{name}` |" not in PAGE.read_text():
                raise Wrong(f"{PAGE} has no line about `{name}` of the {kind} of the action")
    steps = {step.get("id"): {"outputs": {}} for step in action.description["runs"]["steps"]}
    for name, it in action.description["outputs"].items():
        fill(it["value"], {"steps": steps})
        step, output = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}", it["value"]).groups()
        script = {"install": "install.sh", "run": "run.sh", "comment": "comment.sh"}[step]
        if not re.search(rf"^ *output {output} ", (ROOT / "deploy/action" / script).read_text(), flags=re.MULTILINE):
            raise Wrong(f"{script} writes no `{output}`, which the output `{name}` is")


def planted():
    """Faults that each linter has to find."""
    workflow = ".github/workflows/action.yml"
    cases = [
        (actionlint, workflow, "binary: target", "binry: target"),
        (actionlint, workflow, "test \"${GREEN%% *}\"", "test ${GREEN%% *}"),
        (zizmor, workflow, "echo \"green: $GREEN", "echo \"${{ github.event.pull_request.title }}: $GREEN"),
        (zizmor, workflow, "persist-credentials: false", "fetch-depth: 1"),
        (zizmor, "action.yml", "run: exit \"$EXIT_CODE\"", "run: exit ${{ inputs.args }}"),
        (shellcheck, "deploy/action/run.sh", "rm -rf \"$scratch\"", "rm -rf $scrtch"),
        (lambda project: schema("workflow", project / workflow), workflow, "runs-on:", "run-on:"),
        (lambda project: schema("action", project / "action.yml"), "action.yml", "using: composite", "using: composit"),
    ]
    for linter, name, right, wrong in cases:
        with tempfile.TemporaryDirectory() as folder:
            project = copied(folder)
            text = (project / name).read_text()
            if right not in text:
                raise Wrong(f"{name} has no `{right}` to replace")
            linter(project)
            (project / name).write_text(text.replace(right, wrong))
            with contextlib.suppress(Wrong):
                linter(project)
                sys.exit(f"`{wrong}` in {name} was not found")
    with tempfile.TemporaryDirectory() as folder:
        text = COMPONENT.read_text().replace("artifacts:", "artefacts:")
        with contextlib.suppress(Wrong):
            schema("gitlab", *documents(text, folder, "planted"))
            sys.exit("`artefacts:` in the component was not found")


def digests():
    """The script that reads the commits of actions, with repositories on this machine in place of those of GitHub."""
    with tempfile.TemporaryDirectory() as folder:
        project = copied(folder)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
        listed = project / ".github/actions.txt"
        lines = [line.split() for line in listed.read_text().splitlines() if line and not line.startswith("#")]
        expected = {}
        for number, (name, tag, _) in enumerate(lines):
            repository = Path(folder) / "github" / name
            subprocess.run([*git, "init", "--quiet", repository], check=True)
            subprocess.run([*git, "-C", repository, "commit", "--quiet", "--allow-empty", "--message", name], check=True)
            # Tags with and without an object of their own, and a branch.
            kind = ["branch", tag] if "/" in tag else ["tag", *(["--annotate", "--message", tag] if number % 2 else []), tag]
            subprocess.run([*git, "-C", repository, *kind], check=True)
            expected[name] = subprocess.check_output([*git, "-C", repository, "rev-parse", "HEAD"], text=True).strip()
        variables = os.environ | {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": "https://github.com/",
                                  "GIT_CONFIG_KEY_0": f"url.{Path(folder) / 'github'}/.insteadOf"}
        for _ in range(2):  # The second time replaces commits by commits.
            subprocess.run(["bash", project / ".github/resolve-actions.sh"], env=variables, check=True)
            found = {line.split()[0]: line.split()[2] for line in listed.read_text().splitlines() if line and not line.startswith("#")}
            if found != expected:
                raise Wrong(f"actions.txt has {found} instead of {expected}")
            for file in sorted((project / ".github/workflows").glob("*.yml")):
                for used in re.findall(r"uses: ([^.\s]\S*@.*)", file.read_text()):
                    name = used.partition("@")[0]
                    tag = next(it[1] for it in lines if it[0] == name)
                    if used != f"{name}@{expected[name]} # {tag}":
                        raise Wrong(f"{file.name} has `{used}`")
            actionlint(project)
        before = listed.read_text()
        shutil.rmtree(Path(folder) / "github/actions/cache")
        done = subprocess.run(["bash", project / ".github/resolve-actions.sh"], env=variables, capture_output=True)
        if done.returncode == 0 or listed.read_text() != before:
            raise Wrong("a repository that is gone was no error, or half of the file was written")


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--version", help="the version of the release, which the action and the page have to name")
    options = reader.parse_args()
    checks = {"files": files, "page": page, "described": described, "digests": digests, "planted": planted}
    if options.version:
        checks["version"] = lambda: version(options.version)
    for name, check in checks.items():
        try:
            check()
        except Wrong as wrong:
            sys.exit(f"{name}: {wrong}")
        print(f"{name}: as it should be", flush=True)


if __name__ == "__main__":
    main()
