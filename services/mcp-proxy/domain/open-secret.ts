import type { SealPurpose } from "../../common/seal/seal-format.ts";
import { purposesOf } from "../../common/seal/seal-purposes.ts";
import { isStorable, SECRET_MEANS } from "../../common/seal/secret-form.ts";
import type { CredentialConfig, CredentialKind } from "./credential-config.ts";
import { proxyError } from "./proxy-error.ts";
import type { Sealed, SealOpener, SecretDocument } from "./records.ts";

/** The sealed secrets of a request; what is absent was not sent. */
export interface SealedSecrets {
  /** The token, key or value; of mcp_oauth the access token. */
  secret?: Sealed;
  refreshToken?: Sealed;
  clientSecret?: Sealed;
}

/** Opens what came of a credential's secrets, each sealed for that credential and field. */
export async function openSecrets(
  seal: SealOpener,
  of: { vaultId: string; kind: CredentialKind; statedKey: string; config: CredentialConfig },
  { secret, refreshToken, clientSecret }: SealedSecrets,
): Promise<Partial<SecretDocument>> {
  const purposes = purposesOf(of.vaultId, of.kind, of.statedKey, of.config.refresh?.token_endpoint);
  const opened: Partial<SecretDocument> = {};
  if (secret) opened.secret = await openSecret(seal, secret, purposes.secret, "secret");
  if (refreshToken) {
    opened.refresh_token = await openSecret(seal, refreshToken, purposes.refreshToken, "refresh_token");
  }
  if (clientSecret) {
    opened.client_secret = await openSecret(seal, clientSecret, purposes.clientSecret, "client_secret");
  }
  return opened;
}

/** Opens a sealed secret of a request's field, and refuses one that could not be sent. No error tells its text. */
export async function openSecret(
  seal: SealOpener,
  sealed: Sealed,
  purpose: SealPurpose,
  field: string,
): Promise<string> {
  const opened = await seal.open(sealed, purpose);
  if (!opened) throw proxyError("SEAL_INVALID", { metadata: { field } });
  const text = opened.toString("latin1");
  opened.fill(0);
  if (isStorable(text)) return text;
  throw proxyError("INVALID_FIELD", { message: `${field} ${SECRET_MEANS}`, metadata: { field } });
}
