import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { type AddressInfo, createServer, connect as netConnect, type Server, type Socket } from "node:net";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import { newId } from "../../../services/common/ids/new-id.ts";
import {
  BindingServiceService,
  type GetHandSetupResponse,
  type GitRepository,
  type Networking,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { CredentialNetworking } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { type ProxyKit, WORKSPACE } from "./proxy-kit.ts";

/** A secret that a hand knows as a variable. */
export interface TestVariable {
  name: string;
  secret: string;
  /** Absent = every host. */
  hosts?: string[];
  header?: boolean;
  body?: boolean;
}

/** What a hand of a test may use. */
export interface HandOptions {
  networking?: Networking | undefined;
  repositories?: GitRepository[];
  variables?: TestVariable[];
  bearers?: { url: string; secret: string }[];
  /** What a brain of the session may ask. */
  models?: string[];
  /** A vault that there is, instead of a new one. */
  vaultId?: string;
}

/** A hand with its token, and the stand-in for its way out. */
export interface TestHand {
  sessionId: string;
  handId: string;
  token: string;
  vaultId: string;
  setup: GetHandSetupResponse;
  /** Port of the forwarder on 127.0.0.1. */
  port: number;
  /** Placeholder of a variable. */
  placeholder(name: string): string;
}

/** Any host. */
export const ANYWHERE: Networking = {
  type: 1,
  allowedHosts: [],
  allowMcpServers: false,
  allowPackageManagers: false,
};

/** These hosts. */
export const only = (...allowedHosts: string[]): Networking => ({ ...ANYWHERE, type: 2, allowedHosts });

/** Hands of a proxy under test: bindings, tokens, and a forwarder for each as the sandbox service has one. */
export class HandKit {
  readonly kit: ProxyKit;
  readonly #replica: RunningService | undefined;
  readonly #forwarders: Server[] = [];
  readonly #sockets = new Set<Socket>();

  /** `replica` is the process whose egress door the hands use; the kit's own unless said. */
  constructor(kit: ProxyKit, replica?: RunningService) {
    this.kit = kit;
    this.#replica = replica;
  }

  /** host:port of the egress door. */
  get address(): string {
    const line = (this.#replica ?? this.kit.service)
      .lines()
      .find(({ egress_addr: addr }) => addr !== undefined);
    return String(line?.egress_addr);
  }

  /** Binds a session and gives it a hand. */
  async hand(options: HandOptions = {}): Promise<TestHand> {
    const { networking, repositories = [], variables = [], bearers = [], models = [] } = options;
    const { kit } = this;
    const vaultId = options.vaultId ?? (await kit.makeVault(bearers));
    for (const variable of variables) await this.addVariable(vaultId, variable);
    const sessionId = newId("sesn");
    const handId = newId("hand");
    await (await kit.bindings()).bind({
      sessionId,
      workspaceId: WORKSPACE,
      vaultIds: [vaultId],
      mcpServers: [],
      models,
      replacesMcpServers: false,
      networking,
      gitRepositories: repositories,
    });
    kit.leases.set(sessionId, { workspaceId: WORKSPACE, epoch: 0n, owner: "" });
    const client = await kit.client(BindingServiceService, "sandbox");
    const { token } = await client.issueToken({ sessionId, handId, epoch: 0n, audience: 2 });
    const setup = await client.getHandSetup({ sessionId, handId });
    const port = await this.forward(token);
    const placeholder = (name: string) => setup.placeholders.find((one) => one.name === name)?.value ?? "";
    return { sessionId, handId, token, vaultId, setup, port, placeholder };
  }

  /** Stores a secret that hands know as a variable. */
  async addVariable(vaultId: string, variable: TestVariable): Promise<string> {
    const { name, secret, hosts, header = true, body = true } = variable;
    const scope: CredentialNetworking["scope"] = hosts
      ? { $case: "limited" as const, value: { allowedHosts: hosts } }
      : { $case: "unrestricted" as const, value: {} };
    const { credential } = await (await this.kit.vaults()).createCredential({
      requestId: "",
      vaultId,
      displayName: "",
      metadata: {},
      auth: {
        $case: "environmentVariable",
        value: { secretName: name, networking: { scope }, injectionLocation: { header, body } },
      },
      secret: await this.kit.seal(secret, vaultId, name, "environment_variable"),
      refreshToken: undefined,
      clientSecret: undefined,
    });
    return credential?.id ?? "";
  }

  /** A forwarder as the sandbox service has one: each connection begins with the preamble. */
  async forward(token: string, preamble = `GANGLION/1 ${token}\r\n`): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (client) => {
      this.#keep(client);
      void this.dial().then((door) => {
        door.write(preamble);
        client.pipe(door);
        door.pipe(client);
        client.once("close", () => door.destroy());
        door.once("close", () => client.destroySoon());
      });
    });
    this.#forwarders.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  /** A connection to the door with the certificate of a service. */
  async dial(service = "sandbox", instance?: string): Promise<TLSSocket> {
    const bundle = await this.kit.ca.bundle(service, instance);
    const [host, port] = this.address.split(":");
    const over = netConnect({ host: host ?? "", port: Number(port), allowHalfOpen: true });
    over.on("error", () => {});
    const socket = tlsConnect({
      socket: over,
      secureContext: bundle.secureContext(),
      servername: "localhost",
    });
    this.#keep(socket);
    await once(socket, "secureConnect");
    return socket;
  }

  /** Closes all forwarders. */
  stop(): void {
    for (const server of this.#forwarders) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

/** An answer as a client of a hand sees it. */
export interface HandAnswer {
  status: number;
  reason: string | undefined;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** What to ask. */
export interface HandAsk {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer | string[];
  /** Replaces the Host header. */
  host?: string;
  /** Name in the TLS greeting. */
  servername?: string;
}

/** Asks over the forwarder as a program with proxy variables does: http by absolute URL, https by CONNECT. */
export async function askFrom(hand: TestHand, url: string, ask: HandAsk = {}): Promise<HandAnswer> {
  const target = new URL(url);
  if (target.protocol === "http:") {
    return exchange({ port: hand.port, path: url, host: ask.host ?? target.host, ask });
  }
  const way = await connectFrom(hand, `${target.hostname}:${target.port || 443}`);
  if ("refused" in way) return way.refused;
  const socket = tlsConnect({
    socket: way.socket,
    ca: hand.setup.egressCaPem,
    // Whom the certificate has to name where no name is greeted.
    host: target.hostname,
    servername: ask.servername ?? (/^[\d.]+$/.test(target.hostname) ? "" : target.hostname),
    ALPNProtocols: ["http/1.1"],
  });
  socket.on("error", () => {});
  const path = target.pathname + target.search;
  return exchange({ socket, path, host: ask.host ?? target.host, ask });
}

/** Asks for a tunnel. */
export async function connectFrom(
  hand: Pick<TestHand, "port">,
  authority: string,
  headers: Record<string, string> = {},
): Promise<{ socket: Socket } | { refused: HandAnswer }> {
  const request = httpRequest({
    host: "127.0.0.1",
    port: hand.port,
    method: "CONNECT",
    path: authority,
    headers: { host: authority, ...headers },
  });
  request.end();
  return new Promise((resolve, reject) => {
    request.once("error", reject);
    request.once("connect", (response, socket, head) => {
      socket.on("error", () => {});
      if (response.statusCode === 200) return resolve({ socket });
      const { statusCode: status = 0, headers: sent } = response;
      const chunks: Buffer[] = [head];
      socket.on("data", (chunk: Buffer) => chunks.push(chunk));
      socket.once("close", () => {
        const reason = sent["ganglion-reason"] as string | undefined;
        resolve({ refused: { status, reason, headers: sent, body: Buffer.concat(chunks) } });
      });
    });
  });
}

/** Writes bytes to the forwarder and answers all that comes back. */
export async function rawFrom(hand: Pick<TestHand, "port">, bytes: string | Buffer): Promise<string> {
  const socket = netConnect(hand.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(bytes);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
}

async function exchange(over: {
  port?: number;
  socket?: Socket;
  path: string;
  host: string;
  ask: HandAsk;
}): Promise<HandAnswer> {
  const { port, socket, path, host, ask } = over;
  const request = httpRequest({
    ...(socket ? { createConnection: () => socket } : { host: "127.0.0.1", port, agent: false }),
    method: ask.method ?? (ask.body === undefined ? "GET" : "POST"),
    path,
    headers: { host, ...ask.headers },
  });
  if (Array.isArray(ask.body)) {
    for (const part of ask.body) request.write(part);
    request.end();
  } else request.end(ask.body);
  return new Promise((resolve, reject) => {
    request.once("error", reject);
    request.once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          reason: response.headers["ganglion-reason"] as string | undefined,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      );
    });
  });
}
