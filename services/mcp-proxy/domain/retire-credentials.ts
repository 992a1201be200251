import { auditedChange, type ChangeAsker, type ChangeRequest } from "./audited-change.ts";
import { type CredentialDeps, findCredential, missing } from "./manage-credentials.ts";
import type { AuditedCaller } from "./new-record.ts";
import { proxyError } from "./proxy-error.ts";
import type { CredentialRecord, UnpurgedCredential, VaultRow, VaultStore } from "./records.ts";

/** What taking out of use needs. */
export type RetireDeps = Pick<CredentialDeps, "vaults" | "store" | "writer" | "ledger"> & {
  vaultStore: VaultStore;
};

interface CredentialName {
  vaultId: string;
  credentialId: string;
}

const BATCH = 100;

/** Takes a credential out of use, then removes its secret; a repetition finishes what could not be removed before. */
export function archiveCredential(
  deps: RetireDeps,
  name: CredentialName,
  who: ChangeAsker,
): Promise<CredentialRecord> {
  const { vaultId, credentialId } = name;
  return auditedChange(
    deps.ledger,
    { operation: "vault.archive_credential", who, vaultId, credentialId },
    () => judgeCredential(deps, name, who),
    async () => {
      const row = await deps.store.archive(vaultId, credentialId);
      if (!row) throw missing(credentialId);
      if (!row.isSecretRemoved) await purge(deps, { ...row, isDeleted: false });
      return row;
    },
  );
}

/** Removes a credential for good. What Vault cannot remove now `purgeRetired` removes later. */
export function deleteCredential(
  deps: RetireDeps,
  name: CredentialName,
  who: ChangeAsker,
  onLater: (error: unknown) => void,
): Promise<void> {
  const { vaultId, credentialId } = name;
  return auditedChange(
    deps.ledger,
    { operation: "vault.delete_credential", who, vaultId, credentialId },
    () => judgeCredential(deps, name, who),
    async (_, notes) => {
      if (!(await deps.store.markDeleted(vaultId, credentialId))) throw missing(credentialId);
      try {
        await purge(deps, { vaultId, credentialId, isDeleted: true, isSecretRemoved: false });
      } catch (error) {
        notes.left("removed_later");
        onLater(error);
      }
    },
  );
}

/** Takes a vault and all that is in it out of use, then removes the secrets; a repetition finishes that. */
export function archiveVault(deps: RetireDeps, vaultId: string, who: ChangeAsker): Promise<VaultRow> {
  return auditedChange(
    deps.ledger,
    { operation: "vault.archive_vault", who, vaultId },
    () => ordinaryVault(deps, vaultId, who),
    async () => {
      // The vault first: nothing in it can begin to count after that.
      const row = await deps.vaultStore.archive(vaultId);
      if (!row) throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vaultId } });
      await deps.store.archiveAll(vaultId, false);
      await purgeAll(deps, vaultId, who);
      return row;
    },
  );
}

/** Removes a vault and all that is in it for good. What Vault cannot remove now `purgeRetired` removes later. */
export function deleteVault(
  deps: RetireDeps,
  vaultId: string,
  who: ChangeAsker,
  onLater: (error: unknown) => void,
): Promise<void> {
  return auditedChange(
    deps.ledger,
    { operation: "vault.delete_vault", who, vaultId },
    () => ordinaryVault(deps, vaultId, who),
    async (_, notes) => {
      await deps.vaultStore.markDeleted(vaultId);
      await deps.store.archiveAll(vaultId, true);
      try {
        await purgeAll(deps, vaultId, who);
        await deps.vaultStore.dropDeleted();
      } catch (error) {
        notes.left("removed_later");
        onLater(error);
      }
    },
  );
}

/** Works off what earlier calls could not remove, whichever replica made them; records name nobody as who asks. */
export async function purgeRetired(deps: Omit<RetireDeps, "vaults">): Promise<void> {
  await purgeAll(deps, null, { caller: "" });
  await deps.vaultStore.dropDeleted();
}

/** Each secret that is removed is a change of its own in the log: what is done to a vault names no credential. */
async function purgeAll(
  deps: Omit<RetireDeps, "vaults">,
  vaultId: string | null,
  caller: AuditedCaller,
): Promise<void> {
  for (;;) {
    const left = await deps.store.listUnpurged(vaultId, BATCH);
    for (const credential of left) {
      if (credential.isSecretRemoved) await purge(deps, credential);
      else
        await auditedChange(
          deps.ledger,
          removalOf(credential, caller),
          async () => credential,
          () => purge(deps, credential),
        );
    }
    if (left.length < BATCH) return;
  }
}

function removalOf(
  { workspaceId, vaultId, credentialId }: UnpurgedCredential,
  { caller, callerCert = "" }: AuditedCaller,
): ChangeRequest {
  const who = { workspaceId, caller, callerCert };
  return { operation: "vault.remove_secret", who, vaultId, credentialId };
}

async function purge(
  { store, writer }: Omit<RetireDeps, "vaults">,
  left: Omit<UnpurgedCredential, "workspaceId">,
): Promise<void> {
  const { vaultId, credentialId } = left;
  if (!left.isSecretRemoved) {
    await writer.remove(vaultId, credentialId);
    await store.markSecretRemoved(vaultId, credentialId);
  }
  if (left.isDeleted) await store.dropDeleted(vaultId, credentialId);
}

async function judgeCredential(
  deps: RetireDeps,
  { vaultId, credentialId }: CredentialName,
  who: ChangeAsker,
) {
  const { workspaceId } = await deps.vaults.get(vaultId, who);
  await findCredential(deps, { vaultId, credentialId }, who);
  return { workspaceId, vaultId, credentialId };
}

async function ordinaryVault({ vaults }: RetireDeps, vaultId: string, who: ChangeAsker): Promise<VaultRow> {
  const vault = await vaults.get(vaultId, who);
  if (vault.isSystem) throw proxyError("VAULT_IS_SYSTEM", { metadata: { vault_id: vaultId } });
  return vault;
}
