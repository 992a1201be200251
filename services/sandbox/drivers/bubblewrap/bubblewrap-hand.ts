import type { DrivenHand, ToolCall, ToolRun } from "../../domain/hand-driver.ts";
import type { OutsideConfig, ToolResult } from "../../hand-agent/protocol.ts";
import { DEFAULT_LIMITS } from "../../hand-agent/protocol.ts";
import { AgentClient } from "./agent-client.ts";
import type { Jail } from "./jail.ts";

const READY_TIMEOUT_MS = 20_000;

/** BubblewrapHand is one living jail with its agent. */
export class BubblewrapHand implements DrivenHand {
  readonly ended: Promise<string>;
  readonly #jail: Jail;
  readonly #agent: AgentClient;
  readonly #cleanUp: () => Promise<void>;
  #destroyed: Promise<void> | undefined;

  constructor(jail: Jail, cleanUp: () => Promise<void>) {
    const ended = Promise.withResolvers<string>();
    this.ended = ended.promise;
    this.#jail = jail;
    this.#cleanUp = cleanUp;
    this.#agent = new AgentClient(jail, {
      onBroken: (reason) => {
        // Half a hand is no hand: what the agent can no longer stop must not go on.
        void jail.kill().then(() => ended.resolve(reason));
      },
    });
    void jail.exited.then(() => this.#agent.fail("the hand ended"));
  }

  get hostPid(): number {
    return this.#jail.initPid;
  }

  /** Resolves when the agent has started and knows its limits and, where it has one, its way out. */
  async ready(outside?: OutsideConfig): Promise<void> {
    const timer = setTimeout(
      () => this.#agent.fail("the hand's agent did not start in time"),
      READY_TIMEOUT_MS,
    );
    try {
      await this.#agent.ready;
    } catch (error) {
      throw new Error(`${(error as Error).message}: ${this.#jail.lastWords || "no message"}`);
    } finally {
      clearTimeout(timer);
    }
    this.#agent.send({ type: "configure", limits: DEFAULT_LIMITS, ...(outside && { outside }) });
  }

  async run(call: ToolCall, signal: AbortSignal): Promise<ToolRun> {
    const input = parseInput(call.inputJson);
    if (input === undefined) return failedRun(`${call.name}: the input is not a JSON object`);
    return toRun(await this.#agent.call({ ...call, input }, signal));
  }

  destroy(): Promise<void> {
    this.#destroyed ??= this.#destroyNow();
    return this.#destroyed;
  }

  async #destroyNow(): Promise<void> {
    this.#agent.fail("the hand was terminated");
    await this.#jail.kill();
    await this.#cleanUp();
  }
}

function parseInput(json: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(json);
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    return isObject ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function failedRun(text: string): ToolRun {
  return {
    isError: true,
    text,
    exitCode: null,
    isTimedOut: false,
    isCancelled: false,
    wasStarted: true,
    outputBytes: 0,
  };
}

function toRun(result: ToolResult): ToolRun {
  const { isError, text, exitCode, isTimedOut, isCancelled, wasStarted, outputBytes } = result;
  return { isError, text, exitCode, isTimedOut, isCancelled, wasStarted, outputBytes };
}
