import { purposesOf } from "../../common/seal/seal-purposes.ts";
import { sealSecret } from "../../common/seal/seal-secret.ts";
import { type Credential, TokenEndpointAuth } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Invocation } from "../commands/command.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { visible } from "../terminal/visible-text.ts";
import type { Mesh } from "./connect-mesh.ts";
import { tokenAuthOf } from "./credential-options.ts";
import { isPlainUrl, openBrowser } from "./open-browser.ts";
import { readSecret } from "./read-secret.ts";
import { startRedirectListener } from "./redirect-listener.ts";

const WAIT_MS = 590_000;

/**
 * connectAccount connects a person to an MCP server with OAuth. This process only shows the address and hands on what the
 * browser brings back; mcp-proxy finds the server, redeems the code, and keeps the tokens.
 */
export async function connectAccount(
  mesh: Mesh,
  mcpServerUrl: string,
  invocation: Invocation,
): Promise<Credential> {
  const { options, terminal } = invocation;
  const vaultId = typeof options.vault === "string" ? options.vault : await onlyVault(mesh);
  const port = Number(options.port ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new CliError("--port must be from 0 to 65535", EXIT.usage);
  const client = await clientOf(mesh, vaultId, mcpServerUrl, options);
  const listener = await startRedirectListener(port);
  try {
    const { authorizationUrl, state, issuer } = await mesh.vaults.startAuthorization({
      ...{ vaultId, mcpServerUrl, metadata: {}, redirectUri: listener.redirectUri },
      displayName: typeof options.name === "string" ? options.name : "",
      scope: typeof options.scope === "string" ? options.scope : "",
      ...client,
    });
    if (!isPlainUrl(authorizationUrl))
      throw new CliError("the authorization address is not plain", EXIT.data);
    // Programs read the address too: it is where the person has to go.
    terminal.object({ authorizationUrl, issuer });
    terminal.line(`open this address in a browser, and agree at ${visible(issuer)}:`);
    terminal.line(authorizationUrl);
    const answering = listener.answer(state, WAIT_MS);
    if (options.open === true && !(await openBrowser(authorizationUrl)))
      terminal.line("there is no program here that opens a browser");
    const answer = await answering;
    if (!answer) throw new CliError("nobody came back within ten minutes", EXIT.temporary);
    if ("error" in answer) throw new CliError(`the server did not agree: ${answer.error}`, EXIT.noPermission);
    const made = await mesh.vaults.finishAuthorization({ state, ...answer });
    return made.credential as Credential;
  } finally {
    await listener.close();
  }
}

async function onlyVault(mesh: Mesh): Promise<string> {
  const request = { pageSize: 3, pageToken: "", includeArchived: false, workspaceId: "" };
  const vaults = (await mesh.vaults.listVaults(request)).vaults.filter(
    ({ isSystem, isDecoy }) => !isSystem && !isDecoy,
  );
  const [first] = vaults;
  if (vaults.length === 1 && first) return first.id;
  throw new CliError("--vault says where the credential shall be", EXIT.usage, "ganglion vault list");
}

async function clientOf(mesh: Mesh, vaultId: string, mcpServerUrl: string, options: Invocation["options"]) {
  const { "client-id": clientId = "" } = options;
  const none = TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_UNSPECIFIED;
  if (clientId === "") return { clientId: "", tokenEndpointAuth: none, clientSecret: undefined };
  const tokenEndpointAuth = tokenAuthOf(options);
  const known = { clientId: String(clientId), tokenEndpointAuth };
  if (tokenEndpointAuth === TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_NONE)
    return { ...known, clientSecret: undefined };
  const key = await mesh.vaults.getSealingKey({});
  // Which token endpoint it is for is found out later: the server stands for it.
  const { clientSecret: purpose } = purposesOf(vaultId, "mcp_oauth", mcpServerUrl, mcpServerUrl);
  return { ...known, clientSecret: await sealSecret(key, purpose, await readSecret("client secret")) };
}
