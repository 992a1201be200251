import { newId } from "../../../common/ids/new-id.ts";
import { askBound, type Bound } from "../bound.ts";
import { type Destination, parseDestination } from "../canonical-url.ts";
import type { ResolvedAddress } from "../destination-policy.ts";
import {
  type AuditedCaller,
  blankRecord,
  callerColumns,
  recordText,
  type UpstreamEffect,
} from "../new-record.ts";
import { endingOf, factsOf } from "../passage.ts";
import { peerColumns } from "../peer-facts.ts";
import type { Guard, Ledger, LedgerRecord, Secret } from "../ports.ts";
import { isReason, proxyError, type Reason, reasonOf } from "../proxy-error.ts";
import type { OauthTarget, Reply } from "./oauth-ports.ts";

/** For whom mcp-proxy makes a request of its own. */
export interface Asker extends AuditedCaller {
  workspaceId: string;
  /** Empty when it is for no session. */
  sessionId: string;
  epoch: bigint;
  tokenId: string;
  /** What the decision depends on, for a session's call. */
  guard?: Guard;
}

/** Somebody who asks for no session: a person, or a program with an API key. */
export function withoutSession({ caller, callerCert = "" }: AuditedCaller, workspaceId: string): Asker {
  return { caller, callerCert, workspaceId, sessionId: "", epoch: 0n, tokenId: "" };
}

/** What audited requests need. */
export interface AuditedDeps {
  ledger: Ledger;
  bound: Bound;
  resolve: (destination: Destination) => Promise<ResolvedAddress>;
}

/** One request that mcp-proxy makes by itself, and what it is for. */
export interface OwnRequest {
  operation: "oauth.discovery" | "oauth.register" | "oauth.redeem" | "oauth.refresh" | "oauth.validate";
  asker: Asker;
  url: string;
  method: "GET" | "POST";
  credentialId?: string;
  requestId?: string;
}

/** A place that was judged, before a request goes there. */
type JudgedTarget = Omit<OauthTarget, "met">;

/** A request that was allowed. */
export interface AllowedRequest {
  readonly requestId: string;
  readonly target: JudgedTarget;
  /** Notes which secret will be in it. */
  uses(secret: Omit<Secret, "value">): void;
  /** Sends, between its dispatch and its outcome; both are durable in their place. */
  send(work: (target: OauthTarget) => Promise<Reply>): Promise<Reply>;
  /** Ends it without having sent anything. */
  abandon(reason: string): Promise<void>;
}

/**
 * Judges a request of mcp-proxy's own, by the same rules as everybody's: its form, its scheme, every address of its name
 * (case A035; each URL that came out of somebody's metadata comes by here, B109). Only then the decision is written, so a
 * denial is one row; whoever gets the request back may send it once, to the address that was judged.
 */
export async function openRequest(deps: AuditedDeps, request: OwnRequest): Promise<AllowedRequest> {
  const record = recordOf(request);
  const target = await judge(deps, request, record);
  const refusal = await deps.ledger.write({ ...record, effect: "allow" }, request.asker.guard);
  if (refusal === undefined) return allowed(deps.ledger, record, target);
  return deny(deps, record, isReason(refusal) ? refusal : "TOKEN_INVALID");
}

/** Judges a URL that nothing is sent to by mcp-proxy, or not yet; a denial is written as that of a request. */
export async function judgeUrl(deps: AuditedDeps, request: OwnRequest): Promise<void> {
  await judge(deps, request, recordOf(request));
}

/** Writes one denial for what is found out before there is anything to send (case A048), and throws it. */
export async function denyRequest(
  deps: Pick<AuditedDeps, "ledger">,
  request: OwnRequest,
  reason: Reason,
): Promise<never> {
  return deny(deps, recordOf(request), reason);
}

async function judge(deps: AuditedDeps, { url }: OwnRequest, record: LedgerRecord): Promise<JudgedTarget> {
  const destination = parseDestination(url);
  if (!destination) return deny(deps, record, "URL_NOT_CANONICAL");
  try {
    askBound(deps.bound, record, { door: "oauth", destination });
    return { url: new URL(url).href, destination, address: await deps.resolve(destination) };
  } catch (error) {
    const reason = reasonOf(error);
    if (!reason) throw error;
    return deny(deps, record, reason);
  }
}

async function deny(
  { ledger }: Pick<AuditedDeps, "ledger">,
  record: LedgerRecord,
  reason: Reason,
): Promise<never> {
  await ledger.write({ ...record, effect: "deny", reason });
  throw proxyError(reason);
}

function recordOf({ operation, asker, url, method, credentialId, requestId }: OwnRequest): LedgerRecord {
  const destination = parseDestination(url);
  return {
    ...blankRecord("decision", requestId ?? newId("req")),
    session_id: asker.sessionId,
    workspace_id: asker.workspaceId,
    epoch: String(asker.epoch),
    ...callerColumns(asker),
    token_id: asker.tokenId,
    operation,
    destination: destination?.origin ?? "",
    target: recordText(destination ? `${method} ${new URL(url).pathname}` : method),
    credential_id: credentialId ?? "",
  };
}

function allowed(ledger: Ledger, decision: LedgerRecord, target: JudgedTarget): AllowedRequest {
  const known: LedgerRecord = { ...decision, effect: "", reason: "" };
  // No HMAC of a body: these bodies are credentials, going out or coming in. And nobody waits for the answer as it is.
  const outcome = (more: Partial<LedgerRecord>) => {
    const effect: UpstreamEffect = known.tls_version === "" ? "none" : "sent";
    return ledger.write({ ...known, kind: "outcome", upstream_effect: effect, ...more });
  };
  return {
    requestId: decision.request_id,
    target,
    uses: (secret) => void Object.assign(known, factsOf(secret)),
    send: async (work) => {
      known.peer_address = target.address.address;
      await ledger.write({ ...known, kind: "dispatch" });
      let reply: Reply;
      try {
        reply = await work({ ...target, met: (peer) => void Object.assign(known, peerColumns(peer)) });
      } catch (error) {
        await outcome({ reason: endingOf(error) });
        throw error;
      }
      const { status } = reply;
      if (reply.ok)
        await outcome({
          reason: status < 300 ? "ok" : "refused",
          status,
          response_bytes: reply.bytes,
          upstream_effect: "complete",
        });
      else
        await outcome({ reason: reply.failure === "redirect" ? "redirect_refused" : reply.failure, status });
      return reply;
    },
    abandon: async (reason) => {
      await outcome({ reason });
    },
  };
}
