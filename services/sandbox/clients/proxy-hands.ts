import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { MeshClient } from "../../common/grpc/create-client.ts";
import { Audience, type BindingServiceService } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { HandName, HandSetup } from "../domain/way-out.ts";
import type { ProxyBindings } from "../egress/ways-out.ts";

const TIMEOUT_MS = 5_000;

/** ProxyHands asks mcp-proxy what hands may reach and who they are at its doors. */
export class ProxyHands implements ProxyBindings {
  readonly #client: Pick<MeshClient<typeof BindingServiceService>, "getHandSetup" | "issueToken">;

  constructor(client: Pick<MeshClient<typeof BindingServiceService>, "getHandSetup" | "issueToken">) {
    this.#client = client;
  }

  async getSetup({ sessionId, handId }: HandName): Promise<HandSetup | undefined> {
    try {
      // A proxy that is being restarted is back within a second or two: wait for it. [B135]
      const options = { timeoutMs: TIMEOUT_MS, waitForReady: true };
      const setup = await this.#client.getHandSetup({ sessionId, handId }, options);
      if (!setup.hasEgress) return undefined;
      const { egressCaPem: authorityPem, placeholders, gitRewrites } = setup;
      return { authorityPem, placeholders, gitRewrites };
    } catch (error) {
      // What is not bound may reach nothing.
      if (GanglionError.is(error, "BINDING_NOT_FOUND")) return undefined;
      throw new GanglionError({
        code: "UNAVAILABLE",
        reason: "PROVISION_FAILED",
        message: "mcp-proxy did not say what the hand may reach",
        retryAfterMs: 500,
        cause: error,
      });
    }
  }

  async issueToken({ sessionId, handId }: HandName): Promise<string> {
    const request = { sessionId, handId, epoch: 0n, audience: Audience.AUDIENCE_HAND };
    const { token } = await this.#client.issueToken(request, { timeoutMs: TIMEOUT_MS, waitForReady: true });
    return token;
  }
}
