import { proxyError } from "../domain/proxy-error.ts";
import { credentialPath } from "./credential-path.ts";
import type { VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

/** Writes and removes credentials; it cannot read one. */
export interface SecretWriter {
  /** Stores a secret and answers its version. */
  write(vaultId: string, credentialId: string, secret: string): Promise<bigint>;
  /** Destroys a version that was replaced. */
  destroy(vaultId: string, credentialId: string, version: bigint): Promise<void>;
  /** Removes the secret, all versions of it. */
  remove(vaultId: string, credentialId: string): Promise<void>;
}

/** Makes the writer with mcp-proxy's own login. */
export function createSecretWriter(client: VaultClient, mount: string, token: () => string): SecretWriter {
  return {
    write: (vaultId, credentialId, secret) =>
      attempt(async () => {
        const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
        const { data } = await client.write(path, { data: { secret } }, token());
        if (typeof data?.version !== "number") throw new VaultFailure("malformed");
        return BigInt(data.version);
      }),
    destroy: (vaultId, credentialId, version) =>
      attempt(async () => {
        const path = `${mount}/destroy/${credentialPath(vaultId, credentialId)}`;
        await client.write(path, { versions: [Number(version)] }, token());
      }),
    remove: (vaultId, credentialId) =>
      attempt(async () => {
        try {
          await client.remove(`${mount}/metadata/${credentialPath(vaultId, credentialId)}`, token());
        } catch (error) {
          if (!(error instanceof VaultFailure) || error.kind !== "not_found") throw error;
        }
      }),
  };
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof VaultFailure) throw proxyError("VAULT_UNAVAILABLE", { cause: error });
    throw error;
  }
}
