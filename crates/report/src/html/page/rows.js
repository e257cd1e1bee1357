"use strict";
// The rows of a waterfall: the spans of a trace in the order of the tree, with alike siblings as one row.

/** Fewer alike siblings have a row each. */
const ALIKE_MIN = 4;
/** Where fewer rows than this would be listed, the outermost groups are open at first. */
const ROWS_MIN = 5;
const URGENCY = { failed: 3, inconclusive: 2, passed: 1 };

const worse = (one, other) => ((URGENCY[one] ?? 0) >= (URGENCY[other] ?? 0) ? one : other);

/** Alike siblings: they have one parent, one service, one name and one kind. */
class SpanGroup {
  constructor(members, spans, worst) {
    this.members = members;
    const lengths = members.map((at) => spans[at].l ?? 0).sort((a, b) => a - b);
    this.median = lengths[lengths.length >> 1];
    this.longest = lengths[lengths.length - 1];
    this.errors = members.filter((at) => spans[at].e).length;
    this.verdict = members.reduce((verdict, at) => worse(verdict, worst[at]), null);
    this.from = members.reduce((from, at) => Math.min(from, spans[at].t), Infinity);
    this.to = members.reduce((to, at) => Math.max(to, spans[at].t + (spans[at].l ?? 0)), 0);
  }
}

class TraceRows {
  constructor(spans) {
    this.spans = spans;
    this.closed = new Set();
    this.opened = new Set();
    this.placed = new Map(spans.map((span, at) => [span.id, at]));
    this.nest();
    this.group();
    this.openOutermost();
  }

  /** Finds the parent of each span by the depths, and the worst verdict at or below it. */
  nest() {
    const { spans } = this;
    this.parents = new Int32Array(spans.length).fill(-1);
    this.children = spans.map(() => []);
    this.roots = [];
    this.worst = spans.map((span) => span.v);
    const above = [];
    spans.forEach((span, at) => {
      while (above.length && spans[above[above.length - 1]].d >= span.d) above.pop();
      const parent = above.length ? above[above.length - 1] : -1;
      this.parents[at] = parent;
      (parent < 0 ? this.roots : this.children[parent]).push(at);
      above.push(at);
    });
    for (let at = spans.length - 1; at >= 0; at--) {
      const parent = this.parents[at];
      if (parent >= 0) this.worst[parent] = worse(this.worst[parent], this.worst[at]);
    }
  }

  /** Replaces alike siblings by one entry. An entry is the index of a span, or -1 minus the index of a group. */
  group() {
    this.groups = [];
    this.groupOf = new Map();
    const entries = (siblings) => {
      if (siblings.length < ALIKE_MIN) return siblings;
      const alike = new Map();
      for (const at of siblings) {
        const { s, n, k } = this.spans[at];
        const key = JSON.stringify([s, n, k]);
        if (alike.has(key)) alike.get(key).push(at);
        else alike.set(key, [at]);
      }
      const listed = [];
      for (const members of alike.values()) {
        if (members.length < ALIKE_MIN) {
          listed.push(...members);
          continue;
        }
        const entry = -1 - this.groups.length;
        this.groups.push(new SpanGroup(members, this.spans, this.worst));
        for (const at of members) this.groupOf.set(at, entry);
        listed.push(entry);
      }
      const first = (entry) => (entry < 0 ? this.groups[-1 - entry].members[0] : entry);
      return listed.sort((one, other) => first(one) - first(other));
    };
    this.roots = entries(this.roots);
    this.children = this.children.map(entries);
  }

  openOutermost() {
    for (let entry = -1; -1 - entry < this.groups.length; entry--) {
      const listed = this.list("");
      if (listed.length >= ROWS_MIN) return;
      const next = listed.find((row) => row.entry < 0 && !this.opened.has(row.entry));
      if (!next) return;
      this.opened.add(next.entry);
    }
  }

  below(entry) {
    return entry < 0 ? this.groups[-1 - entry].members : this.children[entry];
  }

  isOpen(entry) {
    return entry < 0 ? this.opened.has(entry) : !this.closed.has(entry);
  }

  setOpen(entry, isOpen) {
    const isListed = entry < 0 ? isOpen : !isOpen;
    const set = entry < 0 ? this.opened : this.closed;
    if (isListed) set.add(entry);
    else set.delete(entry);
  }

  /** Opens whatever hides a span. */
  uncover(at) {
    for (let place = at; place >= 0; place = this.parents[place]) {
      if (place !== at) this.closed.delete(place);
      if (this.groupOf.has(place)) this.opened.add(this.groupOf.get(place));
    }
  }

  /** The listed rows: all that are not hidden, or all spans that `isFound` selects. */
  list(isFound) {
    if (isFound) {
      const found = [];
      this.spans.forEach((span, at) => {
        if (isFound(span)) found.push({ entry: at, level: 0, position: 0, size: 0 });
      });
      for (const [position, row] of found.entries()) Object.assign(row, { position, size: found.length });
      return found;
    }
    const listed = [];
    const open = [{ entries: this.roots, next: 0 }];
    while (open.length) {
      const here = open[open.length - 1];
      if (here.next === here.entries.length) {
        open.pop();
        continue;
      }
      const entry = here.entries[here.next++];
      listed.push({ entry, level: open.length - 1, position: here.next - 1, size: here.entries.length });
      const entries = this.below(entry);
      if (entries.length && this.isOpen(entry)) open.push({ entries, next: 0 });
    }
    return listed;
  }
}
