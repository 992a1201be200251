import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { MeshClient } from "../../../services/common/grpc/create-client.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import {
  CreateSessionRequest,
  type SessionServiceService,
  WatchEventsRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import type { Random } from "../../kit/random.ts";
import { script } from "../../kit/stage.ts";
import type { Field } from "./field.ts";
import { mayPass, pauseAfter, persistently } from "./persistent.ts";

const COUNT = "mcp__counter__count";
const REPEAT_SHARE = 0.1;
const COMMAND_SECONDS = 0.1;

/** One session's job as its client saw it. */
export class Job {
  readonly name: string;
  readonly usesHand: boolean;
  sessionId = "";
  /** Ids of the user messages that the log has acknowledged, in order. */
  readonly sent: string[] = [];
  turnsDone = 0;
  /** Calls that had to be made again, and messages that were sent once more on purpose. */
  repeats = 0;
  readonly #field: Field;
  readonly #client: MeshClient<typeof SessionServiceService>;
  readonly #random: Random;
  readonly #signal: AbortSignal;
  #position = 0n;

  constructor(options: {
    field: Field;
    n: number;
    usesHand: boolean;
    random: Random;
    signal: AbortSignal;
  }) {
    this.name = `s${options.n}`;
    this.usesHand = options.usesHand;
    this.#field = options.field;
    this.#client = options.field.client(options.n);
    this.#random = options.random;
    this.#signal = options.signal;
  }

  /** Creates the session and plays all turns. */
  async run(turns: number): Promise<void> {
    const { agentId, environmentId, vaultId } = this.#field;
    const request = CreateSessionRequest.fromPartial({
      ...{ requestId: randomUUID(), agentId, environmentId, vaultIds: [vaultId], title: this.name },
    });
    const { session } = await this.#ask(() => this.#client.createSession(request));
    this.sessionId = session?.id ?? "";
    for (let turn = 1; turn <= turns; turn++) {
      await this.#send(this.#text(turn));
      await this.#untilIdle(`${this.name} has done turn ${turn}.`);
      this.turnsDone = turn;
    }
  }

  /** Two calls at once, one more after them, and an answer. */
  #text(turn: number): string {
    const key = `${this.name}-t${turn}`;
    const count = (name: string) => ({
      name: COUNT,
      input: { key: `${key}-${name}`, wait_ms: this.#random.integer(10, 149) },
    });
    const command = `echo ran >> ran-${key}; sleep ${COMMAND_SECONDS}; wc -l < ran-${key}`;
    const first = this.usesHand ? { name: "bash", input: { command } } : count("a");
    return script([
      { text: "Two at once.", calls: [first, count("b")] },
      { text: "One more.", calls: [count("c")] },
      { text: `${this.name} has done turn ${turn}.` },
    ]);
  }

  /** Sends a message under an id of its own until it is answered for, and now and then once more. */
  async #send(text: string): Promise<void> {
    const id = newId("sevt");
    const data = { $case: "json" as const, value: Buffer.from(JSON.stringify({ type: "text", text })) };
    const body = { $case: "userMessage" as const, value: { content: [{ type: "text", data }] } };
    const request = { sessionId: this.sessionId, events: [Event.fromPartial({ id, body })] };
    const emit = async () => (await this.#client.emitEvents(request)).stored[0]?.position;
    const position = await this.#ask(emit);
    this.sent.push(id);
    if (!this.#random.chance(REPEAT_SHARE)) return;
    this.repeats += 1;
    assert.equal(await this.#ask(emit), position, "the same message has the same position");
  }

  /** Follows the log to the end of the turn: no position is missing and none comes twice, whatever was cut. */
  async #untilIdle(answer: string): Promise<void> {
    let last = "";
    let failure = "nothing failed";
    let failed = 0;
    for (;;) {
      const request = WatchEventsRequest.fromPartial({
        sessionId: this.sessionId,
        afterPosition: this.#position,
      });
      try {
        for await (const { message } of this.#client.watchEvents(request, { signal: this.#signal })) {
          if (message?.$case !== "event") continue;
          const { position, type, body } = message.value;
          assert.equal(position, this.#position + 1n, `${this.name}: the watch goes on where it was`);
          this.#position = position;
          failed = 0;
          if (body?.$case === "agentMessage" && body.value.block?.data?.$case === "json")
            last = JSON.parse(Buffer.from(body.value.block.data.value).toString()).text;
          if (body?.$case === "sessionError") failure = `${body.value.reason}: ${body.value.message}`;
          if (type !== "session.status_idle") continue;
          assert.equal(last, answer, `${this.name}: the turn ended with its answer (${failure})`);
          return;
        }
      } catch (error) {
        if (!mayPass(error) || this.#signal.aborted) throw error;
      }
      this.repeats += 1;
      failed += 1;
      await pauseAfter(failed, this.#signal);
    }
  }

  #ask<T>(ask: () => Promise<T>): Promise<T> {
    return persistently(ask, this.#signal, () => {
      this.repeats += 1;
    });
  }
}
