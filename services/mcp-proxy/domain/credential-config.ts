/** What a credential is for, and how it is sent. */
export type CredentialKind = "static_bearer" | "mcp_oauth" | "environment_variable" | "model_api_key";

/** Kinds that go to an MCP server as "Authorization: Bearer". */
export const MCP_KINDS: readonly CredentialKind[] = ["static_bearer", "mcp_oauth"];

/** How an OAuth client shows at its token endpoint who it is. */
export type TokenEndpointAuth = "none" | "client_secret_basic" | "client_secret_post";

/** How an access token is refreshed; the tokens themselves are Vault's. */
export interface RefreshConfig {
  client_id: string;
  /** As the caller wrote it. */
  token_endpoint: string;
  token_endpoint_auth: TokenEndpointAuth;
  scope?: string;
  resource?: string;
}

/** Hosts to which a secret may go; entries in lower case. */
export type CredentialNetworking = { type: "unrestricted" } | { type: "limited"; allowed_hosts: string[] };

/** What is not secret of a credential, by kind, as it is stored: a change of it changes the row's MAC. */
export interface CredentialConfig {
  /** mcp_oauth: RFC 3339; absent = not known. */
  expires_at?: string;
  /** mcp_oauth: when mcp-proxy itself got the access token, RFC 3339; absent = somebody else did. */
  obtained_at?: string;
  /** mcp_oauth: absent = it cannot be refreshed. */
  refresh?: RefreshConfig;
  /** environment_variable: always there. */
  networking?: CredentialNetworking;
  /** environment_variable: always there, one of the two is true. */
  injection_location?: { header: boolean; body: boolean };
}
