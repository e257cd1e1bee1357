"""A stand-in for the runner of GitHub: plays the steps of a composite action, and reads the commands and files that they write.

It knows what `action.yml` uses and refuses everything else, so that a step which it does not understand is not taken for one that
passed. It is no proof of what the runner of GitHub does.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
COMMAND = re.compile(r"^::([a-zA-Z0-9-]+)(?: (.*?))?::(.*)$")
SEVERITIES = ("error", "warning", "notice")
STEP_SECONDS_MAX = 120


class Refused(Exception):
    """The action has something that this stand-in does not know."""


@dataclass
class Annotation:
    severity: str
    properties: dict
    message: str


@dataclass
class Result:
    """What a job with the action as its only step came to."""

    succeeded: bool = True
    exit_code: int = 0
    outputs: dict = field(default_factory=dict)
    summary: str = ""
    annotations: list = field(default_factory=list)
    others: list = field(default_factory=list)  # commands that are no annotation
    path: list = field(default_factory=list)
    steps: dict = field(default_factory=dict)
    log: str = ""

    def of(self, severity):
        return [it for it in self.annotations if it.severity == severity]


def unescaped(text, more=()):
    for escape, char in [*more, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")]:
        text = text.replace(escape, char)
    return text


def read_commands(log, result):
    """Reads the commands of a log as the runner does: from `stop-commands` to the word that it names none has an effect."""
    resume = None
    for line in log.splitlines():
        found = COMMAND.match(line.strip())
        if found is None:
            continue
        name, properties, data = found.groups()
        if resume is not None:
            resume = None if name == resume else resume
        elif name == "stop-commands":
            resume = data
        elif name in SEVERITIES:
            pairs = [pair.split("=", 1) for pair in (properties or "").split(",") if pair]
            named = {key: unescaped(value, [("%3A", ":"), ("%2C", ",")]) for key, value in pairs}
            result.annotations.append(Annotation(name, named, unescaped(data)))
        else:
            result.others.append(line)
    if resume is not None:
        raise Refused("a step stopped commands and never resumed them")


def read_values(text):
    """Reads a file of outputs: `name=value`, or `name<<END`, lines and `END`."""
    values, lines = {}, iter(text.splitlines())
    for line in lines:
        if heredoc := re.match(r"^([^=<]+)<<(.+)$", line):
            value = []
            for inner in lines:
                if inner == heredoc.group(2):
                    break
                value.append(inner)
            values[heredoc.group(1)] = "\n".join(value)
        elif "=" in line:
            name, value = line.split("=", 1)
            values[name] = value
        elif line:
            raise Refused(f"a line of outputs without a name: {line}")
    return values


class Action:
    """A composite action, read from its folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.description = YAML(typ="safe").load((self.folder / "action.yml").read_text())
        if self.description["runs"]["using"] != "composite":
            raise Refused("only composite actions are played here")

    def run(self, machine, given=None, during=None):
        """Plays all steps. `machine` has the variables of the job and `github`, `given` the inputs; `during(process)` is called
        while a step runs, and returns true once it has seen what it waits for."""
        known = self.description["inputs"]
        if unknown := set(given or {}) - set(known):
            raise Refused(f"the action has no input {', '.join(sorted(unknown))}")
        scope = {"github": machine.github, "steps": {}}
        # The runner gives every value as a string.
        defaults = {name: str(it.get("default", "")) for name, it in known.items()}
        scope["inputs"] = {name: fill(text, scope) for name, text in defaults.items()} | (given or {})
        result = Result()
        is_cancelled = False
        for step in self.description["runs"]["steps"]:
            condition = str(step.get("if", "success()"))
            if not holds(condition, scope, result.succeeded, is_cancelled):
                result.steps[step["name"]] = "skipped"
                continue
            code, outputs, is_signalled = self.step(step, scope, machine, result, during)
            is_cancelled |= is_signalled
            result.steps[step["name"]] = code
            if "id" in step:
                scope["steps"][step["id"]] = {"outputs": outputs}
            if code != 0 and result.succeeded:
                result.succeeded, result.exit_code = False, code
        read_commands(result.log, result)
        values = self.description.get("outputs", {})
        result.outputs = {name: fill(it["value"], scope) for name, it in values.items()}
        return result

    def step(self, step, scope, machine, result, during):
        if unknown := set(step) - {"name", "id", "if", "shell", "env", "run"}:
            raise Refused(f"the step has {', '.join(sorted(unknown))}")
        if step["shell"] != "bash" or EXPRESSION.search(step["run"]):
            raise Refused("a step of this action runs in bash, without an expression in its script")
        with tempfile.TemporaryDirectory(dir=machine.temp) as files:
            files = Path(files)
            (files / "script.sh").write_text(step["run"])
            named = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary", "GITHUB_PATH": "path", "GITHUB_ENV": "env"}
            for name in named.values():
                (files / name).touch()
            variables = machine.variables | {key: str(files / name) for key, name in named.items()}
            variables |= {"GITHUB_ACTION_PATH": str(self.folder)}
            variables |= {key: fill(str(text), scope) for key, text in step.get("env", {}).items()}
            variables["PATH"] = os.pathsep.join([*reversed(result.path), variables["PATH"]])
            with open(files / "log", "w+b") as log:
                process = subprocess.Popen(
                    ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(files / "script.sh")],
                    cwd=machine.workspace, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True)
                is_signalled = self.await_end(process, step, during)
            text = (files / "log").read_text(errors="replace")
            result.log += text if text.endswith("\n") or not text else text + "\n"
            if (files / "env").read_text():
                raise Refused("a step of this action sets no variables of later steps")
            result.summary += (files / "summary").read_text()
            result.path += (files / "path").read_text().split("\n")[:-1]
            return process.returncode, read_values((files / "output").read_text()), is_signalled

    def await_end(self, process, step, during):
        """Waits for the end of a step. Once `during` has seen what it waits for, the job is cancelled as the runner does it: SIGINT
        to the process of the step alone."""
        until, is_signalled = time.monotonic() + STEP_SECONDS_MAX, False
        while process.poll() is None:
            if during is not None and not is_signalled and step.get("id") == "run" and during(process):
                process.send_signal(signal.SIGINT)
                is_signalled = True
            if time.monotonic() > until:
                os.killpg(process.pid, signal.SIGTERM)
                raise Refused(f"the step `{step['name']}` took longer than {STEP_SECONDS_MAX} s")
            time.sleep(0.02)  # The end of a process and a file of another one have no common event.
        return is_signalled


def value(path, scope):
    """Returns what `inputs.name`, `github.name` or `steps.id.outputs.name` stands for; what a skipped step left out is empty."""
    parts = path.split(".")
    found = scope.get(parts[0])
    if found is None or not re.fullmatch(r"[\w.-]+", path):
        raise Refused(f"`{path}` is not known here")
    if parts[0] != "steps" and parts[1] not in found:
        raise Refused(f"`{path}` does not exist")
    for part in parts[1:]:
        found = found.get(part, {})
    return "" if found == {} else str(found)


def fill(text, scope):
    return EXPRESSION.sub(lambda found: value(found.group(1), scope), text)


def holds(condition, scope, succeeded, is_cancelled):
    """Evaluates a condition: functions of the status and comparisons with a text, joined by `&&`. Without a function of the status
    a step runs only after success."""
    found = EXPRESSION.fullmatch(condition)
    terms = [term.strip() for term in (found.group(1) if found else condition).split("&&")]
    status = {"success()": succeeded and not is_cancelled, "always()": True, "!cancelled()": not is_cancelled,
              "failure()": not succeeded}
    if not set(terms) & set(status):
        terms.insert(0, "success()")
    for term in terms:
        if term in status:
            is_true = status[term]
        elif comparison := re.fullmatch(r"([\w.-]+) == '([^']*)'", term):
            is_true = value(comparison.group(1), scope) == comparison.group(2)
        else:
            raise Refused(f"the condition `{term}` is not known here")
        if not is_true:
            return False
    return True
