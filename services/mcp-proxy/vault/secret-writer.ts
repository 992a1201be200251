import type { SecretWriter, WrittenSecret } from "../domain/records.ts";
import { atVault } from "./at-vault.ts";
import { credentialPath } from "./credential-path.ts";
import type { VaultAnswer, VaultClient } from "./vault-client.ts";
import { isVaultFailure, VaultFailure } from "./vault-failure.ts";

/** Makes the writer with mcp-proxy's own login. */
export function createSecretWriter(client: VaultClient, mount: string, token: () => string): SecretWriter {
  return {
    write: (vaultId, credentialId, document) =>
      atVault(async () => {
        const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
        return writtenOf(await client.write(path, { data: document }, token()));
      }),
    patch: (vaultId, credentialId, fields) =>
      atVault(async () => {
        const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
        try {
          return writtenOf(await client.patch(path, { data: fields }, token()));
        } catch (error) {
          if (isVaultFailure(error, "not_found")) return undefined;
          throw error;
        }
      }),
    destroy: (vaultId, credentialId, versions) =>
      atVault(async () => {
        const path = `${mount}/destroy/${credentialPath(vaultId, credentialId)}`;
        await client.write(path, { versions: versions.map(Number) }, token());
      }),
    remove: (vaultId, credentialId) =>
      atVault(async () => {
        try {
          await client.remove(`${mount}/metadata/${credentialPath(vaultId, credentialId)}`, token());
        } catch (error) {
          if (!isVaultFailure(error, "not_found")) throw error;
        }
      }),
  };
}

function writtenOf(answer: VaultAnswer): WrittenSecret {
  return { version: versionOf(answer), vaultRequestId: answer.request_id ?? "" };
}

/** The version that a write made. */
export function versionOf({ data }: VaultAnswer): bigint {
  if (typeof data?.version !== "number") throw new VaultFailure("malformed");
  return BigInt(data.version);
}
