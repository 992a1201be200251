import {
  type CreateCredentialRequest,
  type CredentialNetworking,
  type InjectionLocation,
  type OAuthRefresh,
  TokenEndpointAuth,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import type { Invocation } from "../commands/command.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";

type Options = Invocation["options"];

const ENDPOINT_AUTHS: Record<string, TokenEndpointAuth> = {
  none: TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_NONE,
  client_secret_basic: TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_BASIC,
  client_secret_post: TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_POST,
};

/** authOf reads what a new credential is for. */
export function authOf(options: Options): NonNullable<CreateCredentialRequest["auth"]> {
  const { "mcp-url": mcpServerUrl, env } = options;
  if (typeof env === "string" && mcpServerUrl === undefined) {
    const networking = networkingOf(options);
    if (!networking) throw usage("--allow-host says where the secret may go; --any-host allows every host");
    const value = { secretName: env, networking, injectionLocation: placesOf(options) };
    return { $case: "environmentVariable", value };
  }
  if (typeof mcpServerUrl !== "string" || env !== undefined) {
    throw usage("either --mcp-url or --env says what the secret is for");
  }
  const refresh = refreshOf(options);
  if (options.oauth !== true && !refresh) return { $case: "staticBearer", value: { mcpServerUrl } };
  return { $case: "mcpOauth", value: { mcpServerUrl, expiresAt: expiryOf(options), refresh } };
}

/** networkingOf reads to which hosts a secret may go; undefined when no option says. */
export function networkingOf(options: Options): CredentialNetworking | undefined {
  const hosts = options["allow-host"];
  const isAny = options["any-host"] === true;
  if (isAny && hosts !== undefined) throw usage("either --any-host or --allow-host");
  if (isAny) return { scope: { $case: "unrestricted", value: {} } };
  if (!Array.isArray(hosts)) return undefined;
  return { scope: { $case: "limited", value: { allowedHosts: hosts } } };
}

/** placesOf reads where in a request a secret may be put; undefined when no option says. */
export function placesOf(options: Options): InjectionLocation | undefined {
  if (options.in === undefined) return undefined;
  const places = String(options.in).split(",");
  if (!places.every((place) => place === "header" || place === "body")) {
    throw usage("--in is header, body or header,body");
  }
  return { header: places.includes("header"), body: places.includes("body") };
}

/** expiryOf reads when an access token expires; undefined when no option says. */
export function expiryOf(options: Options): Timestamp | undefined {
  const text = options["expires-at"];
  if (text === undefined) return undefined;
  const ms = Date.parse(String(text));
  if (Number.isNaN(ms)) throw usage("--expires-at is a time like 2027-01-31T12:00:00Z");
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}

/** tokenAuthOf reads how a client shows at its token endpoint who it is. */
export function tokenAuthOf(options: Options): TokenEndpointAuth {
  const auth = ENDPOINT_AUTHS[String(options["token-auth"] ?? "none")];
  if (auth === undefined) throw usage(`--token-auth is one of ${Object.keys(ENDPOINT_AUTHS).join(", ")}`);
  return auth;
}

function refreshOf(options: Options): OAuthRefresh | undefined {
  const { "client-id": clientId, "token-endpoint": tokenEndpoint } = options;
  if (clientId === undefined && tokenEndpoint === undefined) return undefined;
  if (typeof clientId !== "string" || typeof tokenEndpoint !== "string") {
    throw usage("--client-id and --token-endpoint go together");
  }
  const tokenEndpointAuth = tokenAuthOf(options);
  const scope = options.scope === undefined ? "" : String(options.scope);
  return { clientId, tokenEndpoint, tokenEndpointAuth, scope, resource: String(options.resource) };
}

function usage(message: string): CliError {
  return new CliError(message, EXIT.usage, "ganglion help vault");
}
