import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { TestMesh } from "../kit/mesh.ts";

type Event = { type: string; [field: string]: unknown };

const EVALUATOR = `export default {
  name: "house/1",
  evaluate({ name, input }) {
    if (name !== "bash") return { decision: "ask" };
    if (/secret/.test(String(input.command))) return { decision: "deny", reason: "high_risk" };
    return /broken/.test(String(input.command)) ? "whatever" : { decision: "allow" };
  },
};
`;

describe("the operator's evaluator in a whole mesh", () => {
  let mesh: TestMesh;
  let client: Anthropic;
  let folder: string;
  let target: { agent: string; environment_id: string };

  before(async function () {
    this.timeout(120_000);
    folder = mkdtempSync(join(tmpdir(), "ganglion-evaluator-"));
    const file = join(folder, "evaluator.mjs");
    writeFileSync(file, EVALUATOR, { mode: 0o600 });
    mesh = await TestMesh.start({ args: ["--evaluator", file] });
    client = new Anthropic({ baseURL: mesh.rest, apiKey: mesh.apiKey, maxRetries: 0, timeout: 20_000 });
    const environment = await client.beta.environments.create({ name: "evaluator" });
    const agent = await client.beta.agents.create({
      name: "careful",
      model: "claude-opus-5-5",
      tools: [{ type: "agent_toolset_20260401", default_config: { permission_policy: { type: "auto" } } }],
    });
    target = { agent: agent.id, environment_id: environment.id };
  });
  after(async function () {
    this.timeout(60_000);
    await mesh?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Everything up to the first idle. */
  async function turn(text: string): Promise<Event[]> {
    const session = await client.beta.sessions.create(target);
    const stream = await client.beta.sessions.events.stream(session.id);
    await client.beta.sessions.events.send(session.id, {
      events: [{ type: "user.message", content: [{ type: "text", text }] }],
    });
    const seen: Event[] = [];
    for await (const item of stream) {
      seen.push(item as unknown as Event);
      if (item.type === "session.status_idle") break;
    }
    return seen;
  }
  const first = (events: Event[], type: string) => events.find((event) => event.type === type);

  for (const [what, command, evaluated, stop] of [
    ["allows", "echo hello", { type: "allow" }, "end_turn"],
    ["denies", "cat secret", { type: "deny", reason_code: "high_risk" }, "end_turn"],
    ["says nonsense about", "echo broken", { type: "ask", reason_code: "indeterminate" }, "requires_action"],
  ] as const) {
    it(`${what} a call, and the public API says so`, async function () {
      this.timeout(40_000);
      const events = await turn(`Run: ${command}`);
      const use = first(events, "agent.tool_use");
      assert.equal(use?.evaluated_permission, evaluated.type);
      assert.deepEqual(use?.evaluation, { type: "auto", evaluated_permission: evaluated });
      const result = first(events, "agent.tool_result");
      if (evaluated.type === "ask") assert.equal(result, undefined);
      else assert.equal(result?.is_error, evaluated.type === "deny");
      const idle = first(events, "session.status_idle") as { stop_reason?: { type: string } } | undefined;
      assert.equal(idle?.stop_reason?.type, stop);
    });
  }
});
