import { parseDestination } from "../canonical-url.ts";
import type { TokenEndpointAuth } from "../credential-config.ts";
import { proxyError } from "../proxy-error.ts";
import type { Reply } from "./oauth-ports.ts";

/** What the metadata of a protected resource says (RFC 9728). */
export interface ResourceMetadata {
  resource: string;
  issuer: string;
  scopes: string[];
}

/** What the metadata of an authorization server says (RFC 8414, OpenID Connect Discovery). */
export interface ServerMetadata {
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  registrationEndpoint: string | undefined;
  scopes: string[];
  authMethods: TokenEndpointAuth[];
  hasPkce: boolean;
  /** It puts its name into the redirect (RFC 9207). */
  sendsIss: boolean;
}

const METHODS: readonly TokenEndpointAuth[] = ["none", "client_secret_basic", "client_secret_post"];
// RFC 3986 without what means something to a shell: such a URL is printed for a person, or given to a browser (case A050).
const PLAIN_URL = /^https?:\/\/[A-Za-z0-9\-._~:/?#[\]@!*+,=&%]+$/;

/** A parameter of the challenge of a 401: `resource_metadata` or `scope`. */
export function challengeParameter(
  challenge: string,
  name: "resource_metadata" | "scope",
): string | undefined {
  const found = new RegExp(`(?:^|[\\s,])${name}="([^"\\\\]{1,2048})"`, "i").exec(challenge);
  return found?.[1];
}

/** Where a protected resource's metadata may be when its challenge does not say so. */
export function resourceMetadataUrls(serverUrl: string): string[] {
  const { origin, pathname, search } = new URL(serverUrl);
  const root = `${origin}/.well-known/oauth-protected-resource`;
  return pathname === "/" ? [root] : [`${root}${pathname}${search}`, root];
}

/** Where an authorization server's metadata may be, in the order in which MCP asks. */
export function serverMetadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, "");
  if (path === "") {
    return [`${origin}/.well-known/oauth-authorization-server`, `${origin}/.well-known/openid-configuration`];
  }
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
}

/** Reads a protected resource's metadata; undefined when the reply has none. */
export function readResourceMetadata(reply: Reply): ResourceMetadata | undefined {
  const json = jsonOf(reply);
  const issuer = Array.isArray(json?.authorization_servers) ? json.authorization_servers[0] : undefined;
  const resource = json?.resource;
  if (typeof resource !== "string" || typeof issuer !== "string") return undefined;
  if (!parseDestination(resource) || !parseDestination(issuer)) return undefined;
  return { resource, issuer, scopes: textsOf(json?.scopes_supported) };
}

/** True when metadata that names `resource` may speak of the server: its own URL, or one above it on the same origin. */
export function isResourceOf(resource: string, serverUrl: string): boolean {
  const [above, server] = [new URL(resource), new URL(serverUrl)];
  if (above.origin !== server.origin) return false;
  const path = above.pathname.replace(/\/*$/, "/");
  return above.search === "" || above.search === server.search
    ? `${server.pathname.replace(/\/*$/, "/")}`.startsWith(path)
    : false;
}

/** Reads an authorization server's metadata; undefined when the reply has none. Throws when it lacks what is needed. */
export function readServerMetadata(reply: Reply): ServerMetadata | undefined {
  const json = jsonOf(reply);
  if (!json || typeof json.issuer !== "string") return undefined;
  const { authorization_endpoint: authorizationEndpoint, token_endpoint: tokenEndpoint } = json;
  if (typeof authorizationEndpoint !== "string") throw lacking("authorization_endpoint");
  if (typeof tokenEndpoint !== "string") throw lacking("token_endpoint");
  const methods = textsOf(json.token_endpoint_auth_methods_supported);
  const registration = json.registration_endpoint;
  return {
    issuer: json.issuer,
    authorizationEndpoint,
    tokenEndpoint,
    registrationEndpoint: typeof registration === "string" ? registration : undefined,
    scopes: textsOf(json.scopes_supported),
    // Without the list a server takes client_secret_basic (RFC 8414 §2).
    authMethods:
      methods.length === 0 ? ["client_secret_basic"] : METHODS.filter((one) => methods.includes(one)),
    hasPkce: textsOf(json.code_challenge_methods_supported).includes("S256"),
    sendsIss: json.authorization_response_iss_parameter_supported === true,
  };
}

/** True when both name the same issuer: equal, or different only in how the URL's root is written. */
export function isSameIssuer(named: string, expected: string): boolean {
  if (named === expected) return true;
  return URL.canParse(named) && URL.canParse(expected) && new URL(named).href === new URL(expected).href;
}

/** True for a URL that a person may be sent to: nothing in it means anything to a shell. */
export function isPlainUrl(text: string): boolean {
  return text.length <= 2048 && PLAIN_URL.test(text) && parseDestination(text) !== undefined;
}

/** The error for what a server does not offer. */
export function lacking(missing: string) {
  return proxyError("OAUTH_NOT_SUPPORTED", { metadata: { missing } });
}

/** The JSON object of a reply of status 200 or 201. */
export function jsonOf(reply: Reply): Record<string, unknown> | undefined {
  if (!reply.ok || (reply.status !== 200 && reply.status !== 201)) return undefined;
  try {
    const json: unknown = JSON.parse(reply.body);
    return typeof json === "object" && json !== null && !Array.isArray(json)
      ? (json as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((one): one is string => typeof one === "string").slice(0, 100)
    : [];
}
