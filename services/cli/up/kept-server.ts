import { EventEmitter } from "node:events";
import type { ProcessState } from "./managed-process.ts";
import { type ProcessRecord, recordOf } from "./process-record.ts";

/** A server that somebody else knows how to start: PostgreSQL, the vault. */
export interface LaunchedServer {
  readonly pid: number;
  readonly exited: Promise<unknown>;
  stop(): Promise<void>;
}

const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 5000;
const STEADY_MS = 10_000;

/** KeptServer starts such a server again when it ends by itself. Emits "change". */
export class KeptServer<T extends LaunchedServer> extends EventEmitter<{ change: [] }> {
  readonly name: string;
  state: ProcessState = "stopped";
  restarts = 0;
  lastExit: string | undefined;
  record: ProcessRecord | undefined;
  current: T | undefined;
  readonly #launch: () => Promise<T>;
  #wanted = false;
  #delayMs = FIRST_DELAY_MS;
  #timer: NodeJS.Timeout | undefined;
  #starting: Promise<unknown> = Promise.resolve();

  constructor(name: string, launch: () => Promise<T>) {
    super();
    this.name = name;
    this.#launch = launch;
  }

  /** Starts the server; rejects when the first start fails. */
  async start(): Promise<T> {
    this.#wanted = true;
    const starting = this.#run();
    this.#starting = starting.catch(() => {});
    return await starting;
  }

  /** Ends the server and keeps it ended. */
  async stop(): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#timer);
    await this.#starting;
    await this.current?.stop();
    this.current = undefined;
    this.#move("stopped");
  }

  async #run(): Promise<T> {
    this.#move("starting");
    const startedAt = Date.now();
    const server = await this.#launch();
    this.current = server;
    this.record = recordOf(server.pid);
    this.#move("ready");
    server.exited.then(
      () => {
        this.current = undefined;
        this.record = undefined;
        if (!this.#wanted) return;
        this.lastExit = "ended by itself";
        if (Date.now() - startedAt > STEADY_MS) this.#delayMs = FIRST_DELAY_MS;
        this.#again();
      },
      () => {},
    );
    return server;
  }

  #again(): void {
    this.restarts += 1;
    this.#move("waiting");
    this.#timer = setTimeout(() => {
      this.#starting = this.#run().catch((error: Error) => {
        this.lastExit = error.message;
        if (this.#wanted) this.#again();
      });
    }, this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, MAX_DELAY_MS);
  }

  #move(to: ProcessState): void {
    this.state = to;
    this.emit("change");
  }
}
