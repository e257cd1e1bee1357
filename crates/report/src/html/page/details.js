// What the reader does: moving, folding, finding, zooming, and the details of a span.

Object.assign(Waterfall.prototype, {
  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.listed.length) return;
    const page = Math.max(1, Math.floor(this.view.clientHeight / this.rowPx) - 2);
    const to = (index) => () => this.move(index);
    const actions = {
      ArrowDown: to(this.index() + 1), ArrowUp: to(this.index() - 1),
      PageDown: to(this.index() + page), PageUp: to(this.index() - page),
      Home: to(0), End: to(this.listed.length - 1),
      ArrowRight: () => this.into(), ArrowLeft: () => this.out(),
      Enter: () => this.choose(this.active), " ": () => this.choose(this.active),
      Escape: () => this.close(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  },

  /** Moves to a row; open details follow. */
  move(index) {
    const row = this.listed[Math.min(Math.max(index, 0), this.listed.length - 1)];
    this.active = row.entry;
    if (this.chosen !== null) this.chosen = row.entry;
    this.lay();
    this.toView(this.index());
  },

  into() {
    if (this.wanted || !this.rows.below(this.active).length) return;
    if (this.rows.isOpen(this.active)) this.move(this.index() + 1);
    else this.fold(this.active, true);
  },

  out() {
    const { level } = this.listed[this.index()];
    if (!this.wanted && this.rows.below(this.active).length && this.rows.isOpen(this.active)) {
      this.fold(this.active, false);
      return;
    }
    for (let index = this.index() - 1; index >= 0; index--) {
      if (this.listed[index].level < level) return this.move(index);
    }
  },

  fold(entry, isOpen) {
    this.rows.setOpen(entry, isOpen);
    this.list();
    this.toView(this.index());
  },

  find(wanted) {
    this.wanted = wanted;
    this.view.scrollTop = 0;
    this.list();
  },

  /** Opens the details of a row, or closes them where they are open. */
  choose(entry) {
    this.active = entry;
    this.chosen = this.chosen === entry ? null : entry;
    this.canvas.focus({ preventScroll: true });
    this.lay();
    this.toView(this.index());
  },

  close() {
    this.chosen = null;
    this.canvas.focus({ preventScroll: true });
    this.lay();
    this.toView(this.index());
  },

  /** Shows a span wherever it is, with its details. */
  show(id) {
    const at = this.rows.placed.get(id);
    this.search.value = this.wanted = "";
    this.rows.uncover(at);
    this.active = this.chosen = at;
    this.canvas.focus({ preventScroll: true });
    this.list();
    this.toView(this.index());
  },

  toNext() {
    const decided = (at) => this.spans[at].v && this.spans[at].v !== "passed";
    const here = this.active === null ? -1 : this.active < 0 ? this.rows.below(this.active)[0] : this.active;
    for (let step = 1; step <= this.spans.length; step++) {
      const at = (here + step) % this.spans.length;
      if (decided(at)) return this.show(this.spans[at].id);
    }
  },

  zoom(from, length) {
    this.window = { from, length: Math.max(length, 1) };
    this.reset.hidden = from === 0 && length >= this.totalNs;
    this.lay();
  },

  /** Scrolls the rows until a row and the details below it are in view, and then the page until both are. */
  toView(index) {
    if (index < 0) return;
    const { view } = this;
    const top = this.offset(index);
    const height = this.rowPx + (this.active === this.chosen ? this.panelPx : 0);
    const room = view.clientHeight - this.axis.offsetHeight;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + height > view.scrollTop + room) view.scrollTop = Math.min(top, top + height - room);
    this.draw();
    this.align();
    if (!this.canvas.matches(":focus") && this.chosen === null) return;
    if (this.chosen !== null) this.panel.scrollIntoView({ block: "nearest" });
    document.getElementById(this.rowId(this.active))?.scrollIntoView({ block: "nearest" });
  },

  /** Fills the panel with the details of what is chosen. */
  fill() {
    if (this.chosen === null || this.filled === this.chosen) return;
    this.filled = this.chosen;
    const { name, service, verdict, error, times, time } = this.shown(this.chosen);
    const close = button("close", "✕", () => this.close());
    close.setAttribute("aria-label", "Close the details");
    const states = make("p", "states");
    if (verdict) states.append(make("b", `badge ${verdict}`, `${MARKS[verdict]} ${verdict}`));
    if (error) states.append(make("b", "badge failed", `! ${error}`));
    const head = make("div", "head", make("h4", "", times ? `${times} ` : "", make("bdi", "", name)), close);
    const body = this.chosen < 0 ? this.groupFacts(service, time) : this.spanFacts(this.chosen, service);
    this.panel.replaceChildren(head, ...(states.childNodes.length ? [states] : []), ...body);
    this.panel.scrollTop = 0;
  },

  groupFacts(service, time) {
    const { members, from, to } = this.rows.groups[-1 - this.chosen];
    const entry = this.chosen;
    const facts = [
      ["spans", members.length.toLocaleString("en")], ["service", service], ["duration", time],
      ["first starts", `+${duration(from)}`], ["last ends", `+${duration(to)}`],
    ];
    const unfold = button("", "Show each", () => { this.close(); this.fold(entry, true); });
    const note = make("p", "note", "Siblings with one name, one service and one kind share this row.");
    return [table(facts), note, make("p", "", unfold)];
  },

  spanFacts(at, service) {
    const span = this.spans[at];
    const parent = this.spans[this.rows.parents[at]];
    const facts = [
      ["service", service || "(none)"], ["kind", span.k], ["span id", span.id], ["parent", parent ? parent.id : "(none in this trace)"],
      ["starts", `+${duration(span.t)}`], ["takes", span.l === null ? "ends before it starts" : duration(span.l)],
    ];
    if (span.m) facts.push(["status message", span.m]);
    const parts = [table(facts)];
    const zoom = button("", "Zoom to this span", () => this.zoom(span.t, span.l));
    if (span.l) parts.push(make("p", "", zoom));
    const add = (title, pairs) => {
      if (pairs.length) parts.push(make("h5", "", title), table(pairs));
    };
    add("Attributes", span.a);
    for (const { t, n, a } of span.w ?? []) {
      add(`Event ${n} at ${t < 0 ? "−" : "+"}${duration(Math.abs(t))}`, a.length ? a : [["attributes", "(none)"]]);
    }
    add("Links", (span.x ?? []).map((link) => ["to", link]));
    add("Resource", this.data.resources[span.r] ?? []);
    if (span.o) parts.push(make("p", "note", `${span.o.toLocaleString("en")} more of its events and links are not shown.`));
    const values = [...span.a, ...(this.data.resources[span.r] ?? []), ...(span.w ?? []).flatMap(({ a }) => a)];
    if (values.some(([, value]) => value.endsWith("…"))) {
      const chars = this.data.valueChars.toLocaleString("en");
      parts.push(make("p", "note", `A value is cut with … after ${chars} characters.`));
    }
    return parts;
  },

  /** Lays out the first rows without a scroll area, for paper. */
  print(isPrinted) {
    this.isPrinted = isPrinted;
    this.section.classList.toggle("printed", isPrinted);
    this.paper?.remove();
    if (isPrinted && this.listed.length > PRINTED_ROWS_MAX) {
      const words = `The first ${PRINTED_ROWS_MAX} of ${this.listed.length.toLocaleString("en")} rows are printed.`;
      this.paper = make("p", "note", words);
      this.stage.before(this.paper);
    }
    this.lay();
  },
});

/** A table of names and values. */
function table(pairs) {
  const list = make("dl", "pairs");
  for (const [key, value] of pairs) {
    list.append(make("dt", "", make("bdi", "", key)), make("dd", "", make("bdi", "", value)));
  }
  return list;
}
