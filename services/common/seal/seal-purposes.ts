import type { Credential } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { SealPurpose } from "./seal-secret.ts";

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
  const [purpose, destination] = keyOf(auth);
  const endpoint = auth.$case === "mcpOauth" ? (auth.value.refresh?.tokenEndpoint ?? "") : "";
  return {
    secret: { vaultId, purpose, destination },
    refreshToken: { vaultId, purpose: "mcp_oauth.refresh_token", destination: endpoint },
    clientSecret: { vaultId, purpose: "mcp_oauth.client_secret", destination: endpoint },
  };
}

function keyOf(auth: NonNullable<Credential["auth"]>): [purpose: string, destination: string] {
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
