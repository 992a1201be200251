import { mcpModelName } from "../../../../services/harness/domain/mcp-tool-names.ts";
import { SESSION_LOG } from "../../../../services/harness/domain/session-log-tool.ts";
import type { Answer, AnswerBlock } from "../../../../services/harness/ports/model.ts";
import type { Random } from "../../../kit/random.ts";
import { checkConversation, type Message } from "../checks/check-conversation.ts";
import type { ModelPiece } from "./model-piece.ts";

/** A piece of an answer and when it comes; "cut" = the connection breaks there. */
export interface TimedPiece {
  afterMs: number;
  piece: ModelPiece | "cut";
}

/** What a user says when the model shall answer in words at once. */
export const LAST_WORDS = "These are my last words";

const TOOLS = [
  SESSION_LOG,
  "bash",
  "write",
  "ask_human",
  mcpModelName("srv", "act"),
  mcpModelName("srv", "look"),
];

/** How difficult the model is. */
export interface Mood {
  /** Probability of an overload, a cut stream, or another failure. */
  failure: number;
  /** Longest time a tool runs. */
  toolMs: number;
  /** False: no tool call, no failure, nothing odd. */
  isOdd: boolean;
}

/** A model that makes up its answer from the conversation and the seed. */
export class ScriptedMind {
  readonly mood: Mood = { failure: 0.1, toolMs: 800, isOdd: true };
  /** Conversations in which something was wrong. */
  readonly faults: string[] = [];
  asked = 0;
  /** The newest conversation of each session. */
  readonly newest = new Map<string, readonly Message[]>();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  answer(sessionId: string, body: Buffer): TimedPiece[] {
    this.asked += 1;
    const { messages, system = "" } = JSON.parse(body.toString("utf8")) as {
      messages: Message[];
      system?: string;
    };
    // A request for a summary is no part of the conversation.
    const isSummary = system !== "";
    if (!isSummary) this.newest.set(sessionId, messages);
    for (const fault of checkConversation(messages)) this.faults.push(`${sessionId}: ${fault}`);
    const random = this.#random;
    const firstMs = random.between(1, 300);
    if (random.chance(this.mood.failure)) return [{ afterMs: firstMs, piece: this.#failure() }];
    const summary = answer("end_turn", [text(0, `Summary ${this.asked}.`)]);
    const whole = isSummary ? summary : this.#answerTo(messages);
    const blocks: TimedPiece[] = whole.blocks.map(({ index, type }, i) => ({
      afterMs: i === 0 ? firstMs : random.between(0, 120),
      piece: { kind: "block", index, type },
    }));
    if (random.chance(this.mood.failure)) {
      blocks.splice(random.integer(1, blocks.length));
      return [...blocks, { afterMs: random.between(0, 200), piece: "cut" }];
    }
    return [...blocks, { afterMs: random.between(0, 400), piece: { kind: "whole", answer: whole } }];
  }

  #failure(): ModelPiece {
    const kinds = [
      { kind: "failed", status: 529, type: "overloaded_error" },
      { kind: "failed", status: 429, type: "rate_limit_error", retryAfterMs: 1200 },
      { kind: "failed", status: 500, type: "api_error" },
    ] as const;
    return this.#random.pick(kinds);
  }

  #answerTo(messages: readonly Message[]): Answer {
    const rounds = roundsSinceUserSpoke(messages);
    const isLast = lastWordsOf(messages).includes(LAST_WORDS);
    const wants = this.mood.isOdd && !isLast && this.#random.chance([0.75, 0.5, 0.3, 0.1][rounds] ?? 0);
    if (wants) return this.#calls();
    const isOdd = this.mood.isOdd && !isLast && this.#random.chance(0.08);
    const stop = isOdd
      ? this.#random.pick(["max_tokens", "pause_turn", "refusal", "nobody_knows"])
      : "end_turn";
    return answer(stop, [text(0, `Answer ${this.asked}.`)]);
  }

  #calls(): Answer {
    const random = this.#random;
    const count = random.pick([1, 1, 2, 3]);
    const blocks = [text(0, `Step ${this.asked}.`)];
    for (let i = 1; i <= count; i++) blocks.push(this.#call(i));
    const stop = random.chance(0.05) ? random.pick(["max_tokens", "end_turn"]) : "tool_use";
    return answer(stop, blocks);
  }

  #call(index: number): AnswerBlock {
    const random = this.#random;
    const name = random.chance(0.03) ? "no_such_tool" : random.pick(TOOLS);
    const afterMs = Math.floor(random.next() * random.next() * this.mood.toolMs);
    const beforeMs = Math.floor(random.next() * random.next() * this.mood.toolMs);
    const script = { nonce: `n${this.asked}-${index}`, beforeMs, afterMs };
    const input = name === SESSION_LOG ? { limit: 3 } : script;
    const inputJson = random.chance(0.02) ? '{"nonce":"n' : JSON.stringify(input);
    // Unique in its answer only, as some providers do it.
    const providerCallId = `call_${index}`;
    const json = JSON.stringify({ type: "tool_use", id: providerCallId, name, input });
    return { index, type: "tool_use", json, call: { providerCallId, name, inputJson } };
  }
}

function roundsSinceUserSpoke(messages: readonly Message[]): number {
  let rounds = 0;
  for (const { role, content } of messages.toReversed()) {
    if (role === "assistant") rounds += 1;
    else if (content.some(({ type }) => type === "text")) break;
  }
  return rounds;
}

function lastWordsOf(messages: readonly Message[]): string {
  const said = messages.findLast(({ role, content }) => role === "user" && content.some(isText));
  return said?.content.findLast(isText)?.text ?? "";
}

function isText({ type }: { type: string }): boolean {
  return type === "text";
}

function text(index: number, words: string): AnswerBlock {
  return { index, type: "text", json: JSON.stringify({ type: "text", text: words }) };
}

function answer(stopReason: string, blocks: AnswerBlock[]): Answer {
  const whole = { messageId: "msg", stopReason, stopDetailsJson: "", upstream: "simulated" };
  return { ...whole, blocks, usage: undefined, firstTokenMs: 1 };
}
