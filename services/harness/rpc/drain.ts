import type { DrainResponse } from "../../gen/ganglion/harness/v1/harness_service.ts";
import type { Harness } from "../driver/harness.ts";

/** Lets go of every session and takes no new ones. */
export async function drain(harness: Harness): Promise<DrainResponse> {
  return { releasedSessions: await harness.drain() };
}
