import assert from "node:assert/strict";
import { on } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "../../../services/common/ids/new-id.ts";
import { AuditServiceService } from "../../../services/gen/ganglion/audit/v1/audit_service.ts";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import { type BoundSession, ProxyKit } from "./proxy-kit.ts";

const RECEIPT_MS = 30_000;

/** A proxy with a folder for its audit log, and an MCP server for sessions to call. */
export class AuditStage {
  readonly kit: ProxyKit;
  readonly upstream: TestMcpUpstream;
  readonly folder: string;

  private constructor(kit: ProxyKit, upstream: TestMcpUpstream, folder: string) {
    this.kit = kit;
    this.upstream = upstream;
    this.folder = folder;
  }

  static async start(): Promise<AuditStage> {
    const folder = mkdtempSync(join(tmpdir(), "ganglion-audit-"));
    const upstream = await startMcpUpstream();
    const kit = await ProxyKit.start({
      GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(upstream.url).host,
      GANGLION_AUDIT_DIR: folder,
    });
    return new AuditStage(kit, upstream, folder);
  }

  /** A client of AuditService. */
  audit() {
    return this.kit.client(AuditServiceService, "operator");
  }

  /** A session that may use the server. */
  bound(): Promise<BoundSession> {
    const { url, token } = this.upstream;
    return this.kit.bound({ servers: [{ name: "demo", url, secret: token }] });
  }

  /** Lists the server's tools. */
  async list({ token }: BoundSession) {
    const metadata = { "ganglion-session-token": token };
    return (await this.kit.mcp()).listTools({ mcpServerName: "demo" }, { metadata });
  }

  /** Calls a tool of the server, by default of the proxy that the stage began with. */
  async call(
    { token }: { token: string },
    name: string,
    input: object,
    key = newId("sevt"),
    address?: string,
  ) {
    const inputJson = Buffer.from(JSON.stringify(input));
    const request = { mcpServerName: "demo", name, inputJson, key, timeout: undefined, acknowledgedKeys: [] };
    const metadata = { "ganglion-session-token": token };
    return (await this.kit.mcp("harness-1", address)).callTool(request, { metadata });
  }

  /** The log as exported from the database. */
  async stored(): Promise<string[]> {
    const rows = await this.kit.sql(
      "ganglion_owner",
      "SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r ORDER BY sequence",
    );
    return rows.map(({ line }) => line);
  }

  /** All instances' files, merged as docs/AUDIT_FORMAT.md says. */
  kept(): string[] {
    const files = readdirSync(this.folder).filter((name) => name.startsWith("records-"));
    const lines = files.flatMap((name) => this.read(name).split("\n").slice(0, -1));
    const sequence = (line: string) => Number(JSON.parse(line).sequence);
    return [...new Set(lines)].sort((a, b) => sequence(a) - sequence(b));
  }

  /** A file of the folder. */
  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  /** Fails unless the files have these lines. What a test wrote past every process is in no file. */
  assertKept(lines: string[]): void {
    const kept = this.kept();
    const expected = lines.filter((line) => JSON.parse(line).instance !== "test");
    const different = expected.findIndex((line, i) => line !== kept[i]);
    assert.deepEqual([kept.length, kept[different]], [expected.length, expected[different]]);
  }

  /** A session's receipt, as soon as there is one: the checkpoint in it comes into the folder too. */
  async receiptOf(sessionId: string) {
    const client = await this.audit();
    const watcher = watch(this.folder);
    const changes = on(watcher, "change", { signal: AbortSignal.timeout(RECEIPT_MS) });
    try {
      for (;;) {
        const receipt = await client.getReceipt({ sessionId }).catch((error) => {
          assert.equal(error.reason, "RECEIPT_NOT_FOUND");
        });
        if (receipt) return receipt;
        await changes.next();
      }
    } finally {
      watcher.close();
    }
  }

  /** Prints what the proxy said last, when a test failed. */
  explain(test: { state?: string } | undefined): void {
    if (test?.state === "failed") console.log(this.kit.service.output().split("\n").slice(-6).join("\n"));
  }

  async stop(): Promise<void> {
    await this.kit.stop();
    await this.upstream.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
