import { randomBytes } from "node:crypto";
import { readOrCreate } from "./proxy-keys.ts";
import type { VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

/** More keys than a mesh can come to in centuries; a loop that cannot run away. */
const MAX_KEYS = 1000;
const MAX_AGE_MS = 365 * 24 * 3_600_000;

/**
 * Reads the newest key for the audit log's HMACs; the first process that finds none makes one, and one that is a year old gets
 * a successor when a process starts. Each is a document of its own at Vault, because mcp-proxy may make one there and never
 * replace it; the old ones stay, for whoever looks something up.
 */
export async function loadAuditHmacKey(
  client: VaultClient,
  { mount, token, now = Date.now() }: { mount: string; token: string; now?: number },
): Promise<Buffer> {
  for (let number = 1; number <= MAX_KEYS; number += 1) {
    const path = `${mount}/data/proxy/audit-hmac-key-${number}`;
    const found = await readOrCreate(client, path, token, async () => ({
      key: randomBytes(32).toString("base64"),
      created_at: new Date(now).toISOString(),
    }));
    const key = Buffer.from(found.key ?? "", "base64");
    const createdAt = Date.parse(found.created_at ?? "");
    if (key.length !== 32 || Number.isNaN(createdAt)) throw new VaultFailure("malformed");
    if (now - createdAt <= MAX_AGE_MS) return key;
  }
  throw new VaultFailure("malformed");
}
