import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { ModelUsage } from "../../../../services/gen/ganglion/types/v1/content.ts";
import { emptyState } from "../../../../services/harness/domain/session-state.ts";
import type { HandExecution, Hands, Knowledge } from "../../../../services/harness/ports/hands.ts";
import type { Previews, Tokens } from "../../../../services/harness/ports/leases.ts";
import type {
  McpCall,
  McpKnowledge,
  McpProgress,
  McpServers,
  McpTool,
} from "../../../../services/harness/ports/mcp-servers.ts";
import {
  type Answer,
  type AnswerBlock,
  type Model,
  ModelError,
} from "../../../../services/harness/ports/model.ts";

/** One step of the scripted model. */
export type Step = Answer | ModelError | ((signal: AbortSignal) => Promise<Answer>);

/** A model that answers from a list and keeps what it was asked. */
export class ListModel implements Model {
  readonly requests: Record<string, unknown>[] = [];
  readonly steps: Step[];

  constructor(...steps: Step[]) {
    this.steps = steps;
  }

  async ask({ body, listener, signal }: Parameters<Model["ask"]>[0]): Promise<Answer> {
    this.requests.push(JSON.parse(body.toString("utf8")) as Record<string, unknown>);
    const step = this.steps.shift();
    if (!step) throw new Error("the model was asked more often than the test says");
    if (step instanceof ModelError) throw step;
    if (typeof step === "function") {
      if (signal.aborted) throw modelFailure("INTERRUPTED", false);
      return step(signal);
    }
    for (const block of step.blocks) listener.onBlockStart(block.index, block.type);
    return step;
  }
}

/** An answer of text and calls. */
export function answer(stopReason: string, ...blocks: (string | Record<string, unknown>)[]): Answer {
  return {
    messageId: "msg_1",
    stopReason,
    stopDetailsJson: "",
    usage: undefined,
    upstream: "scripted",
    firstTokenMs: 5,
    blocks: blocks.map((block, index): AnswerBlock => {
      const value: Record<string, unknown> =
        typeof block === "string" ? { type: "text", text: block } : { type: "tool_use", ...block };
      const json = JSON.stringify(value);
      if (value.type !== "tool_use") return { index, type: String(value.type), json };
      return {
        index,
        type: "tool_use",
        json,
        call: {
          providerCallId: String(value.id),
          name: String(value.name),
          inputJson: JSON.stringify(value.input ?? {}),
        },
      };
    }),
  };
}

/** An answer and what it used of the model. */
export function using(of: Answer, usage: Partial<ModelUsage>): Answer {
  return { ...of, usage: { ...emptyState().usage, speed: "", ...usage } };
}

/** A call block. */
export function bash(id: string, command: string): Record<string, unknown> {
  return { id, name: "bash", input: { command } };
}

/** A failed request. */
export function modelFailure(reason: string, isRetryable: boolean, retryAfterMs?: number): ModelError {
  return new ModelError({
    reason,
    part: 7,
    errorType: "model_overloaded_error",
    message: "no",
    isRetryable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Fails every call as a part that cannot be reached. */
export function unreachable(): GanglionError {
  return new GanglionError({ code: "UNAVAILABLE", reason: "UNREACHABLE", message: "cannot be reached" });
}

type Command = () => Promise<Partial<HandExecution>>;

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = (): void => reject(new Error("let go"));
    if (signal.aborted) give();
    else signal.addEventListener("abort", give);
  });
}

/** A host of hands with a journal. Commands are run once per key. */
export class JournalHands implements Hands {
  readonly address = "127.0.0.1:1";
  readonly journal = new Map<string, Knowledge<HandExecution>>();
  readonly runs: string[] = [];
  /** Keys that each call said the log holds. */
  readonly acknowledged: (readonly string[])[] = [];
  readonly cancelled: string[] = [];
  readonly commands = new Map<string, Command>();
  readonly #running = new Map<string, Promise<HandExecution>>();
  readonly #kills = new Map<string, AbortController>();
  provisioned = 0;
  isReachable = true;

  async provision(): ReturnType<Hands["provision"]> {
    if (!this.isReachable) throw unreachable();
    this.provisioned += 1;
    const hand = { handId: `hand_${this.provisioned}`, sandbox: "", driver: "fake" };
    return { ...hand, sandboxAddr: this.address, repositoryFailures: [] };
  }

  async execute({
    key,
    handId,
    inputJson,
    signal,
    acknowledgedKeys,
  }: Parameters<Hands["execute"]>[0]): Promise<HandExecution> {
    if (!this.isReachable) throw unreachable();
    this.acknowledged.push(acknowledgedKeys);
    let running = this.#running.get(key);
    if (!running) {
      const { command } = JSON.parse(Buffer.from(inputJson).toString("utf8")) as { command: string };
      this.runs.push(command);
      running = this.#run(key, handId, this.commands.get(command) ?? (async () => ({ output: command })));
      this.#running.set(key, running);
    }
    // Letting go of the call leaves the run alone.
    return Promise.race([running, aborted(signal)]);
  }

  async #run(key: string, handId: string, command: Command): Promise<HandExecution> {
    const kill = new AbortController();
    this.#kills.set(key, kill);
    this.journal.set(key, { kind: "running" });
    const killed = aborted(kill.signal).catch(() => ({ outcome: 4, isError: true }) as const);
    const value = { ...EXECUTED, handId, ...(await Promise.race([command(), killed])) };
    this.journal.set(key, { kind: "known", value });
    return value;
  }

  async cancel({ key }: Parameters<Hands["cancel"]>[0]): Promise<void> {
    if (!this.isReachable) throw unreachable();
    this.cancelled.push(key);
    this.#kills.get(key)?.abort();
    await this.#running.get(key);
  }

  async lookUp({ key }: Parameters<Hands["lookUp"]>[0]): Promise<Knowledge<HandExecution>> {
    if (!this.isReachable) throw unreachable();
    return this.journal.get(key) ?? { kind: "never" };
  }
}

/** A run that ended well. */
export const EXECUTED: HandExecution = {
  handId: "hand_1",
  outcome: 1,
  output: "",
  isError: false,
  isHandLost: false,
  durationMs: 1n,
};

/** MCP servers that answer from maps. */
export class MapMcp implements McpServers {
  readonly tools = new Map<string, McpTool[]>();
  readonly calls: string[] = [];
  readonly journal = new Map<string, McpKnowledge>();
  answer: Partial<McpCall> = {};
  onCall: () => void = () => {};
  /** Keys whose progress somebody asked for. */
  readonly watched: string[] = [];
  /** What is reported of a call; a proxy that knows no progress, until a test says otherwise. */
  reports: (signal: AbortSignal) => AsyncIterable<McpProgress> = () => {
    throw new GanglionError({ code: "UNIMPLEMENTED", reason: "UNIMPLEMENTED", message: "no" });
  };

  async listTools({ serverName }: Parameters<McpServers["listTools"]>[0]): Promise<McpTool[]> {
    const tools = this.tools.get(serverName);
    if (!tools) {
      throw new GanglionError({
        code: "FAILED_PRECONDITION",
        reason: "UPSTREAM_UNAUTHORIZED",
        message: "no",
      });
    }
    return tools;
  }

  async call({ name }: Parameters<McpServers["call"]>[0]): Promise<McpCall> {
    this.calls.push(name);
    this.onCall();
    return { ...MCP_ANSWERED, ...this.answer };
  }

  async cancel(): Promise<void> {}

  watch({ key, signal }: Parameters<McpServers["watch"]>[0]): AsyncIterable<McpProgress> {
    this.watched.push(key);
    return this.reports(signal);
  }

  async lookUp({ key }: Parameters<McpServers["lookUp"]>[0]): Promise<McpKnowledge> {
    return this.journal.get(key) ?? { kind: "never" };
  }
}

const MCP_ANSWERED: McpCall = {
  outcome: 1,
  content: [],
  structuredContentJson: new Uint8Array(),
  isError: false,
  proxyRequestId: "req_1",
  durationMs: 3n,
};

/** Tokens that are always there. */
export const tokens: Tokens = { issue: async () => "token" };

/** Previews, written down. */
export class ListPreviews implements Previews {
  readonly said: string[] = [];
  start(eventId: string, eventType: string): void {
    this.said.push(`start ${eventId} ${eventType}`);
  }
  text(eventId: string, text: string): void {
    this.said.push(`text ${eventId} ${text}`);
  }
  discard(eventId: string): void {
    this.said.push(`discard ${eventId}`);
  }
  progress(eventId: string, { progress, total, message }: McpProgress): void {
    this.said.push(`progress ${eventId} ${progress}/${total} ${message}`);
  }
  close(): void {}
}
