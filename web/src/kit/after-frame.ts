/** Calls back once the next frame is on the screen: for work that what is seen first need not wait for. Returns how to cancel. */
export function afterFrame(callback: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Callbacks of a frame run before it is painted, a timer behind it.
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(callback);
  });
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}
