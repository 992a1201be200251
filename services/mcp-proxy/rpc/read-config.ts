import type { Violations } from "../../common/errors/violations.ts";
import {
  type InjectionLocation,
  type CredentialNetworking as NetworkingMessage,
  type OAuthRefresh,
  TokenEndpointAuth,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import { parseDestination } from "../domain/canonical-url.ts";
import type {
  TokenEndpointAuth as AuthName,
  CredentialConfig,
  CredentialNetworking,
  RefreshConfig,
} from "../domain/credential-config.ts";
import { isAllowedHost, MAX_HOSTS } from "../domain/credential-rules.ts";

/** Ways to authenticate at a token endpoint, as they are stored and as the message has them. */
export const AUTH_NAMES = new Map<TokenEndpointAuth, AuthName>([
  [TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_NONE, "none"],
  [TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_BASIC, "client_secret_basic"],
  [TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_POST, "client_secret_post"],
]);

/** Text that can be a parameter of OAuth as it is. */
export const PRINTABLE = { pattern: /^[\x21-\x7e]+$/, patternMeans: "printable ASCII without spaces" };
/** scope of RFC 6749: tokens of these characters with single spaces between them. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/;
/** The year 9999. */
const MAX_SECONDS = 253_402_300_799n;

/** Reads when a token expires: in the future, as RFC 3339; absent stays absent. */
export function readExpiry(found: Violations, field: string, at: Timestamp | undefined): string | undefined {
  if (!at) return undefined;
  const isFit = at.seconds > 0n && at.seconds <= MAX_SECONDS && at.nanos >= 0 && at.nanos <= 999_999_999;
  found.check(isFit, field, "must be a point in time");
  if (!isFit) return undefined;
  const ms = Number(at.seconds) * 1000 + Math.floor(at.nanos / 1_000_000);
  found.check(ms > Date.now(), field, "must be in the future");
  return new Date(ms).toISOString();
}

/** Checks a scope. */
export function readScope(found: Violations, field: string, scope: string): void {
  found.string(field, scope, { maxLength: 4096, pattern: SCOPE, patternMeans: "an OAuth scope" });
}

/** Reads how a token is refreshed. */
export function readRefresh(found: Violations, field: string, refresh: OAuthRefresh): RefreshConfig {
  const { clientId, tokenEndpoint, tokenEndpointAuth, scope, resource } = refresh;
  found.string(`${field}.client_id`, clientId, { ...PRINTABLE, required: true, maxLength: 1024 });
  readUrl(found, `${field}.token_endpoint`, tokenEndpoint, { required: true });
  const auth = AUTH_NAMES.get(tokenEndpointAuth);
  found.check(auth !== undefined, `${field}.token_endpoint_auth`, "is required");
  readScope(found, `${field}.scope`, scope);
  readUrl(found, `${field}.resource`, resource);
  return {
    client_id: clientId,
    token_endpoint: tokenEndpoint,
    token_endpoint_auth: auth ?? "none",
    ...(scope === "" ? {} : { scope }),
    ...(resource === "" ? {} : { resource }),
  };
}

/** Reads to which hosts a secret may go; what is not said is not allowed. */
export function readNetworking(
  found: Violations,
  field: string,
  networking: NetworkingMessage | undefined,
): CredentialNetworking {
  if (networking?.scope?.$case === "unrestricted") return { type: "unrestricted" };
  const hosts = networking?.scope?.$case === "limited" ? networking.scope.value.allowedHosts : [];
  found.check(networking?.scope !== undefined, field, "is required");
  found.count(`${field}.allowed_hosts`, hosts.length, { max: MAX_HOSTS });
  const lower = hosts.slice(0, MAX_HOSTS).map((host) => host.toLowerCase());
  for (const [index, host] of lower.entries()) {
    const means = 'must be a host name, an IPv4 address or "*." and the end of a name, without port and path';
    found.check(isAllowedHost(host), `${field}.allowed_hosts[${index}]`, means);
  }
  return { type: "limited", allowed_hosts: lower };
}

/** Reads where in a request the placeholder is replaced; one of the places must be on. */
export function readInjection(
  found: Violations,
  field: string,
  places: InjectionLocation | undefined,
): NonNullable<CredentialConfig["injection_location"]> {
  if (!places) return { header: true, body: true };
  const { header = false, body = false } = places;
  found.check(header || body, field, "header or body must be true");
  return { header, body };
}

/** Reads the URL of a server, in normal form; empty where there is none. */
export function readUrl(found: Violations, field: string, text: string, { required = false } = {}): string {
  found.string(field, text, { required, maxLength: 2048 });
  const url = parseDestination(text)?.url;
  const means = "must be an http or https URL without user name, fragment, spaces and backslashes";
  found.check(text === "" || url !== undefined, field, means);
  return url ?? "";
}
