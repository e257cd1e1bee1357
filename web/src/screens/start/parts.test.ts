import { expect, it } from "vitest";
import { partsOf } from "./parts.ts";

it("the parts of a test are those that a reader has to know", () => {
  const spec = {
    id: "checkout",
    trigger: { type: "http", httpRequest: { method: "POST", url: "http://127.0.0.1:1/orders" } },
    settle: { flush: "30ms", timeout: "5s", expect: [] },
    specs: [
      { name: "paid once", selector: "span[a]", assertions: ["a = 1", 7, "b = 2"] },
      { selector: "span[b]" },
    ],
    trace: ["response.status = 201", { name: "packed", claim: "some span" }, { claim: "no span" }],
  };
  expect(partsOf({ spec })).toEqual([
    { kind: "trigger", text: "POST http://127.0.0.1:1/orders", code: "" },
    { kind: "settle", text: "flush 30ms, timeout 5s", code: "" },
    { kind: "spec", text: "paid once", code: "span[a]\na = 1\nb = 2" },
    { kind: "spec", text: "span[b]", code: "" },
    { kind: "claim", text: "response.status = 201", code: "" },
    { kind: "claim", text: "packed", code: "some span" },
    { kind: "claim", text: "no span", code: "" },
  ]);
});

it("a document of another form has no parts, and breaks nothing", () => {
  const claims = Array.from({ length: 100 }, (_, at) => `a = ${at}`);
  expect(partsOf({ spec: { trace: claims } })).toHaveLength(40);
  for (const spec of [
    undefined,
    null,
    7,
    "text",
    [],
    { trigger: 1, settle: [], specs: {}, trace: [null, 7, {}] },
  ]) {
    expect(partsOf({ spec })).toEqual([]);
  }
});
