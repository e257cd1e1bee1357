// A row of a waterfall: its mark, its name, its service, its bar and its duration.

Object.assign(Waterfall.prototype, {
  /** What a row shows, of a span or of a group of alike siblings. */
  shown(entry) {
    const at = entry < 0 ? this.rows.groups[-1 - entry].members[0] : entry;
    const { n, s, l, e, v } = this.spans[at];
    const service = s === null ? "" : this.data.services[s];
    const base = { name: n || "(no name)", service, s };
    if (entry >= 0) {
      const time = l === null ? "ends before it starts" : duration(l);
      return { ...base, time, short: time, error: e ? "error" : "", verdict: v, times: "", bars: [at] };
    }
    const { members, median, longest, errors, verdict } = this.rows.groups[-1 - entry];
    const time = `median ${duration(median)}, max ${duration(longest)}`;
    const step = Math.ceil(members.length / BARS_MAX);
    const bars = members.filter((_, index) => index % step === 0);
    const error = errors ? counted(errors, "error") : "";
    return { ...base, time, short: `max ${duration(longest)}`, error, verdict, times: `×${members.length.toLocaleString("en")}`, bars };
  },

  row(index) {
    const { entry, level, position, size } = this.listed[index];
    const { name, service, s, time, short, error, verdict, times, bars } = this.shown(entry);
    const hasBelow = !this.wanted && this.rows.below(entry).length > 0;
    const isOpen = this.rows.isOpen(entry);
    const row = make("div", `row${entry === this.active ? " active" : ""}${entry === this.chosen ? " chosen" : ""}`);
    row.id = this.rowId(entry);
    row.style.top = `${this.offset(index)}px`;
    const attributes = {
      role: "treeitem", "aria-level": level + 1, "aria-posinset": position + 1, "aria-setsize": size,
      "aria-selected": entry === this.chosen,
    };
    if (hasBelow) attributes["aria-expanded"] = isOpen;
    for (const [key, value] of Object.entries(attributes)) row.setAttribute(key, value);
    const fold = make("span", "fold", hasBelow ? (isOpen ? "▾" : "▸") : "");
    fold.setAttribute("aria-hidden", "true");
    fold.addEventListener("click", (event) => {
      if (!hasBelow) return;
      event.stopPropagation();
      this.active = entry;
      this.fold(entry, !isOpen);
    });
    const label = make("div", "label", fold);
    label.style.setProperty("--level", level);
    if (level > INDENTS_MAX) {
      const depth = make("span", "depth", `${level}`);
      depth.title = `depth ${level}`;
      label.append(depth);
    }
    if (verdict) {
      const mark = make("b", `mark ${verdict}`, MARKS[verdict]);
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", verdict);
      label.append(mark);
    }
    if (times) label.append(make("span", "times", times));
    label.append(make("bdi", "name", name), make("bdi", "service", service));
    if (error) label.append(make("span", "error", `! ${error}`));
    label.append(make("span", "time", short));
    label.title = service ? `${service}: ${name}` : name;
    row.append(label, this.lane(bars, { s, time, isGroup: entry < 0 }));
    row.addEventListener("click", () => this.choose(entry));
    return row;
  },

  lane(bars, { s, time, isGroup }) {
    const lane = make("div", "lane");
    const { from, length } = this.window;
    const part = (nanos) => (100 * nanos) / length;
    let [left, right] = [Infinity, -Infinity];
    for (const at of bars) {
      const { t, l, e } = this.spans[at];
      const [begin, end] = [part(t - from), part(t - from + (l ?? 0))];
      [left, right] = [Math.min(left, begin), Math.max(right, end)];
      if (end < 0 || begin > 100) continue;
      const shape = `${isGroup ? " alike" : ""}${e ? " error" : ""}${l === null ? " backwards" : ""}`;
      const bar = make("i", `bar-of ${colour(s)}${shape}`);
      const [first, last] = [Math.max(begin, 0), Math.min(end, 100)];
      bar.style.left = `min(${first}%, 100% - 3px)`;
      bar.style.width = `${last - first}%`;
      lane.append(bar);
    }
    const words = make("em", "time", time);
    if (right < 0) words.textContent = `◂ ${time}`;
    if (left > 100) words.textContent = `${time} ▸`;
    // Beside the bars, and over them where there is no room.
    const gap = bars.some((at) => this.spans[at].l === null) ? 14 : 7;
    const px = 7 * words.textContent.length + gap;
    if (px < AFTER_PX + (this.lanePx * (100 - Math.max(right, 0))) / 100) words.style.left = `calc(${Math.max(right, 0)}% + ${gap}px)`;
    else if (px < (this.lanePx * left) / 100) words.style.right = `calc(${100 - left}% + 5px)`;
    else words.classList.add("over");
    lane.append(words);
    return lane;
  },
});
