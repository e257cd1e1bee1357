// One waterfall: the rows in view, the axis, and the details of a span beside its row.

const MARKS = { passed: "✔", failed: "✘", inconclusive: "?" };
const COLOURS = 8;
/** Members of a group that have a bar each in its row. */
const BARS_MAX = 60;
/** Rows that are drawn above and below the ones in view. */
const SPARE = 8;
const PRINTED_ROWS_MAX = 200;
const LEGEND_MAX = 30;
/** A section that is narrower has its details below the row, and names above bars. */
const NARROW_PX = 760;
/** The room behind the bars, for a duration. */
const AFTER_PX = 84;
/** Deeper rows are not indented further; a number shows how deep they are. */
const INDENTS_MAX = 16;

const make = (tag, kind, ...content) => {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...content);
  return element;
};

const button = (kind, words, onPress) => {
  const element = make("button", kind, words);
  element.type = "button";
  element.addEventListener("click", onPress);
  return element;
};

const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

class Waterfall {
  constructor(section, data, name) {
    Object.assign(this, { section, data, name, spans: data.spans });
    this.totalNs = Math.max(data.totalNs, 1);
    this.window = { from: 0, length: this.totalNs };
    this.rows = new TraceRows(data.spans);
    this.wanted = "";
    /** The row of the keyboard, and the span or group whose details are open. */
    this.active = null;
    this.chosen = null;
    this.isPrinted = false;
    this.build();
    this.measure();
    this.list();
    this.begin();
    new ResizeObserver(() => this.measure() && this.list()).observe(section);
  }

  build() {
    const { section } = this;
    this.search = make("input");
    Object.assign(this.search, { type: "search", placeholder: "Find a name, a service, a value" });
    this.search.setAttribute("aria-label", "Find spans");
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.count = make("span", "count");
    this.count.setAttribute("role", "status");
    this.next = button("", "Next that decided", () => this.toNext());
    this.next.hidden = !this.spans.some((span) => span.v && span.v !== "passed");
    this.reset = button("", "Whole trace", () => this.zoom(0, this.totalNs));
    this.reset.hidden = true;
    const hint = make("span", "hint", "↑ ↓ move, ← → fold, Enter details, Esc close");
    const bar = make("div", "bar", this.search, this.next, this.reset, this.count, hint);
    this.axis = make("div", "axis");
    this.axis.setAttribute("aria-hidden", "true");
    this.canvas = make("div", "canvas");
    const attributes = { role: "tree", tabindex: 0, "aria-label": "Spans of the trace" };
    for (const [key, value] of Object.entries(attributes)) this.canvas.setAttribute(key, value);
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.view = make("div", "rows", this.axis, this.canvas);
    this.view.addEventListener("scroll", () => this.draw());
    this.panel = make("aside", "panel");
    this.panel.setAttribute("aria-label", "Details of the span");
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    this.panel.hidden = true;
    this.stage = make("div", "stage", this.view, this.panel);
    section.append(bar, this.legend(), this.stage);
  }

  legend() {
    const names = this.data.services;
    const entries = names.slice(0, LEGEND_MAX).map((name, at) => {
      const chip = make("i", `chip ${colour(at)}`);
      return make("span", "", chip, make("bdi", "", name || "(no name)"));
    });
    const rest = names.length - entries.length;
    if (rest > 0) entries.push(make("span", "", `and ${counted(rest, "more service")}`));
    return make("div", "legend", ...entries);
  }

  /** Measures the section, and returns whether its layout changes. */
  measure() {
    const isNarrow = this.section.clientWidth < NARROW_PX;
    const isOther = isNarrow !== this.isNarrow || this.section.clientWidth !== this.width;
    this.width = this.section.clientWidth;
    this.isNarrow = isNarrow;
    this.section.classList.toggle("narrow", isNarrow);
    this.rowPx = isNarrow ? 44 : 26;
    (isNarrow ? this.view : this.stage).append(this.panel);
    return isOther;
  }

  /** Begins at the first span that decided the verdict. */
  begin() {
    const first = this.spans.findIndex((span) => span.v && span.v !== "passed");
    this.active = this.listed[Math.max(0, first < 0 ? 0 : this.indexOf(first))]?.entry ?? null;
    this.draw();
    if (first >= 0) this.toView(this.index());
  }

  has(id) {
    return this.rows.placed.has(id);
  }

  /** The index of the row of a span, or of the row that hides it. */
  indexOf(at) {
    const { groupOf, parents } = this.rows;
    for (let place = at; place >= 0; place = parents[place]) {
      for (const entry of [place, groupOf.get(place)]) {
        if (this.indexes.has(entry)) return this.indexes.get(entry);
      }
    }
    return -1;
  }

  index() {
    return this.indexes.get(this.active) ?? -1;
  }

  /** Finds the rows that are listed now. */
  list() {
    const wanted = this.wanted.toLowerCase();
    this.listed = this.rows.list(wanted && ((span) => this.texts(span).some((text) => text.toLowerCase().includes(wanted))));
    this.indexes = new Map(this.listed.map((row, index) => [row.entry, index]));
    if (!this.indexes.has(this.chosen)) this.chosen = null;
    if (!this.indexes.has(this.active)) this.active = this.listed[0]?.entry ?? null;
    this.count.textContent = wanted
      ? `${counted(this.listed.length, "span")} of ${this.spans.length.toLocaleString("en")}`
      : "";
    this.lay();
  }

  texts(span) {
    const { services, resources } = this.data;
    const pairs = [...span.a, ...(resources[span.r] ?? [])].map(([key, value]) => `${key}=${value}`);
    const events = (span.w ?? []).flatMap((event) => [event.n, ...event.a.map(([key, value]) => `${key}=${value}`)]);
    return [span.n, span.s === null ? "" : services[span.s], span.id, span.m ?? "", ...pairs, ...events];
  }

  /** Sets the sizes, with room for the details below a row where there is none beside it. */
  lay() {
    this.fill();
    const isOpen = this.chosen !== null && !this.isPrinted;
    this.panel.hidden = !isOpen;
    this.stage.classList.toggle("open", isOpen);
    const rows = this.isPrinted ? Math.min(this.listed.length, PRINTED_ROWS_MAX) : this.listed.length;
    const height = rows * this.rowPx;
    const viewMax = Math.max(0.72 * innerHeight, 240);
    this.panel.style.top = "";
    this.panelPx = 0;
    if (isOpen && this.isNarrow) {
      this.panel.style.maxHeight = `${Math.round(0.62 * viewMax)}px`;
      this.panelPx = this.panel.offsetHeight;
      this.panel.style.top = `${this.axis.offsetHeight + (this.indexes.get(this.chosen) + 1) * this.rowPx}px`;
    } else {
      this.panel.style.maxHeight = "";
    }
    this.canvas.style.height = `${height + this.panelPx}px`;
    this.view.style.maxHeight = this.isPrinted ? "none" : `${Math.round(viewMax)}px`;
    this.lanePx = this.isNarrow ? this.view.clientWidth - 24 : 0.55 * this.view.clientWidth - AFTER_PX;
    this.drawAxis();
    this.draw();
    this.align();
  }

  drawAxis() {
    const { from, length } = this.window;
    const { step, made } = ticks(from, length, Math.max(2, Math.floor(this.lanePx / 110)));
    const labels = made.map(({ at, label }) => {
      const left = (100 * (at - from)) / length;
      const isAtEnd = (this.lanePx * (100 - left)) / 100 + (this.isNarrow ? 0 : AFTER_PX) < 8 * label.length;
      const tick = make("span", isAtEnd ? "end" : "", label);
      tick.style.left = `${left}%`;
      return tick;
    });
    this.axis.replaceChildren(make("div", "lane", ...labels));
    // A position in percent counts from the room that the stretch between two ticks leaves.
    const [tick, first] = [step, (made[0]?.at ?? from) - from].map((nanos) => (100 * nanos) / length);
    this.section.style.setProperty("--tick", `${tick}%`);
    this.section.style.setProperty("--tick-first", tick < 100 ? `${(100 * first) / (100 - tick)}%` : "0%");
  }

  /** Moves the details to the height of their row, as far as there is room. */
  align() {
    this.panel.style.marginTop = "";
    if (this.panel.hidden || this.isNarrow) return;
    const top = this.axis.offsetHeight + this.offset(this.indexes.get(this.chosen)) - this.view.scrollTop;
    const room = this.view.offsetHeight - this.panel.offsetHeight;
    this.panel.style.marginTop = `${Math.round(Math.max(0, Math.min(top, room)))}px`;
  }

  offset(index) {
    const isBelow = this.panelPx > 0 && index > this.indexes.get(this.chosen);
    return index * this.rowPx + (isBelow ? this.panelPx : 0);
  }

  draw() {
    const seen = this.view.scrollTop - this.panelPx;
    let first = Math.max(0, Math.floor(seen / this.rowPx) - SPARE);
    let last = Math.ceil((this.view.scrollTop + this.view.clientHeight) / this.rowPx) + SPARE;
    if (this.isPrinted) [first, last] = [0, PRINTED_ROWS_MAX];
    last = Math.min(this.listed.length, last);
    const drawn = [];
    for (let index = first; index < last; index++) drawn.push(this.row(index));
    this.canvas.replaceChildren(...drawn);
    const isDrawn = this.index() >= first && this.index() < last;
    if (isDrawn) this.canvas.setAttribute("aria-activedescendant", this.rowId(this.active));
    else this.canvas.removeAttribute("aria-activedescendant");
  }

  rowId(entry) {
    return `${this.name}-${entry < 0 ? `group${-entry}` : entry}`;
  }
}

/** The class of a service's colour. After the last colour they begin again, with stripes. */
const colour = (service) =>
  service === null ? "none" : `s${service % COLOURS}${Math.floor(service / COLOURS) % 2 ? " striped" : ""}`;
