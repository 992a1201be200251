import { setTimeout as pass } from "node:timers/promises";
import type { MeshClient } from "../../../services/common/grpc/create-client.ts";
import type { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";

const LIMIT_MS = 120_000;

/** awaitRelease resolves when no harness keeps any of the sessions: each keeps one for a while after its turn. */
export async function awaitRelease(
  log: MeshClient<typeof SessionServiceService>,
  sessionIds: readonly string[],
): Promise<void> {
  const until = Date.now() + LIMIT_MS;
  for (const sessionId of sessionIds) {
    while ((await log.getLease({ sessionId })).lease?.owner !== "") {
      if (Date.now() > until) throw new Error(`session ${sessionId} is not let go`);
      await pass(250);
    }
  }
}
