#!/usr/bin/env python3
"""The hostile tenant: alpha abuses one shared resource after the other, and beta must not notice. See README.md."""

import argparse
import collections
import contextlib
import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from attacks import ATTACKS, missing  # noqa: E402
from canaries import check  # noqa: E402
from flood import large_responses  # noqa: E402
from goals import MEMORY_MIB_GOAL, PROBE_MS_GOAL, centile, probe_rows, row  # noqa: E402
from stage import STREAM_BYTES, Stage  # noqa: E402
from world import Cluster, Impossible, options_of  # noqa: E402

RATIO_GOAL, RUNS_SHARE_GOAL = 4.0, 0.8
JOURNAL_MIB_GOAL = 4 * 512 + 128  # what the bus may have on disk, and its own files beside
STREAM_SHARE_LEAST, STREAM_SHARE_MOST = 0.4, 0.75  # a project has half of a stream
ROUNDS = 2
REFUSALS = ("401", "403", "429", "503", "0")
SHORT_SECONDS = 2
SHORT_PROBE_MS_GOAL = 1000  # a program that is not optimised, on a machine that builds and tests beside it


Setting = collections.namedtuple("Setting", "binary cluster options searches")


def main():
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--seconds", type=float, default=60, help="of each attack, in two rounds (60)")
    reader.add_argument("--short", action="store_true", help="some seconds of each, on one stage, without ratios: for ci")
    reader.add_argument("--replicas", type=int, default=1, help="so many servers, over a NATS of three nodes (1)")
    reader.add_argument("--keep", metavar="FILE", help="writes all that was seen there, as JSON")
    options = options_of(reader, known)
    try:
        setting = Setting(options.binary, Cluster("tenants"), options, [])
    except Impossible as reason:
        sys.exit(str(reason))
    try:
        rows, seen = play(setting)
    except Impossible as reason:
        sys.exit(str(reason))
    finally:
        setting.cluster.close()
    if options.keep:
        Path(options.keep).write_text(json.dumps(seen))
    goals = [row for row in rows if row["met"] is not None]
    missed = [row["name"] for row in goals if not row["met"]]
    print(f"{len(goals) - len(missed)} of {len(goals)} goals met" + (f"; missed: {', '.join(missed)}" if missed else ""))
    print(json.dumps({"bench": "tenants" if options.replicas == 1 else f"tenants on {options.replicas} servers", "rows": rows}))
    return 2 if not goals else 1 if missed else 0


LARGE = "large_responses"
LASTING = ("run_slots", "host_slots")  # what is left of these is in the way of the next
SHORT_SHARED = ("database_pool", "live_streams", "strangers", "bus", "stream")  # of several servers, about what they share


def known(options):
    """What can be played, with what it is about."""
    about = {name: it.play.__doc__ for name, it in ATTACKS.items() if options.replicas > 1 or not it.is_shared}
    if options.short and options.replicas > 1 and not options.only:
        return {name: about[name] for name in SHORT_SHARED}
    # It is about the memory of one process.
    return about if options.short or options.replicas > 1 else about | {LARGE: large_responses.__doc__}


def play(setting):
    rows, seen, options = [], {}, setting.options
    print(f"{'resource':<16} | {'wrong':>5} | {'no end':>6} | {'failed':>6} | {'leaked':>6} | {'p99 ms':>8} | {'sink ms':>8} | "
          f"{'ratio':>5} | {'probe ms, p99 and most':>22} | {'MiB':>5}", flush=True)
    with staged(setting) if options.short else contextlib.nullcontext() as stage:
        for name in options.only:
            try:
                if name == LARGE:
                    with scratch() as folder:
                        rows += large_responses(options.binary, setting.cluster, folder)
                    continue
                phases = short(setting, name, stage) if options.short else full(setting, name)
                seen[name] = phases
                rows += told(name, *phases, options)
            except Exception as reason:  # one broken attack must not hide the others
                print(f"{name:<16} | broke: {type(reason).__name__}: {reason}", flush=True)
                rows.append(row(name, "played to the end", 0, "attacks", 1, least=True))
    return rows + (file_rows(setting.searches) if options.replicas > 1 else []), seen


def short(setting, name, stage):
    """What was seen of an attack of some seconds, and nothing beside a sink."""
    with staged(setting) if name in LASTING else contextlib.nullcontext(stage) as stage:
        return [stage.phase(name, SHORT_SECONDS)], []


def full(setting, name):
    """What was seen of an attack on servers, and of the same on sinks, in turns."""
    attacked, calm, seconds = [], [], setting.options.seconds / ROUNDS
    for _ in range(ROUNDS):
        with staged(setting) as stage:
            attacked.append(stage.phase(name, seconds))
        with staged(setting) as stage:
            calm.append(stage.phase(name, seconds, attacked[-1]["attack"]["kinds"]))
    return attacked, calm


@contextlib.contextmanager
def staged(setting):
    """A stage in a folder of its own, closed at the end; where several servers were on it, their files are searched then."""
    options = setting.options
    with scratch() as folder, contextlib.closing(
            Stage(setting.binary, setting.cluster, folder, options.short, options.replicas)) as stage:
        yield stage
        if stage.nats:
            setting.searches.append(stage.searched())


def file_rows(searches):
    """What was found in the files of NATS and of the servers."""
    with scratch() as folder:
        found, forms = check(folder)
    leaks = [it for search in searches for it in search["found"]]
    for leak in leaks[:5]:
        print(f"    in a file: {leak}", file=sys.stderr)
    name, planted = "files", sum(it["planted"] for it in searches)
    least = lambda key: min((it[key] for it in searches), default=0)  # noqa: E731
    print(f"{name:<16} | {len(leaks)} canaries; {planted} of {2 * len(searches)} planted ones, in {found} of {forms} forms; "
          f"{least('stores') >> 10} KiB of NATS and {least('data')} bytes of servers at the least", flush=True)
    return [row(name, "canaries found", len(leaks), "places", 0),
            row(name, "forms that the search finds", found, "forms", forms, least=True),
            row(name, "planted canaries found, in NATS and beside it", planted, "canaries", max(2 * len(searches), 2), least=True),
            row(name, "bytes of NATS, least of a stage", least("stores"), "bytes", 1, least=True),
            row(name, "bytes of servers, least of a stage", least("data"), "bytes", 1, least=True)]


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="tenant-prove-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def told(name, attacked, calm, options):
    """A line of the table, and its rows."""
    is_short = options.short
    both = attacked + calm
    every = lambda phases, key: [it for phase in phases for it in phase[key]]  # noqa: E731
    times, beside = every(attacked, "times"), every(calm, "times")
    probes = every(attacked, "probes")
    leaks = [leak for phase in both for leak in phase["leaks"] + phase["attack"]["leaks"]]
    ends = every(attacked, "ends")
    wrong, refused = every(both, "wrong"), every(both, "unfollowed")
    unended, failed = (sum(phase[key] for phase in both) for key in ("unended", "failed"))
    lost = sum(phase["runs"] - len(phase["ends"]) - phase["unended"] - phase["unstarted"] for phase in both)
    leaked = sum(leak[1] for leak in leaks) + sum(phase["logLeaks"] for phase in both)
    searched = min(it["searched"] for phase in attacked for it in (phase, phase["attack"]))
    of_alpha = [phase["attack"] for phase in both]
    parts = len(ATTACKS[name].did) * len(both)
    undone = [line for phases, is_calm in ((attacked, False), (calm, True)) for phase in phases
              for line in missing(ATTACKS[name].did, phase["attack"], is_calm)]
    let_in = [it for phase in attacked for it in admitted(ATTACKS[name].refused, phase["attack"]["statuses"])]
    at = lambda percent, of: centile(percent, of) * 1000  # noqa: E731
    memory = max(phase["memory"] for phase in attacked)
    rows = [
        row(name, "verdicts wrong or stolen", len(wrong), "verdicts", 0),
        row(name, "runs that did not end", unended, "runs", 0),
        row(name, "runs that have neither a verdict nor a failure", lost, "runs", 0),
        row(name, "runs of beta", sum(phase["runs"] for phase in both), "runs",
            round(RUNS_SHARE_GOAL * sum(phase["planned"] for phase in both), 1), least=True),
        row(name, "requests of beta that failed", failed, "requests", 0),
        row(name, "live streams of beta that were refused or cut", len(refused), "streams", 0),
        row(name, "live streams of beta, fewest of a phase", min(phase["follows"] for phase in both), "streams", 1, least=True),
        row(name, "tasks of beta that broke", len(every(both, "broken")), "tasks", 0),
        row(name, "leaked", leaked, "bytes", 0),
        row(name, "searched for canaries, least of a phase and a party", searched, "bytes", 1, least=True),
        row(name, "attack carried out", parts - len(undone), "parts", parts, least=True),
        row(name, "tasks of alpha that broke", len(every(of_alpha, "broken")), "tasks", 0),
        *probe_rows(name, probes, SHORT_PROBE_MS_GOAL if is_short else PROBE_MS_GOAL),
        row(name, "server's memory, most", memory, "MiB", None if is_short else MEMORY_MIB_GOAL),
        row(name, "data directory, largest", max(phase["journal"] for phase in attacked) >> 20, "MiB", JOURNAL_MIB_GOAL),
        row(name, "server alive", sum(phase["isAlive"] for phase in both), "phases", len(both), least=True),
        row(name, "beta's runs, 99th percentile to the verdict", round(at(99, ends), 1) if ends else None, "ms", None),
        row(name, "beta at the API, 99th percentile", round(at(99, times), 1), "ms", None),
    ]
    if options.replicas > 1:
        used, bound = max(phase["stream"] for phase in attacked), STREAM_BYTES[is_short]
        rows.append(row(name, "fullest stream", used >> 20, "MiB", (bound >> 20) * STREAM_SHARE_MOST))
        if ATTACKS[name].is_shared:
            rows.append(row(name, "alpha's part of the stream, with what beta has", used >> 20, "MiB",
                            (bound >> 20) * STREAM_SHARE_LEAST, least=True))
    if ATTACKS[name].refused:
        rows.append(row(name, "requests let in that must be refused", sum(count for *_, count in let_in), "requests", 0))
    sink, ratio = "", ""
    if calm:
        sink, ratio = at(99, beside), centile(99, times) / centile(99, beside)
        rows += [row(name, "the same beside a sink", round(sink, 1), "ms", None),
                 row(name, "ratio", round(ratio, 2), "", RATIO_GOAL),
                 row(name, "ratio of the medians", round(centile(50, times) / centile(50, beside), 2), "", None),
                 row(name, "samples", len(times), "", None)]
        sink, ratio = f"{sink:.1f}", f"{ratio:.2f}"
    print(f"{name:<16} | {len(wrong):>5} | {unended:>6} | {failed:>6} | {leaked:>6} | {at(99, times):>8.1f} | "
          f"{sink:>8} | {ratio:>5} | {centile(99, probes):>10.1f} {centile(100, probes):>11.1f} | {memory:>5}", flush=True)
    for phase in both:
        for test, right, verdict, why in phase["wrong"][:2]:
            print(f"    {test} is {verdict} and not {right}: {why[:300]}", file=sys.stderr)
        for problem in phase["broken"][:3]:
            print(f"    beta's load broke: {problem}", file=sys.stderr)
        for problem in phase["attack"]["broken"][:3]:
            print(f"    the attack broke: {problem}", file=sys.stderr)
    for leak in leaks[:3]:
        print(f"    leaked: {leak}", file=sys.stderr)
    for line in undone:
        print(f"    not carried out: {line}", file=sys.stderr)
    for kind, status, count in let_in:
        print(f"    let in: `{kind}` was answered {status} {count} times", file=sys.stderr)
    return rows


def admitted(kinds, statuses):
    """What was answered otherwise than by a refusal, or by silence, and must not be."""
    split = [(*key.rpartition(" ")[::2], count) for key, count in statuses.items()]
    return [(kind, status, count) for kind, status, count in split if kind in kinds and status not in REFUSALS]


if __name__ == "__main__":
    sys.exit(main())
