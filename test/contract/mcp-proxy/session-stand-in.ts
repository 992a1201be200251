import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import { createLogger } from "../../../services/common/log/create-logger.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { TestCa } from "../../kit/ca.ts";

const IMAGE = new URL("../../../services/gen/image.binpb", import.meta.url).pathname;

/** A lease as the stand-in tells it. */
export interface FakeLease {
  workspaceId: string;
  epoch: bigint;
  owner: string;
}

/** Starts a stand-in for the session service, which tells the leases of the map and nothing else. */
export async function startSessionStandIn(
  ca: TestCa,
  leases: ReadonlyMap<string, FakeLease>,
): Promise<RunningServer> {
  return startServer({
    service: "session",
    instance: "session-1",
    listen: "127.0.0.1:0",
    tls: await ca.bundle("session"),
    image: IMAGE,
    // Standard output is the figures' when a benchmark starts this.
    log: createLogger({ service: "session", instance: "session-1" }, "error", process.stderr),
    ownsProcess: false,
    implementations: [
      implementSome(SessionServiceService, {
        getLease: unary(async ({ sessionId }) => {
          const lease = leases.get(sessionId);
          if (!lease)
            throw new GanglionError({ code: "NOT_FOUND", reason: "SESSION_NOT_FOUND", message: "none" });
          return { lease: { sessionId, ...lease, headPosition: 1n, isOwnerAlive: true, status: 2 } };
        }),
      }),
    ],
  });
}
