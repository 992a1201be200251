import type { CredentialRecord } from "../records.ts";
import { createRedactor } from "../redactor.ts";
import {
  type CredentialValidator,
  FIRST_METHOD,
  type SeenAnswer,
  type Validation,
} from "../validate-credential.ts";
import { type AuditedDeps, openRequest, withoutSession } from "./audited-request.ts";
import type { DocumentStore, OauthExchanges, RenewalOutcome, Reply } from "./oauth-ports.ts";
import type { RenewalOwner } from "./renew-credential.ts";
import { type Renewals, renewFrom } from "./renewals.ts";

/** What trying a credential needs. */
export interface TryDeps extends AuditedDeps {
  documents: Pick<DocumentStore, "read">;
  exchanges: Pick<OauthExchanges, "probe">;
  renewals: Renewals;
}

/** One try at the MCP server. */
interface Try {
  version: bigint;
  hasRefreshToken: boolean;
  reply: Reply;
  /** What must not be in anything that is shown. */
  secrets: string[];
}

const MAX_CHARS = 4096;

/**
 * Tries a credential with `initialize` at its MCP server. When the server refuses an OAuth token it is renewed and tried once
 * more. Every request is in the audit log by itself; what is shown of answers is searched for all of the credential's secrets.
 */
export function createCredentialValidator(deps: TryDeps): CredentialValidator {
  return async (credential, { workspaceId, ...who }) => {
    const asker = withoutSession(who, workspaceId);
    const owner: RenewalOwner = { reads: { sessionId: "", workspaceId, epoch: 0n }, asker };
    const first = await tryOnce(deps, credential, owner);
    if (!first) return { verdict: "invalid", hasRefreshToken: false, probe: null, refresh: null };
    const { hasRefreshToken } = first;
    const ofFirst = { ...judgeReply(first), hasRefreshToken };
    const isRefused = first.reply.ok && (first.reply.status === 401 || first.reply.status === 403);
    if (!isRefused || credential.kind !== "mcp_oauth") return { ...ofFirst, refresh: null };

    const outcome = hasRefreshToken
      ? await renewFrom(deps.renewals, owner, credential, first.version)
      : ({ kind: "none" } as const);
    const refresh = attemptOf(outcome, first.secrets);
    if (outcome.kind === "unavailable") return { ...ofFirst, verdict: "unknown", refresh };
    if (outcome.kind !== "renewed") return { ...ofFirst, refresh };
    const second = await tryOnce(deps, { ...credential, version: outcome.version }, owner);
    return second ? { ...judgeReply(second), hasRefreshToken, refresh } : { ...ofFirst, refresh };
  };
}

async function tryOnce(
  deps: TryDeps,
  credential: CredentialRecord,
  { asker, reads }: RenewalOwner,
): Promise<Try | undefined> {
  const { url, credentialId } = credential;
  const request = await openRequest(deps, {
    operation: "oauth.validate",
    asker,
    url,
    method: "POST",
    credentialId,
  });
  let stored: Awaited<ReturnType<DocumentStore["read"]>>;
  try {
    stored = await deps.documents.read(reads, credential);
  } catch (error) {
    await request.abandon("vault_unavailable");
    throw error;
  }
  if (!stored) {
    await request.abandon("cred_missing");
    return undefined;
  }
  request.uses(stored);
  const { secret, refresh_token: refreshToken, client_secret: clientSecret } = stored.document;
  const reply = await request.send((target) => deps.exchanges.probe(target, secret));
  const secrets = [secret, refreshToken, clientSecret].filter((one) => one !== undefined);
  return { version: stored.version, hasRefreshToken: refreshToken !== undefined, reply, secrets };
}

function judgeReply({ reply, secrets }: Try): Pick<Validation, "verdict" | "probe"> {
  if (!reply.ok) return { verdict: "unknown", probe: { method: FIRST_METHOD, answer: null } };
  if (reply.status < 300) return { verdict: "valid", probe: null };
  const isTheirs = reply.status < 500 && reply.status !== 408 && reply.status !== 429;
  const probe = { method: FIRST_METHOD, answer: show(reply, secrets) };
  return { verdict: isTheirs ? "invalid" : "unknown", probe };
}

function attemptOf(outcome: RenewalOutcome, secrets: string[]): Validation["refresh"] {
  switch (outcome.kind) {
    case "renewed":
      return { status: "succeeded", answer: null };
    case "none":
      return { status: "no_refresh_token", answer: null };
    case "refused":
      return { status: "failed", answer: show(outcome.reply, secrets) };
    case "unavailable":
      return { status: "connect_error", answer: null };
  }
}

/** An answer without secrets, cut. A token endpoint's 200 that was no use may be made of new ones: nothing of it is shown. */
function show({ status, contentType, body }: Reply & { ok: true }, secrets: string[]): SeenAnswer {
  const type = contentType.replace(/[^\x20-\x7e]/g, "").slice(0, 256);
  if (status < 300) return { status, contentType: type, body: "", isTruncated: body !== "" };
  let clean = Buffer.from(body);
  for (const secret of secrets) {
    const redactor = createRedactor(secret, "credential");
    clean = Buffer.concat([redactor.push(clean), redactor.flush()]);
  }
  const text = clean.toString("utf8").toWellFormed();
  return { status, contentType: type, body: text.slice(0, MAX_CHARS), isTruncated: text.length > MAX_CHARS };
}
