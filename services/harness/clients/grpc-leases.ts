import { randomUUID } from "node:crypto";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { AcquireLeaseResponse, Lease } from "../../gen/ganglion/session/v1/session_service.ts";
import { CHECKPOINT_FORMAT } from "../domain/checkpoint.ts";
import { pause } from "../driver/pause.ts";
import type { HeldLease } from "../ports/event-log.ts";
import type { Leases } from "../ports/leases.ts";
import type { SessionClient } from "./service-clients.ts";

const SILENT = new Set(["UNAVAILABLE", "DEADLINE_EXCEEDED"]);

/** Leases over gRPC, for one run of this process. */
export function createGrpcLeases(client: SessionClient): Leases {
  const bootId = randomUUID();
  // Nobody knows whether these were granted: a lease that nobody drives would be kept alive by this very process.
  const unanswered = new Set<{ sessionId: string; bootId: string; requestId: string }>();
  return {
    async heartbeat(state) {
      const { timeToLive } = await client.harnessHeartbeat({ bootId, ...state }, { timeoutMs: 2000 });
      return Number(timeToLive?.seconds ?? 0n) * 1000 + (timeToLive?.nanos ?? 0) / 1_000_000;
    },

    async acquire(sessionId = "") {
      const [left] = sessionId === "" ? unanswered : [];
      // The same id again: an answer that was lost must not leave a session held by nobody's run.
      const request = left ?? { sessionId, bootId, requestId: randomUUID() };
      const ask = () =>
        client.acquireLease({ ...request, checkpointFormat: CHECKPOINT_FORMAT }, { timeoutMs: 5000 });
      unanswered.delete(request);
      let mayBeGranted = left !== undefined;
      try {
        const { lease, logStart } = await ask().catch((error: unknown) => {
          if (!isSilent(error)) throw error;
          mayBeGranted = true;
          return ask();
        });
        return lease && held(lease, logStart);
      } catch (error) {
        // A refusal that follows a silence speaks of now: what was asked before may have been granted.
        if (mayBeGranted || isSilent(error)) unanswered.add(request);
        throw error;
      }
    },

    async release({ sessionId, epoch }, settledPosition) {
      await client.releaseLease({ sessionId, epoch, settledPosition }, { timeoutMs: 5000 });
    },

    async *runnable(signal) {
      for (let failures = 0; !signal.aborted; ) {
        try {
          for await (const { runnableCount } of client.watchRunnable({}, { signal })) {
            failures = 0;
            yield runnableCount;
          }
        } catch {
          // It is a hint; work is found without it too.
        }
        await pause(Math.min(2000, 100 * 2 ** failures++), signal);
      }
    },
  };
}

function isSilent(error: unknown): boolean {
  return GanglionError.is(error) && SILENT.has(error.code);
}

function held(
  { sessionId, workspaceId, epoch, headPosition }: Lease,
  start: AcquireLeaseResponse["logStart"],
): HeldLease {
  const lease = { sessionId, workspaceId, epoch, headPosition };
  if (!start) return lease;
  const { checkpointPosition: position, checkpointData: data, events, hasMore } = start;
  const checkpoint = position > 0n ? { position, data } : undefined;
  return { ...lease, start: { checkpoint, events, hasMore } };
}
