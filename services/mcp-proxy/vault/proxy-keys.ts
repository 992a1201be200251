import { randomBytes } from "node:crypto";
import { generateSealingKey, openSealingKey, type SealingKey } from "./sealing-key.ts";
import type { VaultClient } from "./vault-client.ts";
import { isVaultFailure, VaultFailure } from "./vault-failure.ts";
import { WrongMount } from "./wrong-mount.ts";

/** Keys of mcp-proxy that live in Vault. */
export interface ProxyKeys {
  /** For the MACs of rows; 32 bytes. */
  macKey: Buffer;
  /** Secrets are sealed to its public half. */
  sealingKey: SealingKey;
}

/** Reads the keys; the first process that finds none makes them. */
export async function loadProxyKeys(client: VaultClient, mount: string, token: string): Promise<ProxyKeys> {
  const mac = await readOrCreate(client, `${mount}/data/proxy/mac-key`, token, async () => ({
    key: randomBytes(32).toString("base64"),
  }));
  const sealing = await readOrCreate(client, `${mount}/data/proxy/sealing-key`, token, generateSealingKey);
  const macKey = Buffer.from(mac.key ?? "", "base64");
  if (macKey.length !== 32) throw new VaultFailure("malformed");
  return { macKey, sealingKey: await openSealingKey(sealing) };
}

/** Reads a document of ours, or makes it; of two processes that find none, one writes and the other reads. */
export async function readOrCreate(
  client: VaultClient,
  path: string,
  token: string,
  make: () => Promise<Record<string, string>>,
): Promise<Record<string, string>> {
  const found = await readFields(client, path, token);
  if (found) return found;
  const made = await make();
  try {
    // cas 0: only when there is none. Of two replicas that start together one writes and the other reads.
    const { data } = await client.write(path, { options: { cas: 0 }, data: made }, token);
    // A KV version 1 mount stores whatever it gets, as it is, and says nothing of a version.
    if (typeof data?.version !== "number") throw new WrongMount(path);
    return made;
  } catch (error) {
    // There is nothing that could take a write: no mount, or one whose paths lack data/.
    if (isVaultFailure(error, "not_found", "misrouted")) throw new WrongMount(path);
    const winner = await readFields(client, path, token);
    if (winner) return winner;
    throw error;
  }
}

/** A document of ours at Vault; undefined when there is none. */
export async function readFields(client: VaultClient, path: string, token: string) {
  try {
    const { data } = await client.read(path, token);
    const { data: fields, metadata } = data ?? {};
    if (typeof metadata !== "object" || metadata === null) throw new WrongMount(path);
    if (typeof fields === "object" && fields !== null) return fields as Record<string, string>;
  } catch (error) {
    if (isVaultFailure(error, "misrouted")) throw new WrongMount(path);
    if (isVaultFailure(error, "not_found")) return undefined;
    throw error;
  }
  throw new VaultFailure("malformed");
}
