import assert from "node:assert/strict";
import { fold } from "../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { loadLog, toEvents, type WrittenEvent } from "../../golden/load-log.ts";
import { session } from "./fakes/brain.ts";

interface Block {
  type: string;
  text?: string;
  tool_use_id?: string;
  content?: Block[];
  source?: { data: string };
}
interface Request {
  messages: { role: string; content: Block[] }[];
  tools: { name: string }[];
}

describe("projecting a log to a request", () => {
  it("shows head and tail of a tool's output that is too long, and keeps all of it in the log [B031]", () => {
    const state = foldAll(session(), turn("bash", [text(`${"a".repeat(150_000)}THE END`)]));
    const [result] = results(project(state));
    const shown = result?.content?.[0]?.text ?? "";
    assert.ok(shown.length < 101_000, String(shown.length));
    assert.match(shown, /^a+\n\n\[… 50007 characters left out …\]\n\na+THE END$/);
    assert.ok(logged(state) > 150_000);
  });

  for (const type of ["agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"] as const) {
    it(`caps the output of ${type} at the same place [B032]`, () => {
      const [result] = results(project(foldAll(session(), turn("x", [text("b".repeat(160_000))], type))));
      assert.ok((result?.content?.[0]?.text?.length ?? 0) < 101_000);
    });
  }

  it("caps all blocks of one output together [B032]", () => {
    const many = Array.from({ length: 5 }, () => text("c".repeat(60_000)));
    const [result] = results(project(foldAll(session(), turn("bash", many))));
    const shown = result?.content?.reduce((sum, block) => sum + (block.text?.length ?? 0), 0) ?? 0;
    assert.ok(shown < 101_000, String(shown));
  });

  it("replaces an image that is too large by a note, whoever sent it [B035]", () => {
    const big = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "A".repeat(7_000_000) },
    };
    const request = project(foldAll(session(), turn("bash", [big]), [said("And?", big)]));
    assert.deepEqual(
      results(request)[0]?.content?.map((block) => block.type),
      ["text"],
    );
    assert.ok(!JSON.stringify(request).includes("AAAA"));
  });

  it("replaces what the provider would have to fetch by a note, so that mcp-proxy refuses no later turn [A057]", () => {
    const image = (source: object) => ({ type: "image", source });
    const outside = [
      image({ type: "url", url: "https://outside.example/a.png" }),
      { type: "document", source: { type: "file", file_id: "outside.example" } },
      {
        type: "document",
        source: { type: "content", content: [image({ type: "url", url: "outside.example" })] },
      },
      {
        type: "search_result",
        source: "s",
        title: "t",
        content: [{ type: "container_upload", file_id: "outside.example" }],
      },
    ];
    const inline = image({ type: "base64", media_type: "image/png", data: "AAAA" });
    const content = [...outside, inline];
    const request = project(foldAll(session(), turn("bash", content), [said("And?", ...content)]));
    const types = ["text", "text", "text", "text", "image"];
    assert.deepEqual(
      results(request)[0]?.content?.map((block) => block.type),
      types,
    );
    assert.deepEqual(
      request.messages
        .at(-1)
        ?.content.slice(-5)
        .map((block) => block.type),
      types,
    );
    assert.ok(!JSON.stringify(request).includes("outside.example"));
  });

  it("measures an image as it is sent [B036]", () => {
    const encoded = (bytes: number): unknown => ({
      type: "image",
      source: { type: "base64", media_type: "image/png", data: Buffer.alloc(bytes).toString("base64") },
    });
    const shown = (bytes: number): string | undefined =>
      results(project(foldAll(session(), turn("bash", [encoded(bytes)]))))[0]?.content?.[0]?.type;
    assert.equal(shown(4.2 * 1024 * 1024), "text");
    assert.equal(shown(3.6 * 1024 * 1024), "image");
  });

  it("writes a block anew that holds a key twice or nests without end, so that it poisons no later turn", () => {
    const deep = `{"type":"text","text":"x","deep":${"[".repeat(300)}${"]".repeat(300)}}`;
    const twice = '{"type":"text","text":"first","text":"last"}';
    const events = session();
    events.push({ id: "sevt_odd", type: "user.message", body: { content: [twice, deep] } });
    const shown = project(foldAll(events)).messages[0]?.content.map((block) => block.text);
    assert.deepEqual(shown, ["Hello.", "last", "[A text block that nests too deeply to be shown.]"]);
  });

  it("strips a result whose call is not in the conversation [B034]", () => {
    const orphan = { type: "tool_result", tool_use_id: "gone", content: "x" };
    const request = project(foldAll(session(), [said("Hi.", orphan)]));
    assert.deepEqual(
      request.messages.flatMap((message) => message.content.map((block) => block.type)),
      ["text", "text"],
    );
  });

  it("pairs results within their turn when a provider uses an id again [B004]", () => {
    const request = project(
      foldAll(session(), turn("bash", [text("first")]), turn("bash", [text("second")])),
    );
    assert.deepEqual(
      results(request).map((result) => [result.tool_use_id, result.content?.[0]?.text]),
      [
        ["call-1", "first"],
        ["call-1", "second"],
      ],
    );
    assert.deepEqual(
      request.messages.map((message) => message.role),
      ["user", "assistant", "user", "assistant", "user"],
    );
  });

  it("projects neither a late result nor a second one [B005]", () => {
    const request = project(loadLog("interrupt-late-result").reduce(fold, emptyState()));
    assert.equal(results(request).length, 1);
    assert.match(results(request)[0]?.content?.[0]?.text ?? "", /interrupted/);
  });

  it("builds no request while a call is unanswered [B001]", () => {
    const open = turn("bash", []).slice(0, -1);
    assert.throws(() => projectRequest(foldAll(session(), open)), /unanswered/);
  });

  it("offers enabled built-in tools and never the web ones", () => {
    const configs = [
      { name: "web_search", enabled: true },
      { name: "web_fetch", enabled: true },
      { name: "bash", enabled: true },
    ];
    const tools = [{ type: "agent_toolset_20260401", default_config: { enabled: false }, configs }];
    assert.deepEqual(
      project(foldAll(session({ tools }))).tools.map((tool) => tool.name),
      ["bash", "session_log"],
    );
  });

  it("shows a tool's output without text as a result without content", () => {
    const [result] = results(project(foldAll(session(), turn("bash", [text("")]))));
    assert.equal(result?.content, undefined);
  });
});

function text(value: string): unknown {
  return { type: "text", text: value };
}

function said(value: string, ...more: unknown[]): WrittenEvent {
  return { id: "sevt_more", type: "user.message", body: { content: [text(value), ...more] } };
}

let turns = 0;

/** A whole turn with one call and its result. */
function turn(name: string, content: unknown[], type = "agent.tool_use"): WrittenEvent[] {
  const n = ++turns;
  const [span, use] = [`sevt_span${n}`, `sevt_use${n}`];
  const block = { type: "tool_use", id: "call-1", name, input: {} };
  const result = {
    "agent.tool_use": ["agent.tool_result", "toolUseId"],
    "agent.mcp_tool_use": ["agent.mcp_tool_result", "mcpToolUseId"],
    "agent.custom_tool_use": ["user.custom_tool_result", "customToolUseId"],
  }[type] ?? ["", ""];
  return [
    { id: span, type: "span.model_request_start", body: { consumedPosition: "999999", attempt: 1 } },
    {
      id: use,
      type,
      body: {
        block,
        modelRequestStartId: span,
        blockIndex: 0,
        providerCallId: "call-1",
        name,
        inputJson: {},
      },
    },
    {
      id: `${span}_e`,
      type: "span.model_request_end",
      body: { modelRequestStartId: span, providerStopReason: "tool_use" },
    },
    {
      id: `${use}_r`,
      type: result[0]!,
      body: { [result[1]!]: use, content, outcome: "TOOL_OUTCOME_COMPLETED" },
    },
  ];
}

function foldAll(...parts: WrittenEvent[][]): SessionState {
  return toEvents(parts.flat()).reduce(fold, emptyState());
}

function project(state: SessionState): Request {
  return JSON.parse(projectRequest(state).toString("utf8")) as Request;
}

function results(request: Request): Block[] {
  return request.messages.flatMap(({ content }) => content.filter((block) => block.type === "tool_result"));
}

function logged(state: SessionState): number {
  return state.turns.reduce((sum, entry) => {
    if (entry.kind === "user") return sum;
    const blocks = entry.calls.flatMap((call) => call.result?.content ?? []);
    return (
      sum + blocks.reduce((size, { data }) => size + (data?.$case === "json" ? data.value.length : 0), 0)
    );
  }, 0);
}
