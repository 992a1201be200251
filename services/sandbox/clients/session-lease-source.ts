import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { MeshClient } from "../../common/grpc/create-client.ts";
import { type SessionServiceService, SessionStatus } from "../../gen/ganglion/session/v1/session_service.ts";
import type { LeaseFacts, LeaseSource } from "../domain/lease-guard.ts";

const TIMEOUT_MS = 5_000;

/** SessionLeaseSource asks the session service who drives a session. */
export class SessionLeaseSource implements LeaseSource {
  readonly #client: MeshClient<typeof SessionServiceService>;

  constructor(client: MeshClient<typeof SessionServiceService>) {
    this.#client = client;
  }

  async getLease(sessionId: string, signal: AbortSignal): Promise<LeaseFacts | undefined> {
    try {
      const { lease } = await this.#client.getLease({ sessionId }, { signal, timeoutMs: TIMEOUT_MS });
      if (!lease) return undefined;
      const isEnded = lease.status === SessionStatus.SESSION_STATUS_TERMINATED;
      return { epoch: lease.epoch, owner: lease.owner, isEnded };
    } catch (error) {
      if (GanglionError.is(error, "SESSION_NOT_FOUND")) return undefined;
      throw error;
    }
  }
}
