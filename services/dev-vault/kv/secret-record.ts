/** SecretVersion is one write of a secret; a deleted one keeps its data until it is destroyed. */
export interface SecretVersion {
  readonly createdAt: string;
  readonly deletedAt: string;
  readonly isDestroyed: boolean;
  readonly data: Readonly<Record<string, unknown>> | null;
}

/** SecretRecord is all that is kept of one KV v2 path. */
export interface SecretRecord {
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly currentVersion: number;
  /** 0 stands for the engine's own limit. */
  readonly maxVersions: number;
  readonly isCasRequired: boolean;
  readonly customMetadata: Readonly<Record<string, string>> | null;
  readonly versions: Readonly<Record<string, SecretVersion>>;
}

/** newRecord is a path before its first version. */
export function newRecord(): SecretRecord {
  const now = new Date().toISOString();
  return {
    createdAt: now,
    updatedAt: now,
    currentVersion: 0,
    maxVersions: 0,
    isCasRequired: false,
    customMetadata: null,
    versions: {},
  };
}

const DEFAULT_MAX_VERSIONS = 10;

/** addVersion appends a version and drops those beyond the limit. */
export function addVersion(record: SecretRecord, data: Readonly<Record<string, unknown>>): SecretRecord {
  const now = new Date().toISOString();
  const currentVersion = record.currentVersion + 1;
  const oldest = currentVersion - (record.maxVersions || DEFAULT_MAX_VERSIONS);
  const kept = Object.entries(record.versions).filter(([version]) => Number(version) > oldest);
  const added: SecretVersion = { createdAt: now, deletedAt: "", isDestroyed: false, data };
  return {
    ...record,
    updatedAt: now,
    currentVersion,
    versions: { ...Object.fromEntries(kept), [currentVersion]: added },
  };
}

/** changeVersions applies a change to the versions that exist among those given. */
export function changeVersions(
  record: SecretRecord,
  numbers: readonly number[],
  change: (version: SecretVersion) => SecretVersion,
): SecretRecord {
  const versions = { ...record.versions };
  for (const number of numbers) {
    const version = versions[number];
    if (version) versions[number] = change(version);
  }
  return { ...record, versions };
}
