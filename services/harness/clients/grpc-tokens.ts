import { Audience } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { Tokens } from "../ports/leases.ts";
import type { BindingClient } from "./service-clients.ts";

/** Session tokens over gRPC. They live in the memory of this process only. */
export function createGrpcTokens(client: BindingClient): Tokens {
  return {
    async issue({ sessionId, epoch }, signal) {
      const request = { sessionId, epoch, audience: Audience.AUDIENCE_HARNESS, handId: "" };
      // A proxy that was just restarted is there before the connection's next attempt.
      const { token } = await client.issueToken(request, { signal, timeoutMs: 5000, waitForReady: true });
      return token;
    },
  };
}
