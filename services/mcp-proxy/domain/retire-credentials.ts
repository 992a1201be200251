import { type CredentialDeps, missing } from "./manage-credentials.ts";
import type { Confinement } from "./manage-vaults.ts";
import { proxyError } from "./proxy-error.ts";
import type { CredentialRecord, UnpurgedCredential, VaultRow, VaultStore } from "./records.ts";

/** What taking out of use needs. */
export type RetireDeps = Pick<CredentialDeps, "vaults" | "store" | "writer"> & { vaultStore: VaultStore };

interface CredentialName {
  vaultId: string;
  credentialId: string;
}

const BATCH = 100;

/** Takes a credential out of use, then removes its secret; a repetition finishes what could not be removed before. */
export async function archiveCredential(
  deps: RetireDeps,
  { vaultId, credentialId }: CredentialName,
  who: Confinement,
): Promise<CredentialRecord> {
  await deps.vaults.get(vaultId, who);
  const row = await deps.store.archive(vaultId, credentialId);
  if (!row) throw missing(credentialId);
  if (!row.isSecretRemoved) await purge(deps, { ...row, isDeleted: false });
  return row;
}

/** Removes a credential for good. What Vault cannot remove now `purgeRetired` removes later. */
export async function deleteCredential(
  deps: RetireDeps,
  { vaultId, credentialId }: CredentialName,
  who: Confinement,
  onLater: (error: unknown) => void,
): Promise<void> {
  await deps.vaults.get(vaultId, who);
  if (!(await deps.store.markDeleted(vaultId, credentialId))) throw missing(credentialId);
  const left = { vaultId, credentialId, isDeleted: true, isSecretRemoved: false };
  await purge(deps, left).catch(onLater);
}

/** Takes a vault and all that is in it out of use, then removes the secrets; a repetition finishes that. */
export async function archiveVault(deps: RetireDeps, vaultId: string, who: Confinement): Promise<VaultRow> {
  await ordinaryVault(deps, vaultId, who);
  // The vault first: nothing in it can begin to count after that.
  const row = await deps.vaultStore.archive(vaultId);
  if (!row) throw proxyError("VAULT_NOT_FOUND", { metadata: { vault_id: vaultId } });
  await deps.store.archiveAll(vaultId, false);
  await purgeAll(deps, vaultId);
  return row;
}

/** Removes a vault and all that is in it for good. What Vault cannot remove now `purgeRetired` removes later. */
export async function deleteVault(
  deps: RetireDeps,
  vaultId: string,
  who: Confinement,
  onLater: (error: unknown) => void,
): Promise<void> {
  await ordinaryVault(deps, vaultId, who);
  await deps.vaultStore.markDeleted(vaultId);
  await deps.store.archiveAll(vaultId, true);
  try {
    await purgeAll(deps, vaultId);
    await deps.vaultStore.dropDeleted();
  } catch (error) {
    onLater(error);
  }
}

/** Works off what earlier calls could not remove, whichever replica made them. */
export async function purgeRetired(deps: Omit<RetireDeps, "vaults">): Promise<void> {
  await purgeAll(deps, null);
  await deps.vaultStore.dropDeleted();
}

async function purgeAll(deps: Omit<RetireDeps, "vaults">, vaultId: string | null): Promise<void> {
  for (;;) {
    const left = await deps.store.listUnpurged(vaultId, BATCH);
    for (const credential of left) await purge(deps, credential);
    if (left.length < BATCH) return;
  }
}

async function purge({ store, writer }: Omit<RetireDeps, "vaults">, left: UnpurgedCredential): Promise<void> {
  const { vaultId, credentialId } = left;
  if (!left.isSecretRemoved) {
    await writer.remove(vaultId, credentialId);
    await store.markSecretRemoved(vaultId, credentialId);
  }
  if (left.isDeleted) await store.dropDeleted(vaultId, credentialId);
}

async function ordinaryVault({ vaults }: RetireDeps, vaultId: string, who: Confinement): Promise<void> {
  const { isSystem } = await vaults.get(vaultId, who);
  if (isSystem) throw proxyError("VAULT_IS_SYSTEM", { metadata: { vault_id: vaultId } });
}
