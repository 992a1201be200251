import type { Readable, Writable } from "node:stream";
import { crashPoint } from "../../../common/crash/crash-point.ts";
import { HandLostError } from "../../domain/hand-driver.ts";
import { encodeFrame, FrameReader } from "../../hand-agent/frames.ts";
import type { FromAgent, ToAgent, ToolResult } from "../../hand-agent/protocol.ts";
import { parseFromAgent } from "./parse-from-agent.ts";

const PING_EVERY_MS = 5_000;
const SILENCE_MS = 15_000;

/** How long over its timeout a tool may go before the hand is taken for stuck. */
const TIMEOUT_GRACE_MS = 5_000;
/** After a cancellation the hand has this long to end the call; then it is given up as a whole (case B007). */
const CANCEL_GRACE_MS = 1_500;

type Pending = {
  resolve: (result: ToolResult) => void;
  reject: (error: Error) => void;
  timeoutMs: number;
  watchdog?: NodeJS.Timeout;
};

/** One tool call. */
export type AgentCall = { name: string; input: unknown; timeoutMs: number };

/** What the client tells its owner. */
export type AgentEvents = {
  /** The agent cannot be used any more; called once. */
  onBroken: (reason: string) => void;
};

/**
 * AgentClient speaks with the agent inside one hand. Everything the agent says is checked: it runs beside the
 * model's commands, under the same user, and may have become one of them.
 */
export class AgentClient {
  readonly #input: Writable;
  readonly #events: AgentEvents;
  readonly #pending = new Map<number, Pending>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #pinger: NodeJS.Timeout;
  #nextId = 1;
  #lastHeard = Date.now();
  #broken: string | undefined;

  constructor(streams: { input: Writable; output: Readable }, events: AgentEvents) {
    this.#input = streams.input;
    this.#events = events;
    this.#ready.promise.catch(() => undefined);
    const reader = new FrameReader();
    streams.output.on("data", (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) this.#receive(parseFromAgent(message));
      } catch {
        this.fail("the hand broke its protocol");
      }
    });
    streams.output.once("close", () => this.fail("the hand's agent ended"));
    this.#pinger = setInterval(() => this.#ping(), PING_EVERY_MS);
    this.#pinger.unref();
  }

  /** Resolves when the agent is there; rejects when it breaks first. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** send passes a frame on. */
  send(frame: ToAgent): void {
    if (this.#broken === undefined) this.#input.write(encodeFrame(frame));
  }

  /** call runs a tool; rejects with HandLostError when the agent breaks before it answered. */
  call({ name, input, timeoutMs }: AgentCall, signal: AbortSignal): Promise<ToolResult> {
    if (this.#broken !== undefined) return Promise.reject(new HandLostError(this.#broken, false));
    const id = this.#nextId++;
    const onAbort = () => {
      this.send({ type: "cancel", id });
      this.#watch(id, CANCEL_GRACE_MS, "the hand did not stop a cancelled command");
    };
    return new Promise<ToolResult>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, timeoutMs });
      this.#lastHeard = Date.now();
      crashPoint("hand.send.call");
      this.send({ type: "call", id, name, input, timeoutMs });
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort, { once: true });
    }).finally(() => {
      clearTimeout(this.#pending.get(id)?.watchdog);
      this.#pending.delete(id);
      signal.removeEventListener("abort", onAbort);
    });
  }

  /** fail ends all calls as lost; the first reason stays. */
  fail(reason: string): void {
    if (this.#broken !== undefined) return;
    this.#broken = reason;
    clearInterval(this.#pinger);
    this.#ready.reject(new Error(reason));
    for (const pending of this.#pending.values()) pending.reject(new HandLostError(reason, true));
    this.#events.onBroken(reason);
  }

  #receive(frame: FromAgent): void {
    crashPoint("hand.receive", frame.type);
    this.#lastHeard = Date.now();
    if (frame.type === "ready") this.#ready.resolve();
    else if (frame.type === "started") this.#onStarted(frame.id);
    else if (frame.type === "result") this.#pending.get(frame.id)?.resolve(frame.result);
    else if (frame.type === "unclean") this.fail("processes in the hand could not be killed");
  }

  /** The time of a call counts from its start: until then it may have waited for others. */
  #onStarted(id: number): void {
    const pending = this.#pending.get(id);
    if (!pending || pending.watchdog) return;
    this.#watch(id, pending.timeoutMs + TIMEOUT_GRACE_MS, "the hand went over a command's timeout");
  }

  #watch(id: number, ms: number, reason: string): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    clearTimeout(pending.watchdog);
    pending.watchdog = setTimeout(() => this.fail(reason), ms);
  }

  /** A command may stop the agent without killing it; a hand that stays silent is as good as dead. */
  #ping(): void {
    if (this.#pending.size === 0) {
      this.#lastHeard = Date.now();
      return;
    }
    if (Date.now() - this.#lastHeard > SILENCE_MS) this.fail("the hand's agent does not answer");
    else this.send({ type: "ping", nonce: Date.now() });
  }
}
