import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the range from which the kernel takes ports for outgoing connections: nobody's connection is given it between the
 * look and the use, or while a server restarts.
 */
const FIRST = 20_000;
const LAST = 31_999;
const TRIES = 200;

/** freePort finds a random port of 127.0.0.1 that is free now and not among those that are spoken for. */
export async function freePort(used: ReadonlySet<number> = new Set()): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    if (!used.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`no free port between ${FIRST} and ${LAST} on 127.0.0.1`);
}

/** isFree tells whether nobody listens on a port of 127.0.0.1. */
export async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    probe.listen(port, "127.0.0.1");
    await once(probe, "listening");
    return true;
  } catch {
    return false;
  } finally {
    if (probe.listening) {
      probe.close();
      await once(probe, "close");
    }
  }
}
