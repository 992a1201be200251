import { newId } from "../../common/ids/new-id.ts";
import { auditedChange, type ChangeAsker, type ChangeNotes } from "./audited-change.ts";
import type { Confinement } from "./confinement.ts";
import { MAX_ACTIVE } from "./credential-rules.ts";
import type { Vaults } from "./manage-vaults.ts";
import { openSecrets } from "./open-secret.ts";
import type { Ledger } from "./ports.ts";
import { proxyError, type Reason, reasonOf } from "./proxy-error.ts";
import type {
  CredentialRecord,
  CredentialStore,
  NewCredential,
  Sealed,
  SealOpener,
  SecretDocument,
  SecretWriter,
  VaultRow,
} from "./records.ts";
import type { RowMac } from "./row-mac.ts";

/** A credential to be stored. */
export interface CredentialRequest extends Omit<NewCredential, "credentialId" | "mac" | "requestDigest"> {
  /** The server as the caller wrote it, or the variable's name: the secret is sealed for that. */
  statedKey: string;
  secret: Sealed;
  /** With config.refresh, and only then. */
  refreshToken?: Sealed;
  /** Where the token endpoint wants one, and only then. */
  clientSecret?: Sealed;
  requestDigest: Buffer;
}

/** What the rules for credentials need. */
export interface CredentialDeps {
  vaults: Vaults;
  store: CredentialStore;
  writer: SecretWriter;
  seal: SealOpener;
  mac: RowMac;
  ledger: Ledger;
}

/** Stores a new credential: record, then secret, then the version that makes it count. */
export async function createCredential(
  deps: CredentialDeps,
  request: CredentialRequest,
  who: ChangeAsker,
): Promise<CredentialRecord> {
  try {
    return await createOnce(deps, request, who);
  } catch (error) {
    // The same request came twice at the same moment: now it is known which credential it made.
    if (reasonOf(error) !== "CONFLICT") throw error;
    return createOnce(deps, request, who);
  }
}

function createOnce(
  deps: CredentialDeps,
  request: CredentialRequest,
  who: ChangeAsker,
): Promise<CredentialRecord> {
  const { vaultId, requestId } = request;
  return auditedChange(
    deps.ledger,
    { operation: "vault.create_credential", who, vaultId },
    async () => {
      const vault = await openVault(deps, vaultId, who);
      if (request.kind === "model_api_key" && !vault.isSystem) throw wrongVault(who);
      const document = (await openSecrets(deps.seal, request, request)) as SecretDocument;
      if (request.config.expires_at !== undefined) document.expires_at = request.config.expires_at;
      const made = requestId === null ? undefined : await deps.store.findMade(vaultId, requestId);
      if (made) refuseOther(made, request);
      const credentialId = made?.credentialId ?? newId("vcrd");
      return { workspaceId: vault.workspaceId, vaultId, credentialId, document };
    },
    ({ credentialId, document }, notes) =>
      storeCredential(deps, { ...request, credentialId, document }, notes),
  );
}

/** A credential whose secrets are known already, and whose id is in the decision. */
export type ReadyCredential = Omit<NewCredential, "mac"> & { document: SecretDocument };

/** Stores a credential in a vault that was opened for it: record, then secret, then the version that makes it count. */
export async function storeCredential(
  deps: CredentialDeps,
  request: ReadyCredential,
  notes: ChangeNotes,
): Promise<CredentialRecord> {
  const { vaultId, document } = request;
  const row = await deps.store.insertOrFind({ ...request, mac: deps.mac.credential(request) });
  if (row.credentialId !== request.credentialId) {
    refuseOther(row, request);
    // Nothing is written for a credential that no decision names.
    throw proxyError("CONFLICT");
  }
  if (row.version > 0n) return row;
  if (await deps.store.isKeyTaken(vaultId, request)) {
    await deps.store.dropUnwritten(vaultId, row.credentialId);
    throw proxyError("CREDENTIAL_EXISTS");
  }
  const written = await deps.writer.write(vaultId, row.credentialId, document);
  notes.wrote(written);
  const stored = await deps.store.activate(vaultId, row.credentialId, written.version);
  if (typeof stored !== "string") return stored;
  // Another was faster, the vault is full or was archived meanwhile: nothing may stay behind.
  await deps.writer.remove(vaultId, row.credentialId);
  await deps.store.dropUnwritten(vaultId, row.credentialId);
  throw proxyError(REFUSALS[stored], stored === "full" ? { metadata: { limit: String(MAX_ACTIVE) } } : {});
}

const REFUSALS: Record<"vault_archived" | "full" | "taken" | "gone", Reason> = {
  vault_archived: "VAULT_ARCHIVED",
  full: "CREDENTIAL_LIMIT",
  taken: "CREDENTIAL_EXISTS",
  gone: "CREDENTIAL_NOT_FOUND",
};

function refuseOther(made: CredentialRecord, { requestDigest }: Pick<NewCredential, "requestDigest">): void {
  if (!(requestDigest && made.requestDigest?.equals(requestDigest))) throw proxyError("ID_REUSED");
}

/** A vault into which something may be written. */
export async function openVault(
  { vaults }: Pick<CredentialDeps, "vaults">,
  vaultId: string,
  who: Confinement,
): Promise<VaultRow> {
  const vault = await vaults.get(vaultId, who);
  if (vault.archivedAt) throw proxyError("VAULT_ARCHIVED");
  return vault;
}

/** A credential's record, archived or not. */
export async function findCredential(
  deps: Pick<CredentialDeps, "vaults" | "store">,
  { vaultId, credentialId }: { vaultId: string; credentialId: string },
  who: Confinement,
): Promise<CredentialRecord> {
  await deps.vaults.get(vaultId, who);
  const row = await deps.store.find(vaultId, credentialId);
  if (!row) throw missing(credentialId);
  return row;
}

/** The error for a credential that is not there, or not for the caller. */
export function missing(credentialId: string) {
  return proxyError("CREDENTIAL_NOT_FOUND", { metadata: { credential_id: credentialId } });
}

function wrongVault({ workspaceId }: Confinement) {
  const message = "model keys are stored by operators, in the system vault";
  if (workspaceId !== null) return proxyError("ROLE_NOT_ALLOWED", { message });
  return proxyError("INVALID_FIELD", { message, metadata: { field: "model_api_key" } });
}
