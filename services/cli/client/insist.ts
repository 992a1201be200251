import { setTimeout as wait } from "node:timers/promises";
import { GanglionError } from "../../common/errors/ganglion-error.ts";

const PATIENCE_MS = 10_000;
const PAUSE_MS = 250;

/** insist repeats a call that may be repeated while a part is just being started again. */
export async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + PATIENCE_MS; ; ) {
    try {
      return await call();
    } catch (error) {
      const isAway = error instanceof GanglionError && error.code === "UNAVAILABLE";
      if (!isAway || Date.now() > deadline) throw error;
      await wait(PAUSE_MS);
    }
  }
}
