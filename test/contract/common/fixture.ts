import { DEFAULT_IMAGE } from "../../../services/common/config/common-fields.ts";
import {
  type ClientOptions,
  createClient,
  type MeshClient,
} from "../../../services/common/grpc/create-client.ts";
import { type HandlersOf, implementSome } from "../../../services/common/grpc/handlers.ts";
import {
  type RunningServer,
  type ServerConfig,
  startServer,
} from "../../../services/common/grpc/start-server.ts";
import {
  type SessionServiceService as Definition,
  SessionServiceService,
  type WatchEventsResponse,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { TestCa } from "../../kit/ca.ts";

/** Handlers of a fake session service. */
export type Fakes = Partial<HandlersOf<typeof Definition>>;

/** A client of it. */
export type SessionClient = MeshClient<typeof Definition>;

/** Servers and clients of one test file, over real sockets with certificates made for it. */
export class Fixture {
  readonly ca: TestCa;
  readonly lines: Record<string, unknown>[] = [];
  #servers: RunningServer[] = [];
  #clients: { close(): void }[] = [];

  private constructor(ca: TestCa) {
    this.ca = ca;
  }

  static async create(): Promise<Fixture> {
    return new Fixture(await TestCa.create());
  }

  /** Starts a session service with these handlers in this process. */
  async serve(fakes: Fakes, more: Partial<ServerConfig> = {}): Promise<RunningServer> {
    const { createLogger } = await import("../../../services/common/log/create-logger.ts");
    const service = more.service ?? "session";
    const identity = { service, instance: `${service}-1` };
    const server = await startServer({
      ...identity,
      listen: "127.0.0.1:0",
      image: DEFAULT_IMAGE,
      tls: more.tls ?? (await this.ca.bundle(service)),
      implementations: [implementSome(SessionServiceService, fakes)],
      log: createLogger(identity, "debug", { write: (line) => void this.lines.push(JSON.parse(line)) }),
      ownsProcess: false,
      ...more,
    });
    this.#servers.push(server);
    return server;
  }

  /** A client with a certificate of `as`. */
  async client(
    address: string | readonly string[],
    as = "operator",
    expected = "session",
    more: ClientOptions = {},
  ): Promise<SessionClient> {
    const client = createClient(SessionServiceService, address, await this.ca.bundle(as), expected, {
      timeoutMs: 10_000,
      ...more,
    });
    this.#clients.push(client);
    return client;
  }

  /** Log lines of calls. */
  calls(method?: string): Record<string, unknown>[] {
    return this.lines.filter(
      (line) => line.msg === "call" && (!method || String(line.rpc).endsWith(`/${method}`)),
    );
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    for (const server of this.#servers) {
      server.force();
      await server.drain();
    }
    this.ca.remove();
  }
}

/** A message of a watch with `size` bytes of text in it. */
export function watchMessage(position: number, size = 16): WatchEventsResponse {
  const text = { $case: "text" as const, value: { text: "x".repeat(size) } };
  return {
    position: BigInt(position),
    message: { $case: "preview", value: { eventId: `sevt_${position}`, message: text } },
  };
}

/** A request to watch. */
export const WATCH = {
  sessionId: "sesn_1",
  afterPosition: 0n,
  types: [],
  includePreviews: false,
  fromHead: false,
};
