import { once } from "node:events";
import type { Pool } from "pg";

/**
 * Ends a pool and waits until its connections are closed: the pool's own end() does not, and a server that is stopped then
 * still says goodbye to them, which nobody catches.
 */
export async function endPool(pool: Pool): Promise<void> {
  const open = pool.totalCount;
  let closed = 0;
  const count = () => {
    closed += 1;
  };
  pool.on("remove", count);
  const ended = pool.end();
  while (closed < open) await once(pool, "remove");
  await ended;
}
