import { proxyError } from "./proxy-error.ts";
import type { Sealed, SealOpener, SealPurpose } from "./records.ts";
import { isSendable, MAX_SECRET_BYTES, MIN_STORED_BYTES } from "./sendable.ts";

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
  const isFit = opened.length >= MIN_STORED_BYTES && opened.length <= MAX_SECRET_BYTES && isSendable(text);
  opened.fill(0);
  if (isFit) return text;
  throw proxyError("INVALID_FIELD", {
    message: `${field} must be ${MIN_STORED_BYTES} to ${MAX_SECRET_BYTES} bytes of printable ASCII without spaces around it`,
    metadata: { field },
  });
}
