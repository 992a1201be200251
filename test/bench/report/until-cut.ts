import { setTimeout as pass } from "node:timers/promises";

/**
 * untilCut resolves with the milliseconds from `askedAt` to the moment that a running stream was cut. It is called right
 * at `askedAt`; a stream that still runs after `boundMs`, and one that ended before or by itself (NaN), are errors.
 */
export async function untilCut(cut: Promise<number>, askedAt: number, boundMs: number): Promise<number> {
  const at = await Promise.race([cut, pass(boundMs, undefined, { ref: false })]);
  if (at === undefined) throw new Error(`a stream still runs ${boundMs} ms after the end of its session`);
  if (!(at >= askedAt)) throw new Error("a stream was over before its session was ended");
  return at - askedAt;
}
