import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { newId } from "../../common/ids/new-id.ts";
import { type AccessRow, type CredentialRow, judgeAccess } from "./access.ts";
import type { AuditMacs } from "./audit-macs.ts";
import { askBound, type Bound, type BoundQuestion } from "./bound.ts";
import type { Destination } from "./canonical-url.ts";
import type { ResolvedAddress } from "./destination-policy.ts";
import { blankRecord, callerColumns, recordText } from "./new-record.ts";
import { type MeetPeer, peerColumns } from "./peer-facts.ts";
import type {
  AccessLookup,
  AccessReader,
  CallClaim,
  CallEnd,
  Guard,
  Ledger,
  LedgerRecord,
  Secret,
  SecretReader,
} from "./ports.ts";
import { isReason, proxyError, type Reason, reasonOf } from "./proxy-error.ts";
import { isMac, type RowMac } from "./row-mac.ts";
import { hashSessionToken } from "./session-token.ts";
import { createTraffic, type Traffic, trafficColumns } from "./traffic.ts";

/** What a passage needs. */
export interface PassageDeps {
  access: AccessReader;
  ledger: Ledger;
  secrets: SecretReader;
  mac: RowMac;
  bound: Bound;
  /** For the HMACs in outcomes. */
  macs: AuditMacs;
}

/** What was asked for at a door, before anything of it is believed. */
export interface Asked {
  token: string | undefined;
  /** SPIFFE id of the peer. */
  caller: string;
  /** SHA-256 of the certificate that the peer showed. */
  callerCert: string;
  operation: string;
  target: string;
  callKey?: string;
  /** Whose tokens open the door; "harness" when it is not said. */
  audience?: "harness" | "hand";
  lookup: Omit<AccessLookup, "tokenHash">;
  /**
   * The door's own rules; throws a proxyError for a denial. Before it names a destination, and before it looks one up, it
   * asks the operator's policy with `ask`, which throws for what no rule allows.
   */
  choose: (access: AccessRow, ask: (question: BoundQuestion) => void) => Chosen | Promise<Chosen>;
  /** Set for a call that has a key in the journal. */
  claimDigest?: Buffer;
  /**
   * What would be sent, when all of it is known before anybody is asked. Where the secret is still kept too, or none is
   * needed, the dispatch is written together with the decision: nothing happens between the two then, and neither is there
   * without the other.
   */
  sendNow?: (known: KnownTarget) => Sent | undefined;
}

/** Where a request goes that nobody has to be asked about. */
export interface KnownTarget {
  access: AccessRow;
  destination: Destination;
  credential: CredentialRow | undefined;
  /** Undefined only without a credential. */
  secret: Secret | undefined;
}

/** What is sent, and to whom. */
export interface Sent {
  address: ResolvedAddress;
  requestBytes: number;
  /** Names of the sealed tokens that go with it; absent = as the decision has it. */
  detail?: string;
  /** Set for a call with a key that may be made again when nobody knows what became of it. */
  isRepeatable?: boolean;
}

/** Where a request goes, and with what. */
export interface Chosen {
  destination?: Destination;
  credential?: CredentialRow;
  /** Names of the sealed tokens that are to be used. */
  detail?: string;
}

/** How a request ended. */
export interface Ending {
  /** "ok", or why not, in lower case. */
  reason: string;
  status?: number;
  responseBytes?: number;
  redactions?: number;
  /** Names of the sealed tokens that were used and made; absent = as the dispatch has it. */
  detail?: string;
  /** The caller gets the whole answer, as soon as this is durable. */
  isReleased?: boolean;
}

/** One request on its way through: decision written, then secret, dispatch and outcome in that order. */
export interface Passage {
  readonly requestId: string;
  readonly access: AccessRow;
  readonly destination: Destination | undefined;
  readonly credential: CredentialRow | undefined;
  /** False when the call's key was in the journal already. */
  readonly isClaimed: boolean;
  readonly claim: CallClaim | undefined;
  /** Set when the dispatch is written already, and the secret with which. */
  readonly dispatched: { secret: Secret | undefined; sent: Sent } | undefined;
  /** Reads the credential; undefined when the destination has none. */
  secret(): Promise<Secret | undefined>;
  /** Writes the dispatch; nothing may be sent before it resolves. False: the call's claim was lost. */
  dispatch(sent: Sent): Promise<boolean>;
  /** Notes over which connection it goes; the outcome says so. */
  readonly met: MeetPeer;
  /** Takes note of the bodies while they pass; the outcome says so. */
  readonly traffic: Traffic;
  /** Writes a denial beside the decision, for what was found out only from the upstream's answer. */
  deny(error: GanglionError): Promise<void>;
  /** Writes the outcome, once; a later one is ignored. `result` goes to the journal with it, null frees the key. */
  finish(ending: Ending, result?: Buffer | null): Promise<void>;
}

/**
 * Judges a request and writes the decision. Denials are written as well, before the caller hears of them. Whoever gets
 * a passage back may go on; there is no other way to a credential.
 */
export async function openPassage(deps: PassageDeps, asked: Asked): Promise<Passage> {
  const requestId = newId("req");
  const record: LedgerRecord = {
    ...blankRecord("decision", requestId),
    ...callerColumns(asked),
    operation: asked.operation,
    target: recordText(asked.target),
    call_key: recordText(asked.callKey ?? ""),
  };
  const deny = async (error: Error, reason: Reason): Promise<never> => {
    await deps.ledger.write({ ...record, effect: "deny", reason, target: targetOf(error, record.target) });
    throw error;
  };
  const tokenHash = hashSessionToken(asked.token);
  if (!tokenHash) return deny(proxyError("TOKEN_INVALID"), "TOKEN_INVALID");
  const found = await deps.access.find({ ...asked.lookup, tokenHash });
  if (!found) return deny(proxyError("TOKEN_INVALID"), "TOKEN_INVALID");
  // What a hand does happens in the epoch that stands now.
  const access = found.audience === "hand" ? { ...found, epoch: found.lowestEpoch ?? found.epoch } : found;
  Object.assign(record, {
    session_id: access.sessionId,
    workspace_id: access.workspaceId,
    epoch: String(access.epoch),
    token_id: access.tokenId,
    token_audience: access.audience,
  });
  const question = { audience: asked.audience ?? "harness", spiffeId: asked.caller };
  const reason = judgeAccess(found, question, deps.mac);
  if (reason) return deny(proxyError(reason), reason);

  let chosen: Chosen;
  let isWithinBound = false;
  const ask = (question: BoundQuestion) => {
    askBound(deps.bound, record, question);
    isWithinBound = true;
  };
  try {
    chosen = await asked.choose(access, ask);
    if (chosen.destination && !isWithinBound) throw new Error("a door did not ask the operator's policy");
    if (chosen.credential && !isMac(chosen.credential.mac, deps.mac.credential(chosen.credential))) {
      throw proxyError("ROW_TAMPERED");
    }
  } catch (error) {
    const known = reasonOf(error);
    if (!known) throw error;
    return deny(error as Error, known);
  }
  record.destination = chosen.destination?.origin ?? "";
  record.credential_id = chosen.credential?.credentialId ?? "";
  record.detail = recordText(chosen.detail ?? "");

  const guard: Guard = { tokenHash, tokenMac: access.tokenMac, bindingMac: access.bindingMac };
  const claim: CallClaim | undefined = asked.claimDigest && {
    sessionId: access.sessionId,
    callKey: asked.callKey ?? "",
    epoch: access.epoch,
    requestDigest: asked.claimDigest,
    requestId,
  };
  const allowed: LedgerRecord = { ...record, effect: "allow" };
  const known = knownOf(deps, asked, access, chosen);
  const { refusal, isClaimed } = await decide(deps.ledger, { record: allowed, guard, claim, known });
  if (refusal !== undefined) {
    // The session ended, or the row changed, between the look and the decision.
    const reason = isReason(refusal) ? refusal : "TOKEN_INVALID";
    return deny(proxyError(reason), reason);
  }
  // With a key that was known already nothing is sent, and no dispatch was written.
  const dispatched = claim && !isClaimed ? undefined : known;
  return createPassage(deps, record, access, chosen, { claim, isClaimed, dispatched });
}

/** Writes the decision, with the claim of the call's key and with the dispatch, where there are such. */
async function decide(
  ledger: Ledger,
  asked: { record: LedgerRecord; guard: Guard; claim: CallClaim | undefined; known: Passage["dispatched"] },
): Promise<{ refusal?: string | undefined; isClaimed: boolean }> {
  const { record, guard, claim, known } = asked;
  const dispatch = known && {
    record: dispatchOf(record, known),
    isRepeatable: known.sent.isRepeatable === true,
  };
  if (claim) {
    if (dispatch) return ledger.writeClaimAndDispatch(record, guard, claim, dispatch);
    return ledger.writeAndClaim(record, guard, claim);
  }
  const written = dispatch
    ? ledger.writeTogether(record, guard, dispatch.record)
    : ledger.write(record, guard);
  return { refusal: await written, isClaimed: false };
}

function knownOf(
  deps: PassageDeps,
  { sendNow }: Asked,
  access: AccessRow,
  { destination, credential }: Chosen,
): Passage["dispatched"] {
  if (!sendNow || !destination) return undefined;
  const secret = credential && deps.secrets.known(access, credential);
  if (credential && !secret) return undefined;
  const sent = sendNow({ access, destination, credential, secret });
  return sent && { secret, sent };
}

/** The dispatch that follows a decision. */
function dispatchOf(
  decision: LedgerRecord,
  { secret, sent }: NonNullable<Passage["dispatched"]>,
): LedgerRecord {
  const facts = { ...(secret ? factsOf(secret) : {}), ...sizeOf(sent) };
  return { ...decision, kind: "dispatch", effect: "", reason: "", ...facts };
}

/** With which secret, and to which address, a request goes: as its dispatch has it where that is written already. */
export async function secretAndAddress(
  { dispatched, secret }: Passage,
  resolve: () => Promise<ResolvedAddress>,
): Promise<[Secret | undefined, ResolvedAddress]> {
  return dispatched ? [dispatched.secret, dispatched.sent.address] : Promise.all([secret(), resolve()]);
}

/** What records say of a secret. */
export function factsOf({ version, vaultRequestId, accessorHmac = "" }: Omit<Secret, "value">) {
  return {
    credential_version: String(version),
    vault_request_id: recordText(vaultRequestId),
    vault_token_accessor_hmac: accessorHmac,
  };
}

function sizeOf({ address, requestBytes, detail }: Sent) {
  return { peer_address: address.address, request_bytes: requestBytes, ...detailOf(detail) };
}

function detailOf(detail: string | undefined) {
  return detail === undefined ? {} : { detail: recordText(detail) };
}

function createPassage(
  deps: PassageDeps,
  decision: LedgerRecord,
  access: AccessRow,
  { destination, credential }: Chosen,
  { claim, isClaimed, dispatched }: Pick<Passage, "claim" | "isClaimed" | "dispatched">,
): Passage {
  const requestId = decision.request_id;
  const known: LedgerRecord = {
    ...decision,
    effect: "",
    reason: "",
    ...(dispatched?.secret ? factsOf(dispatched.secret) : {}),
    ...(dispatched ? sizeOf(dispatched.sent) : {}),
  };
  const traffic = createTraffic(deps.macs);
  let isFinished = false;

  const finish = async (ending: Ending, result?: Buffer | null) => {
    if (isFinished) return;
    isFinished = true;
    const record: LedgerRecord = {
      ...known,
      kind: "outcome",
      reason: ending.reason,
      status: ending.status ?? 0,
      response_bytes: ending.responseBytes ?? 0,
      redactions: ending.redactions ?? 0,
      ...detailOf(ending.detail),
      ...trafficColumns(traffic, ending, known.tls_version !== ""),
    };
    if (claim && result !== undefined) {
      const end: CallEnd = { sessionId: claim.sessionId, callKey: claim.callKey, requestId, result };
      await deps.ledger.writeEnd(record, end);
    } else {
      await deps.ledger.write(record);
    }
  };

  return {
    requestId,
    access,
    destination,
    credential,
    isClaimed,
    claim,
    dispatched,
    secret: async () => {
      if (!credential) return undefined;
      const secret = await deps.secrets.read(access, credential);
      Object.assign(known, factsOf(secret));
      return secret;
    },
    dispatch: async (sent) => {
      Object.assign(known, sizeOf(sent));
      const record: LedgerRecord = { ...known, kind: "dispatch" };
      if (claim) {
        const { sessionId, callKey } = claim;
        const isRepeatable = sent.isRepeatable ?? false;
        return deps.ledger.writeDispatch(record, { sessionId, callKey, isRepeatable });
      }
      await deps.ledger.write(record);
      return true;
    },
    met: (peer) => void Object.assign(known, peerColumns(peer)),
    traffic,
    deny: async (error) => {
      const record = { ...decision, request_id: newId("req"), effect: "deny" as const, reason: error.reason };
      await deps.ledger.write({ ...record, target: targetOf(error, decision.target) });
    },
    finish,
  };
}

/** A denial for a changed tool names the tool and both digests; every other one keeps the request's own target. */
function targetOf(error: Error, target: string): string {
  const { tool, pinned_sha256: pinned, seen_sha256: seen } = GanglionError.is(error) ? error.metadata : {};
  return pinned ? recordText(`${tool} pinned sha256:${pinned} seen sha256:${seen}`) : target;
}

/** The word for an outcome record that an error stands for. */
export function endingOf(error: unknown): string {
  const reason = reasonOf(error);
  if (reason === "UPSTREAM_REDIRECT" || reason === "GIT_REDIRECT") return "redirect_refused";
  if (reason === "MESSAGE_TOO_LARGE") return "too_large";
  if (reason === "UPSTREAM_TIMEOUT") return "timeout";
  if (reason) return reason.toLowerCase();
  const { code } = error as { code?: unknown };
  if (code === "CANCELLED") return "cancelled";
  return code === "DEADLINE_EXCEEDED" ? "timeout" : "error";
}
