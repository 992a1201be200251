import { newId } from "../../common/ids/new-id.ts";
import type { CredentialRow } from "./access.ts";
import type { Confinement, Vaults } from "./manage-vaults.ts";
import { proxyError } from "./proxy-error.ts";
import type {
  CredentialRecord,
  CredentialStore,
  Sealed,
  SealOpener,
  SealPurpose,
  SecretWriter,
  VaultRow,
} from "./records.ts";
import type { RowMac } from "./row-mac.ts";
import { isSendable, MAX_SECRET_BYTES, MIN_SECRET_BYTES } from "./sendable.ts";

/** A credential to be stored. */
export interface CredentialRequest {
  vaultId: string;
  displayName: string;
  metadata: Record<string, string>;
  kind: CredentialRow["kind"];
  url: string;
  /** The destination as the caller wrote it: the secret is sealed for that. */
  statedUrl: string;
  secret: Sealed;
  requestId: string | null;
  requestDigest: Buffer;
}

/** What the rules for credentials need. */
export interface CredentialDeps {
  vaults: Vaults;
  store: CredentialStore;
  writer: SecretWriter;
  seal: SealOpener;
  mac: RowMac;
}

/** Stores a new credential: record, then secret, then the version that makes it count. */
export async function createCredential(
  deps: CredentialDeps,
  request: CredentialRequest,
  who: Confinement,
): Promise<CredentialRecord> {
  const vault = await openVault(deps, request.vaultId, who);
  if (request.kind === "model_api_key" && !vault.isSystem) throw wrongVault(who);
  const { vaultId, kind, url, statedUrl } = request;
  const secret = await openSecret(deps.seal, request.secret, { vaultId, kind, url: statedUrl });
  const credentialId = newId("vcrd");
  const mac = deps.mac.credential({ credentialId, vaultId, kind, url });
  const row = await deps.store.insertOrFind({ ...request, credentialId, mac });
  const isNew = row.credentialId === credentialId;
  if (!isNew && !row.requestDigest?.equals(request.requestDigest)) throw proxyError("ID_REUSED");
  if (row.version > 0n) return row;
  if (await deps.store.isDestinationTaken(vaultId, kind, url)) {
    await deps.store.dropUnwritten(vaultId, row.credentialId);
    throw proxyError("CREDENTIAL_EXISTS");
  }
  const version = await deps.writer.write(vaultId, row.credentialId, secret);
  const stored = await deps.store.setVersion(vaultId, row.credentialId, version);
  if (stored === "taken") {
    // Another credential for the same destination was faster.
    await deps.writer.remove(vaultId, row.credentialId);
    await deps.store.dropUnwritten(vaultId, row.credentialId);
    throw proxyError("CREDENTIAL_EXISTS");
  }
  if (!stored) throw proxyError("CREDENTIAL_NOT_FOUND");
  return stored;
}

/** Replaces the secret of a credential; the version before is destroyed. */
export async function updateCredential(
  deps: CredentialDeps,
  { vaultId, credentialId, secret }: { vaultId: string; credentialId: string; secret: Sealed },
  who: Confinement,
): Promise<CredentialRecord> {
  await openVault(deps, vaultId, who);
  const row = await findActive(deps, vaultId, credentialId);
  const version = await deps.writer.write(
    vaultId,
    credentialId,
    await openSecret(deps.seal, secret, { vaultId, kind: row.kind, url: row.url }),
  );
  const stored = await deps.store.setVersion(vaultId, credentialId, version);
  if (!stored || stored === "taken") {
    // Archived meanwhile: what was just written must not stay behind.
    await deps.writer.remove(vaultId, credentialId);
    throw missing(credentialId);
  }
  if (row.version < version) await deps.writer.destroy(vaultId, credentialId, row.version);
  return stored;
}

/** Takes a credential out of use, then removes its secret; a repetition finishes what could not be removed before. */
export async function archiveCredential(
  deps: CredentialDeps,
  { vaultId, credentialId }: { vaultId: string; credentialId: string },
  who: Confinement,
): Promise<CredentialRecord> {
  await deps.vaults.get(vaultId, who);
  const row = await deps.store.archive(vaultId, credentialId);
  if (!row) throw missing(credentialId);
  if (!row.isSecretRemoved) {
    await deps.writer.remove(vaultId, credentialId);
    await deps.store.markSecretRemoved(vaultId, credentialId);
  }
  return row;
}

function wrongVault({ workspaceId }: Confinement) {
  const message = "model keys are stored by operators, in the system vault";
  if (workspaceId !== null) return proxyError("ROLE_NOT_ALLOWED", { message });
  return proxyError("INVALID_FIELD", { message, metadata: { field: "model_api_key" } });
}

async function openVault({ vaults }: CredentialDeps, vaultId: string, who: Confinement): Promise<VaultRow> {
  const vault = await vaults.get(vaultId, who);
  if (vault.archivedAt) throw proxyError("VAULT_ARCHIVED");
  return vault;
}

async function findActive({ store }: CredentialDeps, vaultId: string, credentialId: string) {
  const row = await store.find(vaultId, credentialId);
  if (!row || row.archivedAt) throw missing(credentialId);
  return row;
}

async function openSecret(seal: SealOpener, sealed: Sealed, purpose: SealPurpose): Promise<string> {
  const opened = await seal.open(sealed, purpose);
  if (!opened) throw proxyError("SEAL_INVALID");
  const text = opened.toString("latin1");
  const isFit = opened.length >= MIN_SECRET_BYTES && opened.length <= MAX_SECRET_BYTES && isSendable(text);
  opened.fill(0);
  if (isFit) return text;
  throw proxyError("INVALID_FIELD", {
    message: `secret must be ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes of printable ASCII without spaces around it`,
    metadata: { field: "secret" },
  });
}

function missing(credentialId: string) {
  return proxyError("CREDENTIAL_NOT_FOUND", { metadata: { credential_id: credentialId } });
}
