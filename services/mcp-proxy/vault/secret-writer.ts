import { proxyError } from "../domain/proxy-error.ts";
import type { SecretWriter } from "../domain/records.ts";
import { credentialPath } from "./credential-path.ts";
import type { VaultAnswer, VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

/** Makes the writer with mcp-proxy's own login. */
export function createSecretWriter(client: VaultClient, mount: string, token: () => string): SecretWriter {
  return {
    write: (vaultId, credentialId, document) =>
      attempt(async () => {
        const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
        return versionOf(await client.write(path, { data: document }, token()));
      }),
    patch: (vaultId, credentialId, fields) =>
      attempt(async () => {
        const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
        try {
          return versionOf(await client.patch(path, { data: fields }, token()));
        } catch (error) {
          if (error instanceof VaultFailure && error.kind === "not_found") return undefined;
          throw error;
        }
      }),
    destroy: (vaultId, credentialId, versions) =>
      attempt(async () => {
        const path = `${mount}/destroy/${credentialPath(vaultId, credentialId)}`;
        await client.write(path, { versions: versions.map(Number) }, token());
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

function versionOf({ data }: VaultAnswer): bigint {
  if (typeof data?.version !== "number") throw new VaultFailure("malformed");
  return BigInt(data.version);
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof VaultFailure) throw proxyError("VAULT_UNAVAILABLE", { cause: error });
    throw error;
  }
}
