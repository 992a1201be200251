import type { IncomingMessage, ServerResponse } from "node:http";
import { Provider } from "oidc-provider";

/** A client that is known from the start. */
export interface KnownClient {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly token_endpoint_auth_method: "none" | "client_secret_basic" | "client_secret_post";
}

/** What can be changed while it runs. */
export interface ServerTerms {
  /** Life of the access tokens that are granted from now on. */
  accessTtlS: number;
}

const SCOPES = ["openid", "offline_access", "mcp"];

/**
 * createAuthorizationServer makes a real OAuth server (oidc-provider): PKCE with S256 required, clients register themselves,
 * access tokens are for one resource, refresh tokens rotate, and one that is used twice ends all that came from it.
 */
export function createAuthorizationServer(
  issuer: string,
  resource: string,
  clients: readonly KnownClient[],
  terms: ServerTerms,
): Provider {
  const provider = new Provider(issuer, {
    clients: clients.map((client) => ({
      ...client,
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/callback"],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    })),
    scopes: SCOPES,
    clientAuthMethods: ["none", "client_secret_basic", "client_secret_post"],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    ttl: {
      AccessToken: () => terms.accessTtlS,
      RefreshToken: 3600,
      Grant: 3600,
      Session: 3600,
      Interaction: 600,
    },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: async () => resource,
        useGrantedResource: async () => true,
        getResourceServerInfo: async () => ({
          scope: "mcp",
          audience: resource,
          accessTokenTTL: terms.accessTtlS,
          accessTokenFormat: "opaque",
        }),
      },
    },
  });
  // Its own address is http on loopback; the certificate of a real one is not what is tested here.
  provider.proxy = false;
  return provider;
}

/** followTokens keeps every access and refresh token that is given out from now on. */
export function followTokens(provider: Provider): readonly string[] {
  const tokens: string[] = [];
  provider.on("access_token.saved", ({ jti }) => tokens.push(jti));
  provider.on("refresh_token.saved", ({ jti }) => tokens.push(jti));
  return tokens;
}

/** Plays the person: logs in and agrees to everything, at once. */
export async function agree(
  provider: Provider,
  resource: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: "person", clientId: String(params.client_id) });
  grant.addOIDCScope(SCOPES.join(" "));
  grant.addResourceScope(resource, "mcp");
  const grantId = await grant.save();
  await provider.interactionFinished(
    request,
    response,
    { login: { accountId: "person" }, consent: { grantId } },
    { mergeWithLastSubmission: false },
  );
}

/** Tokens as an authorization would have given them. */
export async function mint(
  provider: Provider,
  resource: string,
  clientId: string,
): Promise<{ access_token: string; refresh_token: string }> {
  const client = await provider.Client.find(clientId);
  if (!client) throw new Error("no such client");
  const grant = new provider.Grant({ accountId: "person", clientId });
  grant.addOIDCScope(SCOPES.join(" "));
  grant.addResourceScope(resource, "mcp");
  const grantId = await grant.save();
  const common = { accountId: "person", client, grantId, gty: "authorization_code", scope: "mcp" };
  const access = new provider.AccessToken({ ...common, aud: resource } as never);
  access.resourceServer = new provider.ResourceServer(resource, {
    scope: "mcp",
    audience: resource,
    accessTokenFormat: "opaque",
  });
  const refresh = new provider.RefreshToken({
    ...common,
    scope: "openid offline_access mcp",
    resource,
    rotations: 0,
    authTime: Math.floor(Date.now() / 1000),
  } as never);
  return { access_token: await access.save(), refresh_token: await refresh.save() };
}
