import type { CredentialConfig } from "../credential-config.ts";
import { openVault, storeCredential } from "../manage-credentials.ts";
import type { Confinement } from "../manage-vaults.ts";
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
  who: Confinement & { caller: string },
): Promise<CredentialRecord> {
  const { pending, workspaceId } = await takePending(deps, answer.state, who);
  const asker = withoutSession(who.caller, workspaceId);
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
  return storeCredential(deps.credentials, await openVault(deps.credentials, vaultId, who), {
    ...{ vaultId, displayName: pending.displayName, metadata: pending.metadata, kind: "mcp_oauth" },
    ...{ url: pending.url, secretName: "", config: configOf(pending, tokens, deps.now()) },
    ...{ requestId: null, requestDigest: null },
    document: documentOf(pending, tokens),
  });
}

async function takePending(
  deps: AuthorizationDeps,
  state: string,
  who: Confinement,
): Promise<{ pending: PendingAuthorization; workspaceId: string }> {
  const gone = () => proxyError("AUTHORIZATION_NOT_FOUND");
  const stateHash = hashState(state);
  const begun = await deps.authorizations.find(stateHash);
  if (!begun || begun.createdAt.getTime() < deps.now() - LIFE_MS) throw gone();
  const { workspaceId } = await openVault(deps.credentials, begun.vaultId, who).catch((error: unknown) => {
    // Whose it is, another workspace does not learn.
    throw reasonOf(error) === "VAULT_NOT_FOUND" ? gone() : error;
  });
  const taken = await deps.authorizations.take(stateHash);
  if (!taken) throw gone();
  const text = deps.box.open(taken.pending, placeOf(stateHash, taken.vaultId));
  if (text === undefined) throw proxyError("ROW_TAMPERED");
  return { pending: JSON.parse(text) as PendingAuthorization, workspaceId };
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
