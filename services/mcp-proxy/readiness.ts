import { VaultFailure } from "./vault/vault-failure.ts";

/** One part of readiness: what a check of it comes to. A database's own words stay inside. */
export async function readinessPart(name: string, check: Promise<unknown>) {
  try {
    await check;
    return { name, ok: true };
  } catch (error) {
    return { name, ok: false, detail: error instanceof VaultFailure ? error.message : "no answer" };
  }
}
