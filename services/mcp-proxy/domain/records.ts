import type { SealPurpose } from "../../common/seal/seal-format.ts";
import type { CredentialRow } from "./access.ts";
import type { CredentialConfig, CredentialKind } from "./credential-config.ts";
import type { BindingFields, TokenFields } from "./row-mac.ts";

/** A vault's record. */
export interface VaultRow {
  vaultId: string;
  workspaceId: string;
  displayName: string;
  metadata: Record<string, string>;
  isSystem: boolean;
  /** Its credentials are there to be found; nobody may use them. */
  isDecoy: boolean;
  requestDigest: Buffer | null;
  mac: Buffer;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}

/** A vault to be recorded. */
export interface NewVault {
  vaultId: string;
  workspaceId: string;
  displayName: string;
  metadata: Record<string, string>;
  isSystem: boolean;
  isDecoy: boolean;
  requestId: string | null;
  requestDigest: Buffer | null;
  mac: Buffer;
}

/** A change of what people call a vault or credential; what is absent stays. */
export interface RecordChange {
  displayName?: string;
  metadataSet: Record<string, string>;
  metadataRemove: readonly string[];
}

/** Records of vaults. */
export interface VaultStore {
  /** Stores a vault, or finds the one that the same request (or workspace, for a system vault) made before. */
  insertOrFind(vault: NewVault): Promise<VaultRow>;
  find(vaultId: string): Promise<VaultRow | undefined>;
  /** What a request of that workspace made before. */
  findMade(workspaceId: string, requestId: string): Promise<VaultRow | undefined>;
  findMany(vaultIds: readonly string[]): Promise<VaultRow[]>;
  /** Newest first, after the id `before`. */
  list(options: {
    workspaceId: string;
    before: string | null;
    limit: number;
    withArchived: boolean;
    withSystem: boolean;
  }): Promise<VaultRow[]>;
  /** Changes an active vault; undefined when there is none, or it would have more than 16 pairs of metadata. */
  update(vaultId: string, change: RecordChange): Promise<VaultRow | undefined>;
  /** Takes a vault out of use; from then on no credential of it begins to count. */
  archive(vaultId: string): Promise<VaultRow | undefined>;
  /** Takes a vault out of use and out of sight. */
  markDeleted(vaultId: string): Promise<void>;
  /** Removes vaults that are marked as deleted and have no credential left. */
  dropDeleted(): Promise<void>;
}

/** A credential's record, all of it. */
export interface CredentialRecord extends CredentialRow {
  displayName: string;
  metadata: Record<string, string>;
  isSecretRemoved: boolean;
  requestDigest: Buffer | null;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}

/** A credential to be recorded; it counts from the moment its secret is stored. */
export interface NewCredential {
  credentialId: string;
  vaultId: string;
  displayName: string;
  metadata: Record<string, string>;
  kind: CredentialKind;
  url: string;
  secretName: string;
  config: CredentialConfig;
  requestId: string | null;
  requestDigest: Buffer | null;
  mac: Buffer;
}

/** Records of credentials; secrets are Vault's. */
export interface CredentialStore {
  /** Stores the record with version 0, or finds the one that the same request made before. */
  insertOrFind(credential: NewCredential): Promise<CredentialRecord>;
  find(vaultId: string, credentialId: string): Promise<CredentialRecord | undefined>;
  /** What a request made before in that vault, its secret stored or not. */
  findMade(vaultId: string, requestId: string): Promise<CredentialRecord | undefined>;
  /** True when an active credential of the vault has the same key: server or variable. */
  isKeyTaken(vaultId: string, key: Pick<NewCredential, "kind" | "url" | "secretName">): Promise<boolean>;
  /** The secret is stored in that version: the credential counts from now on, or the word says why it does not. */
  activate(
    vaultId: string,
    credentialId: string,
    version: bigint,
  ): Promise<CredentialRecord | "vault_archived" | "full" | "taken" | "gone">;
  /**
   * Changes an active credential whose MAC is still `seen`; undefined when there is none, or it would have more than 16
   * pairs of metadata. The version only rises.
   */
  change(
    credential: Pick<CredentialRow, "vaultId" | "credentialId">,
    change: Partial<RecordChange> & Pick<CredentialRow, "version" | "config" | "mac">,
    seen: Buffer,
  ): Promise<CredentialRecord | undefined>;
  /** Drops a record whose secret was never stored. */
  dropUnwritten(vaultId: string, credentialId: string): Promise<void>;
  archive(vaultId: string, credentialId: string): Promise<CredentialRecord | undefined>;
  /** Takes all credentials of an archived vault out of use; with `isDeleted` out of sight as well. */
  archiveAll(vaultId: string, isDeleted: boolean): Promise<void>;
  markSecretRemoved(vaultId: string, credentialId: string): Promise<void>;
  /** Takes a credential out of use and out of sight; false when there is none. */
  markDeleted(vaultId: string, credentialId: string): Promise<boolean>;
  /** Removes the record of one that is marked as deleted. */
  dropDeleted(vaultId: string, credentialId: string): Promise<void>;
  /** Those that are out of use and still have a secret at Vault, or only a record that is to go; of one vault or of all. */
  listUnpurged(vaultId: string | null, limit: number): Promise<UnpurgedCredential[]>;
  list(options: {
    vaultId: string;
    before: string | null;
    limit: number;
    withArchived: boolean;
  }): Promise<CredentialRecord[]>;
}

/** A credential that is out of use, with what is left of it. */
export interface UnpurgedCredential {
  workspaceId: string;
  vaultId: string;
  credentialId: string;
  isDeleted: boolean;
  isSecretRemoved: boolean;
}

/** A stored binding with its MAC and fence. */
export interface StoredBinding extends BindingFields {
  mac: Buffer;
  lowestEpoch: bigint | null;
  ended: boolean | null;
}

/** Bindings, tokens and fences. */
export interface BindingStore {
  /** Stores a binding and its fence; false when the session is bound already. */
  insert(row: BindingFields, mac: Buffer): Promise<boolean>;
  /** Replaces the MCP servers of the binding that has the MAC `before`; false when there is none. */
  replaceServers(row: BindingFields, mac: Buffer, before: Buffer): Promise<boolean>;
  find(sessionId: string): Promise<StoredBinding | undefined>;
  insertToken(row: TokenFields, mac: Buffer): Promise<void>;
  raiseFence(sessionId: string, lowestEpoch: bigint, ended: boolean): Promise<void>;
}

/** What is kept at Vault for a credential. */
export interface SecretDocument {
  /** The token, key or value; of mcp_oauth the access token. */
  secret: string;
  refresh_token?: string;
  client_secret?: string;
  /** When the access token expires, as in the record. */
  expires_at?: string;
}

/** A secret that was written at Vault. */
export interface WrittenSecret {
  version: bigint;
  /** Vault's id of the request that wrote it. */
  vaultRequestId: string;
}

/** Writes and removes secrets at Vault; it cannot read one. */
export interface SecretWriter {
  /** Stores a document. */
  write(vaultId: string, credentialId: string, document: SecretDocument): Promise<WrittenSecret>;
  /** Changes fields of the newest version, by making another; undefined when there is none. */
  patch(
    vaultId: string,
    credentialId: string,
    fields: Partial<SecretDocument>,
  ): Promise<WrittenSecret | undefined>;
  /** Destroys versions that were replaced. */
  destroy(vaultId: string, credentialId: string, versions: readonly bigint[]): Promise<void>;
  /** Removes the secret, all versions of it. */
  remove(vaultId: string, credentialId: string): Promise<void>;
}

/** A sealed secret as it came. */
export interface Sealed {
  keyId: string;
  enc: Uint8Array;
  ciphertext: Uint8Array;
}

/** Opens sealed secrets. */
export interface SealOpener {
  /** The secret that was sealed for that vault and destination; undefined when it cannot be opened. */
  open(sealed: Sealed, purpose: SealPurpose): Promise<Buffer | undefined>;
}
