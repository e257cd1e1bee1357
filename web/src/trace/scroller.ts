/**
 * Scrolling over more rows than an element can be high.
 *
 * The browser's own scroll bar stands for the whole content. Where that is higher than browsers allow, a turn of the
 * wheel still moves by its own distance, and the bar only follows.
 */

/** Below the least bound of the browsers, which is 17 million pixels. */
export const HEIGHT_MAX = 8_000_000;

export class Scroller {
  /** The pixels of the content that are scrolled away. */
  top = 0;
  #content = 0;
  #view = 0;
  #element: HTMLElement | null = null;
  #spacer: HTMLElement | null = null;
  /** The position of the bar that was set last; an event with it is no move of the reader. */
  #set = 0;
  #moved: () => void = () => {};

  attach(element: HTMLElement, spacer: HTMLElement, moved: () => void): () => void {
    this.#element = element;
    this.#spacer = spacer;
    this.#moved = moved;
    const onScroll = () => {
      if (Math.abs(element.scrollTop - this.#set) > 1) {
        this.#set = element.scrollTop;
        this.top = this.#isScaled() ? element.scrollTop * this.#scale() : element.scrollTop;
        moved();
      }
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      element.removeEventListener("scroll", onScroll);
      this.#element = null;
    };
  }

  /** The height of the content, and of what is in view. */
  layOut(content: number, view: number): void {
    this.#content = content;
    this.#view = view;
    if (this.#spacer !== null) {
      this.#spacer.style.blockSize = `${Math.max(0, Math.min(content, HEIGHT_MAX) - view)}px`;
    }
    this.to(this.top);
  }

  to(top: number): void {
    this.top = Math.min(Math.max(0, top), Math.max(0, this.#content - this.#view));
    if (this.#element !== null) {
      this.#element.scrollTop = this.#isScaled() ? this.top / this.#scale() : this.top;
      this.#set = this.#element.scrollTop;
    }
    this.#moved();
  }

  /** Moves by the turn of a wheel; false where the browser does that by itself. */
  wheel(pixels: number): boolean {
    if (!this.#isScaled()) {
      return false;
    }
    this.to(this.top + pixels);
    return true;
  }

  #isScaled(): boolean {
    return this.#content > HEIGHT_MAX;
  }

  /** The pixels of content for each pixel of the bar. */
  #scale(): number {
    return (this.#content - this.#view) / Math.max(1, HEIGHT_MAX - this.#view);
  }
}
