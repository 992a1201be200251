import { newId } from "../../../common/ids/new-id.ts";
import { auditedChange, type ChangeAsker, type ChangeNotes } from "../audited-change.ts";
import type { CredentialConfig } from "../credential-config.ts";
import { openVault, storeCredential } from "../manage-credentials.ts";
import { proxyError, reasonOf } from "../proxy-error.ts";
import type { CredentialRecord, SecretDocument } from "../records.ts";
import { denyRequest, openRequest, withoutSession } from "./audited-request.ts";
import { unreachable } from "./discover-server.ts";
import {
  type AuthorizationDeps,
  hashState,
  type PendingAuthorization,
  placeOf,
} from "./start-authorization.ts";
import { type GrantedTokens, readTokenAnswer, refusalMetadata } from "./token-answer.ts";

/** What came with the redirect. */
export interface AuthorizationAnswer {
  state: string;
  code: string;
  /** Empty when there was none. */
  iss: string;
}

const LIFE_MS = 600_000;

/**
 * Redeems a code and stores the tokens: they are born here and never leave. The authorization is over with the first answer,
 * whatever becomes of it: a code is good once. If this process dies in between, the person begins again.
 */
export async function finishAuthorization(
  deps: AuthorizationDeps,
  answer: AuthorizationAnswer,
  who: ChangeAsker,
): Promise<CredentialRecord> {
  const stateHash = hashState(answer.state);
  const begun = await deps.authorizations.find(stateHash);
  return auditedChange(
    deps.ledger,
    { operation: "vault.finish_authorization", who, vaultId: begun?.vaultId ?? "" },
    async () => {
      if (!begun || begun.createdAt.getTime() < deps.now() - LIFE_MS) throw gone();
      const { vaultId } = begun;
      const { workspaceId } = await openVault(deps.credentials, vaultId, who).catch((error: unknown) => {
        // Whose it is, another workspace does not learn.
        throw reasonOf(error) === "VAULT_NOT_FOUND" ? gone() : error;
      });
      return { workspaceId, vaultId, credentialId: newId("vcrd") };
    },
    async ({ workspaceId, credentialId }, notes) => {
      const pending = await takePending(deps, stateHash);
      return redeem(deps, pending, answer, { who, workspaceId, credentialId, notes });
    },
  );
}

async function redeem(
  deps: AuthorizationDeps,
  pending: PendingAuthorization,
  answer: AuthorizationAnswer,
  of: { who: ChangeAsker; workspaceId: string; credentialId: string; notes: ChangeNotes },
): Promise<CredentialRecord> {
  const { who, workspaceId, credentialId, notes } = of;
  const asker = withoutSession(who, workspaceId);
  const { vaultId, tokenEndpoint: url } = pending;
  const request = { operation: "oauth.redeem", asker, url, method: "POST" } as const;
  // Whose answer this is decides to whom the code may go (RFC 9207, case A048).
  const isMissing = answer.iss === "" && pending.sendsIss;
  if (isMissing || (answer.iss !== "" && answer.iss !== pending.issuer)) {
    return denyRequest(deps, request, "ISSUER_MISMATCH");
  }
  const opened = await openRequest(deps, request);
  const { issuer, sendsIss, redirectUri, verifier, resource, client } = pending;
  const { state, code, iss } = answer;
  const reply = await opened.send((target) =>
    deps.exchanges.redeem(target, client, {
      ...{ issuer, wantsIss: sendsIss, state, redirectUri, verifier, resource },
      answer: { code, state, ...(iss ? { iss } : {}) },
    }),
  );
  if (!reply.ok) throw unreachable(reply);
  const tokens = reply.status === 200 ? readTokenAnswer(reply.body, deps.now()) : undefined;
  if (!tokens) {
    throw proxyError("AUTHORIZATION_REFUSED", { metadata: refusalMetadata(reply) });
  }
  await openVault(deps.credentials, vaultId, who);
  const ready = {
    ...{
      credentialId,
      vaultId,
      displayName: pending.displayName,
      metadata: pending.metadata,
      kind: "mcp_oauth" as const,
    },
    ...{ url: pending.url, secretName: "", config: configOf(pending, tokens, deps.now()) },
    ...{ requestId: null, requestDigest: null },
    document: documentOf(pending, tokens),
  };
  return storeCredential(deps.credentials, ready, notes);
}

function gone() {
  return proxyError("AUTHORIZATION_NOT_FOUND");
}

async function takePending(deps: AuthorizationDeps, stateHash: Buffer): Promise<PendingAuthorization> {
  const taken = await deps.authorizations.take(stateHash);
  if (!taken) throw gone();
  const text = deps.box.open(taken.pending, placeOf(stateHash, taken.vaultId));
  if (text === undefined) throw proxyError("ROW_TAMPERED");
  return JSON.parse(text) as PendingAuthorization;
}

function documentOf({ client }: PendingAuthorization, tokens: GrantedTokens): SecretDocument {
  const { accessToken, refreshToken, expiresAt } = tokens;
  return {
    secret: accessToken,
    ...(refreshToken ? { refresh_token: refreshToken } : {}),
    ...(refreshToken && client.clientSecret ? { client_secret: client.clientSecret } : {}),
    ...(expiresAt ? { expires_at: expiresAt } : {}),
  };
}

function configOf(
  { client, tokenEndpoint, resource }: PendingAuthorization,
  tokens: GrantedTokens,
  now: number,
): CredentialConfig {
  const { refreshToken, expiresAt, scope } = tokens;
  const refresh = {
    client_id: client.clientId,
    token_endpoint: tokenEndpoint,
    token_endpoint_auth: client.method,
    // Only what was granted may be asked for again (RFC 6749 §6).
    ...(scope ? { scope } : {}),
    resource,
  };
  return {
    ...(expiresAt ? { expires_at: expiresAt, obtained_at: new Date(now).toISOString() } : {}),
    ...(refreshToken ? { refresh } : {}),
  };
}
