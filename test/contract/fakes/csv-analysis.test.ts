import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { startScriptedModel, type TestModel } from "../../kit/scripted-model.ts";

const CSV = ["plot,dose,height", "a,1,10.5", "b,2,13", "a,3,14.5", "b,4,18", "a,5,19", "b,6,23.5"].join("\n");
const strings = (...names: string[]) => ({
  type: "object" as const,
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});
const SUM = { type: "object" as const, properties: { a: { type: "number" }, b: { type: "number" } } };
const TOOLS: Anthropic.Tool[] = [
  { name: "bash", input_schema: strings("command") },
  { name: "write", input_schema: strings("file_path", "content") },
  { name: "mcp__demo__echo", input_schema: strings("message") },
  { name: "mcp__demo__get-sum", input_schema: { ...SUM, required: ["a", "b"] } },
];

describe("scripted model: csv-analysis", () => {
  let model: TestModel;
  let hand: string;

  before(async () => {
    model = await startScriptedModel();
  });
  after(() => model.stop());
  beforeEach(() => {
    hand = mkdtempSync(join(tmpdir(), "ganglion-hand-"));
  });
  afterEach(() => rmSync(hand, { recursive: true, force: true }));

  type Result = Partial<Anthropic.ToolResultBlockParam>;
  /** Does for real, in a folder, what the script asks for. */
  const execute = (name: string, input: Record<string, unknown>): Result => {
    if (name === "write") {
      writeFileSync(join(hand, String(input.file_path)), String(input.content));
      return { content: "written" };
    }
    if (name === "mcp__demo__get-sum") {
      return { content: `The sum of ${input.a} and ${input.b} is ${Number(input.a) + Number(input.b)}.` };
    }
    const run = spawnSync("bash", ["-c", String(input.command)], {
      cwd: hand,
      encoding: "utf8",
      env: { PATH: `${join(process.execPath, "..")}:/usr/bin:/bin` },
    });
    return { content: run.stdout + run.stderr, is_error: run.status !== 0 };
  };

  /** Runs the whole conversation; `meddle` may answer a call instead of the hand. */
  const converse = async (
    message: Anthropic.MessageParam["content"],
    meddle: (n: number) => Result | undefined = () => undefined,
  ) => {
    const client = new Anthropic({ baseURL: model.url, apiKey: model.apiKey, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: message }];
    const calls: string[] = [];
    for (;;) {
      const params = { model: "claude-opus-5-5", max_tokens: 16_000, tools: TOOLS, messages };
      const { content, stop_reason } = await client.messages.stream(params).finalMessage();
      messages.push({ role: "assistant", content: content as Anthropic.ContentBlockParam[] });
      const uses = content.filter((block) => block.type === "tool_use");
      const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
      if (uses.length === 0) return { calls, text, stop_reason };
      const results = uses.map((use): Anthropic.ToolResultBlockParam => {
        const input = use.input as Record<string, unknown>;
        calls.push(`${use.name} ${input.file_path ?? input.command ?? ""}`.trim());
        const result = meddle(calls.length) ?? execute(use.name, input);
        return { type: "tool_result", tool_use_id: use.id, ...result };
      });
      messages.push({ role: "user", content: results });
    }
  };

  const FULL_RUN = [
    "write data.csv",
    "write analyse.mjs",
    "bash node analyse.mjs data.csv",
    "mcp__demo__get-sum",
  ];

  it("writes the data and a program, runs it, checks a figure, and answers with real figures", async () => {
    const { calls, text, stop_reason } = await converse(
      `scenario: csv-analysis\nAnalyse:\n\`\`\`csv\n${CSV}\n\`\`\``,
    );
    assert.deepEqual(calls, FULL_RUN);
    assert.equal(stop_reason, "end_turn");
    // By hand: group means 44/3 and 54.5/3; slope 43.25 / 17.5, r 43.25 / √(17.5 × 109.7083).
    assert.match(text, /plot a: 3 rows, mean dose 3, mean height 14\.6667/);
    assert.match(text, /plot b: 3 rows, mean dose 4, mean height 18\.1667/);
    assert.match(text, /height = 2\.4714 × dose \+ 7\.7667, correlation r = 0\.9871/);
    assert.match(text, /get-sum answered "The sum of 38 and 60\.5 is 98\.5\."?, which agrees with .* 98\.5/);
  });

  it("takes the CSV from a text document", async () => {
    const { calls } = await converse([
      { type: "text", text: "scenario: csv-analysis mcp=echo" },
      { type: "document", source: { type: "text", media_type: "text/plain", data: CSV } },
    ]);
    assert.deepEqual(calls.slice(0, 3), FULL_RUN.slice(0, 3));
    assert.equal(calls[3], "mcp__demo__echo");
  });

  it("starts over when the hand was lost, and when its files are gone without a word", async () => {
    const lost = await converse(`scenario: csv-analysis\n\`\`\`\n${CSV}\n\`\`\``, (n) =>
      n === 3 ? { content: "hand_0 was lost while the call ran", is_error: true } : undefined,
    );
    assert.deepEqual(lost.calls, [...FULL_RUN.slice(0, 3), ...FULL_RUN]);
    assert.match(lost.text, /agrees with/);
    const emptied = await converse(`scenario: csv-analysis\n\`\`\`\n${CSV}\n\`\`\``, (n) => {
      if (n !== 3) return undefined;
      rmSync(hand, { recursive: true });
      mkdirSync(hand);
      return undefined;
    });
    assert.deepEqual(emptied.calls, [...FULL_RUN.slice(0, 3), ...FULL_RUN]);
  });

  it("says so when it cannot finish, and never invents a figure", async () => {
    const broken = await converse(`scenario: csv-analysis\n\`\`\`\n${CSV}\n\`\`\``, () => ({
      content: "disk quota exceeded",
      is_error: true,
    }));
    assert.equal(broken.calls.length, 3);
    assert.match(broken.text, /give up without a result.*disk quota exceeded/);
    const unchecked = await converse(`scenario: csv-analysis\n\`\`\`\n${CSV}\n\`\`\``, (n) =>
      n > 3 ? { content: "401", is_error: true } : undefined,
    );
    assert.match(unchecked.text, /unchecked/);
    assert.match((await converse("scenario: csv-analysis")).text, /no CSV/);
  });
});
