/** What a person does without a mouse. */

import type { Page } from "playwright-core";
import { expect } from "vitest";

const STEPS_MAX = 80;

/** What the focus is to reach: an element with exactly this text, or of this selector. */
export type Wanted = { readonly text: string } | { readonly selector: string };

/** Presses Tab until an element has the focus; each one on the way has to show it. Returns how often it was pressed. */
export async function tabTo(page: Page, wanted: Wanted): Promise<number> {
  for (let step = 1; step <= STEPS_MAX; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate((it) => {
      const element = document.activeElement;
      if (!(element instanceof HTMLElement) || element === document.body) {
        return { isThere: false, isVisible: true, html: "" };
      }
      const style = getComputedStyle(element.closest("span:has(> input)") ?? element);
      return {
        isThere: "text" in it ? element.innerText.trim() === it.text : element.matches(it.selector),
        isVisible: style.outlineStyle !== "none" && style.outlineWidth !== "0px",
        html: element.outerHTML.slice(0, 160),
      };
    }, wanted);
    expect(at.isVisible, `focus on ${at.html}`).toBe(true);
    if (at.isThere) {
      return step;
    }
  }
  throw new Error(`${STEPS_MAX} steps of Tab do not reach ${JSON.stringify(wanted)}`);
}
