import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { TokenEndpointAuth } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { ProxyKit } from "./proxy-kit.ts";

/** What the suite says about the server that it started for a scenario. */
interface Scenario {
  url: string;
  scenario: string;
  context: { client_id?: string; client_secret?: string };
}

const SUITE = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");
const CLIENT = new URL("./conformance-client.ts", import.meta.url).pathname;
const REDIRECT = "http://127.0.0.1:3000/callback";

/** Those that the MCP door can be driven through; the others, and why, are in docs/MCP_CONFORMANCE.md. */
const SCENARIOS = [
  "initialize",
  "tools_call",
  "sse-retry",
  "auth/metadata-default",
  "auth/metadata-var1",
  "auth/metadata-var2",
  "auth/metadata-var3",
  "auth/scope-from-www-authenticate",
  "auth/scope-from-scopes-supported",
  "auth/scope-omitted-when-undefined",
  "auth/token-endpoint-auth-basic",
  "auth/token-endpoint-auth-post",
  "auth/token-endpoint-auth-none",
  "auth/pre-registration",
  "auth/resource-mismatch",
  "auth/offline-access-scope",
  "auth/offline-access-not-supported",
];

describe("the official conformance suite of MCP, through the MCP door", () => {
  let kit: ProxyKit;
  let control: Server;

  before(async function () {
    this.timeout(60_000);
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: "localhost,127.0.0.1" });
    control = createServer((request, response) => {
      const driven = text(request).then((body) => drive(kit, JSON.parse(body) as Scenario));
      driven.then(
        () => response.end("driven"),
        (error) => response.writeHead(500).end(describeError(error)),
      );
    });
    control.listen(0, "127.0.0.1");
    await once(control, "listening");
  });
  after(async () => {
    control?.closeAllConnections();
    control?.close();
    await kit?.stop();
  });

  for (const scenario of SCENARIOS) {
    it(`${scenario} [M24]`, async function () {
      this.timeout(90_000);
      const { port } = control.address() as AddressInfo;
      const command = `${process.execPath} ${CLIENT} ${port}`;
      const args = [SUITE, "client", "--command", command, "--scenario", scenario, "--timeout", "60000"];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
      const [said, complained, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, "exit"),
      ]);
      assert.equal(code, 0, `${said}\n${complained}`);
    });
  }
});

/** Does with a server what a session and its owner do: list, call, and connect a person where that is asked for. */
async function drive(kit: ProxyKit, { url, scenario, context }: Scenario): Promise<void> {
  const session = await kit.bound({ servers: [{ name: "demo", url }] });
  const options = { metadata: { "ganglion-session-token": session.token } };
  const mcp = await kit.mcp();
  const list = () => mcp.listTools({ mcpServerName: "demo" }, options);
  let tools: Awaited<ReturnType<typeof list>>["tools"];
  try {
    ({ tools } = await list());
  } catch (error) {
    const isLocked =
      GanglionError.is(error) && ["CRED_MISSING", "UPSTREAM_UNAUTHORIZED"].includes(error.reason);
    if (!isLocked) throw error;
    await connect(kit, session.vaultId, url, context);
    ({ tools } = await list());
  }
  for (const { name } of tools) {
    const input = scenario === "tools_call" ? { a: 5, b: 3 } : {};
    await mcp.callTool(
      {
        ...{ mcpServerName: "demo", name, inputJson: Buffer.from(JSON.stringify(input)), key: newId("sevt") },
        ...{ timeout: undefined, acknowledgedKeys: [] },
      },
      options,
    );
  }
}

/** Connects a person; the suite's authorization server asks nobody and answers with the code at once. */
async function connect(
  kit: ProxyKit,
  vaultId: string,
  url: string,
  context: Scenario["context"],
): Promise<void> {
  const { client_id: clientId = "", client_secret: clientSecret } = context;
  const vaults = await kit.vaults();
  const { authorizationUrl, state } = await vaults.startAuthorization({
    ...{ vaultId, displayName: "conformance", metadata: {}, mcpServerUrl: url },
    ...{ redirectUri: REDIRECT, scope: "", clientId },
    tokenEndpointAuth: clientSecret
      ? TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_CLIENT_SECRET_BASIC
      : TokenEndpointAuth.TOKEN_ENDPOINT_AUTH_UNSPECIFIED,
    clientSecret: clientSecret
      ? await kit.seal(clientSecret, vaultId, url, "mcp_oauth.client_secret")
      : undefined,
  });
  const answer = await fetch(authorizationUrl, { redirect: "manual" });
  const back = new URL(answer.headers.get("location") ?? "", REDIRECT).searchParams;
  assert.equal(back.get("state"), state);
  await vaults.finishAuthorization({ state, code: back.get("code") ?? "", iss: back.get("iss") ?? "" });
}

function describeError(error: unknown): string {
  return GanglionError.is(error) ? `${error.reason} ${JSON.stringify(error.metadata)}` : String(error);
}
