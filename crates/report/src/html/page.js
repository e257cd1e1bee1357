// Draws each waterfall when its test is opened, and of it only the rows in view.
(() => {
  "use strict";
  const ROW = 24, SPARE = 10;
  const MARKS = { passed: "✔", failed: "✘", inconclusive: "?" };

  const make = (tag, kind, text) => {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Hues far apart for neighbours: steps of the golden angle.
  const colour = (service) => service === null ? "#8b949e" : `hsl(${(service * 137.5 + 210) % 360} 55% 52%)`;

  const time = (nanos) => {
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
      if (nanos >= size) return `${Number((nanos / size).toPrecision(3))} ${unit}`;
    }
    return `${nanos} ns`;
  };

  class Waterfall {
    constructor(section) {
      const { services, totalNs, spans, leftOut } = JSON.parse(section.querySelector("script").textContent);
      Object.assign(this, { section, services, totalNs: Math.max(totalNs, 1), spans, leftOut });
      this.folded = new Set();
      this.wanted = "";
      this.chosen = null;
      this.places = new Map(spans.map((span, at) => [span.id, at]));
      // Where the spans below each one end.
      this.ends = new Array(spans.length);
      const open = [];
      spans.forEach((span, at) => {
        while (open.length && spans[open[open.length - 1]].d >= span.d) this.ends[open.pop()] = at;
        open.push(at);
      });
      for (const at of open) this.ends[at] = spans.length;
      this.build();
      this.list();
    }

    build() {
      const bar = make("div", "bar");
      const count = `${this.spans.length} spans` + (this.leftOut ? `, ${this.leftOut} more not drawn` : "");
      bar.append(make("span", "note", count));
      const search = make("input");
      search.type = "search";
      search.placeholder = "find a name, a service, a value";
      search.setAttribute("aria-label", "find spans");
      search.addEventListener("input", () => { this.wanted = search.value.toLowerCase(); this.list(); });
      bar.append(search);
      const legend = make("div", "legend");
      this.services.slice(0, 30).forEach((name, at) => {
        const entry = make("span");
        const chip = make("i");
        chip.style.background = colour(at);
        entry.append(chip, name);
        legend.append(entry);
      });
      bar.append(legend);
      this.rows = make("div", "rows");
      this.canvas = make("div");
      this.rows.append(this.canvas);
      this.rows.addEventListener("scroll", () => this.draw());
      this.detail = make("div", "detail");
      this.detail.hidden = true;
      this.section.append(bar, this.rows, this.detail);
    }

    matches(span) {
      const service = span.s === null ? "" : this.services[span.s];
      return [span.n, service, span.id, ...span.a.map(([key, value]) => `${key}=${value}`)]
        .some((text) => text.toLowerCase().includes(this.wanted));
    }

    // Which spans are shown now.
    list() {
      this.shown = [];
      for (let at = 0; at < this.spans.length;) {
        if (!this.wanted || this.matches(this.spans[at])) this.shown.push(at);
        at = !this.wanted && this.folded.has(at) ? this.ends[at] : at + 1;
      }
      const height = this.shown.length * ROW;
      this.canvas.style.height = `${height}px`;
      this.rows.style.height = `${Math.min(height, 0.7 * window.innerHeight)}px`;
      this.draw();
    }

    draw() {
      const first = Math.max(0, Math.floor(this.rows.scrollTop / ROW) - SPARE);
      const last = Math.min(this.shown.length, first + Math.ceil(this.rows.clientHeight / ROW) + 2 * SPARE);
      const drawn = [];
      for (let index = first; index < last; index++) drawn.push(this.row(index));
      this.canvas.replaceChildren(...drawn);
    }

    row(index) {
      const at = this.shown[index];
      const span = this.spans[at];
      const row = make("div", "row" + (span.e ? " error" : "") + (at === this.chosen ? " chosen" : ""));
      row.style.top = `${index * ROW}px`;
      const label = make("div", "label");
      label.style.paddingLeft = `${6 + 14 * Math.min(span.d, 30)}px`;
      const hasBelow = this.ends[at] > at + 1;
      const fold = make("span", "fold", hasBelow ? (this.folded.has(at) ? "▸" : "▾") : "");
      fold.addEventListener("click", (event) => {
        if (!hasBelow) return;
        event.stopPropagation();
        if (!this.folded.delete(at)) this.folded.add(at);
        this.list();
      });
      label.append(fold);
      if (span.v) label.append(make("span", `mark ${span.v}`, MARKS[span.v]));
      label.append(make("span", "text", span.n || "(no name)"));
      label.title = span.s === null ? span.n : `${this.services[span.s]}: ${span.n}`;
      const lane = make("div", "lane");
      const length = span.l === null ? 0 : span.l;
      const from = 100 * span.t / this.totalNs, wide = 100 * length / this.totalNs;
      const piece = make("i");
      piece.style.cssText = `left:${Math.min(from, 99.8)}%;width:${wide}%;background:${span.e ? "var(--failed)" : colour(span.s)}`;
      const words = make("em", "", span.l === null ? "ends before it starts" : time(length));
      words.style.cssText = from + wide < 85 ? `left:calc(${from + wide}% + 6px)` : `right:calc(${100 - from}% + 6px)`;
      lane.append(piece, words);
      row.append(label, lane);
      row.addEventListener("click", () => this.choose(at));
      return row;
    }

    choose(at) {
      this.chosen = this.chosen === at ? null : at;
      this.detail.hidden = this.chosen === null;
      if (this.chosen !== null) {
        const span = this.spans[at];
        const table = make("table");
        const facts = [
          ["service", span.s === null ? "" : this.services[span.s]], ["kind", span.k], ["span id", span.id],
          ["starts", `+${time(span.t)}`], ["takes", span.l === null ? "" : time(span.l)], ...span.a,
        ];
        for (const [key, value] of facts) {
          const line = make("tr");
          const cell = make("td");
          cell.append(make("code", "", value));
          line.append(make("td", "", key), cell);
          table.append(line);
        }
        this.detail.replaceChildren(make("h3", "", span.n), table);
      }
      this.draw();
    }

    show(id) {
      const at = this.places.get(id);
      if (at === undefined) return;
      this.wanted = "";
      this.section.querySelector("input").value = "";
      for (const folded of [...this.folded]) if (folded < at && at < this.ends[folded]) this.folded.delete(folded);
      this.list();
      this.rows.scrollTop = this.shown.indexOf(at) * ROW - this.rows.clientHeight / 2;
      this.chosen = null;
      this.choose(at);
      this.section.scrollIntoView({ block: "nearest" });
    }
  }

  for (const test of document.querySelectorAll("details.test")) {
    const section = test.querySelector(".waterfall");
    let waterfall = null;
    const open = () => { if (section && !waterfall && test.open) waterfall = new Waterfall(section); };
    test.addEventListener("toggle", open);
    open();
    for (const row of test.querySelectorAll("tr[data-span]")) {
      row.addEventListener("click", () => waterfall && waterfall.show(row.dataset.span));
    }
  }
  // For whoever measures: when all of it was laid out, in milliseconds since the page was asked for.
  document.documentElement.dataset.drawnMs = document.body.offsetHeight && Math.ceil(performance.now());
})();
