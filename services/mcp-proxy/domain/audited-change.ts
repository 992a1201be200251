import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { newId } from "../../common/ids/new-id.ts";
import type { Confinement } from "./confinement.ts";
import { type AuditedCaller, blankRecord, callerColumns, recordText } from "./new-record.ts";
import { endingOf, factsOf } from "./passage.ts";
import type { Ledger, LedgerRecord } from "./ports.ts";
import { proxyError, reasonOf } from "./proxy-error.ts";
import type { WrittenSecret } from "./records.ts";

/**
 * What can be done to vaults and credentials, and to what a session may use; `remove_secret` is what archiving and deleting a
 * vault do to each in it.
 */
export type ChangeOperation =
  | "binding.bind"
  | "binding.replace_servers"
  | "binding.end"
  | "vault.create_vault"
  | "vault.update_vault"
  | "vault.archive_vault"
  | "vault.delete_vault"
  | "vault.create_credential"
  | "vault.update_credential"
  | "vault.archive_credential"
  | "vault.delete_credential"
  | "vault.validate_credential"
  | "vault.finish_authorization"
  | "vault.remove_secret";

/** Who asks for a change: what they are confined to, and how records name them (mcp-proxy itself: finishing what somebody began). */
export interface ChangeAsker extends Confinement, AuditedCaller {}

/** What is asked for, before it is judged. */
export interface ChangeRequest {
  operation: ChangeOperation;
  who: ChangeAsker;
  /** Empty when it is not known, or made by the change. */
  vaultId: string;
  credentialId?: string;
  /** The session whose binding it is. */
  sessionId?: string;
}

/** What a change was found to be about. */
export interface JudgedChange {
  workspaceId: string;
  vaultId: string;
  credentialId?: string;
}

/** What a change tells its outcome. */
export interface ChangeNotes {
  /** A secret was written at Vault. */
  wrote(secret: WrittenSecret): void;
  /** The vault is another one than was decided upon: the same request made it before. */
  isVault(vaultId: string): void;
  /** It is done as far as the caller is concerned, and this is left. */
  left(reason: "removed_later"): void;
}

/**
 * Makes a change of a vault or credential between its records. `judge` reads, and changes nothing: what it throws is a denial,
 * written before the caller hears of it. The decision is durable before `make` touches Vault or the database, and the outcome
 * before the caller hears of success (law L6).
 */
export async function auditedChange<Judged extends JudgedChange, Made>(
  ledger: Ledger,
  { operation, who, vaultId, credentialId = "", sessionId = "" }: ChangeRequest,
  judge: () => Promise<Judged>,
  make: (judged: Judged, notes: ChangeNotes) => Promise<Made>,
): Promise<Made> {
  const record: LedgerRecord = {
    ...blankRecord("decision", newId("req")),
    workspace_id: who.workspaceId ?? "",
    ...callerColumns(who),
    operation,
    target: recordText(vaultId),
    credential_id: credentialId,
    session_id: sessionId,
  };
  const judged = await judge().catch((error: unknown) => deny(ledger, record, error));
  record.workspace_id = judged.workspaceId;
  record.target = recordText(judged.vaultId);
  record.credential_id = judged.credentialId ?? "";
  await ledger.write({ ...record, effect: "allow" });

  const known: LedgerRecord = { ...record, kind: "outcome", reason: "ok", upstream_effect: "complete" };
  const notes: ChangeNotes = {
    wrote: (secret) => void Object.assign(known, factsOf(secret)),
    isVault: (id) => void Object.assign(known, { target: id }),
    left: (reason) => void Object.assign(known, { reason }),
  };
  let made: Made;
  try {
    made = await make(judged, notes);
  } catch (error) {
    // Without its outcome the request is closed by a recovery record; the caller hears what failed first.
    const failed = { reason: endingOf(error), upstream_effect: "unknown" as const };
    await ledger.write({ ...known, ...failed }).catch(() => {});
    throw error;
  }
  try {
    await ledger.write(known);
  } catch (cause) {
    throw proxyError("AUDIT_UNAVAILABLE", {
      message: "the change was made; its outcome is not recorded yet",
      cause,
    });
  }
  return made;
}

/** What is recorded only where it is denied. */
export interface DeniableRequest {
  operation: "binding.issue_token";
  who: AuditedCaller;
  sessionId: string;
  epoch: bigint;
  audience: string;
  target: string;
}

/** Does something of which there is no record but a denial, which is written before the caller hears of it. */
export async function auditedDenial<T>(
  ledger: Ledger,
  { operation, who, sessionId, epoch, audience, target }: DeniableRequest,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const record: LedgerRecord = {
      ...blankRecord("decision", newId("req")),
      ...callerColumns(who),
      ...{ operation, session_id: sessionId, epoch: String(epoch), token_audience: audience, target },
    };
    return deny(ledger, record, error);
  }
}

/** Throws the error, once the log has it if it is a denial: who cannot be answered now was not denied anything. */
async function deny(ledger: Ledger, record: LedgerRecord, error: unknown): Promise<never> {
  const reason = reasonOf(error);
  const isDenial = reason !== undefined && GanglionError.is(error) && error.code !== "UNAVAILABLE";
  if (isDenial) await ledger.write({ ...record, effect: "deny", reason });
  throw error;
}

/** True for the operation of a change: it sends nothing, so no dispatch says how far it came. */
export function isChange(operation: string): boolean {
  return (
    operation.startsWith("vault.") || operation.startsWith("binding.") || operation === "approve_tool_pin"
  );
}

/** True for a change that is made also when the log does not take its decision: that it failed says nothing of the change. */
export function waitsForNoRecord(operation: string): boolean {
  return operation === "binding.end";
}
