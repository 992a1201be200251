import type { VaultClient } from "../../services/mcp-proxy/vault/vault-client.ts";
import { VaultFailure } from "../../services/mcp-proxy/vault/vault-failure.ts";

/** A Vault that lets documents be made and read, and not replaced. */
export class CreateOnlyVault implements Pick<VaultClient, "read" | "write"> {
  readonly documents = new Map<string, unknown>();

  async read(path: string) {
    if (!this.documents.has(path)) throw new VaultFailure("not_found", 404);
    return { data: { data: this.documents.get(path), metadata: { version: 1 } } };
  }

  async write(path: string, { data }: Record<string, unknown>) {
    if (this.documents.has(path)) throw new VaultFailure("denied", 403);
    this.documents.set(path, data);
    return { data: { version: 1 } };
  }
}
