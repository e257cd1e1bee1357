import { act } from "react";
import { createRoot } from "react-dom/client";
import { beforeEach, expect, it } from "vitest";
import { Text } from "./text.tsx";

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

beforeEach(() => document.body.replaceChildren());

function show(value: string, charsMax?: number): HTMLElement {
  const place = document.body.appendChild(document.createElement("div"));
  act(() =>
    createRoot(place).render(<Text value={value} {...(charsMax === undefined ? {} : { charsMax })} />),
  );
  return place;
}

it("makes no element of markup", () => {
  const place = show('<img src=x onerror="alert(1)"><b>x</b>');
  expect(place.querySelector("img, b")).toBeNull();
  expect(place.textContent).toBe('<img src=x onerror="alert(1)"><b>x</b>');
});

it("shows a direction override as a mark, with its name", () => {
  const place = show("a\u202eb");
  expect(place.textContent).toBe("aRLOb");
  expect(place.querySelector("span")?.getAttribute("title")).toBe("an invisible character: RLO");
});

it("cuts a long value until the reader asks", () => {
  const place = show("x".repeat(5000), 100);
  expect(place.querySelector("bdi")?.textContent).toBe(`${"x".repeat(100)}…`);
  const button = place.querySelector("button");
  expect(button?.textContent).toBe("show 4,900 more characters");
  act(() => button?.click());
  expect(place.querySelector("bdi")?.textContent).toBe("x".repeat(5000));
});
