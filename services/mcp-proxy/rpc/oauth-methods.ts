import { Violations } from "../../common/errors/violations.ts";
import { unary } from "../../common/grpc/handlers.ts";
import type { Principal } from "../../common/grpc/principal.ts";
import {
  type FinishAuthorizationRequest,
  type StartAuthorizationRequest,
  TokenEndpointAuth,
} from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { ChangeAsker } from "../domain/audited-change.ts";
import { finishAuthorization } from "../domain/oauth/finish-authorization.ts";
import {
  type AuthorizationDeps,
  type AuthorizationRequest,
  isLoopbackRedirect,
  startAuthorization,
} from "../domain/oauth/start-authorization.ts";
import { AUTH_NAMES, PRINTABLE, readScope, readUrl } from "./read-config.ts";
import { readSealed } from "./read-credential.ts";
import { checkMetadata, checkText, checkVaultId, confinementOf } from "./read-requests.ts";
import { toCredential } from "./to-messages.ts";

/** The methods of VaultService that connect a person. */
export function oauthMethods(deps: AuthorizationDeps) {
  return {
    startAuthorization: unary(async (req: StartAuthorizationRequest, ctx) => {
      const request = readStart(req);
      const begun = await startAuthorization(deps, request, whoIs(ctx.principal));
      ctx.note({ issuer: begun.issuer });
      return begun;
    }),
    finishAuthorization: unary(async (req: FinishAuthorizationRequest, ctx) => {
      checkFinish(req);
      return { credential: toCredential(await finishAuthorization(deps, req, whoIs(ctx.principal))) };
    }),
  };
}

/** Who is behind a request: what they are confined to, and how records name them. A key comes by somebody's certificate. */
export function whoIs(principal: Principal): ChangeAsker {
  const { spiffeId, peerSpiffeId, peerCertSha256: callerCert = "", keyId } = principal;
  const caller = keyId ? `${peerSpiffeId} for ${keyId}` : spiffeId;
  return { ...confinementOf(principal), caller, callerCert };
}

function readStart(req: StartAuthorizationRequest): AuthorizationRequest {
  const found = new Violations();
  checkVaultId(found, req.vaultId);
  checkText(found, "display_name", req.displayName, { required: false, maxLength: 255 });
  checkMetadata(found, req.metadata);
  const url = readUrl(found, "mcp_server_url", req.mcpServerUrl, { required: true });
  found.string("redirect_uri", req.redirectUri, { required: true, maxLength: 2048 });
  const isOwn = req.redirectUri === "" || isLoopbackRedirect(req.redirectUri);
  found.check(isOwn, "redirect_uri", "must be an http URL of a loopback address, without a query");
  readScope(found, "scope", req.scope);
  const client = readClient(found, req);
  found.throwIfAny();
  const { vaultId, displayName, metadata, mcpServerUrl: statedUrl, redirectUri, scope } = req;
  return { vaultId, displayName, metadata, url, statedUrl, redirectUri, scope, ...client };
}

function readClient(found: Violations, req: StartAuthorizationRequest): Pick<AuthorizationRequest, "client"> {
  const { clientId, tokenEndpointAuth } = req;
  const clientSecret = readSealed(found, "client_secret", req.clientSecret);
  const isNone = tokenEndpointAuth === TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_UNSPECIFIED;
  if (clientId === "") {
    found.check(isNone, "token_endpoint_auth", "goes with client_id only");
    found.check(clientSecret === undefined, "client_secret", "goes with client_id only");
    return {};
  }
  found.string("client_id", clientId, { ...PRINTABLE, maxLength: 1024 });
  const method = isNone ? "none" : AUTH_NAMES.get(tokenEndpointAuth);
  found.check(method !== undefined, "token_endpoint_auth", "is not one that is known");
  const isFit = (method === "none") === (clientSecret === undefined);
  found.check(isFit, "client_secret", "goes with the two ways that send it, and only with them");
  return { client: { clientId, method: method ?? "none", ...(clientSecret ? { clientSecret } : {}) } };
}

function checkFinish({ state, code, iss }: FinishAuthorizationRequest): void {
  const found = new Violations();
  const rules = { ...PRINTABLE, required: true };
  found.string("state", state, { ...rules, maxLength: 128 });
  found.string("code", code, { ...rules, maxLength: 4096 });
  checkText(found, "iss", iss, { required: false, maxLength: 2048 });
  found.throwIfAny();
}
