import { newId } from "../../common/ids/new-id.ts";
import { type FindBindingDeps, findBinding } from "./find-binding.ts";
import { proxyError } from "./proxy-error.ts";
import type { StoredBinding } from "./records.ts";
import type { TokenFields } from "./row-mac.ts";
import { hashSessionToken, newSessionToken } from "./session-token.ts";

/** A lease as the session service has it. */
export interface ConfirmedLease {
  workspaceId: string;
  epoch: bigint;
  /** SPIFFE id; empty when nobody holds it. */
  owner: string;
}

/** What issuing a hand's token needs. */
export interface HandIssueDeps extends FindBindingDeps {
  /** Asks the session service; undefined when it knows no such session. */
  getLease: (sessionId: string) => Promise<ConfirmedLease | undefined>;
}

/** What issuing a harness's token needs. */
export interface IssueDeps extends HandIssueDeps {
  /** Told as soon as the asker is known to hold the session, beside the writing of the token. */
  onConfirmed: (binding: StoredBinding) => void;
}

/** Issues a token to the harness that, as the session service confirms, holds the session in that epoch. */
export async function issueToken(
  deps: IssueDeps,
  asked: { sessionId: string; epoch: bigint; audience: "harness"; spiffeId: string },
): Promise<{ token: string; tokenId: string }> {
  const { lease, binding } = await leaseAndBinding(deps, asked.sessionId);
  const isHolder =
    lease !== undefined &&
    asked.spiffeId !== "" &&
    lease.owner === asked.spiffeId &&
    lease.epoch === asked.epoch &&
    lease.workspaceId === binding.workspaceId;
  const isOpen =
    binding.ended === false && binding.lowestEpoch !== null && asked.epoch >= binding.lowestEpoch;
  if (!isHolder || !isOpen) throw proxyError("LEASE_NOT_CONFIRMED");
  deps.onConfirmed(binding);
  return issue(deps, { ...asked, handId: "" });
}

/**
 * Issues a token for one hand to the sandbox instance that asks, while the session lives by the binding's fence and by
 * what the session service says. It is bound to that instance's certificate; no epoch ends it, the session's end does.
 */
export async function issueHandToken(
  deps: HandIssueDeps,
  asked: { sessionId: string; handId: string; spiffeId: string },
): Promise<{ token: string; tokenId: string }> {
  const { lease, binding } = await leaseAndBinding(deps, asked.sessionId);
  if (binding.ended !== false || binding.lowestEpoch === null) throw proxyError("SESSION_ENDED");
  const isKnown = lease !== undefined && lease.workspaceId === binding.workspaceId;
  if (!isKnown || asked.spiffeId === "" || asked.handId === "") throw proxyError("LEASE_NOT_CONFIRMED");
  return issue(deps, { ...asked, epoch: 0n, audience: "hand" });
}

/** Asks both at once. That the session service cannot be asked is said before anything else. */
async function leaseAndBinding(deps: HandIssueDeps, sessionId: string) {
  const binding = findBinding(deps, sessionId);
  binding.catch(() => {});
  return { lease: await deps.getLease(sessionId), binding: await binding };
}

async function issue(
  { bindings, mac }: HandIssueDeps,
  { sessionId, epoch, audience, spiffeId, handId }: Omit<TokenFields, "tokenHash" | "tokenId">,
) {
  const token = newSessionToken();
  const tokenHash = hashSessionToken(token) as Buffer;
  const tokenId = newId("tok");
  const row = { tokenHash, tokenId, sessionId, epoch, audience, spiffeId, handId };
  await bindings.insertToken(row, mac.token(row));
  return { token, tokenId };
}
