import { randomBytes } from "node:crypto";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import type { CallContext } from "../../../services/common/grpc/call-context.ts";
import { implement, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { BindingServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import {
  Call,
  type CallToolRequest,
  McpProxyServiceService,
  type Tool,
  type WatchCallResponse,
} from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";

/** Plays mcp-proxy's gRPC side: tokens, and MCP servers that answer from a map. */
export class PlayedProxy {
  readonly tools = new Map<string, Tool[]>();
  readonly calls: CallToolRequest[] = [];
  readonly tokens = new Set<string>();
  answer: (request: CallToolRequest) => Partial<Call> | Promise<Partial<Call>> = () => ({ outcome: 1 });
  /** What is reported of a call while it runs. */
  report: (key: string) => AsyncIterable<WatchCallResponse> = async function* () {};
  #server!: RunningServer;

  static async start(tls: TlsBundle, image: string): Promise<PlayedProxy> {
    const proxy = new PlayedProxy();
    proxy.#server = await startServer({
      service: "mcp-proxy",
      instance: "mcp-proxy-1",
      listen: "127.0.0.1:0",
      tls,
      image,
      logLevel: "error",
      ownsProcess: false,
      implementations: [proxy.#bindings(), proxy.#mcp()],
    });
    return proxy;
  }

  get address(): string {
    return this.#server.address;
  }

  stop(): void {
    this.#server.force();
  }

  #bindings() {
    return implement(BindingServiceService, {
      bind: unary(async () => ({})),
      issueToken: unary(async () => {
        const token = randomBytes(32).toString("base64url");
        this.tokens.add(token);
        return { token, tokenId: "tok_1" };
      }),
      endBinding: unary(async () => ({})),
      getHandSetup: unary(async () => ({
        egressCaPem: "",
        placeholders: [],
        gitRewrites: [],
        hasEgress: false,
      })),
    });
  }

  #mcp() {
    const journal = new Map<string, Call>();
    return implement(McpProxyServiceService, {
      listTools: unary(async ({ mcpServerName }, ctx) => {
        this.#admit(ctx);
        const tools = this.tools.get(mcpServerName);
        if (!tools) {
          throw new GanglionError({ code: "UNAVAILABLE", reason: "UPSTREAM_UNREACHABLE", message: "no" });
        }
        return { tools, proxyRequestId: "req_1" };
      }),
      callTool: unary(async (request, ctx) => {
        this.#admit(ctx);
        this.calls.push(request);
        const call = Call.fromPartial({ key: request.key, ...(await this.answer(request)) });
        journal.set(request.key, call);
        return { call, toolsChanged: false };
      }),
      cancelCall: unary(async () => ({})),
      getCall: unary(async ({ key }, ctx) => {
        this.#admit(ctx);
        const call = journal.get(key);
        if (!call) throw new GanglionError({ code: "NOT_FOUND", reason: "CALL_NOT_FOUND", message: "no" });
        return { call, isRunning: false, mayRepeat: false };
      }),
      readCall: serverStream(async function* ({ key }) {
        const call = journal.get(key);
        if (!call) throw new GanglionError({ code: "NOT_FOUND", reason: "CALL_NOT_FOUND", message: "no" });
        yield { data: Buffer.from(Call.encode(call).finish()) };
      }),
      watchCall: serverStream(({ key }, ctx) => {
        this.#admit(ctx);
        return this.report(key);
      }),
    });
  }

  #admit(ctx: CallContext): void {
    const values = ctx.metadata.get("ganglion-session-token");
    if (values.length !== 1 || !this.tokens.has(String(values[0]))) {
      throw new GanglionError({ code: "UNAUTHENTICATED", reason: "TOKEN_INVALID", message: "no token" });
    }
  }
}
