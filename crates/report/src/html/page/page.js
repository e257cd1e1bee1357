// Wires the page: a waterfall is drawn when its test is opened, and all that is printed is laid out before.

const opened = [];

/** A test with a trace. Its spans are read when it is opened. */
class TestSection {
  constructor(test, section, name) {
    Object.assign(this, { test, section, name, waterfall: null });
    test.addEventListener("toggle", () => test.open && this.open());
    if (test.open) this.open();
  }

  open() {
    if (this.waterfall) return;
    const data = JSON.parse(this.section.querySelector("script").textContent);
    this.waterfall = new Waterfall(this.section, data, this.name);
    for (const cell of this.test.querySelectorAll("[data-span]")) {
      if (!this.waterfall.has(cell.dataset.span)) continue;
      const button = make("button", "to-span");
      button.type = "button";
      button.append(...cell.childNodes);
      button.addEventListener("click", () => this.waterfall.show(cell.dataset.span));
      cell.append(button);
    }
  }
}

const tests = [];
for (const test of document.querySelectorAll("details.test")) {
  const section = test.querySelector("section.waterfall");
  if (section?.querySelector("script")) tests.push(new TestSection(test, section, `trace${tests.length}`));
}

addEventListener("beforeprint", () => {
  for (const test of document.querySelectorAll("details.test:not([open])")) {
    opened.push(test);
    test.open = true;
  }
  for (const test of tests) {
    test.open();
    test.waterfall.print(true);
  }
});
addEventListener("afterprint", () => {
  for (const test of opened.splice(0)) test.open = false;
  for (const test of tests) test.waterfall.print(false);
});

// For a measurement: when all of it was laid out, in milliseconds since the page was requested.
document.documentElement.dataset.drawnMs = document.body.offsetHeight && Math.ceil(performance.now());
