#!/usr/bin/env python3
"""Runs the verdict traps: systems and traces about which a careless judge is wrong. See README.md."""

import argparse
import importlib.util
import json
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
import world  # noqa: E402

HERE = Path(__file__).resolve().parent
EXITS = {0: "passed", 1: "failed", 2: "refused", 3: "inconclusive"}


def main():
    known = {path.parent.name: json.loads(path.read_text()) for path in sorted(HERE.glob("cases/*/expect.json"))}
    known = dict(sorted(known.items(), key=lambda case: case[1].get("control", False)))  # traps first, and controls behind them
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--repeat", type=int, metavar="N", default=1, help="each case N times; it is right if all are")
    reader.add_argument("--jobs", type=int, metavar="N", default=1, help="so many cases at a time (1)")
    reader.add_argument("--json", type=Path, metavar="FILE", help="writes what was seen to a file")
    options = world.options_of(reader, lambda _: {name: expect["about"] for name, expect in known.items()})
    cases = [(name, known[name]) for name in options.only]
    began, results = time.monotonic(), []
    name_width, right_width = (max(map(len, column)) for column in zip(*((it, of["right"]) for it, of in cases)))

    def row(name, seen, right, verdict):
        print(f"{name:<{name_width}} | {seen:<44} | {right:<{right_width}} | {verdict}", flush=True)

    row("case", "verdict seen", "right", "")
    with world.World(options.binary, HERE) as around, ThreadPoolExecutor(options.jobs) as several:
        plays = [several.submit(judge, around, name, expect, options.repeat) for name, expect in cases]
        for (name, expect), play in zip(cases, plays):
            result = play.result()
            results.append(result)
            row(name, result["seen"], expect["right"], result["verdict"])
            for line in result["wrong"]:
                print(f"{'':<{name_width}} |   {line}", flush=True)
    return summary(results, time.monotonic() - began, options.json)


def judge(around, name, expect, repeat):
    """Runs a case as often as was asked for, each time in a folder of its own."""
    runs = [once(around, name, expect) for _ in range(repeat)]
    wrong = list(dict.fromkeys(line for run in runs for line in run["wrong"]))
    bad = sum(bool(run["wrong"]) for run in runs)
    verdict = "skipped" if any(run["skipped"] for run in runs) else "WRONG" if bad else "ok"
    if bad and repeat > 1:
        verdict += f" ({bad} of {repeat} times)"
    seen = " / ".join(dict.fromkeys(run["seen"] for run in runs))
    return {"case": name, "control": expect.get("control", False), "seen": seen, "right": expect["right"],
            "verdict": verdict, "wrong": wrong, "runs": runs}


def once(around, name, expect):
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="verdict-trap-") as folder:
        stage = world.Stage(around, HERE / "cases" / name, Path(folder))
        try:
            own = HERE / "cases" / name / "case.py"
            seen, wrong = load(own).play(stage) if own.exists() else play(stage, expect)
            skipped = False
        except world.Impossible as reason:
            seen, wrong, skipped = f"skipped: {reason}", [], True
        except world.TooLong as reason:
            seen, wrong, skipped = "no end", [str(reason)], False
        except Exception as reason:  # one broken case must not hide the others
            seen, wrong, skipped = "the case broke", [f"{type(reason).__name__}: {reason}"], False
        finally:
            stage.close()
    return {"seen": seen, "wrong": wrong, "skipped": skipped, "seconds": round(time.monotonic() - began, 2)}


def load(path):
    spec = importlib.util.spec_from_file_location(path.parent.name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(stage, expect):
    """A case without code of its own: a system beside, perhaps, and commands with what may come of them."""
    if (stage.folder / "make.py").exists():
        stage.make()
    if "system" in expect:
        stage.start(expect["system"], until_open=stage.port)
    if "cpu" in expect:
        return cpu(stage, expect["cpu"])
    seen, wrong = [], []
    for step in expect["steps"]:
        verdicts, found = [], {}
        for turn in range(step.get("times", 1)):
            if turn or step.get("first_pause"):
                time.sleep(step.get("pause", 0))
            done = stage.qualitytrace(step["do"], limit=step.get("limit", 60))
            verdicts.append(EXITS.get(done.code, f"exit {done.code}"))
            for line in mistakes(done, step):
                found.setdefault(line, []).append(str(turn + 1))
        for line, turns in found.items():
            wrong.append(line if len(verdicts) == 1 else f"{line} (run {', '.join(turns)} of {len(verdicts)})")
        for verdict, least in step.get("at_least", {}).items():
            if verdicts.count(verdict) < least:
                wrong.append(f"{verdict} {verdicts.count(verdict)} times, and should be at least {least} times")
        claims = sum(line.startswith("claim ") for line in found)
        seen.append(counted(verdicts) + (f", {claims} of {len(step['claims'])} claims wrong" if claims else ""))
    return "; ".join(seen), wrong


def mistakes(done, step):
    """What is wrong with one command's outcome, by what its step allows."""
    wrong = []
    if done.code not in step["exit"]:
        wrong.append(f"exit {done.code} ({EXITS.get(done.code, '?')}), right is {' or '.join(map(str, step['exit']))}")
    for pattern in step.get("must", []):
        if not re.search(pattern, done.text):
            wrong.append(f"nothing of what was told matches /{pattern}/")
    for pattern in step.get("must_not", []):
        if found := re.search(pattern, done.text):
            wrong.append(f"it was told `{found.group()}`")
    if done.code in (0, 1, 3) and step["do"][0] == "run":
        wrong += done.unheard(step.get("spans", 1), step.get("answers", True))
    if done.code in (0, 1, 3):
        wrong += [f"no diagnosis `{cause}`" for cause in step.get("causes", []) if cause not in done.causes]
        wrong += of_claims(done, step)
    return wrong


def of_claims(done, step):
    """Claims are held against one table, or against several of which one has to fit."""
    tables = step.get("one_of", [])
    wrong = differences(done, step.get("claims", {}))
    if tables and not any(not differences(done, table) for table in tables):
        told = ", ".join(f"{name}: {done.claims.get(name)}" for name in tables[0])
        wrong.append(f"the readings contradict each other: {told}")
    return wrong


def differences(done, table):
    wrong = []
    for name, allowed in table.items():
        verdict = done.claims.get(name, "not judged")
        if verdict not in allowed:
            wrong.append(f"claim `{name}` is {verdict}, right is {' or '.join(allowed)}")
    return wrong


def cpu(stage, bound):
    """Processor time of one command in terms of another's; the least of three of each, taken in turn."""
    base, test, codes = [], [], set()
    for _ in range(3):
        for words, times in ((bound["base"], base), (bound["test"], test)):
            done = stage.qualitytrace(words, limit=120)
            times.append(done.cpu)
            codes.add(done.code)
        if test[-1] > 10 * bound["ratio"] * base[-1]:
            break
    ratio = min(test) / max(min(base), 0.01)
    wrong = [f"{min(test):.2f} s of processor time beside {min(base):.2f} s"] if ratio > bound["ratio"] else []
    wrong += [f"exit {code} ({EXITS.get(code, '?')}), right is 0" for code in codes if code]
    return f"{ratio:.1f} times the processor time", wrong


def counted(verdicts):
    if len(verdicts) == 1:
        return verdicts[0]
    return ", ".join(f"{verdicts.count(it)} {it}" for it in dict.fromkeys(verdicts))


def summary(results, seconds, file):
    skipped = sum(it["verdict"] == "skipped" for it in results)
    bad = sum(it["verdict"].startswith("WRONG") for it in results)
    right = len(results) - skipped - bad
    if file:
        told = {"right": right, "wrong": bad, "skipped": skipped, "seconds": round(seconds, 1), "cases": results}
        file.write_text(json.dumps(told, indent=2) + "\n")
    print(f"\n{right} right, {bad} wrong" + (f", {skipped} skipped" if skipped else "") + f" in {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
