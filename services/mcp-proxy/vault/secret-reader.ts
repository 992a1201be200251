import type { CredentialRow } from "../domain/access.ts";
import type { Secret, SecretOwner, SecretReader } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { atVault, withSessionToken } from "./at-vault.ts";
import { credentialPath } from "./credential-path.ts";
import type { SessionTokens } from "./session-tokens.ts";
import { readStored } from "./stored-document.ts";
import type { VaultClient } from "./vault-client.ts";

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

  const read = (owner: SecretOwner, { vaultId, credentialId }: CredentialRow): Promise<Secret> =>
    atVault(async () => {
      const path = `${mount}/data/${credentialPath(vaultId, credentialId)}`;
      const stored = await withSessionToken(tokens, owner, vaultId, (held) => readStored(client, path, held));
      if (!stored) throw proxyError("CRED_MISSING");
      const { document, ...facts } = stored;
      return { value: document.secret, ...facts };
    });

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
