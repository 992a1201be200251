/** The step was stopped before its part answered. */
export class Stopped extends Error {
  override readonly name = "Stopped";
}

/**
 * What some work gives, or Stopped as soon as the signal fires: a part that does not react to its signal must not keep
 * a user waiting who interrupts (B007). What the work comes to after that is nobody's business any more.
 */
export function orStop<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(new Stopped("stopped"));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
