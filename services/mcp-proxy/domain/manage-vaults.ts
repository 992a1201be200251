import { newId } from "../../common/ids/new-id.ts";
import { systemVaultId } from "./ids.ts";
import { proxyError } from "./proxy-error.ts";
import type { RecordChange, VaultRow, VaultStore } from "./records.ts";
import { isMac, type RowMac } from "./row-mac.ts";

/** Who asks: null = not confined to a workspace (operators). */
export interface Confinement {
  workspaceId: string | null;
}

/** Vaults as a caller may see and make them. */
export interface Vaults {
  create(vault: {
    workspaceId: string;
    displayName: string;
    metadata: Record<string, string>;
    requestId: string | null;
    requestDigest: Buffer;
  }): Promise<VaultRow>;
  /** A vault that the caller may see; absent and foreign ones are the same to it. */
  get(vaultId: string, who: Confinement): Promise<VaultRow>;
  /** Changes name and metadata; an archived vault stays as it is. */
  update(vaultId: string, change: RecordChange, who: Confinement): Promise<VaultRow>;
  /** The system vault of a workspace, made when there is none. */
  system(workspaceId: string): Promise<VaultRow>;
}

/** Makes the rules for vaults. Vault itself hears of one when the first token for it is made. */
export function createVaults(store: VaultStore, mac: RowMac): Vaults {
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
    create: async ({ workspaceId, displayName, metadata, requestId, requestDigest }) => {
      const vaultId = newId("vlt");
      const fields = { vaultId, workspaceId, isSystem: false };
      const row = await store.insertOrFind({
        ...fields,
        displayName,
        metadata,
        requestId,
        requestDigest,
        mac: mac.vault(fields),
      });
      if (row.vaultId !== vaultId && !row.requestDigest?.equals(requestDigest)) throw proxyError("ID_REUSED");
      return checked(row);
    },
    update: async (vaultId, change, who) => {
      await get(vaultId, who);
      const row = await store.update(vaultId, change);
      if (row) return row;
      if ((await get(vaultId, who)).archivedAt) throw proxyError("VAULT_ARCHIVED");
      const message = "metadata_set: at most 16 pairs may be there after the change";
      throw proxyError("INVALID_FIELD", { message, metadata: { field: "metadata_set" } });
    },
    system: async (workspaceId) => {
      const fields = { vaultId: systemVaultId(workspaceId), workspaceId, isSystem: true };
      const known = await store.find(fields.vaultId);
      const row =
        known ??
        (await store.insertOrFind({
          ...fields,
          displayName: "System vault",
          metadata: {},
          requestId: null,
          requestDigest: null,
          mac: mac.vault(fields),
        }));
      return checked(row);
    },
  };
}
