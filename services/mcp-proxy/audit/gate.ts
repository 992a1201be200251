/** Runs work, now or when it is its turn. */
export type Enter = <T>(work: () => Promise<T>) => Promise<T>;

/** No gate at all. */
export const IMMEDIATELY: Enter = (work) => work();

/** Lets `limit` pieces of work run at once; the others wait in the order in which they came. */
export function createGate(limit: number): Enter {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The place goes to the next one without ever being free.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
