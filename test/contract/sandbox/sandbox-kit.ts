import { randomUUID } from "node:crypto";
import { chmodSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import { implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import type { Execution, Hand } from "../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import { SandboxServiceService } from "../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { TestCa } from "../../kit/ca.ts";
import { removeFolder } from "../../kit/remove-folder.ts";
import { until } from "../../kit/until.ts";
import { giveTo, makeDataFolder, type SandboxProcess, sandboxUser, startSandbox } from "./sandbox-process.ts";

/** A client of the sandbox service. */
export type SandboxClient = MeshClient<typeof SandboxServiceService>;

/** A session as the played session service knows it. */
export type PlayedLease = { epoch: bigint; owner: string };

const HARNESS = "spiffe://ganglion.local/harness/harness-1";

/** A sandbox service with real hands, and a played session service that confirms leases. */
export class SandboxKit {
  readonly user = sandboxUser();
  readonly leases = new Map<string, PlayedLease>();
  readonly ca: TestCa;
  readonly folder: string;
  readonly #settings: Record<string, string>;
  /** A descriptor that the service inherits without knowing. */
  readonly #leaked: number | undefined;
  readonly #session: RunningServer;
  readonly #clients: { close(): void }[] = [];
  #process: SandboxProcess | undefined;
  #harness: SandboxClient | undefined;

  private constructor(
    ca: TestCa,
    session: RunningServer,
    settings: Record<string, string>,
    leaked: number | undefined,
  ) {
    this.#leaked = leaked;
    this.ca = ca;
    this.#session = session;
    this.folder = makeDataFolder(this.user);
    this.#settings = settings;
  }

  /** Starts both services; what plays further parts of the mesh says what the sandbox is told of them. */
  static async start(
    given: Record<string, string> = {},
    leaked?: number,
    play?: (ca: TestCa) => Promise<Record<string, string>>,
  ): Promise<SandboxKit> {
    const ca = await TestCa.create();
    chmodSync(ca.root, 0o711);
    const settings = { ...given, ...(await play?.(ca)) };
    let kit: SandboxKit | undefined;
    const session = await startServer({
      service: "session",
      instance: "session-1",
      listen: "127.0.0.1:0",
      tls: await ca.bundle("session"),
      image: fileURLToPath(new URL("../../../services/gen/image.binpb", import.meta.url)),
      implementations: [
        implementSome(SessionServiceService, {
          getLease: unary(async ({ sessionId }) => ({ lease: kit!.playLease(sessionId) })),
        }),
      ],
      logLevel: "error",
      ownsProcess: false,
    });
    kit = new SandboxKit(ca, session, settings, leaked);
    await kit.restart();
    return kit;
  }

  get process(): SandboxProcess {
    return this.#process!;
  }

  /** The client of the harness that holds the leases of newSession. */
  get harness(): SandboxClient {
    return this.#harness!;
  }

  /** Ends the service as asked, if it runs, and starts it again on the same data. */
  async restart(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await this.#process?.kill(signal);
    const tls = await this.ca.directory("sandbox");
    giveTo(this.user, this.ca.root);
    const env = {
      GANGLION_INSTANCE: "sandbox-1",
      GANGLION_LISTEN: "127.0.0.1:0",
      GANGLION_ADMIN_LISTEN: "127.0.0.1:0",
      GANGLION_TLS_DIR: tls,
      GANGLION_SESSION_ADDR: this.#session.address,
      GANGLION_DATA_DIR: this.folder,
      ...this.#settings,
    };
    this.#process = await startSandbox(this.user, env, this.#leaked);
    this.#harness = await this.client("harness", "harness-1");
  }

  /** A client with a certificate of that service. */
  async client(service: string, instance = `${service}-1`): Promise<SandboxClient> {
    const tls = await this.ca.bundle(service, instance);
    const client = createClient(SandboxServiceService, this.process.addr, tls, "sandbox", { image: null });
    this.#clients.push(client);
    return client;
  }

  /** A session whose lease harness-1 holds. */
  newSession(epoch = 1n): string {
    const sessionId = newId("sesn");
    this.leases.set(sessionId, { epoch, owner: HARNESS });
    return sessionId;
  }

  /** What the played session service answers. */
  playLease(sessionId: string) {
    const lease = this.leases.get(sessionId);
    if (!lease) {
      throw new GanglionError({ code: "NOT_FOUND", reason: "SESSION_NOT_FOUND", message: "no such session" });
    }
    return {
      ...{
        sessionId,
        workspaceId: "wrkspc_default",
        headPosition: 1n,
        isOwnerAlive: true,
        status: 1 as const,
      },
      ...lease,
    };
  }

  /** A hand for a session. */
  async hand(sessionId: string, epoch = 1n): Promise<Hand> {
    const { hand } = await this.harness.provision({
      requestId: randomUUID(),
      sessionId,
      epoch,
      resources: undefined,
      repositories: [],
    });
    return hand!;
  }

  /** A session with a hand, and functions that use it. */
  async newHand(): Promise<HandUser> {
    const sessionId = this.newSession();
    const hand = await this.hand(sessionId);
    return new HandUser(this, sessionId, hand);
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    await this.#process?.kill("SIGTERM");
    for (const client of this.#clients) client.close();
    this.#session.force();
    removeFolder(this.folder);
    this.ca.remove();
  }
}

/** A hand with its session, for tests that only run tools. */
export class HandUser {
  readonly kit: SandboxKit;
  readonly sessionId: string;
  readonly hand: Hand;

  constructor(kit: SandboxKit, sessionId: string, hand: Hand) {
    this.kit = kit;
    this.sessionId = sessionId;
    this.hand = hand;
  }

  /** What Execute is asked. */
  request(
    name: string,
    input: unknown,
    more: { key?: string; epoch?: bigint; timeoutMs?: number; acknowledgedKeys?: string[] } = {},
  ) {
    const { key = newId("sevt"), epoch = 1n, timeoutMs } = more;
    return {
      ...{ sessionId: this.sessionId, handId: this.hand.id, key, epoch, name },
      inputJson: Buffer.from(JSON.stringify(input)),
      timeout:
        timeoutMs === undefined
          ? undefined
          : { seconds: BigInt(Math.floor(timeoutMs / 1000)), nanos: (timeoutMs % 1000) * 1e6 },
      acknowledgedKeys: more.acknowledgedKeys ?? [],
    };
  }

  /** Runs a tool. */
  async tool(name: string, input: unknown, more: { key?: string; epoch?: bigint; timeoutMs?: number } = {}) {
    const { execution } = await this.kit.harness.execute(this.request(name, input, more));
    return execution as Execution;
  }

  /** Runs a shell command. */
  bash(command: string, more: { key?: string; epoch?: bigint; timeoutMs?: number } = {}): Promise<Execution> {
    return this.tool("bash", { command }, more);
  }
}

/** untilFile waits for a file that a command makes. */
export function untilFile(hand: HandUser, file_path: string): Promise<void> {
  return until(async () => !(await hand.tool("read", { file_path })).isError, `the file ${file_path}`);
}

/** untilRunning waits for a call to be known as running. */
export function untilRunning(hand: HandUser, key: string): Promise<void> {
  const query = { sessionId: hand.sessionId, key, epoch: 1n, wait: false };
  const isRunning = async () =>
    (await hand.kit.harness.getExecution(query).catch(() => undefined))?.isRunning === true;
  return until(isRunning, "the call to run");
}
