import { randomUUID } from "node:crypto";
import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import {
  EmitEventsRequest,
  SessionServiceService,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { CleanUps } from "../report/clean-ups.ts";

const BEATS_PER_LIFE = 3;

/** A harness that the benchmark plays: certificate, heartbeat and leases are real. */
export interface BenchHarness {
  readonly log: MeshClient<typeof SessionServiceService>;
  /** Becomes the driver of the session; returns the epoch. */
  acquire(sessionId: string): Promise<bigint>;
}

/** startBenchHarness connects to the session service and keeps its heart beating until the end. */
export async function startBenchHarness(
  sessionAddress: string,
  tls: TlsBundle,
  cleanUps: CleanUps,
): Promise<BenchHarness> {
  // As a harness makes it.
  const log = createClient(SessionServiceService, sessionAddress, tls, "session", {
    largeRequests: { emitEvents: EmitEventsRequest },
  });
  cleanUps.add(() => log.close());
  await log.waitForReady(20_000);
  const bootId = randomUUID();
  const beat = () => log.harnessHeartbeat({ bootId, activeSessions: 0, isDraining: true });
  const { timeToLive } = await beat();
  const lifeMs = Number(timeToLive?.seconds ?? 0n) * 1000 + (timeToLive?.nanos ?? 0) / 1e6;
  // One that is late shows as a refused append.
  const timer = setInterval(() => void beat().catch(() => {}), lifeMs / BEATS_PER_LIFE);
  cleanUps.add(() => clearInterval(timer));
  return {
    log,
    acquire: async (sessionId) => {
      const { lease } = await log.acquireLease({ sessionId, bootId, requestId: randomUUID() });
      if (!lease) throw new Error(`session ${sessionId} could not be leased`);
      return lease.epoch;
    },
  };
}
