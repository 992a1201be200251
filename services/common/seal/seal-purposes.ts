import type { Credential } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { SealPurpose } from "./seal-format.ts";

/** What each secret of a credential is sealed for. */
export interface SealPurposes {
  /** The token, key or value; of mcp_oauth the access token. */
  readonly secret: SealPurpose;
  readonly refreshToken: SealPurpose;
  readonly clientSecret: SealPurpose;
}

/**
 * sealPurposes says for what the secrets of a credential are to be sealed: `auth` is that of the request that makes the
 * credential or, for a change, that of its record.
 */
export function sealPurposes(vaultId: string, auth: NonNullable<Credential["auth"]>): SealPurposes {
  const endpoint = auth.$case === "mcpOauth" ? auth.value.refresh?.tokenEndpoint : undefined;
  return purposesOf(vaultId, ...keyOf(auth), endpoint);
}

/** purposesOf says the same of a credential that is known by kind, by what it is for, and by its token endpoint if it has one. */
export function purposesOf(
  vaultId: string,
  kind: string,
  destination: string,
  tokenEndpoint = "",
): SealPurposes {
  const atEndpoint = (field: string) => ({
    vaultId,
    purpose: `mcp_oauth.${field}`,
    destination: tokenEndpoint,
  });
  return {
    secret: { vaultId, purpose: kind, destination },
    refreshToken: atEndpoint("refresh_token"),
    clientSecret: atEndpoint("client_secret"),
  };
}

function keyOf(auth: NonNullable<Credential["auth"]>): [kind: string, destination: string] {
  switch (auth.$case) {
    case "staticBearer":
      return ["static_bearer", auth.value.mcpServerUrl];
    case "mcpOauth":
      return ["mcp_oauth", auth.value.mcpServerUrl];
    case "environmentVariable":
      return ["environment_variable", auth.value.secretName];
    case "modelApiKey":
      return ["model_api_key", auth.value.baseUrl];
  }
}
