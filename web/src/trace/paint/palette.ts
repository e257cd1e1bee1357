/** The colours of the canvas, read from the tokens once for each theme. */

export const SERVICE_COLOURS = 24;

const NAMES = [
  "surface-card",
  "surface-sunk",
  "surface-hover",
  "surface-active",
  "ink",
  "ink-soft",
  "ink-accent",
  "line",
  "line-strong",
  "focus",
  "failed",
  "failed-soft",
  "open",
  "open-soft",
  "mark-surface",
  "mark-ink",
] as const;

export type ColourName = (typeof NAMES)[number];

export interface Palette {
  readonly colour: Readonly<Record<ColourName, string>>;
  readonly service: readonly string[];
  /** The same colours as numbers for image data: alpha, blue, green, red. */
  readonly bits: {
    readonly service: Uint32Array;
    readonly failed: number;
    readonly open: number;
    readonly error: number;
    readonly hit: number;
  };
  readonly font: string;
}

/** Reads the tokens below an element. `light-dark()` is resolved by the browser. */
export function readPalette(place: HTMLElement): Palette {
  const probe = place.ownerDocument.createElement("span");
  // Else every token reads as the one colour of text where the reader's system forces colours.
  probe.style.setProperty("forced-color-adjust", "none");
  place.append(probe);
  const read = (token: string): string => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const colour = Object.fromEntries(NAMES.map((name) => [name, read(name)])) as Record<ColourName, string>;
  const service = Array.from({ length: SERVICE_COLOURS }, (_, at) => read(`service-${at}`));
  const font = getComputedStyle(place).fontFamily;
  probe.remove();
  return {
    colour,
    service,
    font,
    bits: {
      service: Uint32Array.from(service, bitsOf),
      failed: bitsOf(colour.failed),
      open: bitsOf(colour.open),
      error: mixed(bitsOf(colour.failed), bitsOf(colour["surface-card"])),
      hit: bitsOf(colour["mark-ink"]),
    },
  };
}

/** The colour of a service; more services than colours share them. */
export function serviceColour(palette: Palette, service: number): string {
  return palette.service[service % SERVICE_COLOURS] ?? palette.colour["ink-soft"];
}

export function bitsOf(colour: string): number {
  const [red, green, blue] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return ((255 << 24) | ((blue ?? 0) << 16) | ((green ?? 0) << 8) | (red ?? 0)) >>> 0;
}

/** Two colours, the first with two thirds: an error is less than what decided, and alike in kind. */
function mixed(first: number, second: number): number {
  const part = (shift: number) =>
    Math.round((2 * ((first >>> shift) & 255) + ((second >>> shift) & 255)) / 3) << shift;
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}
