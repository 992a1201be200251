import type { AccessRow, CredentialRow } from "../access.ts";
import type { CredentialConfig } from "../credential-config.ts";
import type { SecretOwner, SecretReader } from "../ports.ts";
import { proxyError, type Reason, reasonOf } from "../proxy-error.ts";
import type { RenewalOutcome } from "./oauth-ports.ts";
import { type RenewalDeps, type RenewalOwner, renewCredential } from "./renew-credential.ts";
import { refusalMetadata } from "./token-answer.ts";

/** Keeps OAuth credentials fresh for the doors. */
export interface Renewals {
  /** Renews a credential that has that version, together with all who ask here meanwhile. */
  renew(owner: RenewalOwner, credential: CredentialRow): Promise<RenewalOutcome>;
  /** Resolves when no renewal is under way any more. */
  settled(): Promise<void>;
}

/** A refusal is not asked for again for this long, and trouble for this long: each call would wait for the same. */
const REFUSED_MS = 30_000;
const TROUBLE_MS = 2000;
const MAX_RESTING = 1000;
const LEEWAY_MS = 60_000;
/** What ends the session that began a renewal does not end the others that wait for it. */
const OF_THE_OWNER: readonly Reason[] = [
  "SESSION_ENDED",
  "TOKEN_STALE_EPOCH",
  "TOKEN_INVALID",
  "ROW_TAMPERED",
  "VAULT_NOT_FOUND",
];

/** Makes the renewals of one process. */
export function createRenewals(deps: RenewalDeps): Renewals {
  const flights = new Map<string, Promise<RenewalOutcome>>();
  const resting = new Map<string, { version: bigint; until: number; outcome: RenewalOutcome }>();

  const start = async (owner: RenewalOwner, credential: CredentialRow): Promise<RenewalOutcome> => {
    const outcome = await renewCredential(deps, owner, credential);
    if (outcome.kind === "refused" || outcome.kind === "unavailable") {
      const rest = outcome.kind === "refused" ? REFUSED_MS : TROUBLE_MS;
      if (resting.size >= MAX_RESTING) resting.clear();
      const { credentialId, version } = credential;
      resting.set(credentialId, { version, until: deps.now() + rest, outcome });
    } else {
      resting.delete(credential.credentialId);
    }
    return outcome;
  };

  return {
    renew: async (owner, credential) => {
      const { credentialId } = credential;
      for (;;) {
        const known = flights.get(credentialId);
        if (known !== undefined) {
          try {
            return await known;
          } catch (error) {
            const reason = reasonOf(error);
            if (!reason || !OF_THE_OWNER.includes(reason)) throw error;
            continue;
          }
        }
        const rest = resting.get(credentialId);
        if (rest && rest.version === credential.version && rest.until > deps.now()) return rest.outcome;
        const flight = start(owner, credential).finally(() => flights.delete(credentialId));
        flights.set(credentialId, flight);
        return flight;
      }
    },
    settled: async () => {
      await Promise.allSettled(flights.values());
    },
  };
}

/**
 * Makes a reader that gives an OAuth credential's access token, renewed first when its record says that it is about to
 * expire: what is read then is what is sent. A renewal that does not succeed is no failure while the token is still good.
 */
export function createRenewingReader(
  secrets: SecretReader,
  renewals: Renewals,
  now: () => number,
): SecretReader {
  return {
    // An OAuth token is looked at each time: it may have to be renewed first.
    known: (owner, credential) =>
      credential.kind === "mcp_oauth" ? undefined : secrets.known(owner, credential),
    read: async (owner, credential) => {
      const left = timeLeft(credential, now());
      if (left === undefined || left >= leeway(credential.config)) return secrets.read(owner, credential);
      const outcome = await renewals.renew(ownerOf(owner), credential);
      if (outcome.kind === "renewed") return secrets.read(owner, { ...credential, version: outcome.version });
      if (outcome.kind !== "none" && left <= 0) throw renewalError(outcome);
      return secrets.read(owner, credential);
    },
  };
}

/**
 * Renews after an MCP server answered 401 to a token that did not look expired: true when there is a newer version, with
 * which the call may be made again, once. Throws what the call shall end with when the authorization server refused.
 */
export async function renewAfterRefusal(
  renewals: Renewals,
  access: AccessRow,
  credential: CredentialRow | undefined,
  used: bigint,
): Promise<boolean> {
  if (credential?.kind !== "mcp_oauth" || used === 0n) return false;
  const outcome = await renewFrom(renewals, ownerOf(access), credential, used);
  if (outcome.kind === "renewed") return outcome.version > used;
  if (outcome.kind === "none") return false;
  throw renewalError(outcome);
}

/** Renews what was read as version `used`. Vault is ahead of the record where its last writer died in between. */
export async function renewFrom(
  renewals: Renewals,
  owner: RenewalOwner,
  credential: CredentialRow,
  used: bigint,
): Promise<RenewalOutcome> {
  const outcome = await renewals.renew(owner, credential);
  if (outcome.kind !== "renewed" || outcome.version > used) return outcome;
  return renewals.renew(owner, { ...credential, version: outcome.version });
}

/** For whom something is done in the course of a session's call. */
export function ownerOf(owner: SecretOwner): RenewalOwner {
  const { sessionId, workspaceId, epoch, spiffeId, tokenId, tokenHash, tokenMac, bindingMac } = owner;
  const guard = tokenHash && tokenMac && bindingMac ? { guard: { tokenHash, tokenMac, bindingMac } } : {};
  const asker = { caller: spiffeId ?? "", workspaceId, sessionId, epoch, tokenId: tokenId ?? "", ...guard };
  return { reads: owner, asker };
}

/** How long an access token that can be renewed is still good, as its record says; undefined when there is nothing to do. */
function timeLeft({ kind, config }: CredentialRow, now: number): number | undefined {
  if (kind !== "mcp_oauth" || !config.refresh || config.expires_at === undefined) return undefined;
  return Date.parse(config.expires_at) - now;
}

/** Soon enough that the token does not expire on its way: 60 s, of a short-lived one a fifth of its life. */
function leeway({ expires_at: expires, obtained_at: obtained }: CredentialConfig): number {
  if (expires === undefined || obtained === undefined) return LEEWAY_MS;
  return Math.min(LEEWAY_MS, Math.max(0, (Date.parse(expires) - Date.parse(obtained)) / 5));
}

function renewalError(outcome: RenewalOutcome & { kind: "refused" | "unavailable" }) {
  if (outcome.kind === "refused") {
    return proxyError("CRED_REFRESH_FAILED", { metadata: refusalMetadata(outcome.reply) });
  }
  if (outcome.failure === "vault") return proxyError("VAULT_UNAVAILABLE");
  const message = "the authorization server cannot be used now; nothing was sent to the MCP server";
  return proxyError(outcome.failure === "timeout" ? "UPSTREAM_TIMEOUT" : "UPSTREAM_UNREACHABLE", { message });
}
