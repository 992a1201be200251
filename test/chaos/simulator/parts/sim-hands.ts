import { pause } from "../../../../services/harness/driver/pause.ts";
import {
  type DrivenHand,
  type HandDriver,
  HandLostError,
  type ToolCall,
  type ToolRun,
} from "../../../../services/sandbox/domain/hand-driver.ts";
import type { Trace } from "../core/trace.ts";
import type { SimProcess } from "../core/virtual-time.ts";
import { type Effects, scriptOf } from "./effects.ts";

const NEVER = new AbortController().signal;

/** Makes hands whose tools only count what they do. */
export class SimHandDriver implements HandDriver {
  readonly name = "simulated";
  readonly tools = ["bash"];
  readonly hands = new Set<SimHand>();
  readonly #process: SimProcess;
  readonly #effects: Effects;
  readonly #trace: Trace;

  constructor(process: SimProcess, effects: Effects, trace: Trace) {
    this.#process = process;
    this.#effects = effects;
    this.#trace = trace;
  }

  async start(): Promise<void> {}

  capabilities(): ReturnType<HandDriver["capabilities"]> {
    return { perHandUid: true, sharedUidReason: "", cgroups: true, unenforcedLimits: [] };
  }

  async provision(handId: string): Promise<DrivenHand> {
    await pause(this.#process.random.between(2, 80), NEVER);
    if (this.#process.random.chance(0.03)) throw new Error("no hand this time");
    const hand = new SimHand(this.#effects, () => this.hands.delete(hand));
    this.hands.add(hand);
    this.#trace.say(`${this.#process.name} made ${handId}`);
    return hand;
  }
}

/** One hand. */
export class SimHand implements DrivenHand {
  readonly hostPid = 0;
  readonly ended: Promise<string>;
  readonly #death = new AbortController();
  readonly #effects: Effects;

  constructor(effects: Effects, onEnd: () => void) {
    this.#effects = effects;
    this.ended = new Promise((resolve) => {
      this.#death.signal.addEventListener("abort", () => {
        onEnd();
        resolve(String(this.#death.signal.reason));
      });
    });
  }

  /** It dies by itself. */
  die(): void {
    this.#death.abort("it died");
  }

  async destroy(): Promise<void> {
    this.#death.abort("it was destroyed");
  }

  async run(call: ToolCall, signal: AbortSignal): Promise<ToolRun> {
    if (this.#death.signal.aborted) throw new HandLostError("it is dead", false);
    const script = scriptOf(call.inputJson);
    if (!script) return { ...RUN, isError: true, text: "no such command" };
    const either = AbortSignal.any([signal, this.#death.signal]);
    await pause(script.beforeMs, either);
    if (!either.aborted) {
      this.#effects.take(script.nonce);
      await pause(script.afterMs, either);
    }
    if (this.#death.signal.aborted) throw new HandLostError("it died", true);
    return { ...RUN, isCancelled: signal.aborted, isError: signal.aborted, text: `did ${script.nonce}` };
  }
}

const RUN: ToolRun = {
  isError: false,
  text: "",
  exitCode: 0,
  isTimedOut: false,
  isCancelled: false,
  wasStarted: true,
  outputBytes: 8,
};
