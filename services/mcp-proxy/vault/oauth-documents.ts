import { isSendable } from "../../common/seal/secret-form.ts";
import type { CredentialRow } from "../domain/access.ts";
import type { DocumentStore, StoredDocument } from "../domain/oauth/oauth-ports.ts";
import type { SecretOwner } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { SecretDocument } from "../domain/records.ts";
import { credentialPath } from "./credential-path.ts";
import type { SessionTokens } from "./session-tokens.ts";
import type { VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

const ONCE_TTL = "60s";

/** Makes the store of OAuth credentials' documents. Writing is mcp-proxy's own right, reading takes a vault's token. */
export function createOauthDocuments(options: {
  client: VaultClient;
  mount: string;
  loginToken: () => string;
  tokens: SessionTokens;
  replica: string;
}): DocumentStore {
  const { client, mount, loginToken, tokens, replica } = options;
  const pathOf = (kind: string, { vaultId, credentialId }: CredentialRow) =>
    `${mount}/${kind}/${credentialPath(vaultId, credentialId)}`;

  const readWith = async (token: string, credential: CredentialRow): Promise<StoredDocument | undefined> => {
    try {
      const answer = await client.read(pathOf("data", credential), token);
      return readAnswer(answer.data ?? {}, answer.request_id ?? "");
    } catch (error) {
      if (error instanceof VaultFailure && error.kind === "not_found") return undefined;
      throw error;
    }
  };
  const readForSession = async (owner: SecretOwner, credential: CredentialRow) => {
    for (let tries = 1; ; tries += 1) {
      const token = await tokens.get(owner, credential.vaultId);
      try {
        return await readWith(token, credential);
      } catch (error) {
        const isDenied = error instanceof VaultFailure && error.kind === "denied";
        if (!isDenied || tries === 2) throw error;
        tokens.forget(owner, credential.vaultId, token);
      }
    }
  };
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
      return await readWith(token, credential);
    } finally {
      // If this fails the token ends by itself within a minute.
      await client.write("auth/token/revoke-accessor", { accessor }, loginToken()).catch(() => {});
    }
  };

  return {
    read: (owner, credential) =>
      attempt(() =>
        owner.sessionId === "" ? readOnce(owner, credential) : readForSession(owner, credential),
      ),
    replace: (credential, document, before) =>
      attempt(async () => {
        const data = { data: document, options: { cas: Number(before) } };
        try {
          const answer = await client.write(pathOf("data", credential), data, loginToken());
          if (typeof answer.data?.version !== "number") throw new VaultFailure("malformed");
          return BigInt(answer.data.version);
        } catch (error) {
          // Vault says so with 400 and words; whoever is told reads what is there.
          if (error instanceof VaultFailure && error.kind === "bad_request") return "moved";
          throw error;
        }
      }),
    destroy: (credential, version) =>
      attempt(async () => {
        await client.write(pathOf("destroy", credential), { versions: [Number(version)] }, loginToken());
      }),
    remove: (credential) =>
      attempt(async () => {
        try {
          await client.remove(pathOf("metadata", credential), loginToken());
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

function readAnswer(answer: Record<string, unknown>, vaultRequestId: string): StoredDocument | undefined {
  const { data, metadata } = answer as {
    data?: Record<string, unknown> | null;
    metadata?: { version?: unknown };
  };
  const { secret } = data ?? {};
  if (secret === undefined || secret === null || secret === "") return undefined;
  if (typeof secret !== "string" || !isSendable(secret)) throw proxyError("CRED_MALFORMED");
  if (typeof metadata?.version !== "number") throw new VaultFailure("malformed");
  const document: SecretDocument = { secret };
  for (const name of ["refresh_token", "client_secret", "expires_at"] as const) {
    const value = data?.[name];
    if (typeof value === "string" && value !== "") document[name] = value;
  }
  return { document, version: BigInt(metadata.version), vaultRequestId };
}
