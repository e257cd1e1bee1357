// Uses a waterfall by keyboard and by mouse, and writes what it finds into the document.
addEventListener("load", () => setTimeout(() => {
  const tree = document.querySelector("[role=tree]");
  const panel = document.querySelector(".panel");
  const press = (key) => tree.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const row = () => document.getElementById(tree.getAttribute("aria-activedescendant"));
  const box = (element) => element.getBoundingClientRect();
  const isOpen = () =>
    !panel.hidden && box(panel).top >= -1 && box(panel).bottom <= innerHeight + 1 && box(panel).right <= innerWidth + 1;
  const isBeside = () => box(panel).left >= box(row()).right - 1 && box(panel).top < box(row()).bottom && box(panel).bottom > box(row()).top;
  const isBelow = () => Math.abs(box(panel).top - box(row()).bottom) < 2;
  const seen = { closedAtFirst: panel.hidden };
  press("Home");
  press("Enter");
  seen.opensByKey = isOpen();
  seen.place = isBeside() ? "beside" : isBelow() ? "below" : "elsewhere";
  press("End");
  seen.follows = isOpen() && panel.textContent.includes(row().querySelector(".name").textContent);
  press("Escape");
  seen.closesByKey = panel.hidden;
  row().click();
  seen.opensByMouse = isOpen();
  seen.fits = document.documentElement.scrollWidth <= innerWidth;
  document.documentElement.dataset.found = Object.entries(seen).map(([key, value]) => `${key}:${value}`).join(" ");
}, 100));
