/**
 * What the trace view costs at 10,000, 100,000 and 1,000,000 spans, in the real screen of the built page: a program that
 * prints a table and JSON as its last line.
 *
 * The columns are synthetic, and a small server in this process gives them as the real one does. A frame is the script of its
 * animation frame and the raster of the canvas, which reading one pixel forces. The bounds of frames are ratios to clearing
 * the same canvas and filling 100 rectangles, measured in the same page, and the time until the waterfall counts from the
 * first paint of the shell without data, so that both hold on any machine.
 */

import type { Browser, CDPSession, Page } from "playwright-core";
import { visit } from "./browser.ts";
import { answerOf, launchAlone, servePage } from "./page.ts";
import { type Goal, type Row, render } from "./table.ts";
import { largeColumns } from "./traces.ts";

const RUN = "01a1dcee-cd00-7101-8101-010101010101";
const FRAMES = 60;
const OPENINGS = 7;
const HEAP_MB_MAX = 80;
const BYTES_A_SPAN_MAX = 45;

/** Bounds for a number of spans: the flame as a ratio, the waterfall in milliseconds after the first paint. */
const SIZES: ReadonlyArray<{ readonly spans: number; readonly flame?: number; readonly waterfall: number }> =
  [
    { spans: 10_000, waterfall: 250 },
    { spans: 100_000, flame: 4, waterfall: 400 },
    { spans: 1_000_000, flame: 6, waterfall: 2500 },
  ];

/** What frames cost, in milliseconds. */
interface Frames {
  readonly baseline: number;
  readonly scroll: number;
  readonly zoom: number;
  readonly flame: number;
  readonly heapBytes: number;
}

const ENDED = {
  acceptedAt: "2026-11-15T02:00:00Z",
  id: RUN,
  outcome: null,
  provisionalVerdict: null,
  state: "ended",
  stopAt: null,
  test: "large",
  traceId: "ab".repeat(16),
  verdict: "passed",
  version: 1,
};

/** Wraps animation frames: each one that painted leaves its time in milliseconds. */
function measureFrames(): void {
  const times: number[] = [];
  (globalThis as unknown as { frameTimes: number[] }).frameTimes = times;
  const request = globalThis.requestAnimationFrame.bind(globalThis);
  globalThis.requestAnimationFrame = (callback) =>
    request((at) => {
      const began = performance.now();
      callback(at);
      const canvas = document.querySelector<HTMLCanvasElement>("[data-stage]");
      canvas?.getContext("2d")?.getImageData(0, 0, 1, 1);
      times.push(performance.now() - began);
    });
}

/** The median time of the frames that a step causes, repeated. */
async function frames(page: Page, step: "scroll" | "zoom" | "flame"): Promise<number> {
  return page.evaluate(
    async ({ step: kind, count }) => {
      const times = (globalThis as unknown as { frameTimes: number[] }).frameTimes;
      const scroller = document.querySelector<HTMLElement>("[data-scroller]");
      const canvas = document.querySelector<HTMLCanvasElement>("[data-stage]");
      if (scroller === null || canvas === null) {
        throw new Error("the screen has no stage");
      }
      const box = canvas.getBoundingClientRect();
      const wheel = (deltaY: number, ctrlKey: boolean) =>
        canvas.dispatchEvent(
          new WheelEvent("wheel", {
            bubbles: true,
            cancelable: true,
            clientX: box.left + box.width * 0.7,
            clientY: box.top + 200,
            ctrlKey,
            deltaY,
          }),
        );
      const paused = () => new Promise((resolve) => setTimeout(resolve, 20));
      times.length = 0;
      for (let at = 0; at < count; at += 1) {
        if (kind === "scroll") {
          if (wheel(173, false)) {
            scroller.scrollTop += 173;
          }
        } else if (kind === "zoom") {
          wheel(at % 12 < 6 ? -120 : 120, true);
        } else {
          // The whole trace, and a little less: another picture each time.
          wheel(at % 2 === 0 ? -20 : 40, true);
        }
        await paused();
      }
      return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
    },
    { step, count: FRAMES },
  );
}

/** Clear and 100 rectangles on a canvas of the same size. */
async function baseline(page: Page): Promise<number> {
  return page.evaluate(async (count) => {
    const stage = document.querySelector<HTMLCanvasElement>("[data-stage]");
    const canvas = document.createElement("canvas");
    canvas.width = stage?.width ?? 0;
    canvas.height = stage?.height ?? 0;
    canvas.style.position = "fixed";
    canvas.style.inset = "0";
    document.body.append(canvas);
    const context = canvas.getContext("2d", { alpha: false });
    const times: number[] = [];
    for (let at = 0; at < count; at += 1) {
      await new Promise<void>((resolve) => {
        requestAnimationFrame(() => {
          const began = performance.now();
          if (context !== null) {
            context.fillStyle = "#fff";
            context.fillRect(0, 0, canvas.width, canvas.height);
            for (let bar = 0; bar < 100; bar += 1) {
              context.fillStyle = `hsl(${bar * 3} 60% 50%)`;
              context.fillRect((bar * 37 + at) % canvas.width, bar * 8, 300, 12);
            }
            context.getImageData(0, 0, 1, 1);
          }
          times.push(performance.now() - began);
          setTimeout(resolve, 20);
        });
      });
    }
    canvas.remove();
    return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
  }, FRAMES);
}

async function heapBytes(page: Page): Promise<number> {
  const session: CDPSession = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const usage = (await session.send("Runtime.getHeapUsage")) as {
    usedSize: number;
    backingStorageSize?: number;
  };
  await session.detach();
  return usage.usedSize + (usage.backingStorageSize ?? 0);
}

/** Notes when the waterfall is first on the canvas, in milliseconds since the navigation. */
function noteWaterfall(): void {
  const state = globalThis as unknown as { waterfallAt?: number };
  const request = globalThis.requestAnimationFrame.bind(globalThis);
  const look = () => {
    const canvas = document.querySelector<HTMLCanvasElement>("[data-stage]");
    const pixels = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data;
    // More than one colour: spans, and not only the ground.
    const [first, ...others] = new Set(pixels === undefined ? [] : new Uint32Array(pixels.buffer));
    if (first !== undefined && others.length > 0) {
      state.waterfallAt = performance.now();
    } else {
      request(look);
    }
  };
  request(look);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function framesOf(browser: Browser, url: string, spans: number): Promise<Frames> {
  const visited = await visit(browser, { hasSession: false, expected: [404] });
  const { page } = visited;
  await page.addInitScript(measureFrames);
  await page.goto(`${url}/r/${RUN}/trace?fold=off`);
  await page.locator("[data-stage]").waitFor();
  await page.waitForTimeout(500);
  const shown = await page.locator('[role="treegrid"]').getAttribute("aria-rowcount");
  if (Number(shown) < spans) {
    throw new Error(`the page shows ${shown} rows of ${spans} spans`);
  }
  const idle = await baseline(page);
  const scroll = await frames(page, "scroll");
  const zoom = await frames(page, "zoom");
  await page.keyboard.press("0");
  await page.keyboard.press("2");
  await page.waitForTimeout(500);
  const flame = await frames(page, "flame");
  const heap = await heapBytes(page);
  // Before and after: another process may have had the machine for a while.
  const after = await baseline(page);
  // The browser advises against reading back, which this file alone does.
  const complaints = visited.complaints.filter((it) => !it.includes("willReadFrequently"));
  if (complaints.length > 0) {
    throw new Error(complaints.join("\n"));
  }
  await visited.context.close();
  return { baseline: Math.max(idle, after), scroll, zoom, flame, heapBytes: heap };
}

/** The median time from the navigation to the first contentful paint of the shell, whose requests nobody answers. */
async function shellPaint(browser: Browser): Promise<number> {
  const shell = await servePage();
  const times: number[] = [];
  for (let at = 0; at < OPENINGS; at += 1) {
    const { page, context } = await visit(browser, { hasSession: false });
    await page.goto(`${shell.url}/r/${RUN}/trace`);
    const painted = await page.waitForFunction(
      () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
    );
    times.push(await painted.jsonValue());
    await context.close();
  }
  shell.close();
  return median(times);
}

/** The median time from the navigation to the waterfall. */
async function waterfall(browser: Browser, url: string): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < OPENINGS; at += 1) {
    const { page, context } = await visit(browser, { hasSession: false });
    await page.addInitScript(noteWaterfall);
    await page.goto(`${url}/r/${RUN}/trace`);
    const drawn = await page.waitForFunction(
      () => (globalThis as unknown as { waterfallAt?: number }).waterfallAt ?? 0,
    );
    times.push(await drawn.jsonValue());
    await context.close();
  }
  return median(times);
}

async function measured(browser: Browser): Promise<Row[]> {
  const rows: Row[] = [];
  const row = (name: string, value: number, unit: string, goal?: Goal) => {
    rows.push({ name, value, unit, ...(goal && { goal }) });
  };
  const paint = await shellPaint(browser);
  row("first paint of the shell", paint, "ms");
  const ratios: Array<{ readonly scroll: number; readonly zoom: number }> = [];
  for (const { spans, flame, waterfall: after } of SIZES) {
    const columns = Buffer.from(largeColumns(spans));
    const site = await servePage((url) => answerOf(url, { run: ENDED, columns }));
    const of = (what: string) => `${what}, ${spans.toLocaleString("en")} spans`;
    const opened = (await waterfall(browser, site.url)) - paint;
    row(of("waterfall after first paint"), opened, "ms", { atMost: after });
    const found = await framesOf(browser, site.url, spans);
    site.close();
    const [scroll, zoom] = [found.scroll / found.baseline, found.zoom / found.baseline];
    ratios.push({ scroll, zoom });
    row(of("baseline"), found.baseline, "ms a frame");
    row(of("scroll"), scroll, "baselines", { atMost: 3 });
    row(of("zoom"), zoom, "baselines", { atMost: 3 });
    row(
      of("flame"),
      found.flame / found.baseline,
      "baselines",
      flame === undefined ? undefined : { atMost: flame },
    );
    const isLargest = spans === SIZES.at(-1)?.spans;
    row(
      of("heap and buffers"),
      found.heapBytes / 2 ** 20,
      "MB",
      isLargest ? { atMost: HEAP_MB_MAX } : undefined,
    );
    row(of("columns"), columns.byteLength / spans, "bytes a span", { atMost: BYTES_A_SPAN_MAX });
  }
  const [small, large] = [ratios.at(0), ratios.at(-1)];
  for (const what of ["scroll", "zoom"] as const) {
    const growth = (large?.[what] ?? Number.NaN) / (small?.[what] ?? Number.NaN);
    row(`${what}, most spans beside fewest`, growth, "times", { atMost: 1.5 });
  }
  return rows;
}

const browser = await launchAlone(["--enable-precise-memory-info"]);
try {
  process.stdout.write(render("trace-view", await measured(browser)));
} finally {
  await browser.close();
}
