import type { ParentCall } from "../../common/grpc/call-context.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";

/** What a session may use of the credential path. */
export interface VaultBinding {
  readonly sessionId: string;
  readonly workspaceId: string;
  /** Vault of the session's own, looked up first; empty = none. */
  readonly ownVaultId: string;
  readonly vaultIds: readonly string[];
  readonly mcpServers: readonly { readonly name: string; readonly url: string }[];
  readonly models: readonly string[];
  /** Configuration of the session's environment; its rule on hosts is bound. */
  readonly environmentJson: Uint8Array;
  /** Repositories that hands may use through the git door. */
  readonly repositories: readonly Repository[];
}

/** Binds sessions to vaults, at mcp-proxy. */
export interface VaultBindings {
  /** Records the binding; throws VAULT_NOT_USABLE or PROXY_UNAVAILABLE. Idempotent by session. */
  bind(binding: VaultBinding, parent: ParentCall): Promise<void>;
  /** Replaces the MCP servers of a session that is bound; the rest must be as it was. Idempotent. */
  rebind(binding: VaultBinding, parent: ParentCall): Promise<void>;
}
