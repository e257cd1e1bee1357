/** Splits a command line as a POSIX shell does, as far as a pasted command needs it: nothing is run, and nothing is filled in. */

import type { CurlRefusal } from "./refusal.ts";

/** The words and characters of a command that are read. */
const WORDS_MAX = 1000;
const CHARS_MAX = 64 * 1024;

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

/** Returns the words of a command, or why a page cannot know them. */
export function shellWords(text: string): readonly string[] | CurlRefusal {
  if (text.length > CHARS_MAX) {
    return { reason: "tooLong", value: null };
  }
  const words: string[] = [];
  // None between words; the empty word of `''` is one.
  let word: string | null = null;
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === " " || char === "\t" || char === "\n" || char === "\r") {
      if (word !== null) {
        words.push(word);
        word = null;
      }
      if (words.length > WORDS_MAX) {
        return { reason: "tooLong", value: null };
      }
      at += 1;
      continue;
    }
    const piece = pieceAt(text, at, word === null);
    if ("reason" in piece) {
      return piece;
    }
    at = piece.end;
    if (piece.text !== null) {
      word = (word ?? "") + piece.text;
    }
  }
  return word === null ? words : [...words, word];
}

/** A part of a word, and where it ends; no text for a continued line. */
interface Piece {
  readonly text: string | null;
  readonly end: number;
}

function pieceAt(text: string, at: number, isStart: boolean): Piece | CurlRefusal {
  const char = text.charAt(at);
  switch (char) {
    case "'": {
      const end = text.indexOf("'", at + 1);
      return end === -1 ? unclosed("'") : { text: text.slice(at + 1, end), end: end + 1 };
    }
    case '"':
      return doubleQuoted(text, at + 1);
    case "\\":
      return escaped(text, at);
    case "$":
      return text.charAt(at + 1) === "'" ? ansiQuoted(text, at + 2) : variable(text, at);
    case "`":
      return { reason: "substitution", value: "`" };
    case "^":
      // The copy of a browser for the Windows command line.
      return /^\^\r?\n/.test(text.slice(at, at + 3)) || text.charAt(at + 1) === '"'
        ? { reason: "windows", value: null }
        : { text: char, end: at + 1 };
    case "#":
      return isStart ? { reason: "operator", value: char } : { text: char, end: at + 1 };
    case "|":
    case "&":
    case ";":
    case "<":
    case ">":
    case "(":
    case ")":
      return { reason: "operator", value: char };
    default:
      return { text: char, end: at + 1 };
  }
}

function escaped(text: string, at: number): Piece | CurlRefusal {
  const next = text.charAt(at + 1);
  if (next === "\n") {
    return { text: null, end: at + 2 };
  }
  if (next === "\r" && text.charAt(at + 2) === "\n") {
    return { text: null, end: at + 3 };
  }
  return next === "" ? { text: null, end: at + 1 } : { text: next, end: at + 2 };
}

function doubleQuoted(text: string, start: number): Piece | CurlRefusal {
  let out = "";
  for (let at = start; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') {
      return { text: out, end: at + 1 };
    }
    if (char === "`") {
      return { reason: "substitution", value: "`" };
    }
    if (char === "$") {
      const piece = variable(text, at);
      if ("reason" in piece) {
        return piece;
      }
    }
    const next = text.charAt(at + 1);
    if (char === "\\" && '"\\$`\n'.includes(next) && next !== "") {
      out += next === "\n" ? "" : next;
      at += 1;
    } else {
      out += char;
    }
  }
  return unclosed('"');
}

/** Reads `$'…'`, as browsers copy text with newlines. */
function ansiQuoted(text: string, start: number): Piece | CurlRefusal {
  let out = "";
  for (let at = start; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "'") {
      return { text: out, end: at + 1 };
    }
    if (char !== "\\") {
      out += char;
      continue;
    }
    const code = /^\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))/.exec(text.slice(at, at + 6));
    if (code !== null) {
      out += String.fromCharCode(Number.parseInt(code[1] ?? code[2] ?? "", 16));
      at += code[0].length - 1;
    } else {
      const next = text.charAt(at + 1);
      out += ESCAPES[next] ?? next;
      at += 1;
    }
  }
  return unclosed("$'");
}

/** A dollar sign alone is text; before a name it is a variable of the shell, which the page does not know. */
function variable(text: string, at: number): Piece | CurlRefusal {
  const named = /^\$(?:\w+|\{[^}]*\}?|\()/.exec(text.slice(at, at + 100));
  if (named === null) {
    return { text: "$", end: at + 1 };
  }
  return { reason: named[0] === "$(" ? "substitution" : "variable", value: named[0] };
}

function unclosed(quote: string): CurlRefusal {
  return { reason: "unclosed", value: quote };
}
