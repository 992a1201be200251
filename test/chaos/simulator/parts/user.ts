import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { newId } from "../../../../services/common/ids/new-id.ts";
import { SessionServiceService } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import type { SessionClient } from "../../../../services/harness/clients/service-clients.ts";
import type { Call } from "../../../../services/harness/domain/session-state.ts";
import { textBlock } from "../../../../services/harness/domain/text-block.ts";
import { pause } from "../../../../services/harness/driver/pause.ts";
import { clientOf } from "../core/client-of.ts";
import type { Network } from "../core/network.ts";
import { currentProcess, type SimProcess } from "../core/virtual-time.ts";
import type { Observer } from "./observer.ts";

const NEVER = new AbortController().signal;

/** What a user does during the bad times. */
export interface UserPlan {
  messages: number;
  interrupts: number;
  /** Longest pause between two deeds. */
  idleMs: number;
}

/** A user of one session: talks, interrupts, allows, denies and answers, and repeats itself until it is heard. */
export class User {
  readonly #process: SimProcess;
  readonly #client: SessionClient;
  readonly #observer: Observer;
  /** Ids of messages that the log has confirmed, with where. */
  readonly confirmed = new Map<string, bigint>();
  /** What was said, by event id. */
  readonly said = new Map<string, string>();
  readonly #answered = new Set<string>();
  /** Deeds that are not confirmed yet. */
  pending = 0;
  isPatient = false;
  #plans = 0;

  constructor(process: SimProcess, network: Network, observer: Observer) {
    this.#process = process;
    this.#observer = observer;
    const caller = { process, spiffeId: "", role: Role.ROLE_CLIENT, workspaceId: "wrkspc_default" };
    this.#client = clientOf(network, caller, "session", "session", SessionServiceService);
  }

  /** True when everything planned is done and the log has confirmed it. */
  get isDone(): boolean {
    return this.pending === 0 && this.#plans === 0;
  }

  /** Does what the plan says, at random moments. */
  live(plan: UserPlan): void {
    this.#plans = 2;
    const done = (): void => {
      this.#plans -= 1;
    };
    currentProcess.run(this.#process, () => {
      void this.#talk(plan).then(done);
      void this.#interrupt(plan).then(done);
      void this.#answer();
    });
  }

  /** Says something; resolves when the log has it. */
  say(words: string): Promise<void> {
    return currentProcess.run(this.#process, () => {
      const event = eventOf({ $case: "userMessage", value: { content: [textBlock(words)] } });
      this.said.set(event.id, words);
      return this.#emit(event);
    });
  }

  async #talk({ messages, idleMs }: UserPlan): Promise<void> {
    for (let i = 1; i <= messages; i++) {
      if (i > 1) await pause(this.#process.random.between(0, idleMs), NEVER);
      await this.say(`Message ${i} of ${this.#process.name}.`);
    }
  }

  async #interrupt({ interrupts, idleMs }: UserPlan): Promise<void> {
    const { random } = this.#process;
    for (let i = 0; i < interrupts; i++) {
      await pause(random.between(0, idleMs), NEVER);
      // Most of them where they are most difficult: while calls are open.
      const tries = random.chance(0.7) ? 40 : 0;
      for (let j = 0; j < tries && this.#observer.look().openCalls.size === 0; j++) {
        await pause(random.between(20, 200), NEVER);
      }
      // And some of those a little later, when another brain may have taken over.
      if (random.chance(0.4)) await pause(random.between(0, 8000), NEVER);
      await this.#emit(eventOf({ $case: "userInterrupt", value: { sessionThreadId: "" } }));
    }
  }

  async #answer(): Promise<void> {
    const { random } = this.#process;
    for (;;) {
      await pause(random.between(20, this.isPatient ? 300 : 3000), NEVER);
      for (const call of this.#observer.waiting()) {
        if (this.#answered.has(call.id) && !random.chance(0.02)) continue;
        this.#answered.add(call.id);
        // Two answers with different ids now and then: the second one changes nothing.
        await this.#emit(this.#answerTo(call));
      }
    }
  }

  #answerTo(call: Call): Event {
    if (call.kind === "custom") {
      const content = [textBlock(`My answer ${this.#process.random.integer(1, 9)}.`)];
      return eventOf({
        $case: "userCustomToolResult",
        value: { customToolUseId: call.id, content, isError: undefined },
      });
    }
    const isAllowed = this.#process.random.chance(0.7);
    return eventOf({
      $case: "userToolConfirmation",
      value: { toolUseId: call.id, result: isAllowed ? 1 : 2, denyMessage: isAllowed ? undefined : "no" },
    });
  }

  /** Sends the same event until it is answered. */
  async #emit(event: Event): Promise<void> {
    this.pending += 1;
    for (;;) {
      try {
        const request = {
          sessionId: this.#observer.sessionId,
          events: [event],
          epoch: undefined,
          expectedPosition: undefined,
        };
        const { stored } = await this.#client.emitEvents(request, { timeoutMs: 5000 });
        this.confirmed.set(event.id, stored[0]?.position ?? 0n);
        this.pending -= 1;
        return;
      } catch (error) {
        if (!GanglionError.is(error)) throw error;
        if (!["UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED"].includes(error.code)) throw error;
        await pause(this.#process.random.between(50, 1000), NEVER);
      }
    }
  }
}

function eventOf(body: NonNullable<Event["body"]>): Event {
  return Event.fromPartial({ id: newId("sevt"), body });
}
