import { isSendable } from "../../common/seal/secret-form.ts";
import type { StoredDocument } from "../domain/oauth/oauth-ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { SecretDocument } from "../domain/records.ts";
import type { HeldToken } from "./session-tokens.ts";
import type { VaultAnswer, VaultClient } from "./vault-client.ts";
import { isVaultFailure, VaultFailure } from "./vault-failure.ts";

/** Reads what is kept for a credential; undefined when there is no secret. */
export async function readStored(
  client: VaultClient,
  path: string,
  { token, accessorHmac }: HeldToken,
): Promise<StoredDocument | undefined> {
  try {
    const stored = readAnswer(await client.read(path, token));
    return stored && { ...stored, accessorHmac };
  } catch (error) {
    if (isVaultFailure(error, "not_found")) return undefined;
    throw error;
  }
}

function readAnswer(answer: VaultAnswer): StoredDocument | undefined {
  const { data, metadata } = (answer.data ?? {}) as {
    data?: Record<string, unknown> | null;
    metadata?: { version?: unknown };
  };
  const { secret } = data ?? {};
  if (secret === undefined || secret === null || secret === "") return undefined;
  if (typeof secret !== "string" || !isSendable(secret)) throw proxyError("CRED_MALFORMED");
  if (typeof metadata?.version !== "number") throw new VaultFailure("malformed");
  const document: SecretDocument = { secret };
  for (const name of ["refresh_token", "client_secret", "expires_at"] as const) {
    const value = data?.[name];
    if (typeof value === "string" && value !== "") document[name] = value;
  }
  return { document, version: BigInt(metadata.version), vaultRequestId: answer.request_id ?? "" };
}
