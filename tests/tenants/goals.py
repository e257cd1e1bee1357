"""Rows of a table with the goals that figures must meet."""

MEMORY_MIB_GOAL, PROBE_MS_GOAL = 1024, 200


def row(name, what, value, unit, goal, least=False):
    met = None if goal is None else value >= goal if least else value <= goal
    return {"name": f"{name}: {what}", "value": value, "unit": unit, "goal": goal, "met": met}


def probe_rows(name, probes, goal=PROBE_MS_GOAL):
    """What probes took, in milliseconds."""
    return [row(name, "probes, 99th percentile", round(centile(99, probes), 1), "ms", goal),
            row(name, "probes, longest", round(centile(100, probes), 1), "ms", goal)]


def centile(percent, values):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * percent // 100)] if values else float("inf")
