import { newId } from "../../common/ids/new-id.ts";
import { auditedChange, type ChangeAsker } from "./audited-change.ts";
import type { Confinement } from "./confinement.ts";
import { notePlanted } from "./decoys.ts";
import { systemVaultId } from "./ids.ts";
import type { AuditedCaller } from "./new-record.ts";
import type { Ledger } from "./ports.ts";
import { proxyError } from "./proxy-error.ts";
import type { RecordChange, VaultRow, VaultStore } from "./records.ts";
import { isMac, type RowMac } from "./row-mac.ts";

/** Vaults as a caller may see and make them. */
export interface Vaults {
  create(vault: {
    who: ChangeAsker;
    /** The workspace that it is for; throws for one that the caller may not have it in. */
    workspace: () => string;
    displayName: string;
    metadata: Record<string, string>;
    /** For operators to ask. */
    isDecoy: boolean;
    requestId: string | null;
    requestDigest: Buffer;
  }): Promise<VaultRow>;
  /** A vault that the caller may see; absent and foreign ones are the same to it. */
  get(vaultId: string, who: Confinement): Promise<VaultRow>;
  /** Changes name and metadata; an archived vault stays as it is. */
  update(vaultId: string, change: RecordChange, who: ChangeAsker): Promise<VaultRow>;
  /** The system vault of a workspace, made for that caller when there is none. */
  system(workspaceId: string, caller: AuditedCaller): Promise<VaultRow>;
}

/** Makes the rules for vaults. Vault itself hears of one when the first token for it is made. */
export function createVaults(store: VaultStore, mac: RowMac, ledger: Ledger): Vaults {
  const checked = (row: VaultRow): VaultRow => {
    if (!isMac(row.mac, mac.vault(row))) throw proxyError("ROW_TAMPERED");
    return row;
  };
  const get = async (vaultId: string, { workspaceId }: Confinement): Promise<VaultRow> => {
    const row = await store.find(vaultId);
    const isForeign = row !== undefined && workspaceId !== null && row.workspaceId !== workspaceId;
    // The system vault is the operator's: clients do not even learn that there is one.
    if (!row || isForeign || (row.isSystem && workspaceId !== null)) {
      throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vaultId } });
    }
    return checked(row);
  };
  return {
    get,
    create: ({ who, workspace, displayName, metadata, isDecoy, requestId, requestDigest }) => {
      const refuseOther = (row: VaultRow) => {
        if (!row.requestDigest?.equals(requestDigest)) throw proxyError("ID_REUSED");
      };
      return auditedChange(
        ledger,
        { operation: "vault.create_vault", who, vaultId: "" },
        async () => {
          const workspaceId = workspace();
          const made = requestId === null ? undefined : await store.findMade(workspaceId, requestId);
          if (made) refuseOther(made);
          return { workspaceId, vaultId: made?.vaultId ?? newId("vlt"), isMade: made !== undefined };
        },
        async ({ workspaceId, vaultId, isMade }, notes) => {
          const fields = { vaultId, workspaceId, isSystem: false, isDecoy };
          // Before it is there: no decoy is without its record.
          if (isDecoy && !isMade) await notePlanted(ledger, fields, who);
          const named = { displayName, metadata, requestId, requestDigest };
          const row = await store.insertOrFind({ ...fields, ...named, mac: mac.vault(fields) });
          notes.isVault(row.vaultId);
          refuseOther(row);
          return checked(row);
        },
      );
    },
    update: (vaultId, change, who) =>
      auditedChange(
        ledger,
        { operation: "vault.update_vault", who, vaultId },
        async () => {
          const row = await get(vaultId, who);
          if (row.archivedAt) throw proxyError("VAULT_ARCHIVED");
          return row;
        },
        async () => {
          const row = await store.update(vaultId, change);
          if (row) return row;
          if ((await get(vaultId, who)).archivedAt) throw proxyError("VAULT_ARCHIVED");
          const message = "metadata_set: at most 16 pairs may be there after the change";
          throw proxyError("INVALID_FIELD", { message, metadata: { field: "metadata_set" } });
        },
      ),
    system: async (workspaceId, caller) => {
      const vaultId = systemVaultId(workspaceId);
      const fields = { vaultId, workspaceId, isSystem: true, isDecoy: false };
      const known = await store.find(fields.vaultId);
      if (known) return checked(known);
      const named = { displayName: "System vault", metadata: {}, requestId: null, requestDigest: null };
      return auditedChange(
        ledger,
        { operation: "vault.create_vault", who: { ...caller, workspaceId }, vaultId: fields.vaultId },
        async () => fields,
        async () => checked(await store.insertOrFind({ ...fields, ...named, mac: mac.vault(fields) })),
      );
    },
  };
}
