#!/usr/bin/env python3
"""Plays the GitHub action and the GitLab component with the real program: verdicts, outputs, summary, annotations, comment.

The runner, the API of GitHub and the host of the release are stand-ins: see runner.py and forge.py. With `--release` the program is
installed from the files of a release; with `--binary` it is one that exists, and the cases of the installation are not played.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from ruamel.yaml import YAML

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from forge import BOT, CHARACTERS_MAX, REPOSITORY, TOKEN, Download, Forge  # noqa: E402
from runner import Action, Annotation, Result, read_commands  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MARKER = "<!-- qualitytrace: shop_32__47__32_traces -->\n"
CASES, INSTALLATION = {}, set()


class Wrong(Exception):
    """A case did not come to what it should."""


def case(play):
    CASES[play.__name__.replace("_", "-")] = play
    return play


def installation(play):
    INSTALLATION.add(play.__name__.replace("_", "-"))
    return case(play)


def expect(is_so, *what):
    if not is_so:
        raise Wrong(" ".join(str(it) for it in what))


class Machine:
    """The job that the action runs in: a workspace with a test for the demo shop, variables, and the program of the options."""

    def __init__(self, options, folder):
        self.temp, self.workspace = folder / "temp", folder / "workspace"
        self.temp.mkdir()
        self.workspace.mkdir()
        self.options = options
        self.port = options.port
        self.github = {"token": TOKEN, "action_repository": ""}
        kept = ("PATH", "HOME", "LANG", "TMPDIR")
        self.variables = {name: os.environ[name] for name in kept if name in os.environ}
        self.variables |= {
            "CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(self.temp), "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_RUN_ID": "42", "GITHUB_WORKFLOW": "shop", "GITHUB_JOB": "traces",
            "GITHUB_SERVER_URL": "https://github.example", "GITHUB_API_URL": "http://127.0.0.1:9",
            "QUALITYTRACE_DEMO_HTTP": f"127.0.0.1:{self.port}",
        }
        self.event("push", {})

    def event(self, name, content):
        file = self.temp / "event.json"
        file.write_text(json.dumps(content))
        self.variables |= {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(file)}

    def pull_request(self, forge):
        self.event("pull_request", {"pull_request": {"number": 7, "head": {"sha": "0123456789abcdef0123"}}})
        self.variables["GITHUB_API_URL"] = forge.url

    def init(self, folder="."):
        """Writes the first test, as a user does."""
        folder = self.workspace / folder
        folder.mkdir(exist_ok=True)
        subprocess.run([self.options.binary, "init"], cwd=folder, env=self.variables, check=True, capture_output=True)

    def demo(self, fault=None):
        return f"exec '{self.options.binary}' demo" + (f" --fault {fault}" if fault else "")

    def run(self, during=None, **given):
        given = {name.replace("_", "-"): value for name, value in given.items()}
        return Action(ROOT).run(self, {"binary": str(self.options.binary)} | given, during)

    def install(self, url, **given):
        return self.run(binary="", version=self.options.version, base_url=url, **given)


def reports(result):
    return Path(result.outputs["report-directory"])


def check_outputs(result, verdict, code, counts):
    wanted = {"verdict": verdict, "exit-code": str(code), "tests": str(sum(counts)), "passed": str(counts[0]),
              "failed": str(counts[1]), "inconclusive": str(counts[2])}
    found = {name: result.outputs[name] for name in wanted}
    expect(found == wanted, found, "instead of", wanted, result.log)
    expect(result.succeeded == (code == 0) and result.exit_code == code, "the job ended with", result.exit_code)
    expect(not result.others, "commands that are no annotation:", result.others)


@case
def passed(machine):
    machine.init()
    result = machine.run(command=machine.demo())
    check_outputs(result, "passed", 0, (1, 0, 0))
    expect(result.annotations == [], result.annotations)
    expect(result.summary.startswith("### Qualitytrace: 1 test: 1 passed"), result.summary)
    expect(result.summary == (reports(result) / "summary.md").read_text(), "the summary is not the report")
    expect(result.steps["Write the comment"] == "skipped", "a comment was not wanted")
    suite = ElementTree.parse(reports(result) / "junit.xml").getroot()
    expect(len(suite.findall("testsuite")) == 1 and suite.findall(".//testcase") and not suite.findall(".//failure"), "junit.xml")
    expect("<html" in (reports(result) / "report.html").read_text(), "report.html")
    expect(result.outputs["version"].startswith("qualitytrace "), result.outputs)


@case
def failed(machine):
    machine.init()
    result = machine.run(command=machine.demo("n-plus-one"))
    check_outputs(result, "failed", 1, (0, 1, 0))
    expect("1 failed" in result.summary and "✘" in result.summary, result.summary)
    errors = result.of("error")
    expect(errors and all(it.properties["title"].startswith("failed: ") for it in errors), errors)
    at = {(it.properties.get("file"), it.properties.get("line")) for it in errors}
    line = (machine.workspace / "qualitytrace/checkout.yaml").read_text().split("\n").index(
        next(it for it in (machine.workspace / "qualitytrace/checkout.yaml").read_text().split("\n") if "by parent_id" in it)) + 1
    expect(("qualitytrace/checkout.yaml", str(line)) in at, at, "without line", line)


@case
def inconclusive(machine):
    machine.init()
    result = machine.run(command=machine.demo("lost-context"))
    check_outputs(result, "inconclusive", 3, (0, 0, 1))
    expect("1 inconclusive" in result.summary, result.summary)
    expect(any(it.properties["title"].startswith("inconclusive: ") for it in result.of("error")), result.annotations)


@case
def usage_error(machine):
    machine.init()
    document = machine.workspace / "qualitytrace/checkout.yaml"
    text = document.read_text().replace("\nspec:\n", "\nspec:\n  triger: {}\n", 1)
    document.write_text(text)
    result = machine.run(command=machine.demo())
    check_outputs(result, "error", 2, (0, 0, 0))
    diagnostic, end = result.of("error")
    expect("exit code 2" in end.message and "triger" in diagnostic.message, result.annotations)
    line = text.split("\n").index("  triger: {}") + 1
    at = {"file": "qualitytrace/checkout.yaml", "line": str(line), "col": "3", "title": "Qualitytrace"}
    expect(diagnostic.properties == at, diagnostic.properties)
    expect("no test ran" in result.summary and "triger" in result.summary, result.summary)


@case
def refused_command_line(machine):
    """The program writes no report then, and none of an earlier run is left."""
    machine.init()
    folder = str(machine.temp / "reports")
    machine.run(command=machine.demo(), report_directory=folder)
    result = machine.run(command=machine.demo(), report_directory=folder, args="--jobs\nmany")
    check_outputs(result, "error", 2, (0, 0, 0))
    expect(sorted(it.name for it in Path(folder).iterdir()) == ["summary.md"], list(Path(folder).iterdir()))
    expect("--jobs" in result.summary, result.summary)


@case
def arguments_are_lines(machine):
    """A path with a space is one path, and what looks like shell is text."""
    machine.init()
    (machine.workspace / "qualitytrace").rename(machine.workspace / "my tests; touch planted")
    result = machine.run(command=machine.demo(), paths="my tests; touch planted\n", args="--test\nno such $(touch planted)\n")
    check_outputs(result, "error", 2, (0, 0, 0))
    expect("no such $(touch planted)" in result.log, result.log)
    result = machine.run(command=machine.demo(), paths="my tests; touch planted", args="--jobs=1\n\n--retries=1")
    check_outputs(result, "passed", 0, (1, 0, 0))
    expect(not (machine.workspace / "planted").exists(), "an input was executed")


@case
def folder_of_a_monorepo(machine):
    """Annotations name files from the root of the repository."""
    machine.init("services, all")
    result = machine.run(command=machine.demo("n-plus-one"), working_directory="./services, all/", summary="false")
    check_outputs(result, "failed", 1, (0, 1, 0))
    files = {it.properties["file"] for it in result.of("error") if "file" in it.properties}
    expect(files == {"services, all/qualitytrace/checkout.yaml"}, files)
    expect(result.summary == "", "the summary was switched off")
    result = machine.run(command=machine.demo("n-plus-one"), working_directory="services, all", annotations="false")
    expect(result.annotations == [] and result.exit_code == 1, result.annotations)


@case
def output_of_the_system_is_no_command(machine):
    machine.init()
    planted = "echo; echo '::error::planted'; echo '::set-output name=verdict::passed'; echo '::add-mask::failed'; "
    result = machine.run(command=planted + machine.demo("n-plus-one"), args="--verbose")
    check_outputs(result, "failed", 1, (0, 1, 0))
    expect("::error::planted" in result.log, "the output of the system is not in the log")
    expect(all("planted" not in it.message for it in result.annotations), result.annotations)


@case
def cancelled(machine):
    """The runner sends SIGINT to the step: the system is stopped, and what is known is reported."""
    machine.init()
    started = machine.workspace / "started"
    seen = {}

    def during(_):
        if started.exists() and started.read_text().strip():
            seen["pid"] = int(started.read_text())
        return "pid" in seen

    result = machine.run(during, command=f"echo $$ > '{started}'; exec sleep 600")
    expect(result.outputs["verdict"] == "interrupted" and result.outputs["exit-code"] == "143", result.outputs, result.log)
    expect(not result.succeeded or result.steps["Verdict"] == "skipped", result.steps)
    expect(not Path(f"/proc/{seen['pid']}").exists(), "the system still runs")


@case
def comment_is_updated(machine):
    """The second run updates the comment of the first, behind a page of others, and leaves one that only looks like it alone."""
    machine.init()
    with Forge() as forge:
        machine.pull_request(forge)
        planted = forge.add("mallory", MARKER + "planted")
        for number in range(120):
            forge.add("somebody", f"comment {number}")
        result = machine.run(command=machine.demo("n-plus-one"), comment="true")
        check_outputs(result, "failed", 1, (0, 1, 0))
        expect(forge.methods() == ["GET", "GET", "POST"], forge.requests)
        ours = forge.comments[-1]
        expect(ours["user"]["login"] == BOT and ours["body"].startswith(MARKER + "### Qualitytrace: 1 test: 1 failed"), ours)
        expect("0123456789ab" in ours["body"] and "actions/runs/42" in ours["body"], ours["body"][-300:])
        expect(result.outputs["comment-url"] == ours["html_url"], result.outputs)
        forge.requests.clear()
        result = machine.run(command=machine.demo(), comment="true")
        check_outputs(result, "passed", 0, (1, 0, 0))
        expect(forge.methods() == ["GET", "GET", "PATCH"], forge.requests)
        expect(ours["body"].startswith(MARKER + "### Qualitytrace: 1 test: 1 passed"), ours)
        expect(len(forge.comments) == 122 and planted["body"] == MARKER + "planted", "another comment was touched")
        forge.requests.clear()
        machine.run(command=machine.demo(), comment="true", comment_key="other --> key")
        expect(forge.methods() == ["GET", "GET", "POST"], "another key is another comment:", forge.requests)
        expect(forge.comments[-1]["body"].startswith("<!-- qualitytrace: other_32__45__45__62__32_key -->\n"), forge.comments[-1])


@case
def comment_after_a_failed_installation(machine):
    """It does not go on stating the verdict about an earlier commit."""
    with Forge() as forge:
        machine.pull_request(forge)
        ours = forge.add(BOT, MARKER + "### Qualitytrace: 1 test: 1 passed")
        result = machine.run(binary="nothing/here", comment="true")
        expect(not result.succeeded and result.outputs["verdict"] == "", result.outputs)
        expect("nothing/here" in result.of("error")[0].message, result.annotations)
        expect(ours["body"].startswith(MARKER + "### Qualitytrace: no test ran"), ours)


@case
def comment_that_is_not_allowed(machine):
    """A token that may only read, as for the pull request of a fork: a warning, and the same verdict."""
    machine.init()
    with Forge(status=403) as forge:
        machine.pull_request(forge)
        result = machine.run(command=machine.demo(), comment="true")
        check_outputs(result, "passed", 0, (1, 0, 0))
        expect(len(result.of("warning")) == 1 and "pull-requests: write" in result.of("warning")[0].message, result.annotations)
        expect(forge.comments == [] and result.outputs["comment-url"] == "", forge.comments)
    machine.variables["GITHUB_API_URL"] = "http://127.0.0.1:9"
    result = machine.run(command=machine.demo(), comment="true")
    check_outputs(result, "passed", 0, (1, 0, 0))
    expect("no response" in result.of("warning")[0].message, result.annotations)


@case
def comment_of_another_author(machine):
    machine.init()
    with Forge(writer="robot-of-the-shop") as forge:
        machine.pull_request(forge)
        result = machine.run(command=machine.demo(), comment="true")
        expect("comment-author: robot-of-the-shop" in result.of("warning")[0].message, result.annotations)
        result = machine.run(command=machine.demo(), comment="true", comment_author="robot-of-the-shop")
        expect(result.annotations == [] and len(forge.comments) == 1, result.annotations, forge.requests)


@case
def comment_without_a_pull_request(machine):
    machine.init()
    with Forge() as forge:
        machine.variables["GITHUB_API_URL"] = forge.url
        result = machine.run(command=machine.demo(), comment="true")
        check_outputs(result, "passed", 0, (1, 0, 0))
        expect(forge.requests == [] and result.annotations == [], forge.requests, result.annotations)


@case
def comment_of_a_long_report(machine):
    """GitHub takes 65,536 characters: whole blocks, a note about the rest, and nothing that is left open."""
    machine.init()
    with Forge() as forge:
        machine.pull_request(forge)
        result = machine.run(command=machine.demo("n-plus-one"), comment="true", args="--repeat=40\n--jobs=8")
        check_outputs(result, "failed", 1, (0, 40, 0))
        body = forge.comments[0]["body"]
        expect(len(result.summary) > CHARACTERS_MAX >= len(body.encode()) > CHARACTERS_MAX // 2, len(result.summary), len(body))
        expect("not the whole report" in body and body.count("<details") == body.count("</details>") >= 2, body[-500:])
        expect(body.count("<table>") == body.count("</table>"), "a table is open")
        long = Path(machine.temp / "long")
        long.mkdir()
        rows = "".join(f"<tr><td>passed</td><td>test {number}</td></tr>\n" for number in range(4000))
        (long / "summary.md").write_text(f"### Qualitytrace: many\n\n<table>\n{rows}</table>\n\n<details>\nmore\n</details>\n")
        variables = machine.variables | {
            "REPORT_DIRECTORY": str(long), "INPUT_COMMENT_KEY": "rows", "INPUT_COMMENT_AUTHOR": BOT, "INPUT_TOKEN": TOKEN,
            "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": os.devnull}
        subprocess.run(["bash", ROOT / "deploy/action/comment.sh"], env=variables, check=True, capture_output=True)
        body = forge.comments[1]["body"]
        expect(CHARACTERS_MAX >= len(body) > CHARACTERS_MAX - 500, len(body))
        expect("</tr>\n</table>\n\nThis is not the whole" in body and body.count("<tr>") == body.count("</tr>"), body[-500:])


@case
def inputs_that_mean_nothing(machine):
    for given in [{"comment": "yes"}, {"trust": "1"}, {"annotations": ""}, {"summary": "True"},
                  {"binary": "", "version": "v0.1.0"}, {"binary": "", "version": "latest"}, {"checksum": "0" * 64}]:
        result = machine.run(**given)
        name = next(key for key in given if key != "binary")
        errors = result.of("error")
        expect(result.exit_code == 2 and len(errors) == 1 and f"`{name}`" in errors[0].message, given, result.log)
        expect(result.steps["Run the tests"] == "skipped", given, result.steps)


@case
def untrusted_repository(machine):
    machine.init()
    (machine.workspace / "qualitytrace.toml").write_text(f'[system]\ncommand = ["{machine.options.binary}", "demo"]\n')
    result = machine.run()
    check_outputs(result, "error", 2, (0, 0, 0))
    result = machine.run(trust="true")
    check_outputs(result, "passed", 0, (1, 0, 0))


@case
def commands_are_read_as_the_runner_does(_):
    """The stand-in itself: an annotation, its properties, and what is stopped."""
    result = Result()
    read_commands("::error file=a%2Cb,line=3::x%0Ay%25\n::stop-commands::w\n::error::no\n::w::\n::notice::z\n", result)
    expect(result.annotations == [Annotation("error", {"file": "a,b", "line": "3"}, "x\ny%"), Annotation("notice", {}, "z")], result)


@installation
def installed_from_a_release(machine):
    machine.init()
    with Download(machine.options.release) as host:
        result = machine.install(host.url, command=machine.demo())
        check_outputs(result, "passed", 0, (1, 0, 0))
        digest = hashlib.sha256((machine.options.release / "install.sh").read_bytes()).hexdigest()
        expect(result.outputs["checksum"] == digest, result.outputs)
        expect(machine.options.version in result.outputs["version"], result.outputs)
        expect(Path(result.path[0], "qualitytrace").is_file(), "later steps do not find the program", result.path)
        result = machine.install(host.url + "/", command=machine.demo(), checksum=digest)
        check_outputs(result, "passed", 0, (1, 0, 0))


@installation
def installation_is_refused(machine):
    """Another script, another archive, no such release."""
    release = machine.options.release
    archives = {file.name: file.read_bytes()[:-1] for file in release.glob("*.tar.gz")}
    cases = [({}, {"checksum": "0" * 64}, "`checksum`"), (archives, {}, "could not be installed"),
             ({"install.sh": b"exit 7\n"}, {}, "could not be installed")]
    for changed, given, words in cases:
        with Download(release, changed) as host:
            result = machine.install(host.url, **given)
            expect(not result.succeeded and result.steps["Run the tests"] == "skipped", result.steps, result.log)
            expect(words in result.of("error")[0].message, result.annotations)
        shutil.rmtree(machine.temp / f"qualitytrace-{machine.options.version}")
    with Download(machine.temp) as host:
        result = machine.install(host.url)
        expect("is there a release" in result.of("error")[0].message, result.annotations)


def component():
    """The job of the GitLab component, and its inputs."""
    header, job = YAML(typ="safe").load_all((ROOT / "deploy/gitlab/templates/qualitytrace.yml").read_text())
    return header["spec"]["inputs"], next(iter(job.values()))


def play_component(machine, **given):
    """Plays the script of the job in `sh`, with the inputs in place. A stand-in for a runner of GitLab."""
    inputs, job = component()
    given = {name.replace("_", "-"): value for name, value in given.items()}
    expect(set(given) <= set(inputs), "unknown inputs:", set(given) - set(inputs))
    values = {name: given.get(name, it.get("default")) for name, it in inputs.items()}

    def placed(text):
        for name, it in values.items():
            text = text.replace(f"$[[ inputs.{name} ]]", str(it).lower() if isinstance(it, bool) else str(it))
        expect("$[[" not in text, text)
        return text

    variables = machine.variables | {"CI_PROJECT_DIR": str(machine.workspace)}
    for name, it in job["variables"].items():
        variables[name] = placed(it["value"] if isinstance(it, dict) else it)
    script = placed("\n".join(job["script"]))
    done = subprocess.run(["sh", "-c", script], cwd=machine.workspace, env=variables, capture_output=True, text=True, timeout=300)
    folder = machine.workspace / job["artifacts"]["paths"][0]
    junit = machine.workspace / job["artifacts"]["reports"]["junit"]
    expect(junit.parent == folder, "the report is no artifact")
    return done.returncode, done.stdout + done.stderr, junit


@installation
def gitlab_component(machine):
    machine.init()
    with Download(machine.options.release) as host:
        for fault, code in [(None, 0), ("n-plus-one", 1), ("lost-context", 3)]:
            found, log, junit = play_component(machine, base_url=host.url, command=machine.demo(fault), args="--jobs\n1")
            expect(found == code, fault, found, log)
            expect(len(ElementTree.parse(junit).getroot().findall("testsuite")) == 1, fault)
        found, log, junit = play_component(machine, base_url=host.url, command=machine.demo(), paths="no such folder")
        expect(found == 2 and "no such folder" in log, found, log)
        found, log, junit = play_component(machine, base_url=host.url, checksum="0" * 64)
        expect(found == 2 and "nothing was installed" in log, found, log)
    with Download(machine.temp) as host:
        found, log, junit = play_component(machine, base_url=host.url)
        expect(found not in (0, 1, 3), "a release that is missing", found, log)


def options():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--binary", type=Path, help="the program; with --release that of its archive")
    reader.add_argument("--release", type=Path, help="the folder with the files of a release")
    reader.add_argument("--version", default="0.1.0", help="the version of the release")
    reader.add_argument("--port", type=int, default=21634, help="where the demo shop listens")
    reader.add_argument("--only", nargs="+", metavar="CASE", help="these, and no others")
    found = reader.parse_args()
    if found.binary is None and found.release is None:
        reader.error("which program? --binary FILE or --release DIR")
    if unknown := [name for name in found.only or [] if name not in CASES]:
        reader.error(f"there is no {', '.join(unknown)}; there are: {', '.join(CASES)}")
    return found


def main():
    found = options()
    with tempfile.TemporaryDirectory(prefix="qualitytrace-action-") as scratch:
        if found.release:
            found.release = found.release.resolve()
            variables = os.environ | {"QUALITYTRACE_PREFIX": scratch, "QUALITYTRACE_DOWNLOAD": ""}
            with Download(found.release) as host:
                variables["QUALITYTRACE_DOWNLOAD"] = host.url
                subprocess.run(["sh", found.release / "install.sh"], env=variables, check=True, capture_output=True)
            found.binary = found.binary or Path(scratch) / "bin/qualitytrace"
        found.binary = found.binary.resolve()
        return play_all(found)


def play_all(found):
    wrong, skipped = [], []
    for name, play in CASES.items():
        if found.only and name not in found.only:
            continue
        if name in INSTALLATION and not found.release:
            skipped.append(name)
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="qualitytrace-action-") as folder:
            try:
                play(Machine(found, Path(folder)))
                word = "passed"
            except Exception as error:  # The other cases are played too.
                wrong.append(name)
                word = f"WRONG: {type(error).__name__}: {error}"
        print(f"{name}: {word} ({time.monotonic() - began:.1f} s)", flush=True)
    if skipped:
        print(f"not run, for want of --release: {', '.join(skipped)}")
    print(f"{len(wrong)} wrong: {', '.join(wrong)}" if wrong else "all as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
