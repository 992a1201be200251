import assert from "node:assert/strict";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { serializeState } from "../../../services/harness/domain/checkpoint.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { project } from "../../../services/harness/domain/project-request.ts";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import { sha256 } from "../../../services/harness/domain/sha256.ts";
import type { Answer } from "../../../services/harness/ports/model.ts";
import { toEvents } from "../../golden/load-log.ts";
import { askedOnce } from "./fakes/asked-once.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash, modelFailure, using } from "./fakes/scripted-parts.ts";

interface Block {
  type: string;
  text?: string;
  id?: string;
  tool_use_id?: string;
  content?: Block[];
  cache_control?: object;
}
interface Request {
  system?: unknown;
  tools?: { name: string; cache_control?: object }[];
  messages: { role: string; content: Block[] }[];
}

const LONG = `Remember the number 17. ${"And so on. ".repeat(100)}`;
const SMALL = { window_tokens: 4000, compact_at_tokens: 1000, keep_tokens: 200 };

const used = (tokens: number, made: Answer): Answer =>
  using(made, { inputTokens: BigInt(tokens), outputTokens: 10n });

function say(world: World, text: string): void {
  world.log.client("user.message", { content: [{ type: "text", text }] });
}

const requests = (world: World) => world.model.requests as unknown as Request[];
const textOf = (request: Request | undefined) =>
  request?.messages.flatMap(({ content }) => content.map((block) => block.text ?? "")).join("\n") ?? "";

/** Every call is answered in the message behind it, and no result stands without its call. */
function assertPaired({ messages }: Request): void {
  messages.forEach(({ role, content }, i) => {
    const calls = content.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    const next = (messages[i + 1]?.content ?? []).filter(({ type }) => type === "tool_result");
    if (role === "assistant")
      assert.deepEqual(
        next.map((block) => block.tool_use_id),
        calls,
      );
    if (i === 0) assert.ok(content.every(({ type }) => type !== "tool_result"));
  });
}

describe("compaction", () => {
  it("replaces whole turns by a summary once the window fills, and goes on in the same turn [B028]", async () => {
    const big = "x".repeat(4000);
    const world = new World(
      session({}, "Find the word.", "compaction/1", SMALL),
      used(100, answer("tool_use", bash("a", "first"), bash("b", "second"))),
      used(1200, answer("tool_use", bash("c", "third"))),
      used(300, answer("end_turn", "The word is in first.")),
      used(200, answer("end_turn", "Done.")),
    );
    world.hands.commands.set("first", async () => ({ output: big }));
    await world.drive();
    // The results of the first answer filled the window, so the second request is the one for a summary.
    const [compacted] = world.log.all("agentThreadContextCompacted");
    assert.ok(compacted);
    const [, summary, after] = requests(world);
    assert.equal(summary?.tools, undefined);
    assert.equal(summary?.messages.length, 1);
    assert.match(textOf(summary), /Find the word/);
    for (const request of requests(world)) assertPaired(request);
    assert.match(textOf(after), /was replaced by this summary/);
    assert.ok(!JSON.stringify(after).includes(big));
    // What was replaced is where it was (L9).
    assert.ok(world.log.all("agentToolResult")[0]?.content[0]?.data?.value.toString().includes(big));
    const purposes = world.log.all("spanModelRequestStart").map(({ purpose }) => purpose);
    assert.deepEqual(purposes.slice(0, 3), [1, 2, 1]);
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });

  it("compacts when the provider says that the prompt is too long, and says so when nothing helps", async () => {
    const tooLong = () => modelFailure("MODEL_CONTEXT_EXCEEDED", false);
    const world = new World(
      session({}, "Hello.", "compaction/1", SMALL),
      tooLong(),
      answer("end_turn", "S1"),
      tooLong(),
    );
    await world.drive();
    assert.equal(world.log.all("sessionError").at(-1)?.errorType, "compaction_limit_reached_error");
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 3);
    world.model.steps.push(answer("end_turn", "Hi again."));
    say(world, "Still there?");
    await world.drive();
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });

  it("compacts after model_context_window_exceeded and goes on", async () => {
    const world = new World(
      session({}, "Hello.", "compaction/1", SMALL),
      answer("model_context_window_exceeded", "Half"),
      answer("end_turn", "The user said hello."),
      answer("end_turn", "Whole."),
    );
    await world.drive();
    assert.equal(world.log.all("agentThreadContextCompacted").length, 1);
    assert.equal(requests(world)[2]?.messages.at(-1)?.role, "user");
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });

  it("a brain that dies in it leaves a span that the next one ends before it begins again", async () => {
    const world = new World(
      session({}, LONG, "compaction/1", SMALL),
      used(2000, answer("end_turn", "Long.")),
      () => new Promise<Answer>(() => {}),
    );
    await world.drive();
    say(world, "Go on.");
    const first = world.brain();
    await world.log.until(() => world.log.all("spanModelRequestStart").length === 2);
    first.run.abort();
    await first.end;
    world.model.steps.push(answer("end_turn", "Summary."), answer("end_turn", "On."));
    await world.drive();
    assert.equal(world.log.all("spanModelRequestEnd")[1]?.errorReason, "INTERRUPTED");
    assert.equal(world.log.all("agentThreadContextCompacted").length, 1);
    // The summary is no turn of the conversation, and the input was not consumed by its request.
    assert.match(textOf(requests(world).at(-1)), /Go on\./);
    assert.equal(world.log.all("agentMessage").length, 2);
  });

  it("is stopped by an interrupt", async () => {
    const world = new World(
      session({}, LONG, "compaction/1", SMALL),
      used(2000, answer("end_turn", "Long.")),
      (signal) =>
        new Promise<Answer>((_, reject) => {
          signal.addEventListener("abort", () => reject(modelFailure("INTERRUPTED", false)));
        }),
    );
    await world.drive();
    say(world, "Go on.");
    const { end } = world.brain();
    await world.log.until(() => world.log.all("spanModelRequestStart").length === 2);
    world.log.client("user.interrupt", {});
    await end;
    assert.equal(world.log.all("agentThreadContextCompacted").length, 0);
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
    assert.equal(world.model.requests.length, 2);
  });

  it("does without the model's summary when it gives none, and never runs a call in it", async () => {
    const world = new World(
      session({}, LONG, "compaction/1", SMALL),
      used(2000, answer("end_turn", "Noted.")),
      answer("tool_use", bash("x", "rm -rf /")),
      answer("end_turn", "On."),
    );
    await world.drive();
    say(world, "Go on.");
    await world.drive();
    assert.deepEqual(world.hands.runs, []);
    assert.match(textOf(requests(world).at(-1)), /number 17/);
  });

  it("counts the tokens of its own requests", async () => {
    const world = new World(
      session({}, LONG, "compaction/1", SMALL),
      used(2000, answer("end_turn", "Long.")),
      used(300, answer("end_turn", "S")),
      used(40, answer("end_turn", "On.")),
    );
    await world.drive();
    say(world, "Go on.");
    await world.drive();
    assert.equal(world.log.all("sessionUsage").at(-1)?.usage?.inputTokens, 2340n);
  });

  it("a picture that no request may hold stands in no summary request either [B035] [B036]", async () => {
    const world = new World(
      session({}, LONG, "compaction/1", SMALL),
      used(2000, answer("end_turn", "Long.")),
      answer("end_turn", "S"),
      answer("end_turn", "On."),
    );
    const data = "A".repeat(7_000_000);
    world.log.client("user.message", {
      content: [
        { type: "text", text: "See." },
        { type: "image", source: { type: "base64", media_type: "image/png", data } },
      ],
    });
    await world.drive();
    say(world, "And now?");
    await world.drive();
    assert.ok(world.log.all("agentThreadContextCompacted").length > 0);
    assert.ok(!JSON.stringify(requests(world)).includes("AAAAAAAA"));
  });
});

describe("context strategies", () => {
  it("an unknown name or option ends the turn with a reason and is not tried for ever", async () => {
    for (const written of [
      session({}, "Hello.", "magic/9"),
      session({}, "Hello.", "compaction/1", { window_tokens: "many" }),
      session({}, "Hello.", "trim/1", { colour: 1 }),
    ]) {
      const world = new World(written);
      assert.equal((await world.drive()).reason, "settled");
      assert.equal(world.log.all("sessionError")[0]?.reason, "CONTEXT_STRATEGY_INVALID");
      assert.equal(world.model.requests.length, 0);
    }
  });

  it("what is in force is recorded once, before the first request, and stays what it is", async () => {
    const world = new World(
      session({}, "Hello.", "cache-stable/1", SMALL),
      answer("end_turn", "Hi."),
      answer("end_turn", "Ho."),
    );
    await world.drive();
    say(world, "More.");
    await world.drive();
    const set = world.log.all("ganglionContextStrategySet");
    assert.deepEqual(
      set.map(({ strategy }) => strategy),
      ["cache-stable/1"],
    );
    assert.deepEqual(JSON.parse(String(set[0]?.optionsJson)), SMALL);
  });

  it("trim replaces old results by a note that says where they are, a step at a time", async () => {
    const steps = Array.from({ length: 6 }, (_, i) => answer("tool_use", bash(`c${i}`, `cmd${i}`)));
    const world = new World(
      session({}, "Work.", "trim/1", { keep_turns: 2, step_turns: 2, min_bytes: 100 }),
      ...steps,
      answer("end_turn", "Done."),
    );
    for (let i = 0; i < 6; i++) {
      world.hands.commands.set(`cmd${i}`, async () => ({ output: `${i}`.repeat(5000) }));
    }
    await world.drive();
    const left = requests(world).map(({ messages }) => {
      const results = messages.flatMap(({ content }) => content.filter(({ type }) => type === "tool_result"));
      return results.filter((result) => result.content?.[0]?.text?.includes("left out")).length;
    });
    assert.deepEqual(left, [0, 0, 0, 0, 2, 2, 4]);
    const note = requests(world).at(-1)?.messages[2]?.content[0]?.content?.[0]?.text ?? "";
    const position = BigInt(/position (\d+)/.exec(note)?.[1] ?? 0);
    assert.equal(world.log.events[Number(position) - 1]?.body?.$case, "agentToolResult");
  });

  it("trim shows an old result that comes late, though its turn was looked at before", () => {
    const written = [
      ...session({}, "Work.", "trim/1", { keep_turns: 1, step_turns: 1, min_bytes: 0 }),
      ...askedOnce(1),
      ...askedOnce(2),
    ];
    const late = written.splice(
      written.findIndex(({ id }) => id === "sevt_r1"),
      1,
    );
    const log = toEvents([...written, ...late]);
    const state = log.slice(0, -1).reduce(fold, emptyState());
    serializeState(state);
    fold(state, log.at(-1) as Event);
    const { body } = project(state);
    assert.match(body.toString(), /The result of this call is left out/);
    assert.deepEqual(body, project(log.reduce(fold, emptyState())).body);
  });

  it("a stable prefix is what the next request begins with, breakpoints aside", async () => {
    const world = new World(
      session({ system: "Be brief." }, "Hello.", "cache-stable/1"),
      answer("tool_use", bash("a", "one")),
      modelFailure("MODEL_OVERLOADED", true),
      answer("max_tokens", "Half", bash("b", "two")),
      answer("end_turn", "Done."),
    );
    await world.drive();
    const spans = world.log.events.flatMap((event) =>
      event.body?.$case === "spanModelRequestStart" ? [{ at: event.position, ...event.body.value }] : [],
    );
    assert.equal(spans.length, 4);
    let before: { bytes: number; sha: Buffer } | undefined;
    for (const span of spans) {
      const state = world.log.events.slice(0, Number(span.at) - 1).reduce(fold, emptyState());
      const { body, stablePrefix } = project(state);
      assert.deepEqual(sha256(body), Buffer.from(span.requestSha256));
      assert.ok(stablePrefix && stablePrefix.length === Number(span.stablePrefixBytes));
      if (before) assert.deepEqual(sha256(stablePrefix.subarray(0, before.bytes)), before.sha);
      before = { bytes: stablePrefix.length, sha: sha256(stablePrefix) };
    }
    const marked = requests(world).map((request) => {
      const blocks = [
        ...(request.system as Block[]),
        ...(request.tools ?? []),
        ...request.messages.flatMap(({ content }) => content),
      ];
      return blocks.filter((block) => block.cache_control).length;
    });
    assert.deepEqual(marked, [3, 4, 4, 4]);
  });

  it("a request that breaks a promise without a recorded change is not sent, and the next turn works", async () => {
    const world = new World(
      session({}, "Hello.", "cache-stable/1"),
      answer("end_turn", "Hi."),
      answer("end_turn", "Again."),
    );
    await world.drive();
    // As if the code that built the first request had been another.
    const span = world.log.all("spanModelRequestStart")[0];
    if (span) span.stablePrefixSha256 = Buffer.alloc(32, 7);
    say(world, "More.");
    await world.drive();
    assert.equal(world.model.requests.length, 1);
    assert.equal(world.log.all("sessionError").at(-1)?.reason, "CONTEXT_PREFIX_BROKEN");
    say(world, "More.");
    await world.drive();
    assert.equal(world.model.requests.length, 2);
  });
});

describe("session_log", () => {
  it("gives back what left the window, whatever kind of hands the session has [B031]", async () => {
    const secret = `The word is ${"z".repeat(120_000)} heron.`;
    const world = new World(
      session({}, "Find the word.", "compaction/1", { compact_at_tokens: 3000 }),
      answer("tool_use", bash("a", "look")),
      answer("end_turn", "Summary without the word."),
      answer("tool_use", {
        id: "l",
        name: "session_log",
        input: { text: "heron", types: ["agent.tool_result"] },
      }),
      answer("tool_use", {
        id: "m",
        name: "session_log",
        input: { after_position: 9, limit: 1, text_offset: 120_000 },
      }),
      answer("end_turn", "heron"),
    );
    world.hands.commands.set("look", async () => ({ output: secret }));
    await world.drive();
    const results = world.log.all("agentToolResult").map(({ content }) => String(content[0]?.data?.value));
    const at = world.log.events.find(({ body }) => body?.$case === "agentToolResult")?.position;
    assert.equal(at, 10n);
    assert.match(results[1] ?? "", /position 10, .*more characters: text_offset 4000/);
    assert.match(results[2] ?? "", /heron\./);
    assert.equal(world.hands.runs.length, 1);
  });

  it("tells the model what is wrong with a query, and can be switched off by its name", async () => {
    const world = new World(
      session({}, "Hello."),
      answer("tool_use", { id: "l", name: "session_log", input: { where: 1 } }),
      answer("end_turn", "Hm."),
    );
    await world.drive();
    assert.match(String(world.log.all("agentToolResult")[0]?.content[0]?.data?.value), /There is no input/);
    const tools = [{ type: "agent_toolset_20260401", configs: [{ name: "session_log", enabled: false }] }];
    const off = new World(session({ tools }), answer("end_turn", "Hi."));
    await off.drive();
    assert.ok(!requests(off)[0]?.tools?.some(({ name }) => name === "session_log"));
  });

  it("leaves the name to a custom tool of the agent's", async () => {
    const custom = {
      type: "custom",
      name: "session_log",
      description: "Mine.",
      input_schema: { type: "object" },
    };
    const world = new World(
      session({ tools: [custom] }),
      answer("tool_use", { id: "l", name: "session_log", input: {} }),
    );
    await world.drive();
    assert.equal(world.log.all("agentCustomToolUse").length, 1);
    assert.equal(requests(world)[0]?.tools?.length, 1);
  });
});
