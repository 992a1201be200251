import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import type { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import {
  Execution,
  Hand,
  SandboxServiceService,
} from "../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";

interface Run {
  done: Promise<Execution>;
  kill: () => void;
  value?: Execution;
}

/** Plays a host of hands: commands by name, a journal by key, and runs that outlive the call that began them. */
export class PlayedSandbox {
  /** Commands that were begun, in order. */
  readonly begun: string[] = [];
  readonly commands = new Map<string, () => Promise<Partial<Execution>>>();
  provisioned = 0;
  readonly #journal = new Map<string, Run>();
  #server!: RunningServer;
  #changed: (() => void) | undefined;

  static async start(tls: TlsBundle, image: string): Promise<PlayedSandbox> {
    const sandbox = new PlayedSandbox();
    sandbox.#server = await startServer({
      service: "sandbox",
      instance: "sandbox-1",
      listen: "127.0.0.1:0",
      tls,
      image,
      logLevel: "error",
      ownsProcess: false,
      implementations: [sandbox.#implementation()],
    });
    return sandbox;
  }

  get address(): string {
    return this.#server.address;
  }

  /** Resolves when that many commands have begun. */
  async began(count: number): Promise<void> {
    while (this.begun.length < count) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  stop(): void {
    this.#server.force();
  }

  #implementation() {
    return implementSome(SandboxServiceService, {
      provision: unary(async ({ sessionId }) => {
        this.provisioned += 1;
        const hand = Hand.fromPartial({ id: `hand_${this.provisioned}`, sessionId, driver: "played" });
        return { hand, repositoryFailures: [] };
      }),
      execute: unary(async ({ key, handId, inputJson }) => {
        let run = this.#journal.get(key);
        const isReplayed = run !== undefined;
        if (!run) {
          run = this.#begin(key, handId, (JSON.parse(inputJson.toString()) as { command: string }).command);
        }
        return { execution: { ...(await run.done), isReplayed } };
      }),
      cancelExecution: unary(async ({ key }) => {
        this.#journal.get(key)?.kill();
        await this.#journal.get(key)?.done;
        return {};
      }),
      getExecution: unary(async ({ key, wait }) => {
        const run = this.#journal.get(key);
        if (!run)
          throw new GanglionError({ code: "NOT_FOUND", reason: "EXECUTION_NOT_FOUND", message: "never" });
        if (wait) return { execution: await run.done, isRunning: false };
        return { execution: run.value ?? Execution.fromPartial({ key }), isRunning: !run.value };
      }),
    });
  }

  #begin(key: string, handId: string, command: string): Run {
    const killed = Promise.withResolvers<Partial<Execution>>();
    const work = this.commands.get(command) ?? (async () => ({ output: `did ${command}` }));
    const run: Run = {
      kill: () => killed.resolve({ outcome: 4, isError: true, output: "stopped" }),
      done: Promise.race([work(), killed.promise]).then((partial) => {
        run.value = Execution.fromPartial({ key, handId, outcome: 1, ...partial });
        return run.value;
      }),
    };
    this.#journal.set(key, run);
    this.begun.push(command);
    this.#changed?.();
    return run;
  }
}
