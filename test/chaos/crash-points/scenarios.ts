import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { script } from "../../kit/stage.ts";
import type { AgentName } from "./agents.ts";
import { newEvent, type Player, textBlock, userMessage } from "./player.ts";

const REQUIRES_ACTION = 2;
const ALLOW = 1;
const HAND_OR_END = new Set(["ganglion.hand_provisioned", "session.status_idle"]);
const CALL_OR_END = new Set(["agent.mcp_tool_use", "session.status_idle"]);
const COUNT = "mcp__counter__count";
/** Longer than the time between two looks of any process while a session is busy. */
const SLOW_MS = 6_500;

/** A session that is played while something dies. Tools say with a word of their own what they did. */
export interface Scenario {
  readonly name: string;
  readonly agent: AgentName;
  /** Plays it to the end; resolves when the session is idle. */
  play(player: Player, sessionId: string, words: WordList): Promise<void>;
}

/** Makes words that nobody else uses. */
export class WordList {
  readonly #prefix: string;
  readonly words: string[] = [];

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The next word. */
  next(): string {
    const word = `${this.#prefix}x${this.words.length + 1}`;
    this.words.push(word);
    return word;
  }
}

const bash = (command: string) => ({ name: "bash", input: { command } });
const count = (words: WordList) => bash(`echo ${words.next()} >> counter; wc -l < counter`);
/** May not be repeated: its server counts. */
const mcpCall = (words: WordList, wait_ms = 0) => ({
  name: COUNT,
  input: { key: words.next(), wait_ms },
});

/**
 * The canonical sessions, the cheapest first. In "recovery" a brain, the proxy and the sandbox have died already: what is
 * armed then dies while it recovers.
 */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "plain",
    agent: "bare",
    play: async (player, sessionId) => {
      await player.turn(sessionId, "scenario: plain words=5");
      await player.turn(sessionId, "scenario: plain words=6");
    },
  },
  {
    name: "mcp tool",
    agent: "free",
    play: async (player, sessionId, words) => {
      await player.turn(sessionId, script([{ text: "The server.", calls: [mcpCall(words)] }]));
    },
  },
  {
    name: "parallel tools",
    agent: "free",
    play: async (player, sessionId, words) => {
      const calls = [count(words), count(words), mcpCall(words)];
      await player.turn(sessionId, script([{ text: "All at once.", calls }]));
    },
  },
  {
    name: "confirmation",
    agent: "careful",
    play: async (player, sessionId, words) => {
      await answered(player, sessionId, script([{ calls: [count(words)] }]), (call) => ({
        $case: "userToolConfirmation",
        value: { toolUseId: call.id, result: ALLOW, denyMessage: undefined },
      }));
    },
  },
  {
    name: "custom tool",
    agent: "careful",
    play: async (player, sessionId) => {
      const calls = [{ name: "ask_a_person", input: { question: "who?" } }];
      await answered(player, sessionId, script([{ calls }]), (call) => ({
        $case: "userCustomToolResult",
        value: { customToolUseId: call.id, content: [textBlock("nobody")], isError: undefined },
      }));
    },
  },
  {
    name: "interrupt",
    agent: "free",
    play: async (player, sessionId, words) => {
      const calls = [bash(`echo ${words.next()} >> counter; sleep 30`), mcpCall(words, 10_000)];
      const said = await player.say(sessionId, script([{ calls }, { text: "Never." }]));
      await player.first(sessionId, said, ({ type }) => HAND_OR_END.has(type));
      const interrupted = await player.emit(sessionId, {
        $case: "userInterrupt",
        value: { sessionThreadId: "" },
      });
      await player.idleAfter(sessionId, interrupted);
    },
  },
  {
    name: "compaction",
    agent: "forgetful",
    play: async (player, sessionId, words) => {
      const filling = "Nothing of note. ".repeat(1500);
      await player.turn(sessionId, `${filling}\n${script([{ calls: [count(words)] }, { text: "Noted." }])}`);
      await player.turn(sessionId, script([{ calls: [count(words)] }, { text: "Found." }]));
    },
  },
  {
    name: "large content",
    agent: "bare",
    play: async (player, sessionId) => {
      // Of its own: what a brain has read it reads no second time.
      const data = `${randomUUID()} ${"Nothing of note. ".repeat(10_000)}`;
      const source = { type: "text", media_type: "text/plain", data };
      const stored = await player.store(sessionId, { type: "document", ...{ source } });
      const content = [stored, textBlock("scenario: plain words=5")];
      const said = await player.emit(sessionId, { $case: "userMessage", value: { content } });
      await player.idleAfter(sessionId, said);
    },
  },
  {
    name: "long log",
    agent: "bare",
    play: async (player, sessionId) => {
      const many = Array.from({ length: 99 }, (_, n) => userMessage(`line ${n}`));
      await player.emitAll(sessionId, many);
      const said = await player.emitAll(sessionId, [...many, userMessage("scenario: plain words=5")]);
      await player.idleAfter(sessionId, said);
      await player.released(sessionId);
      await player.turn(sessionId, "scenario: plain words=6");
    },
  },
  {
    name: "many at once",
    agent: "bare",
    play: async (player, sessionId) => {
      // Those that come while the first is being stored are stored together; all are sent once more.
      const events = Array.from({ length: 8 }, () => newEvent(userMessage("scenario: plain words=5")));
      const appended = () => Promise.all(events.map((event) => player.append(sessionId, [event])));
      const positions = await appended();
      assert.deepEqual(await appended(), positions, "the same events, at the same positions");
      const last = positions.toSorted((one, other) => Number(one - other)).at(-1);
      await player.idleAfter(sessionId, last ?? 0n);
    },
  },
  {
    name: "ending",
    agent: "bare",
    play: async (player) => {
      const sessionId = await player.newSession("free");
      await player.turn(sessionId, script([{ calls: [bash("true")] }]));
      const fork = await player.fork(sessionId);
      await player.turn(fork, "scenario: plain words=5");
      await player.kill(fork);
      await player.end(sessionId);
    },
  },
  {
    name: "recovery",
    agent: "free",
    play: async (player, sessionId, words) => {
      const calls = [mcpCall(words, 400), count(words)];
      const said = await player.say(sessionId, script([{ calls }, { text: "Done." }]));
      await player.first(sessionId, said, ({ type }) => CALL_OR_END.has(type));
      await player.killBrain(sessionId);
      await Promise.all(["mcp-proxy-1", "sandbox-1"].map((name) => player.mesh.process(name).kill()));
      await player.idleAfter(sessionId, said);
    },
  },
  {
    name: "slow tool",
    agent: "free",
    play: async (player, sessionId, words) => {
      // The second call finds no credential that is kept from the first.
      const steps = [{ calls: [mcpCall(words, SLOW_MS)] }, { calls: [mcpCall(words)] }, { text: "At last." }];
      await player.turn(sessionId, script(steps));
    },
  },
];

/** A turn in which the model waits for the client: each of its calls is answered, until the turn ends. */
async function answered(
  player: Player,
  sessionId: string,
  text: string,
  answer: (call: Event) => NonNullable<Event["body"]>,
): Promise<void> {
  const isCall = ({ type }: Event) => /^agent\.(custom_)?tool_use$/.test(type);
  const said = await player.say(sessionId, text);
  const waiting = await player.idleAfter(sessionId, said);
  assert.equal(stopOf(waiting), REQUIRES_ACTION, "the session waits for its client");
  const calls = (await player.log(sessionId)).filter(isCall);
  const open = new Set(
    waiting.body?.$case === "sessionStatusIdle" ? waiting.body.value.stopReason?.eventIds : [],
  );
  let position = waiting.position;
  for (const call of calls.filter(({ id }) => open.has(id)))
    position = await player.emit(sessionId, answer(call));
  await player.idleAfter(sessionId, position);
}

function stopOf({ body }: Event): number | undefined {
  return body?.$case === "sessionStatusIdle" ? body.value.stopReason?.type : undefined;
}
