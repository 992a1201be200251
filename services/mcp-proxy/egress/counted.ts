import type { Traffic } from "../domain/traffic.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";

/** An answer's body as it comes, counted and noted, up to a number of bytes. */
export async function* counted(
  body: AsyncIterable<Buffer>,
  counters: { status: number; responseBytes: number },
  traffic: Traffic,
  most: number,
): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    counters.responseBytes += chunk.length;
    traffic.came(chunk);
    if (counters.responseBytes > most) throw new UpstreamFailure("too_large", counters.status);
    yield chunk;
  }
  traffic.cameAll();
}
