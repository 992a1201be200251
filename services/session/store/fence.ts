import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Connection, Statement } from "./database.ts";
import { fenceUnavailable, mapPgError } from "./pg-error.ts";

const RAISE_FENCE: Statement = {
  name: "raise_fence",
  text: "SELECT proxy.raise_fence($1, $2::bigint, $3::boolean)",
};

/**
 * raiseFence makes tokens of epochs below `lowestEpoch` worthless, or all of them for good, in the transaction of
 * the change that is the reason (law L7). The function belongs to mcp-proxy; when it cannot do its part, the
 * change is not made either.
 */
export async function raiseFence(
  connection: Connection,
  sessionId: string,
  lowestEpoch: bigint,
  hasEnded: boolean,
): Promise<void> {
  await withFence(connection.run(RAISE_FENCE, [sessionId, lowestEpoch, hasEnded]));
}

/** withFence says of a statement that raises the fence as well, when it failed, that the fence is not raised. */
export async function withFence<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement;
  } catch (error) {
    const mapped = mapPgError(error);
    if (GanglionError.is(mapped, "DATABASE_UNAVAILABLE")) throw mapped;
    throw fenceUnavailable(error);
  }
}
