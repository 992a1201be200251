import type { AccessRow, CredentialRow } from "./access.ts";
import type { Destination } from "./canonical-url.ts";
import { isCredentialShaped } from "./credential-shaped.ts";
import { type DestinationPolicy, judgeDestination } from "./destination-policy.ts";
import { isHostListed, judgeNetworking } from "./hand-rules.ts";
import type { PlaceholderOf } from "./placeholder.ts";
import { proxyError } from "./proxy-error.ts";
import { isMac, type RowMac } from "./row-mac.ts";

/** A credential whose placeholder a session's hands have, and which may go to the host that is asked for. */
export interface Variable {
  credential: CredentialRow;
  placeholder: string;
  inHeader: boolean;
  inBody: boolean;
}

/** Refuses a destination that the session's environment or the operator does not allow; addresses are judged later. */
export function judgeHandDestination(
  destination: Destination,
  access: AccessRow,
  policy: DestinationPolicy,
): void {
  const reason = judgeNetworking(destination, access) ?? judgeDestination(destination, policy);
  if (reason) throw proxyError(reason);
}

/**
 * The credentials that may go to a host. None over plain HTTP (case A003): there the placeholder is what travels. Of
 * several vaults with the same name the first counts, as for the environment of the hand.
 */
export function variablesFor(
  { host, scheme }: Destination,
  access: AccessRow,
  { mac, placeholderOf }: { mac: RowMac; placeholderOf: PlaceholderOf },
): Variable[] {
  const names = new Set<string>();
  return access.credentials.flatMap((credential) => {
    if (credential.kind !== "environment_variable") return [];
    if (!isMac(credential.mac, mac.credential(credential))) throw proxyError("ROW_TAMPERED");
    const isFirst = !names.has(credential.secretName);
    names.add(credential.secretName);
    const { networking, injection_location: place } = credential.config;
    const isAllowed =
      networking?.type === "unrestricted" ||
      (networking?.type === "limited" && isHostListed(host, networking.allowed_hosts));
    if (!isFirst || !isAllowed || scheme !== "https") return [];
    const placeholder = placeholderOf(access.sessionId, credential.credentialId);
    return [{ credential, placeholder, inHeader: place?.header === true, inBody: place?.body === true }];
  });
}

/**
 * Refuses a credential of the caller's own towards a host for which the session has one (case A025): what may be read
 * there with another key is nobody's grant. A header that carries a placeholder, or a token that is sealed for there, is none.
 */
export function judgeOwnCredentials(
  rawHeaders: readonly string[],
  variables: readonly Variable[],
  isSealedIn: (value: string) => boolean = () => false,
): void {
  if (variables.length === 0) return;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? "").toLowerCase();
    const value = rawHeaders[i + 1] ?? "";
    if (!isCredentialShaped(name) || hasPlaceholder(value, variables) || isSealedIn(value)) continue;
    throw proxyError("HEADER_FORBIDDEN", { metadata: { header: name.slice(0, 64) } });
  }
}

function hasPlaceholder(value: string, variables: readonly Variable[]): boolean {
  const basic = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(value);
  const text = basic?.[1] ? Buffer.from(basic[1], "base64").toString("latin1") : value;
  return variables.some(({ placeholder }) => text.includes(placeholder));
}
