import { describe, expect, it } from "vitest";
import { EVENT_CHARS_MAX, type ServerSentEvent, SseParser } from "./sse.ts";

const STREAM =
  ': keep\n\nid: 3\nevent: attempted\ndata: {"n":3}\n\nid: 4\r\ndata: a\r\ndata:  b\r\n\r\nevent: end\rdata\r\rretry: 5\n\ndata: cut';
const EVENTS: ServerSentEvent[] = [
  { id: "3", event: "attempted", data: '{"n":3}' },
  { id: "4", event: "message", data: "a\n b" },
  { id: "4", event: "end", data: "" },
];

describe("server-sent events", () => {
  it("come out the same however the stream is cut", () => {
    for (let size = 1; size <= STREAM.length; size += 1) {
      const parser = new SseParser();
      const events: ServerSentEvent[] = [];
      for (let at = 0; at < STREAM.length; at += size) {
        events.push(...parser.push(STREAM.slice(at, at + size)));
      }
      expect(events, `pieces of ${size}`).toEqual(EVENTS);
    }
  });

  it("begin behind a byte order mark", () => {
    expect(new SseParser().push("\ufeffdata: x\n\n")).toEqual([{ id: null, event: "message", data: "x" }]);
  });

  it("ignore an id with NUL and unknown fields", () => {
    expect(new SseParser().push("id: a\0b\nother: 1\ndata: x\n\n")).toEqual([
      { id: null, event: "message", data: "x" },
    ]);
  });

  it("are bounded", () => {
    const parser = new SseParser();
    expect(() => parser.push(`data: ${"x".repeat(EVENT_CHARS_MAX)}`)).toThrow(RangeError);
  });
});
