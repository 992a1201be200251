import type { ListActiveResponse } from "../../gen/ganglion/harness/v1/harness_service.ts";
import type { Harness } from "../driver/harness.ts";

/** Tells what the harness drives. */
export async function listActive(harness: Harness): Promise<ListActiveResponse> {
  return {
    isDraining: harness.isDraining,
    sessions: harness.active.map(({ lease, progress, startedAt }) => ({
      sessionId: lease.sessionId,
      epoch: lease.epoch,
      leaseTime: {
        seconds: BigInt(Math.floor(startedAt.getTime() / 1000)),
        nanos: (startedAt.getTime() % 1000) * 1_000_000,
      },
      position: progress.position,
      action: progress.action,
    })),
  };
}
