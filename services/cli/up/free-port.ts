import { randomInt } from "node:crypto";
import { createServer } from "node:net";

// Below the range from which Linux takes the ports of outgoing connections: nobody's connection is given it between the
// look and the use.
const LOWEST = 20_000;
const ABOVE = 32_768;
const TRIES = 100;

/** freePort finds a port of the loopback address on which nobody listens. */
export async function freePort(): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = randomInt(LOWEST, ABOVE);
    try {
      return await listenOnce(port);
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(port)));
  });
}
