import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { CrashAction, FromArmed, ToArmed } from "./armed-messages.ts";

/** How to start a process that can be armed. */
export interface ArmedSpec {
  /** Its GANGLION_INSTANCE. */
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** The whole environment. */
  readonly env: Record<string, string>;
  /** Document for descriptor 3, made anew for each start. */
  readonly bootstrap?: () => Promise<object>;
  /** Called when it has died, before it is started again. */
  readonly onDeath?: () => void;
}

const KEPT_LINES = 400;
const MAX_DEATHS = 8;
const ANSWER_MS = 10_000;

/** ArmedProcess is a service under a preload that can kill it, or cut its network, at a named point. */
export class ArmedProcess {
  readonly spec: ArmedSpec;
  readonly #lines: string[] = [];
  #child: ChildProcess | undefined;
  #listening = Promise.withResolvers<void>();
  #onHit: (() => void) | undefined;
  /** What was ordered and has not happened yet: a process that is started again begins with it. */
  #order: Extract<ToArmed, { ask: "arm" }> | undefined;
  #isKilledByUs = false;
  #isWanted = false;
  /** Since it last came up. */
  #deaths = 0;

  constructor(spec: ArmedSpec) {
    this.spec = spec;
  }

  /** Starts it; resolves when it listens. */
  async start(): Promise<void> {
    this.#isWanted = true;
    await this.#launch();
  }

  /** Resolves when it listens, also when it is just being started again. */
  get ready(): Promise<void> {
    return this.#listening.promise;
  }

  /** Arms it; `onHit` is called once, when the point was hit. A killed process is started again by itself, unarmed. */
  async arm(point: string, action: CrashAction, onHit: () => void): Promise<void> {
    this.#onHit = onHit;
    this.#order = { ask: "arm", point, action };
    await this.ready;
    // One that is about to die of an order before begins with this one.
    await this.#ask(this.#order, "armed").catch(ignoreDeath);
  }

  /** Takes the order back. */
  async disarm(): Promise<void> {
    this.#onHit = undefined;
    this.#order = undefined;
    await this.ready;
    // One that has just died of its order, or of somebody else's, begins without.
    await this.#ask({ ask: "disarm" }, "disarmed").catch(ignoreDeath);
  }

  /** The points it came by since the last call. */
  async seen(): Promise<string[]> {
    return (await this.#ask({ ask: "seen" }, "seen")).points;
  }

  /** Kills it, not at a point; resolves when it has died. It is started again. */
  async kill(): Promise<void> {
    const child = this.#child as ChildProcess;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    this.#isKilledByUs = true;
    child.kill("SIGKILL");
    await exited;
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  async #launch(): Promise<void> {
    const { command, env, bootstrap } = this.spec;
    this.#listening = Promise.withResolvers();
    const document = bootstrap ? JSON.stringify(await bootstrap()) : undefined;
    if (!this.#isWanted) return;
    const stdio: StdioOptions = ["ignore", "pipe", "pipe", document === undefined ? "ignore" : "pipe", "ipc"];
    const child = spawn(command[0], command.slice(1), {
      env: {
        ...env,
        ...(document === undefined ? {} : { GANGLION_BOOTSTRAP_FD: "3" }),
        ...(this.#order ? { CRASH_ORDER: JSON.stringify(this.#order) } : {}),
      },
      stdio,
    });
    this.#child = child;
    if (document !== undefined) (child.stdio[3] as Writable).on("error", () => {}).end(document);
    const listening = this.#listening;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream as Readable }).on("line", (line) => {
        this.#lines.push(line);
        if (this.#lines.length > KEPT_LINES) this.#lines.shift();
        if (line.includes('"msg":"listening"')) listening.resolve();
      });
    }
    child.on("message", (message: FromArmed) => {
      if (message.told === "hit") this.#hit();
    });
    child.once("exit", (code, signal) => {
      if (this.#child === child) this.#died(`${code ?? signal}`);
    });
    await listening.promise;
    this.#deaths = 0;
  }

  #died(how: string): void {
    this.#lines.push(`--- ${this.spec.name} ended with ${how}`);
    this.spec.onDeath?.();
    if (!this.#isWanted) return;
    if (how === "SIGKILL" && !this.#isKilledByUs) this.#hit();
    this.#isKilledByUs = false;
    this.#deaths += 1;
    if (this.#deaths > MAX_DEATHS) {
      this.#listening.reject(new Error(`${this.spec.name} does not stay up:\n${this.#lines.join("\n")}`));
      return;
    }
    // Whoever already waits for it to listen goes on waiting, for the next one.
    const waiting = this.#listening;
    this.#launch().then(waiting.resolve, waiting.reject);
    this.#listening.promise.catch(() => {});
  }

  #hit(): void {
    const onHit = this.#onHit;
    this.#onHit = undefined;
    this.#order = undefined;
    onHit?.();
  }

  async #ask<Told extends FromArmed["told"]>(
    message: ToArmed,
    told: Told,
  ): Promise<Extract<FromArmed, { told: Told }>> {
    const child = this.#child as ChildProcess;
    const signal = AbortSignal.timeout(ANSWER_MS);
    const { promise, resolve, reject } = Promise.withResolvers<Extract<FromArmed, { told: Told }>>();
    const onMessage = (answer: FromArmed) => {
      if (answer.told === told) resolve(answer as Extract<FromArmed, { told: Told }>);
    };
    const onGone = () => reject(new ProcessGone(`${this.spec.name} is gone`));
    child.on("message", onMessage);
    child.once("exit", onGone);
    signal.addEventListener("abort", () => reject(new Error(`${this.spec.name} does not answer`)));
    try {
      child.send(message, (error) => error && onGone());
      return await promise;
    } finally {
      child.off("message", onMessage);
      child.off("exit", onGone);
    }
  }
}

class ProcessGone extends Error {}

function ignoreDeath(error: unknown): void {
  if (!(error instanceof ProcessGone)) throw error;
}
