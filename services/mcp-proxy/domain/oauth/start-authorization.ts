import { createHash, randomBytes } from "node:crypto";
import { purposesOf } from "../../../common/seal/seal-purposes.ts";
import { isSendable } from "../../../common/seal/secret-form.ts";
import type { ChangeAsker } from "../audited-change.ts";
import { parseDestination } from "../canonical-url.ts";
import type { TokenEndpointAuth } from "../credential-config.ts";
import { type CredentialDeps, openVault } from "../manage-credentials.ts";
import { openSecret } from "../open-secret.ts";
import { proxyError } from "../proxy-error.ts";
import type { Sealed } from "../records.ts";
import type { RowBox } from "../row-box.ts";
import { type Asker, openRequest, withoutSession } from "./audited-request.ts";
import { type DiscoveryDeps, discoverServer, unreachable } from "./discover-server.ts";
import type { AuthorizationStore, OauthClient, OauthExchanges } from "./oauth-ports.ts";
import { jsonOf, lacking, type ServerMetadata } from "./server-metadata.ts";
import { refusalMetadata } from "./token-answer.ts";

/** What authorizations need. */
export interface AuthorizationDeps extends DiscoveryDeps {
  credentials: CredentialDeps;
  exchanges: OauthExchanges;
  authorizations: AuthorizationStore;
  box: RowBox;
  now: () => number;
}

/** What a person wants to be connected to. */
export interface AuthorizationRequest {
  vaultId: string;
  displayName: string;
  metadata: Record<string, string>;
  /** In normal form. */
  url: string;
  /** As the caller wrote it: a client's secret is sealed for that. */
  statedUrl: string;
  redirectUri: string;
  /** Empty = what the servers ask for. */
  scope: string;
  /** A client that was registered by hand; absent = one is registered now. */
  client?: { clientId: string; method: TokenEndpointAuth; clientSecret?: Sealed };
}

/** Everything that is needed to redeem the code; sealed in the database, so that any replica can. */
export interface PendingAuthorization {
  vaultId: string;
  displayName: string;
  metadata: Record<string, string>;
  url: string;
  issuer: string;
  sendsIss: boolean;
  tokenEndpoint: string;
  client: OauthClient;
  redirectUri: string;
  verifier: string;
  resource: string;
}

/** Begins an authorization: finds the server, gets a client, and answers the URL that the person has to open. */
export async function startAuthorization(
  deps: AuthorizationDeps,
  request: AuthorizationRequest,
  who: ChangeAsker,
): Promise<{ authorizationUrl: string; state: string; issuer: string }> {
  const { vaultId, url, redirectUri } = request;
  const { workspaceId } = await openVault(deps.credentials, vaultId, who);
  const asker = withoutSession(who, workspaceId);
  const key = { kind: "mcp_oauth", url, secretName: "" } as const;
  if (await deps.credentials.store.isKeyTaken(vaultId, key)) throw proxyError("CREDENTIAL_EXISTS");
  const { server, resource, scopes } = await discoverServer(deps, asker, url);
  const client = await clientFor(deps, request, server, asker);

  const state = randomBytes(32).toString("base64url");
  const verifier = randomBytes(32).toString("base64url");
  const { displayName, metadata } = request;
  const { issuer, sendsIss, tokenEndpoint } = server;
  const pending: PendingAuthorization = {
    ...{ vaultId, displayName, metadata, url, issuer, sendsIss, tokenEndpoint },
    ...{ client, redirectUri, verifier, resource },
  };
  const stateHash = hashState(state);
  const sealed = deps.box.seal(JSON.stringify(pending), placeOf(stateHash, vaultId));
  await deps.authorizations.begin(stateHash, vaultId, sealed);

  const scope = request.scope || scopeOf(scopes, server.scopes);
  const location = new URL(server.authorizationEndpoint);
  const parameters: Record<string, string> = {
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource,
    ...(scope ? { scope } : {}),
    // OpenID providers grant a refresh token only with the person's consent.
    ...(scope.split(" ").includes("offline_access") ? { prompt: "consent" } : {}),
  };
  for (const [name, value] of Object.entries(parameters)) location.searchParams.set(name, value);
  return { authorizationUrl: location.href, state, issuer };
}

/** What a state is found by: the database does not have the state itself. */
export function hashState(state: string): Buffer {
  return createHash("sha256").update(state).digest();
}

/** The row that a pending authorization is sealed for. */
export function placeOf(stateHash: Buffer, vaultId: string): string[] {
  return ["oauth_authorization", stateHash.toString("hex"), vaultId];
}

async function clientFor(
  deps: AuthorizationDeps,
  request: AuthorizationRequest,
  server: ServerMetadata,
  asker: Asker,
): Promise<OauthClient> {
  const { client, vaultId, statedUrl } = request;
  if (!client) return register(deps, request, server, asker);
  if (!client.clientSecret) return { clientId: client.clientId, method: "none" };
  // The token endpoint is not known yet to whoever seals it: the server stands for it.
  const { clientSecret: purpose } = purposesOf(vaultId, "mcp_oauth", statedUrl, statedUrl);
  const { seal } = deps.credentials;
  const clientSecret = await openSecret(seal, client.clientSecret, purpose, "client_secret");
  return { clientId: client.clientId, method: client.method, clientSecret };
}

async function register(
  deps: AuthorizationDeps,
  { redirectUri, scope }: AuthorizationRequest,
  server: ServerMetadata,
  asker: Asker,
): Promise<OauthClient> {
  const url = server.registrationEndpoint;
  if (url === undefined) throw lacking("registration_endpoint");
  const [method] = server.authMethods;
  if (method === undefined) throw lacking("token_endpoint_auth_methods_supported");
  const opened = await openRequest(deps, { operation: "oauth.register", asker, url, method: "POST" });
  const reply = await opened.send((target) =>
    deps.exchanges.register(target, {
      client_name: "Ganglion",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: method,
      application_type: "native",
      ...(scope ? { scope } : {}),
    }),
  );
  if (!reply.ok) throw unreachable(reply);
  const json = jsonOf(reply);
  const { client_id: clientId, client_secret: clientSecret, token_endpoint_auth_method: given } = json ?? {};
  if (typeof clientId !== "string" || !isSendable(clientId) || clientId.length > 1024) {
    throw proxyError("AUTHORIZATION_REFUSED", { metadata: refusalMetadata(reply) });
  }
  if (typeof clientSecret !== "string" || clientSecret === "") return { clientId, method: "none" };
  if (!isSendable(clientSecret)) throw proxyError("AUTHORIZATION_REFUSED");
  const chosen = (["client_secret_basic", "client_secret_post"] as const).find((one) => one === given);
  if (given === "none") return { clientId, method: "none" };
  return { clientId, method: chosen ?? "client_secret_basic", clientSecret };
}

/** What the MCP server asks for, and a refresh token where the authorization server knows how to give one. */
function scopeOf(asked: string[], supported: string[]): string {
  const scopes = new Set(asked);
  if (supported.includes("offline_access")) scopes.add("offline_access");
  // Scopes of OpenID Connect only work together with `openid`.
  if (scopes.has("offline_access") && supported.includes("openid")) scopes.add("openid");
  return [...scopes].filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)).join(" ");
}

/** True for where a person's browser may bring a code: a port of this person's own machine (RFC 8252). */
export function isLoopbackRedirect(text: string): boolean {
  const destination = parseDestination(text);
  if (destination?.scheme !== "http" || text.includes("?")) return false;
  return destination.host === "127.0.0.1" || destination.host === "::1" || destination.host === "localhost";
}
