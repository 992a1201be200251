import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import { peerOf } from "../../../services/common/tls/https-server.ts";
import {
  Audience,
  BindingServiceService,
  type GetHandSetupResponse,
  type IssueTokenRequest,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { TestCa } from "../../kit/ca.ts";

/** One connection of a hand as the played door saw it. */
export type DoorConnection = { token: string; peer: string; head: string; socket: TLSSocket };

const SETUP: GetHandSetupResponse = {
  egressCaPem: "",
  placeholders: [
    { name: "SHOP_KEY", value: "ganglion_placeholder_abcdefghijklmnopqrstuvwxyz" },
    { name: "PATH", value: "ganglion_placeholder_zyxwvutsrqponmlkjihgfedcba" },
  ],
  gitRewrites: [{ prefix: "https://git.example/", path: "/git/git.example/" }],
  hasEgress: true,
};

/**
 * PlayedEgress is mcp-proxy as the sandbox sees it: BindingService for hands, and an egress door that notes who comes
 * and serves CONNECT to one address, whatever host is named, and everything else with a line of text; "/held" is never
 * answered.
 */
export class PlayedEgress {
  readonly issued: IssueTokenRequest[] = [];
  readonly setups: string[] = [];
  readonly connections: DoorConnection[] = [];
  setup: GetHandSetupResponse = SETUP;
  /** Tokens that the door does not know. */
  readonly refused = new Set<string>();
  /** Where CONNECT leads. */
  upstream: { host: string; port: number } | undefined;
  /** What the sandbox may not learn: the failure of the next calls. */
  failure: GanglionError | undefined;
  readonly #rpc: RunningServer;
  readonly #door: Server;

  private constructor(rpc: RunningServer, door: Server) {
    this.#rpc = rpc;
    this.#door = door;
  }

  static async start(ca: TestCa): Promise<PlayedEgress> {
    const tls = await ca.bundle("mcp-proxy");
    const played: { it?: PlayedEgress } = {};
    const rpc = await startServer({
      service: "mcp-proxy",
      instance: "mcp-proxy-1",
      listen: "127.0.0.1:0",
      tls,
      image: fileURLToPath(new URL("../../../services/gen/image.binpb", import.meta.url)),
      implementations: [
        implementSome(BindingServiceService, {
          issueToken: unary(async (request) => played.it!.#issue(request)),
          getHandSetup: unary(async ({ handId }) => played.it!.#answerSetup(handId)),
        }),
      ],
      logLevel: "error",
      ownsProcess: false,
    });
    const door = createServer(
      { ...tls.contextOptions(), requestCert: true, rejectUnauthorized: true, allowHalfOpen: true },
      (socket) => void played.it!.#serve(socket).catch(() => socket.destroy()),
    );
    door.listen(0, "127.0.0.1");
    await once(door, "listening");
    const it = new PlayedEgress(rpc, door);
    played.it = it;
    it.setup = { ...SETUP, egressCaPem: ca.authority.certPem };
    return it;
  }

  /** What a sandbox is told of it. */
  get settings(): Record<string, string> {
    const { port } = this.#door.address() as AddressInfo;
    return {
      GANGLION_PROXY_ADDR: this.#rpc.address,
      // The first is a replica that is down.
      GANGLION_PROXY_EGRESS_ADDR: `127.0.0.1:1,127.0.0.1:${port}`,
    };
  }

  stop(): void {
    for (const { socket } of this.connections) socket.destroy();
    this.#door.close();
    this.#rpc.force();
  }

  #issue(request: IssueTokenRequest) {
    if (this.failure) throw this.failure;
    if (request.audience !== Audience.AUDIENCE_HAND) throw new Error("a sandbox asks for hands only");
    this.issued.push(request);
    const tokenId = `tok_${this.issued.length}`;
    return { token: `hand-token-secret-${this.issued.length}-${request.handId}`, tokenId };
  }

  #answerSetup(handId: string): GetHandSetupResponse {
    if (this.failure) throw this.failure;
    this.setups.push(handId);
    return this.setup;
  }

  async #serve(socket: TLSSocket): Promise<void> {
    socket.on("error", () => undefined);
    const [preamble, rest] = await readUntil(socket, "\r\n", Buffer.alloc(0));
    const token = preamble.replace(/^GANGLION\/1 /, "");
    const connection = { token, peer: peerOf(socket)?.uri ?? "", head: "", socket };
    this.connections.push(connection);
    if (this.refused.has(token)) return void socket.end();
    const [head, body] = await readUntil(socket, "\r\n\r\n", rest);
    connection.head = head;
    if (head.startsWith("CONNECT ")) return this.#tunnel(socket, body);
    if (head.includes("/held")) return void socket.once("end", () => socket.destroy()).resume();
    socket.on("data", () => undefined);
    if (body.length > 0) socket.unshift(body);
    const text = `seen: ${head.split("\r\n")[0]}\n`;
    socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`);
  }

  #tunnel(socket: TLSSocket, body: Buffer): void {
    if (!this.upstream) return void socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    const upstream: Socket = connect({ ...this.upstream, allowHalfOpen: true });
    upstream.on("error", () => socket.destroy());
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    upstream.write(body);
    socket.pipe(upstream);
    upstream.pipe(socket);
  }
}

/** Reads up to a mark; returns the text before it and the bytes after it. */
function readUntil(socket: Socket, mark: string, from: Buffer): Promise<[string, Buffer]> {
  return new Promise((resolve, reject) => {
    let read = from;
    const look = () => {
      const at = read.indexOf(mark);
      if (at < 0) return false;
      socket.removeListener("data", onData).removeListener("close", onClose).pause();
      resolve([read.subarray(0, at).toString("latin1"), read.subarray(at + mark.length)]);
      return true;
    };
    const onData = (chunk: Buffer) => {
      read = Buffer.concat([read, chunk]);
      look();
    };
    const onClose = () => reject(new Error("closed"));
    socket.once("close", onClose);
    if (!look()) socket.on("data", onData).resume();
  });
}

/** An error that the played proxy can answer with. */
export function refusal(
  code: "NOT_FOUND" | "UNAUTHENTICATED" | "UNAVAILABLE",
  reason: string,
): GanglionError {
  return new GanglionError({ code, reason, message: "refused", retryAfterMs: 10 });
}
