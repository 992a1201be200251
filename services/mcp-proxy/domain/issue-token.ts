import { newId } from "../../common/ids/new-id.ts";
import { proxyError } from "./proxy-error.ts";
import type { BindingStore, StoredBinding } from "./records.ts";
import { isMac, type RowMac } from "./row-mac.ts";
import { hashSessionToken, newSessionToken } from "./session-token.ts";

/** A lease as the session service has it. */
export interface ConfirmedLease {
  workspaceId: string;
  epoch: bigint;
  /** SPIFFE id; empty when nobody holds it. */
  owner: string;
}

/** What issuing needs. */
export interface IssueDeps {
  bindings: BindingStore;
  mac: RowMac;
  /** Asks the session service; undefined when it knows no such session. */
  getLease: (sessionId: string) => Promise<ConfirmedLease | undefined>;
  /** Told as soon as the asker is known to hold the session, beside the writing of the token. */
  onConfirmed: (binding: StoredBinding) => void;
}

/** Issues a token to the harness that, as the session service confirms, holds the session in that epoch. */
export async function issueToken(
  deps: IssueDeps,
  asked: { sessionId: string; epoch: bigint; audience: "harness"; spiffeId: string },
): Promise<{ token: string; tokenId: string }> {
  const [lease, binding] = await Promise.all([
    deps.getLease(asked.sessionId),
    deps.bindings.find(asked.sessionId),
  ]);
  if (!binding) throw proxyError("BINDING_NOT_FOUND", { metadata: { session_id: asked.sessionId } });
  if (!isMac(binding.mac, deps.mac.binding(binding))) throw proxyError("ROW_TAMPERED");
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

  const token = newSessionToken();
  const tokenHash = hashSessionToken(token) as Buffer;
  const tokenId = newId("tok");
  const { sessionId, epoch, audience, spiffeId } = asked;
  const row = { tokenHash, tokenId, sessionId, epoch, audience, spiffeId, handId: "" };
  await deps.bindings.insertToken(row, deps.mac.token(row));
  return { token, tokenId };
}

/**
 * Issues a token for one hand to the sandbox instance that asks, while the session lives by the binding's fence and by
 * what the session service says. It is bound to that instance's certificate; no epoch ends it, the session's end does.
 */
export async function issueHandToken(
  deps: Omit<IssueDeps, "onConfirmed">,
  asked: { sessionId: string; handId: string; spiffeId: string },
): Promise<{ token: string; tokenId: string }> {
  const [lease, binding] = await Promise.all([
    deps.getLease(asked.sessionId),
    deps.bindings.find(asked.sessionId),
  ]);
  if (!binding) throw proxyError("BINDING_NOT_FOUND", { metadata: { session_id: asked.sessionId } });
  if (!isMac(binding.mac, deps.mac.binding(binding))) throw proxyError("ROW_TAMPERED");
  if (binding.ended !== false || binding.lowestEpoch === null) throw proxyError("SESSION_ENDED");
  const isKnown = lease !== undefined && lease.workspaceId === binding.workspaceId;
  if (!isKnown || asked.spiffeId === "" || asked.handId === "") throw proxyError("LEASE_NOT_CONFIRMED");

  const token = newSessionToken();
  const tokenHash = hashSessionToken(token) as Buffer;
  const tokenId = newId("tok");
  const row = { ...asked, tokenHash, tokenId, epoch: 0n, audience: "hand" };
  await deps.bindings.insertToken(row, deps.mac.token(row));
  return { token, tokenId };
}
