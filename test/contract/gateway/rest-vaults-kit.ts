import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import Anthropic from "@anthropic-ai/sdk";
import { ProxyKit } from "../mcp-proxy/proxy-kit.ts";
import { type GatewayUnderTest, playApiKeys, startGateway } from "./gateway-kit.ts";

const KEY = "gk-vaults-0123456789";
/** An MCP server that nobody asks. */
export const SERVER = "https://mcp.example.test/mcp";
const ENDPOINT = "https://id.example.test/token";

/** A gateway before a real mcp-proxy, and the official SDK before that. */
export class RestVaults {
  readonly kit: ProxyKit;
  readonly mesh: GatewayUnderTest;
  readonly vaults: Anthropic["beta"]["vaults"];
  /** Every secret that a test sent: none may come back, be logged or be stored in the database. */
  readonly sent: string[] = [];
  /** Every answer, and its headers. */
  readonly seen: string[] = [];

  private constructor(kit: ProxyKit, mesh: GatewayUnderTest) {
    this.kit = kit;
    this.mesh = mesh;
    const watched: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      const text = await response.text();
      this.seen.push(text, JSON.stringify([...response.headers]));
      const body = response.status === 204 ? null : text;
      return new Response(body, { status: response.status, headers: response.headers });
    };
    this.vaults = new Anthropic({ apiKey: KEY, baseURL: mesh.rest, fetch: watched }).beta.vaults;
  }

  static async start(): Promise<RestVaults> {
    const kit = await ProxyKit.start();
    const mesh = await startGateway([playApiKeys(KEY)], { ca: kit.ca, address: kit.service.listening.addr });
    return new RestVaults(kit, mesh);
  }

  async stop(): Promise<void> {
    await this.mesh.stop();
    await this.kit.stop();
  }

  secret(): string {
    const text = `cnry-${randomBytes(20).toString("hex")}`;
    this.sent.push(text);
    return text;
  }

  async makeVault(): Promise<string> {
    return (await this.vaults.create({ display_name: "of a test" })).id;
  }

  bearer(url = SERVER) {
    return { type: "static_bearer" as const, mcp_server_url: url, token: this.secret() };
  }

  oauth() {
    return {
      type: "mcp_oauth" as const,
      mcp_server_url: SERVER,
      access_token: this.secret(),
      // Whole seconds and 123 ms: what comes back is without zeros at its end.
      expires_at: new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_123).toISOString(),
      refresh: {
        client_id: "client-1",
        refresh_token: this.secret(),
        token_endpoint: ENDPOINT,
        token_endpoint_auth: { type: "client_secret_post" as const, client_secret: this.secret() },
        scope: "read write",
        resource: "https://mcp.example.test",
      },
    };
  }

  variable() {
    return {
      type: "environment_variable" as const,
      secret_name: "SERVICE_TOKEN",
      secret_value: this.secret(),
      networking: {
        type: "limited" as const,
        allowed_hosts: ["api.example.test", "*.example.org", "192.0.2.7"],
      },
    };
  }

  /** What is at Vault for a credential, read with the root token. */
  async stored(vaultId: string, id: string): Promise<Record<string, string> | undefined> {
    const path = `ganglion/data/vaults/${vaultId}/${id}`;
    const { body, status } = await this.kit.vault.http.call("GET", path, {
      token: this.kit.rootToken,
      accept: [404],
    });
    return status === 200 ? (body.data as { data: Record<string, string> }).data : undefined;
  }

  /** Of at least so many secrets that were sent none is in an answer, in a log or in the database. */
  async assertKeptSecret(atLeast: number): Promise<void> {
    assert.ok(this.sent.length >= atLeast, `${this.sent.length} secrets were sent`);
    const rows = await this.kit.sql(
      "ganglion_owner",
      "SELECT row_to_json(c)::text AS text FROM proxy.credentials c UNION ALL SELECT row_to_json(v)::text FROM proxy.vaults v",
    );
    const places = {
      answers: this.seen.join("\n"),
      logs: JSON.stringify([this.mesh.gateway.lines(), this.kit.service.lines()]),
      database: rows.map(({ text }: { text: string }) => text).join("\n"),
    };
    for (const [place, text] of Object.entries(places)) {
      assert.ok(text.length > 100, `${place} were looked at`);
      const found = this.sent.filter(
        (one) => text.includes(one) || text.includes(Buffer.from(one).toString("hex")),
      );
      assert.deepEqual(found, [], place);
    }
  }
}

/** The error with which a request of the SDK is refused. */
export async function refusal(work: Promise<unknown>) {
  const error = await work.then(
    () => assert.fail("it was not refused"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Anthropic.APIError, String(error));
  return error;
}
