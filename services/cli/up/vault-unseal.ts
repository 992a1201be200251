import { existsSync, renameSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { type VaultHttp, VaultRefusal } from "./vault-http.ts";
import { readVaultKeys, type VaultKeys, writeVaultKeys } from "./vault-keys.ts";

const INIT_TIMEOUT_MS = 300_000;

/** initializeVault makes the keys of an empty vault and keeps them, or finds those of one that has data. */
export async function initializeVault(http: VaultHttp, keysFile: string): Promise<VaultKeys> {
  const { body } = await http.call("GET", "sys/init");
  if (body.initialized === true) {
    const keys = readVaultKeys(keysFile);
    if (!keys) throw new Error(`the vault has data but its unseal key is gone (${keysFile})`);
    return keys;
  }
  // An answer that comes too late would take the only copy of the key with it.
  const made = (
    await http.call("PUT", "sys/init", {
      body: { secret_shares: 1, secret_threshold: 1 },
      timeoutMs: INIT_TIMEOUT_MS,
    })
  ).body;
  const keys: VaultKeys = {
    unsealKey: (made.keys_base64 as [string])[0],
    rootToken: made.root_token as string,
  };
  setAside(keysFile);
  writeVaultKeys(keysFile, keys);
  return keys;
}

/** unsealVault opens the vault and waits until it takes writes. */
export async function unsealVault(http: VaultHttp, unsealKey: string, withinMs: number): Promise<void> {
  const { body } = await http.call("GET", "sys/seal-status");
  if (body.sealed === true)
    await http.call("PUT", "sys/unseal", { body: { key: unsealKey }, timeoutMs: withinMs });
  // A server that can have standbys is one itself for a moment: it answers 429 and takes no writes. [B117]
  for (const deadline = Date.now() + withinMs; ; ) {
    const { status } = await http.call("GET", "sys/health", { accept: [429, 472, 473, 501, 503] });
    if (status === 200) return;
    if (Date.now() > deadline) throw new VaultRefusal("sys/health", status, ["not active after unsealing"]);
    await wait(50);
  }
}

/** Keys of a vault whose data is gone are kept: it may come back. */
function setAside(keysFile: string): void {
  if (existsSync(keysFile)) renameSync(keysFile, `${keysFile}.${Date.now()}.old`);
}
