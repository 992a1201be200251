import { proxyError } from "../proxy-error.ts";
import {
  type Asker,
  type AuditedDeps,
  denyRequest,
  judgeUrl,
  type OwnRequest,
  openRequest,
} from "./audited-request.ts";
import type { OauthExchanges, Reply } from "./oauth-ports.ts";
import {
  challengeParameter,
  isPlainUrl,
  isResourceOf,
  isSameIssuer,
  lacking,
  type ResourceMetadata,
  readResourceMetadata,
  readServerMetadata,
  resourceMetadataUrls,
  type ServerMetadata,
  serverMetadataUrls,
} from "./server-metadata.ts";

/** What discovery needs. */
export interface DiscoveryDeps extends AuditedDeps {
  exchanges: Pick<OauthExchanges, "getJson" | "probe">;
}

/** What was found out about how to log in at an MCP server. */
export interface Discovered {
  server: ServerMetadata;
  /** The resource that tokens shall be for (RFC 8707). */
  resource: string;
  /** What the MCP server asks for; empty when it does not say. */
  scopes: string[];
}

/**
 * Finds the authorization server of an MCP server: challenge, protected resource's metadata, authorization server's metadata.
 * Each of these is a request of its own in the audit log, and each URL in them is judged before anything goes there.
 */
export async function discoverServer(
  deps: DiscoveryDeps,
  asker: Asker,
  serverUrl: string,
): Promise<Discovered> {
  const first = await openRequest(deps, requestOf(asker, serverUrl, "POST"));
  const challenge = await first.send((target) => deps.exchanges.probe(target, undefined));
  if (!challenge.ok) throw unreachable(challenge);

  const found = await findResource(deps, asker, serverUrl, challenge.challenge);
  // Servers of before RFC 9728 are their own authorization servers.
  const issuer = found?.issuer ?? new URL(serverUrl).origin;
  const server = await findServer(deps, asker, issuer);
  if (!server.hasPkce) throw lacking("code_challenge_methods_supported: S256");
  if (!isPlainUrl(server.authorizationEndpoint)) {
    return denyRequest(deps, requestOf(asker, server.authorizationEndpoint, "GET"), "URL_NOT_CANONICAL");
  }
  await judgeUrl(deps, requestOf(asker, server.authorizationEndpoint, "GET"));
  await judgeUrl(deps, requestOf(asker, server.tokenEndpoint, "POST"));
  const asked = challengeParameter(challenge.challenge, "scope")?.split(" ").filter(Boolean);
  return { server, resource: found?.resource ?? serverUrl, scopes: asked ?? found?.scopes ?? [] };
}

async function findResource(
  deps: DiscoveryDeps,
  asker: Asker,
  serverUrl: string,
  challenge: string,
): Promise<ResourceMetadata | undefined> {
  const named = challengeParameter(challenge, "resource_metadata");
  for (const url of named === undefined ? resourceMetadataUrls(serverUrl) : [named]) {
    const metadata = readResourceMetadata(await ask(deps, asker, url));
    if (!metadata) continue;
    if (!isResourceOf(metadata.resource, serverUrl)) {
      return denyRequest(deps, requestOf(asker, url, "GET"), "RESOURCE_MISMATCH");
    }
    return metadata;
  }
  if (named !== undefined) throw lacking("protected resource metadata");
  return undefined;
}

async function findServer(deps: DiscoveryDeps, asker: Asker, issuer: string): Promise<ServerMetadata> {
  for (const url of serverMetadataUrls(issuer)) {
    const metadata = readServerMetadata(await ask(deps, asker, url));
    if (!metadata) continue;
    // Otherwise one server could speak for another, and be sent its codes (case A048).
    if (!isSameIssuer(metadata.issuer, issuer)) {
      return denyRequest(deps, requestOf(asker, url, "GET"), "ISSUER_MISMATCH");
    }
    return metadata;
  }
  throw lacking("authorization server metadata");
}

async function ask(deps: DiscoveryDeps, asker: Asker, url: string): Promise<Reply> {
  const request = await openRequest(deps, requestOf(asker, url, "GET"));
  const reply = await request.send((target) => deps.exchanges.getJson(target));
  if (!reply.ok) throw unreachable(reply);
  return reply;
}

function requestOf(asker: Asker, url: string, method: "GET" | "POST"): OwnRequest {
  return { operation: "oauth.discovery", asker, url, method };
}

/** The error for an exchange without an answer. */
export function unreachable(reply: Reply & { ok: false }) {
  const metadata: Record<string, string> = reply.status > 0 ? { upstream_status: String(reply.status) } : {};
  if (reply.failure === "redirect") return proxyError("UPSTREAM_REDIRECT", { metadata });
  if (reply.failure === "timeout") return proxyError("UPSTREAM_TIMEOUT");
  if (reply.failure === "too_large") return proxyError("MESSAGE_TOO_LARGE");
  return proxyError(reply.failure === "unreachable" ? "UPSTREAM_UNREACHABLE" : "UPSTREAM_MALFORMED");
}
