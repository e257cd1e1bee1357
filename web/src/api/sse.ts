/** Reads Server-Sent Events from pieces of text, as the HTML standard defines them. */

export interface ServerSentEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

/** The maximum length of a line, and of the data of an event, in characters. */
export const EVENT_CHARS_MAX = 4 * 1024 * 1024;

export class SseParser {
  #line = "";
  #endedByCr = false;
  #begun = false;
  #id: string | null = null;
  #event = "";
  #data: string[] = [];
  #chars = 0;

  /** Returns the events that the piece completes. An event that nothing completes is discarded, as the standard requires. */
  push(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let text = piece;
    if (!this.#begun && text !== "") {
      this.#begun = true;
      text = text.replace(/^\ufeff/, "");
    }
    if (this.#endedByCr && text !== "") {
      this.#endedByCr = false;
      text = text.replace(/^\n/, "");
    }
    let from = 0;
    for (const end of text.matchAll(/\r\n|\n|\r/g)) {
      this.#extend(text.slice(from, end.index));
      from = end.index + end[0].length;
      this.#endedByCr = end[0] === "\r" && from === text.length;
      const event = this.#take(this.#line);
      this.#line = "";
      if (event !== null) {
        events.push(event);
      }
    }
    this.#extend(text.slice(from));
    return events;
  }

  #extend(text: string): void {
    this.#line += text;
    if (this.#line.length + this.#chars > EVENT_CHARS_MAX) {
      throw new RangeError("an event is larger than this page reads");
    }
  }

  #take(line: string): ServerSentEvent | null {
    if (line === "") {
      return this.#dispatch();
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      return null;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      this.#event = value;
    } else if (field === "data") {
      this.#data.push(value);
      this.#chars += value.length;
    } else if (field === "id" && !value.includes("\0")) {
      this.#id = value;
    }
    return null;
  }

  #dispatch(): ServerSentEvent | null {
    const data = this.#data.join("\n");
    const event = this.#event;
    const isEmpty = this.#data.length === 0;
    this.#data = [];
    this.#chars = 0;
    this.#event = "";
    return isEmpty ? null : { id: this.#id, event: event === "" ? "message" : event, data };
  }
}
