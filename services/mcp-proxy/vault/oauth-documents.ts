import type { CredentialRow } from "../domain/access.ts";
import type { AuditMacs } from "../domain/audit-macs.ts";
import type { DocumentStore } from "../domain/oauth/oauth-ports.ts";
import type { SecretOwner } from "../domain/ports.ts";
import type { SecretWriter } from "../domain/records.ts";
import { atVault, withSessionToken } from "./at-vault.ts";
import { credentialPath } from "./credential-path.ts";
import { versionOf } from "./secret-writer.ts";
import type { SessionTokens } from "./session-tokens.ts";
import { readStored } from "./stored-document.ts";
import type { VaultClient } from "./vault-client.ts";
import { isVaultFailure, VaultFailure } from "./vault-failure.ts";

const ONCE_TTL = "60s";

/** Makes the store of OAuth credentials' documents. Writing is mcp-proxy's own right, reading takes a vault's token. */
export function createOauthDocuments(options: {
  client: VaultClient;
  mount: string;
  loginToken: () => string;
  tokens: SessionTokens;
  writer: SecretWriter;
  replica: string;
  macs: Pick<AuditMacs, "accessor">;
}): DocumentStore {
  const { client, mount, loginToken, tokens, writer, replica, macs } = options;
  const pathOf = ({ vaultId, credentialId }: CredentialRow) =>
    `${mount}/data/${credentialPath(vaultId, credentialId)}`;

  const readForSession = (owner: SecretOwner, credential: CredentialRow) =>
    withSessionToken(tokens, owner, credential.vaultId, (held) =>
      readStored(client, pathOf(credential), held),
    );
  const readOnce = async (owner: SecretOwner, credential: CredentialRow) => {
    const meta = {
      session_id: "",
      workspace: owner.workspaceId,
      replica,
      credential: credential.credentialId,
    };
    const request = { entity_alias: credential.vaultId, ttl: ONCE_TTL, meta };
    const { auth } = await client.write("auth/token/create/ganglion-session", request, loginToken());
    const { client_token: token, accessor } = auth ?? {};
    if (typeof token !== "string" || typeof accessor !== "string") throw new VaultFailure("malformed");
    try {
      const accessorHmac = macs.accessor(accessor);
      return await readStored(client, pathOf(credential), { token, accessorHmac });
    } finally {
      // If this fails the token ends by itself within a minute.
      await client.write("auth/token/revoke-accessor", { accessor }, loginToken()).catch(() => {});
    }
  };

  return {
    read: (owner, credential) =>
      atVault(() =>
        owner.sessionId === "" ? readOnce(owner, credential) : readForSession(owner, credential),
      ),
    replace: (credential, document, before) =>
      atVault(async () => {
        const data = { data: document, options: { cas: Number(before) } };
        try {
          return versionOf(await client.write(pathOf(credential), data, loginToken()));
        } catch (error) {
          // Vault says so with 400 and words; whoever is told reads what is there.
          if (isVaultFailure(error, "bad_request")) return "moved";
          throw error;
        }
      }),
    destroy: ({ vaultId, credentialId }, version) => writer.destroy(vaultId, credentialId, [version]),
    remove: ({ vaultId, credentialId }) => writer.remove(vaultId, credentialId),
  };
}
