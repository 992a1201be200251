import { newId } from "../../common/ids/new-id.ts";
import type { ChangeOperation } from "./audited-change.ts";
import { type AuditedCaller, blankRecord, callerColumns, recordText } from "./new-record.ts";
import type { Ledger, LedgerRecord } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
import type { VaultRow } from "./records.ts";
import { isMac, type RowMac } from "./row-mac.ts";

/** What somebody tried to do with a vault. */
export interface VaultUse extends AuditedCaller {
  operation: ChangeOperation;
  workspaceId: string;
  sessionId?: string;
  credentialId?: string;
}

/** Reasons of honeytoken records: a decoy was made, so that the log says which ones there are; or somebody reached for it. */
type DecoyReason = "planted" | "used";

/**
 * Refuses the use of decoys, as if they were not there, and has the log say so before the caller hears of it. Whose the vault is
 * does not matter: nobody has a reason to name one of these.
 */
export async function refuseDecoys(
  { ledger, mac }: { ledger: Ledger; mac: RowMac },
  vaults: readonly VaultRow[],
  use: VaultUse,
): Promise<void> {
  for (const vault of vaults) {
    if (!vault.isDecoy) continue;
    if (!isMac(vault.mac, mac.vault(vault))) throw proxyError("ROW_TAMPERED");
    await ledger.write({
      ...decoyRecord("used", vault.vaultId, use),
      session_id: use.sessionId ?? "",
      credential_id: recordText(use.credentialId ?? ""),
    });
    throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vault.vaultId } });
  }
}

/** Has the log say that a vault is a decoy: whoever reads the log beside Vault's own knows by that what nobody may read. */
export async function notePlanted(
  ledger: Ledger,
  vault: { vaultId: string; workspaceId: string },
  { caller, callerCert = "" }: AuditedCaller,
): Promise<void> {
  const { vaultId, workspaceId } = vault;
  const what = { operation: "vault.create_vault", caller, callerCert, workspaceId };
  await ledger.write(decoyRecord("planted", vaultId, what));
}

function decoyRecord(
  reason: DecoyReason,
  vaultId: string,
  { operation, workspaceId, ...who }: AuditedCaller & { operation: string; workspaceId: string },
): LedgerRecord {
  return {
    ...blankRecord("honeytoken", newId("req")),
    ...{ workspace_id: workspaceId, ...callerColumns(who), operation, target: vaultId, reason },
  };
}
