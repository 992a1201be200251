import { newId } from "../../../common/ids/new-id.ts";
import type { CredentialRow } from "../access.ts";
import type { RefreshConfig } from "../credential-config.ts";
import type { SecretOwner } from "../ports.ts";
import { proxyError, reasonOf } from "../proxy-error.ts";
import type { SecretDocument } from "../records.ts";
import type { RowBox } from "../row-box.ts";
import { isMac, type RowMac } from "../row-mac.ts";
import { type AllowedRequest, type Asker, type AuditedDeps, openRequest } from "./audited-request.ts";
import type {
  DocumentStore,
  OauthClient,
  OauthExchanges,
  RenewalOutcome,
  RenewalStore,
  Reply,
  StoredDocument,
} from "./oauth-ports.ts";
import { readTokenAnswer } from "./token-answer.ts";

/** What renewals need. */
export interface RenewalDeps extends AuditedDeps {
  documents: DocumentStore;
  renewals: RenewalStore;
  exchanges: Pick<OauthExchanges, "refresh">;
  box: RowBox;
  mac: RowMac;
  now: () => number;
  wait: (ms: number) => Promise<void>;
}

/** Who asks for a renewal: whose Vault token reads, and whom the records name. */
export interface RenewalOwner {
  reads: SecretOwner;
  asker: Asker;
}

/** Another replica's renewal is waited for this long. */
const BUSY_MS = 20_000;
const POLL_MS = 100;
/** Vault is asked this long to take tokens that nobody else has. */
const STORE_MS = 30_000;

/**
 * Renews the tokens of a credential that still has the version of `credential`, once over all replicas. The order, and
 * what a crash leaves at each step, is in the README: claim (durable) → decision → read → dispatch → request → answer kept,
 * sealed, with the claim → Vault, by compare-and-set → new version counts and the claim goes, in one transaction → outcome.
 */
export async function renewCredential(
  deps: RenewalDeps,
  owner: RenewalOwner,
  credential: CredentialRow,
): Promise<RenewalOutcome> {
  const until = deps.now() + BUSY_MS;
  for (;;) {
    const requestId = newId("req");
    const claim = await deps.renewals.claim(credential.credentialId, credential.version, requestId);
    if (claim.state === "moved") {
      return claim.version === null ? { kind: "none" } : { kind: "renewed", version: claim.version };
    }
    if (claim.state === "claimed") {
      const current = { ...credential, config: claim.config, mac: claim.mac };
      const outcome = await renewClaimed(deps, owner, current, requestId, claim.answer);
      if (outcome.kind !== "refused") return outcome;
      // A person, or a replica that was believed dead, may have stored other tokens meanwhile: those are not refused.
      const version = await deps.renewals.version(credential.credentialId);
      return version !== null && version > credential.version ? { kind: "renewed", version } : outcome;
    }
    if (deps.now() >= until) return { kind: "unavailable", failure: "busy" };
    await deps.wait(POLL_MS);
  }
}

async function renewClaimed(
  deps: RenewalDeps,
  owner: RenewalOwner,
  credential: CredentialRow,
  requestId: string,
  kept: Buffer | null,
): Promise<RenewalOutcome> {
  try {
    if (!isMac(credential.mac, deps.mac.credential(credential))) throw proxyError("ROW_TAMPERED");
    const opened = kept === null ? undefined : deps.box.open(kept, placeOf(credential));
    if (opened !== undefined) {
      // Whoever asked before died, or had no Vault, with the answer in the claim: nothing needs to be asked again.
      const { document, base } = JSON.parse(opened) as { document: SecretDocument; base: string };
      const outcome = await store(deps, credential, requestId, document, BigInt(base));
      if (outcome !== "moved") return outcome;
      // Vault has it, or other tokens, already: what is there is read below, under a decision of its own.
      await deps.renewals.keep(credential.credentialId, requestId, null);
    }
    return await renewOnce(deps, owner, credential, requestId);
  } finally {
    // Whoever claims next need not wait for this claim to grow old. One with an answer in it stays.
    await deps.renewals.release(credential.credentialId, requestId).catch(() => {});
  }
}

async function renewOnce(
  deps: RenewalDeps,
  owner: RenewalOwner,
  credential: CredentialRow,
  requestId: string,
): Promise<RenewalOutcome> {
  const { refresh } = credential.config;
  if (!refresh) return { kind: "none" };
  const request = await openRequest(deps, {
    operation: "oauth.refresh",
    asker: owner.asker,
    url: refresh.token_endpoint,
    method: "POST",
    credentialId: credential.credentialId,
    requestId,
  });
  const before = await readOrAbandon(deps, request, owner, credential);
  // Each read at Vault is named by a record, whatever comes of it: the logs are reconciled.
  if (before) request.uses(before);
  if (!before?.document.refresh_token) {
    await request.abandon("no_refresh_token");
    return { kind: "none" };
  }
  if (before.version > credential.version) {
    // Its last writer died between Vault and the record.
    await request.abandon("moved");
    return settle(deps, credential, before.document, before.version);
  }
  const client = clientOf(refresh, before.document.client_secret);
  const grant = {
    refreshToken: before.document.refresh_token,
    ...(refresh.scope ? { scope: refresh.scope } : {}),
    ...(refresh.resource ? { resource: refresh.resource } : {}),
  };
  let outcome: RenewalOutcome | undefined;
  await request.send(async (target) => {
    const reply = await deps.exchanges.refresh(target, client, grant);
    // Before the outcome is written: tokens that only this process has come first.
    const taken = await take(deps, credential, requestId, before, reply);
    outcome = taken === "moved" ? await adopt(deps, owner, credential, request) : taken;
    return reply;
  });
  return outcome as RenewalOutcome;
}

/** Makes count what is at Vault: somebody else's tokens, or our own when the answer to their storing was lost. */
async function adopt(
  deps: RenewalDeps,
  owner: RenewalOwner,
  credential: CredentialRow,
  request: AllowedRequest,
): Promise<RenewalOutcome> {
  const there = await deps.documents.read(owner.reads, credential);
  if (!there) return { kind: "none" };
  request.uses(there);
  return settle(deps, credential, there.document, there.version);
}

async function take(
  deps: RenewalDeps,
  credential: CredentialRow,
  requestId: string,
  before: StoredDocument,
  reply: Reply,
): Promise<RenewalOutcome | "moved"> {
  if (!reply.ok) return { kind: "unavailable", failure: reply.failure };
  // 429 and 5xx say nothing about the tokens.
  if (reply.status === 429 || reply.status >= 500) return { kind: "unavailable", failure: "broken" };
  const tokens = reply.status === 200 ? readTokenAnswer(reply.body, deps.now()) : undefined;
  if (!tokens) return { kind: "refused", reply };
  const { refresh_token: oldRefresh, client_secret: clientSecret } = before.document;
  const document: SecretDocument = {
    secret: tokens.accessToken,
    refresh_token: tokens.refreshToken ?? (oldRefresh as string),
    ...(clientSecret ? { client_secret: clientSecret } : {}),
    ...(tokens.expiresAt ? { expires_at: tokens.expiresAt } : {}),
  };
  // Either of the two makes them durable; the first does not wait for a Vault that may be away.
  await keep(deps, credential, requestId, document, before.version);
  return store(deps, credential, requestId, document, before.version);
}

/** Gives tokens to Vault, in place of the version that they were got with, and makes the new version count. */
async function store(
  deps: RenewalDeps,
  credential: CredentialRow,
  requestId: string,
  document: SecretDocument,
  base: bigint,
): Promise<RenewalOutcome | "moved"> {
  const until = deps.now() + STORE_MS;
  for (let pause = 100; ; pause = Math.min(pause * 2, 2000)) {
    try {
      const version = await deps.documents.replace(credential, document, base);
      if (version === "moved") return "moved";
      const outcome = await settle(deps, credential, document, version, deps.now());
      if (outcome.kind === "renewed") await deps.documents.destroy(credential, base).catch(() => {});
      return outcome;
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== "VAULT_UNAVAILABLE" && reason !== "DATABASE_UNAVAILABLE") throw error;
      if (deps.now() >= until) return { kind: "unavailable", failure: "vault" };
      await keep(deps, credential, requestId, document, base);
      await deps.wait(pause);
    }
  }
}

async function keep(
  deps: RenewalDeps,
  credential: CredentialRow,
  requestId: string,
  document: SecretDocument,
  base: bigint,
): Promise<void> {
  const answer = deps.box.seal(JSON.stringify({ document, base: String(base) }), placeOf(credential));
  await deps.renewals.keep(credential.credentialId, requestId, answer).catch(() => {});
}

async function settle(
  deps: RenewalDeps,
  credential: CredentialRow,
  document: SecretDocument,
  version: bigint,
  obtainedAt?: number,
): Promise<RenewalOutcome> {
  const { expires_at: _expires, obtained_at: _obtained, ...rest } = credential.config;
  const config = {
    ...rest,
    ...(document.expires_at ? { expires_at: document.expires_at } : {}),
    ...(obtainedAt === undefined ? {} : { obtained_at: new Date(obtainedAt).toISOString() }),
  };
  const changed = { config, mac: deps.mac.credential({ ...credential, config }) };
  if (await deps.renewals.end(credential, version, changed)) return { kind: "renewed", version };
  // Archived or deleted meanwhile: what was just written must not stay behind.
  await deps.documents.remove(credential);
  return { kind: "none" };
}

async function readOrAbandon(
  deps: RenewalDeps,
  request: AllowedRequest,
  owner: RenewalOwner,
  credential: CredentialRow,
): Promise<StoredDocument | undefined> {
  try {
    return await deps.documents.read(owner.reads, credential);
  } catch (error) {
    await request.abandon(reasonOf(error)?.toLowerCase() ?? "error");
    throw error;
  }
}

function clientOf(refresh: RefreshConfig, clientSecret: string | undefined): OauthClient {
  const { client_id: clientId, token_endpoint_auth: method } = refresh;
  return method === "none" || !clientSecret
    ? { clientId, method: "none" }
    : { clientId, method, clientSecret };
}

function placeOf({ vaultId, credentialId }: CredentialRow): string[] {
  return ["oauth_renewal", vaultId, credentialId];
}
