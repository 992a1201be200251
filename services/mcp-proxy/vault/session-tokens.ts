import type { AuditMacs } from "../domain/audit-macs.ts";
import { isVaultId } from "../domain/ids.ts";
import type { SecretOwner } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { VaultTokenStore } from "../store/vault-token-store.ts";
import type { VaultClient } from "./vault-client.ts";
import { isVaultFailure, VaultFailure } from "./vault-failure.ts";

/** A Vault token, and how records name it. */
export interface HeldToken {
  token: string;
  /** HMAC of its accessor. */
  accessorHmac: string;
}

/** Vault tokens of sessions, in the memory of this replica only. */
export interface SessionTokens {
  /** The token with which this session may read that vault's credentials. */
  get(owner: SecretOwner, vaultId: string): Promise<HeldToken>;
  /** Forgets a token that Vault did not take. */
  forget(owner: SecretOwner, vaultId: string, token: string): void;
  /** Forgets all tokens of a session; null = of all sessions. */
  drop(sessionId: string | null): void;
}

interface Entry {
  sessionId: string;
  token: Promise<HeldToken>;
  /** Set when it is there. */
  value: string;
  endsAt: number;
  renewAt: number;
}

const TTL_S = 900;
const MAX_ENTRIES = 10_000;

/**
 * Makes one orphan token per (session, vault, epoch) through the role that ties it to the vault, and keeps it alive
 * while it is used. Its accessor is stored before the token is used, so that the end of the session finds it.
 */
export function createSessionTokens(options: {
  client: VaultClient;
  loginToken: () => string;
  store: VaultTokenStore;
  replica: string;
  macs: Pick<AuditMacs, "accessor">;
}): SessionTokens {
  const { client, loginToken, store, replica, macs } = options;
  const entries = new Map<string, Entry>();

  const make = async (owner: SecretOwner, vaultId: string, entry: Entry): Promise<HeldToken> => {
    if (!isVaultId(vaultId)) throw proxyError("VAULT_NOT_FOUND");
    const meta = { session_id: owner.sessionId, workspace: owner.workspaceId, replica };
    const request = { entity_alias: vaultId, ttl: `${TTL_S}s`, meta };
    const { auth } = await client.write("auth/token/create/ganglion-session", request, loginToken());
    const { client_token: token, accessor, lease_duration: life } = auth ?? {};
    if (typeof token !== "string" || typeof accessor !== "string" || token === "" || accessor === "") {
      throw new VaultFailure("malformed");
    }
    const { sessionId, epoch } = owner;
    const refusal = await store.add({ accessor, sessionId, vaultId, epoch });
    if (refusal) throw proxyError(refusal);
    schedule(entry, typeof life === "number" ? life : 0);
    entry.value = token;
    return { token, accessorHmac: macs.accessor(accessor) };
  };

  const renew = async (key: string, entry: Entry) => {
    entry.renewAt = Number.POSITIVE_INFINITY;
    try {
      const { auth } = await client.write("auth/token/renew-self", {}, entry.value);
      schedule(entry, typeof auth?.lease_duration === "number" ? auth.lease_duration : 0);
    } catch (error) {
      if (isVaultFailure(error, "denied")) entries.delete(key);
      else entry.renewAt = Date.now() + 5000;
    }
  };

  return {
    get: (owner, vaultId) => {
      const key = `${owner.sessionId}/${vaultId}/${owner.epoch}`;
      const now = Date.now();
      const known = entries.get(key);
      if (known && now < known.endsAt) {
        if (now >= known.renewAt && known.value !== "") void renew(key, known);
        return known.token;
      }
      const entry: Entry = {
        sessionId: owner.sessionId,
        token: Promise.resolve({ token: "", accessorHmac: "" }),
        value: "",
        endsAt: Number.POSITIVE_INFINITY,
        renewAt: Number.POSITIVE_INFINITY,
      };
      if (entries.size >= MAX_ENTRIES) evict(entries, now);
      entries.set(key, entry);
      entry.token = make(owner, vaultId, entry);
      entry.token.catch(() => {
        if (entries.get(key) === entry) entries.delete(key);
      });
      return entry.token;
    },
    forget: (owner, vaultId, token) => {
      const key = `${owner.sessionId}/${vaultId}/${owner.epoch}`;
      if (entries.get(key)?.value === token) entries.delete(key);
    },
    drop: (sessionId) => {
      for (const [key, entry] of entries) {
        if (sessionId === null || entry.sessionId === sessionId) entries.delete(key);
      }
    },
  };
}

function schedule(entry: Entry, lifeSeconds: number): void {
  const now = Date.now();
  // A token in its last seconds could end on the way to Vault.
  entry.endsAt = now + Math.max(0, lifeSeconds - 10) * 1000;
  entry.renewAt = now + lifeSeconds * 660;
}

function evict(entries: Map<string, Entry>, now: number): void {
  for (const [key, entry] of entries) if (entry.endsAt < now) entries.delete(key);
  const [oldest] = entries.keys();
  if (entries.size >= MAX_ENTRIES && oldest !== undefined) entries.delete(oldest);
}
