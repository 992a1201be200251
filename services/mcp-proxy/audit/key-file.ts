import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What anybody may know of a checkpoint key. */
export interface PublishedKey {
  keyId: string;
  vkey: string;
  createdAt: string;
  signedBy?: string;
  signature?: string;
}

/** The file keys.json of docs/AUDIT_FORMAT.md. */
export function keyFile(logId: string, keys: readonly PublishedKey[]): string {
  const listed = keys.map(({ keyId, vkey, createdAt, signedBy, signature }) => ({
    key_id: keyId,
    vkey,
    created_at: createdAt,
    ...(signedBy === undefined ? {} : { signed_by: signedBy, signature }),
  }));
  return `${JSON.stringify({ v: 1, log_id: logId, keys: listed }, null, 2)}\n`;
}

/** Puts the file beside the records, whole or not at all. */
export async function writeKeyFile(folder: string, instance: string, text: string): Promise<void> {
  const partial = join(folder, `.keys.json.${instance}`);
  await writeFile(partial, text, { mode: 0o600 });
  await rename(partial, join(folder, "keys.json"));
}
