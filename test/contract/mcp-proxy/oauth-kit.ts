import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../../services/common/ids/new-id.ts";
import {
  type Record as AuditRecord,
  AuditServiceService,
} from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { McpProxyServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { type Credential, TokenEndpointAuth } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import type { TestOauthServer } from "../../kit/oauth-server.ts";
import { type BoundSession, type ProxyKit, WORKSPACE } from "./proxy-kit.ts";

const METHODS = {
  "public-client": TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_NONE,
  "basic-client": TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_BASIC,
  "post-client": TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_POST,
} as const;

/** How an OAuth credential of a test is stored. */
export interface OauthOptions {
  client?: keyof typeof METHODS;
  /** Life of the access token as the record says; absent = not known. */
  expiresInMs?: number;
  scope?: string;
  resource?: string;
  tokenEndpoint?: string;
  /** False: no refresh token is stored. */
  canRefresh?: boolean;
  /** Tokens to store in place of fresh ones. */
  tokens?: { access_token: string; refresh_token: string };
}

/** A session whose vault has an OAuth credential for the server. */
export interface OauthSession extends BoundSession {
  credential: Credential;
  /** When the access token expires. */
  expiresAt: number;
}

/** Stores tokens as a credential, and binds a session to its vault. */
export async function oauthSession(
  kit: ProxyKit,
  server: TestOauthServer,
  options: OauthOptions = {},
): Promise<OauthSession> {
  const vaultId = await kit.makeVault();
  const { credential, expiresAt } = await storeOauth(kit, server, vaultId, options);
  return { ...(await bindVault(kit, vaultId, server.url)), credential, expiresAt };
}

/** Stores tokens of the server as a credential. */
export async function storeOauth(
  kit: ProxyKit,
  server: TestOauthServer,
  vaultId: string,
  options: OauthOptions = {},
): Promise<{ credential: Credential; expiresAt: number }> {
  const { client = "basic-client", expiresInMs, scope = "", resource = "", canRefresh = true } = options;
  const tokenEndpoint = options.tokenEndpoint ?? `${server.issuer}/token`;
  const tokens = options.tokens ?? (await server.mint(client));
  const seal = (secret: string, url: string, purpose: string) => kit.seal(secret, vaultId, url, purpose);
  const refresh = {
    ...{ clientId: client, tokenEndpoint, tokenEndpointAuth: METHODS[client], scope, resource },
  };
  const sealed = {
    secret: await seal(tokens.access_token, server.url, "mcp_oauth"),
    refreshToken: canRefresh
      ? await seal(tokens.refresh_token, tokenEndpoint, "mcp_oauth.refresh_token")
      : undefined,
    clientSecret:
      canRefresh && client !== "public-client"
        ? await seal(server.clientSecret, tokenEndpoint, "mcp_oauth.client_secret")
        : undefined,
  };
  const vaults = await kit.vaults();
  const expiresAt = Date.now() + (expiresInMs ?? 0);
  const at = { seconds: BigInt(Math.floor(expiresAt / 1000)), nanos: (expiresAt % 1000) * 1e6 };
  const { credential } = await vaults.createCredential({
    requestId: "",
    vaultId,
    displayName: "",
    metadata: {},
    auth: {
      $case: "mcpOauth",
      value: {
        mcpServerUrl: server.url,
        expiresAt: expiresInMs === undefined ? undefined : at,
        refresh: canRefresh ? refresh : undefined,
      },
    },
    ...sealed,
  });
  if (!credential) throw new Error("no credential came back");
  return { credential, expiresAt };
}

/** Binds a new session to a vault and one MCP server. */
export async function bindVault(kit: ProxyKit, vaultId: string, url: string): Promise<BoundSession> {
  const sessionId = newId("sesn");
  await (await kit.bindings()).bind({
    sessionId,
    workspaceId: WORKSPACE,
    vaultIds: [vaultId],
    mcpServers: [{ name: "demo", url }],
    models: [],
    replacesMcpServers: false,
    networking: undefined,
    gitRepositories: [],
  });
  const { token, tokenId } = await kit.lease(sessionId, 1n);
  return { sessionId, token, tokenId, vaultId, epoch: 1n };
}

/** Calls the server's one tool. */
export async function whoami(kit: ProxyKit, session: BoundSession, address = kit.service.listening.addr) {
  const client = await kit.client(McpProxyServiceService, "harness", "harness-1", address);
  const { call } = await client.callTool(
    {
      mcpServerName: "demo",
      name: "whoami",
      inputJson: Buffer.from("{}"),
      key: newId("sevt"),
      timeout: undefined,
      acknowledgedKeys: [],
    },
    { metadata: { "ganglion-session-token": session.token } },
  );
  return call;
}

/** What the tool answers. */
export const GREETING = "ok hello from whoami";

/** How a call ended and its text, in one line that says more than "false" when it is wrong. */
export function textOf(call: Awaited<ReturnType<typeof whoami>>): string {
  if (!call) return "no call";
  const texts = call.content.map(({ data }) =>
    data?.$case === "json" ? (JSON.parse(String(data.value)) as { text?: string }).text : "",
  );
  return `${call.isError ? `error, outcome ${call.outcome},` : "ok"} ${texts.join()}`;
}

/** Waits for the clock: what a token's end depends on, and nothing else does. */
export async function past(time: number): Promise<void> {
  while (Date.now() <= time) await sleep(time - Date.now() + 1);
}

/** Records of an operation, of a session or of none. */
export async function recordsOf(kit: ProxyKit, operation: string, sessionId = ""): Promise<AuditRecord[]> {
  const audit = await kit.client(AuditServiceService, "operator");
  const found: AuditRecord[] = [];
  for (let afterSequence = 0n; ; ) {
    const { records } = await audit.listRecords({
      afterSequence,
      limit: 1000,
      sessionId,
      requestId: "",
      withLines: false,
    });
    if (records.length === 0) return found;
    found.push(...records.filter((one) => one.operation === operation && one.sessionId === sessionId));
    afterSequence = records.at(-1)?.sequence ?? afterSequence;
  }
}

/** What is stored at Vault for a credential, read with the root token, as nobody else can. */
export async function storedAt(kit: ProxyKit, { vaultId, id }: Credential) {
  const path = `ganglion/data/vaults/${vaultId}/${id}`;
  const { body } = await kit.vault.http.call("GET", path, { token: kit.rootToken, accept: [404] });
  const { data } = body as {
    data?: { data: Record<string, string> | null; metadata: { version: number } } | null;
  };
  return { document: data?.data ?? {}, version: data?.metadata.version ?? 0 };
}

/** Requests of Vault's that gave a credential to a session's token or one like it, and that no record names. */
export async function unnamedReads(kit: ProxyKit): Promise<string[]> {
  const rows = await kit.sql(
    "ganglion_owner",
    "SELECT DISTINCT vault_request_id AS id FROM proxy.audit_records",
  );
  const named = new Set(rows.map(({ id }) => id));
  return readFileSync(kit.vault.auditFile, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as VaultLine)
    .filter(({ type, request, auth }) => {
      const isRead = type === "response" && request?.operation === "read";
      return (
        isRead && request?.path?.startsWith("ganglion/data/vaults/") && !auth?.policies?.includes("root")
      );
    })
    .map(({ request }) => request?.id ?? "")
    .filter((id) => !named.has(id));
}

interface VaultLine {
  type?: string;
  request?: { id?: string; operation?: string; path?: string };
  auth?: { policies?: string[] };
}
