import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { ParentCall } from "../../common/grpc/call-context.ts";
import type { MeshClient } from "../../common/grpc/create-client.ts";
import type { BindingServiceService } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { networkingOf } from "../domain/environment/networking-of.ts";
import { invalidField } from "../domain/errors.ts";
import { gitRepositoryOf } from "../domain/repositories.ts";
import type { VaultBinding, VaultBindings } from "../ports/vault-bindings.ts";

const VAULT_REASONS = new Set(["VAULT_NOT_FOUND", "VAULT_ARCHIVED"]);

/** Vault bindings at mcp-proxy. What the proxy does not confirm is not bound. */
export class ProxyBindings implements VaultBindings {
  readonly #client: Pick<MeshClient<typeof BindingServiceService>, "bind">;

  constructor(client: Pick<MeshClient<typeof BindingServiceService>, "bind">) {
    this.#client = client;
  }

  bind(binding: VaultBinding, parent: ParentCall): Promise<void> {
    return this.#bind(binding, parent, false);
  }

  rebind(binding: VaultBinding, parent: ParentCall): Promise<void> {
    return this.#bind(binding, parent, true);
  }

  async #bind(binding: VaultBinding, parent: ParentCall, replacesMcpServers: boolean): Promise<void> {
    const request = {
      sessionId: binding.sessionId,
      workspaceId: binding.workspaceId,
      vaultIds: [...(binding.ownVaultId === "" ? [] : [binding.ownVaultId]), ...binding.vaultIds],
      mcpServers: binding.mcpServers.map(({ name, url }) => ({ name, url })),
      models: [...binding.models],
      replacesMcpServers,
      networking: networkingOf(binding.environmentJson),
      gitRepositories: binding.repositories.map(gitRepositoryOf),
    };
    try {
      // A proxy that is being restarted is back within a second or two: wait for it. [B135]
      await this.#client.bind(request, { parent, timeoutMs: 5_000, waitForReady: true });
    } catch (error) {
      if (parent.signal.aborted) throw error;
      throw explain(error);
    }
  }
}

function explain(error: unknown): GanglionError {
  if (GanglionError.is(error) && VAULT_REASONS.has(error.reason)) {
    return new GanglionError({
      code: "FAILED_PRECONDITION",
      reason: "VAULT_NOT_USABLE",
      message: "a vault is unknown or archived",
      metadata: { vault_id: error.metadata.vault_id ?? "" },
    });
  }
  if (GanglionError.is(error) && error.code === "INVALID_ARGUMENT") {
    return invalidField("agent_id", "names an MCP server or a model that mcp-proxy does not accept");
  }
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "PROXY_UNAVAILABLE",
    message: "mcp-proxy could not bind the session's vaults; nothing was made or changed",
    retryAfterMs: 500,
    cause: error,
  });
}
