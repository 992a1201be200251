import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import type {
  HarnessHeartbeatRequest,
  HarnessHeartbeatResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import { callerOf } from "../caller-of.ts";
import type { Deps } from "../deps.ts";

/** Keeps a harness instance, and with it all its leases, alive. */
export const harnessHeartbeat = (deps: Deps) =>
  unary<HarnessHeartbeatRequest, HarnessHeartbeatResponse>(
    async ({ bootId, activeSessions, isDraining }, ctx) => {
      const violations = new Violations();
      checkBootId(violations, bootId);
      violations.integer("active_sessions", activeSessions, { min: 0 });
      violations.throwIfAny();
      const owner = callerOf(ctx).subject;
      const freed = await deps.leases.heartbeat({ owner, bootId, activeSessions, isDraining }, ctx.signal);
      for (const sessionId of freed) deps.announce(sessionId, true);
      const seconds = Math.floor(deps.heartbeatTtlMs / 1000);
      return {
        timeToLive: { seconds: BigInt(seconds), nanos: (deps.heartbeatTtlMs - seconds * 1000) * 1_000_000 },
      };
    },
  );

/** Checks the id of a run of a harness process. */
export function checkBootId(violations: Violations, bootId: string): void {
  violations.string("boot_id", bootId, {
    required: true,
    pattern: /^[\x21-\x7e]{16,64}$/,
    patternMeans: "16 to 64 printable characters",
  });
}
