import { isSendable } from "../../common/seal/secret-form.ts";
import type { CredentialRow } from "../domain/access.ts";
import type { Secret, SecretOwner, SecretReader } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { credentialPath } from "./credential-path.ts";
import type { SessionTokens } from "./session-tokens.ts";
import type { VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

const KEEP_MS = 5000;

/** A secret reader that can be told to forget. */
export interface CachingSecretReader extends SecretReader {
  /** Forgets what was read for a session; null = for all. */
  drop(sessionId: string | null): void;
}

interface Kept {
  sessionId: string;
  secret: Promise<Secret>;
  /** Set when it is there. */
  value?: Secret;
  timer: NodeJS.Timeout;
}

/**
 * Reads a credential with the session's own Vault token and keeps it for at most 5 s, by session and version: a new
 * version is read at the next call. A call that waits for the same read shares it.
 */
export function createSecretReader(
  client: VaultClient,
  mount: string,
  tokens: SessionTokens,
): CachingSecretReader {
  const kept = new Map<string, Kept>();

  const readOnce = async (owner: SecretOwner, credential: CredentialRow): Promise<Secret> => {
    const { vaultId, credentialId } = credential;
    const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
    for (let tries = 1; ; tries += 1) {
      const token = await tokens.get(owner, vaultId);
      try {
        return readAnswer(await client.read(path, token));
      } catch (error) {
        if (!(error instanceof VaultFailure)) throw error;
        if (error.kind === "not_found") throw proxyError("CRED_MISSING");
        // The token may have ended at Vault before its time; the fence has just been checked, so one new one is right.
        if (error.kind !== "denied" || tries === 2) throw error;
        tokens.forget(owner, vaultId, token);
      }
    }
  };
  const read = async (owner: SecretOwner, credential: CredentialRow) => {
    try {
      return await readOnce(owner, credential);
    } catch (error) {
      if (error instanceof VaultFailure) throw proxyError("VAULT_UNAVAILABLE", { cause: error });
      throw error;
    }
  };

  const forget = (key: string) => {
    clearTimeout(kept.get(key)?.timer);
    kept.delete(key);
  };
  const keyOf = ({ sessionId, epoch }: SecretOwner, { credentialId, version }: CredentialRow) =>
    `${sessionId}/${epoch}/${credentialId}/${version}`;
  return {
    known: (owner, credential) => kept.get(keyOf(owner, credential))?.value,
    read: (owner, credential) => {
      const key = keyOf(owner, credential);
      const known = kept.get(key);
      if (known) return known.secret;
      const secret = read(owner, credential);
      const timer = setTimeout(() => kept.delete(key), KEEP_MS);
      timer.unref();
      const entry: Kept = { sessionId: owner.sessionId, secret, timer };
      kept.set(key, entry);
      secret.then(
        (value) => {
          entry.value = value;
        },
        () => forget(key),
      );
      return secret;
    },
    drop: (sessionId) => {
      for (const [key, entry] of kept) {
        if (sessionId === null || entry.sessionId === sessionId) forget(key);
      }
    },
  };
}

function readAnswer(answer: { request_id?: string; data?: Record<string, unknown> | null }): Secret {
  const { data, metadata } = (answer.data ?? {}) as {
    data?: Record<string, unknown> | null;
    metadata?: { version?: unknown };
  };
  const value = data?.secret;
  if (value === undefined || value === null || value === "") throw proxyError("CRED_MISSING");
  if (typeof value !== "string" || !isSendable(value)) throw proxyError("CRED_MALFORMED");
  const version = typeof metadata?.version === "number" ? BigInt(metadata.version) : 0n;
  return { value, version, vaultRequestId: answer.request_id ?? "" };
}
