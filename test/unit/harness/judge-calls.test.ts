import assert from "node:assert/strict";
import { rulesEvaluator } from "../../../services/harness/domain/rules-evaluator.ts";
import type {
  JudgedCall,
  PermissionEvaluator,
} from "../../../services/harness/ports/permission-evaluator.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash } from "./fakes/scripted-parts.ts";

const AUTO = {
  tools: [{ type: "agent_toolset_20260401", default_config: { permission_policy: { type: "auto" } } }],
};

function called(call: Partial<JudgedCall>): JudgedCall {
  return {
    kind: "mcp",
    name: "x",
    serverName: "s",
    input: {},
    annotations: {},
    session: { sessionId: "sesn_1", workspaceId: "wrkspc_1", isSelfHosted: false },
    ...call,
  };
}

describe("rules/1", () => {
  const own = { sessionId: "", workspaceId: "", isSelfHosted: false };
  const theirs = { ...own, isSelfHosted: true };
  const harmless = { readOnlyHint: true, openWorldHint: false };
  const table: [string, Partial<JudgedCall>, "allow" | "ask"][] = [
    ["a tool in a hand without network", { kind: "built-in", name: "bash", session: own }, "allow"],
    ["a tool on the client's machine", { kind: "built-in", name: "bash", session: theirs }, "ask"],
    ["the session's own log", { kind: "built-in", name: "session_log", session: theirs }, "allow"],
    ["a built-in tool it does not know", { kind: "built-in", name: "web_fetch", session: own }, "ask"],
    ["a read-only MCP tool of a closed world", { annotations: harmless }, "allow"],
    ["one that does not say how far it reaches", { annotations: { readOnlyHint: true } }, "ask"],
    ["one that reaches anything", { annotations: { readOnlyHint: true, openWorldHint: true } }, "ask"],
    ["one that contradicts itself", { annotations: { ...harmless, destructiveHint: true } }, "ask"],
    ["a destructive one", { annotations: { destructiveHint: true } }, "ask"],
    ["one that says nothing", { annotations: {} }, "ask"],
    ["one whose hints are not booleans", { annotations: { readOnlyHint: "yes", openWorldHint: 0 } }, "ask"],
  ];
  for (const [what, call, decision] of table) {
    it(`says ${decision} to ${what}`, () => {
      assert.deepEqual(rulesEvaluator.evaluate(called(call), AbortSignal.timeout(1000)), { decision });
    });
  }
});

describe("the policy auto", () => {
  const ask = { decision: "ask" } as const;
  const odd: [string, unknown][] = [
    ["throws", () => Promise.reject(new Error("no"))],
    ["throws at once", null],
    ["takes too long", () => new Promise(() => {})],
    ["answers nothing", () => undefined],
    ["answers a word", () => "allow"],
    ["answers true", () => true],
    ["answers another decision", () => ({ decision: "ALLOW" })],
    ["asks", () => ask],
  ];
  for (const [what, evaluate] of odd) {
    it(`asks a person when the evaluator ${what}, and runs nothing`, async () => {
      const world = new World(session(AUTO), answer("tool_use", bash("a", "one")));
      world.evaluator = { name: "odd/1", evaluate } as PermissionEvaluator;
      await world.drive();
      const [call] = world.log.all("agentToolUse");
      assert.deepEqual(
        [call?.permission, call?.policy, call?.evaluationReason, call?.evaluator],
        [2, "auto", "indeterminate", "odd/1"],
      );
      assert.deepEqual(world.hands.runs, []);
      assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 2);
    });
  }

  it("runs what is allowed, and records who allowed it", async () => {
    const world = new World(session(AUTO), answer("tool_use", bash("a", "one")), answer("end_turn", "Done."));
    await world.drive();
    const [call] = world.log.all("agentToolUse");
    assert.deepEqual(
      [call?.permission, call?.policy, call?.evaluationReason, call?.evaluator],
      [1, "auto", "", "rules/1"],
    );
    assert.deepEqual(world.hands.runs, ["one"]);
  });

  it("closes what is denied without running it, and tells the model", async () => {
    for (const reason of ["high_risk", "indeterminate"] as const) {
      const world = new World(
        session(AUTO),
        answer("tool_use", bash("a", "rm"), bash("b", "ls")),
        answer("end_turn", "Done."),
      );
      const seen: JudgedCall[] = [];
      world.evaluator = {
        name: "house/2",
        evaluate: (call) => {
          seen.push(call);
          return call.input.command === "rm" ? { decision: "deny", reason } : { decision: "allow" };
        },
      };
      await world.drive();
      assert.deepEqual(world.hands.runs, ["ls"]);
      const [denied, allowed] = world.log.all("agentToolUse");
      assert.deepEqual(
        [denied?.permission, denied?.evaluationReason, denied?.evaluator],
        [3, reason, "house/2"],
      );
      assert.deepEqual([allowed?.permission, allowed?.evaluationReason], [1, ""]);
      const results = world.log.all("agentToolResult");
      assert.deepEqual(
        results.map((result) => [result.toolUseId === "", result.isError, result.outcome]),
        [
          [false, true, 2],
          [false, false, 1],
        ],
      );
      assert.deepEqual(
        seen.map((call) => [call.kind, call.name, call.session.workspaceId]),
        [
          ["built-in", "bash", "wrkspc_default"],
          ["built-in", "bash", "wrkspc_default"],
        ],
      );
    }
  });

  it("judges what the server says of its tool, before the answer is in the log [L4]", async () => {
    const mcp = {
      tools: [
        {
          type: "mcp_toolset",
          mcp_server_name: "books",
          default_config: { permission_policy: { type: "auto" } },
        },
      ],
      mcp_servers: [{ name: "books", type: "url", url: "https://books.example" }],
    };
    const world = new World(
      session(mcp),
      answer("tool_use", { id: "a", name: "mcp__books__find", input: { q: 1 } }),
      answer("end_turn", "Done."),
    );
    const tool = { name: "find", description: "", inputSchemaJson: Buffer.from("{}") };
    world.mcp.tools.set("books", [
      { ...tool, annotationsJson: Buffer.from('{"readOnlyHint":true}'), pinSha256: Buffer.alloc(32) },
    ]);
    const seen: unknown[] = [];
    world.evaluator = {
      name: "house/1",
      evaluate: (call) => {
        seen.push([call.kind, call.serverName, call.name, call.annotations, call.input]);
        assert.equal(world.log.all("agentMcpToolUse").length, 0);
        return { decision: "allow" };
      },
    };
    await world.drive();
    assert.deepEqual(seen, [["mcp", "books", "find", { readOnlyHint: true }, { q: 1 }]]);
    assert.deepEqual(world.mcp.calls, ["find"]);
  });

  it("is not asked about other policies", async () => {
    const world = new World(session(), answer("tool_use", bash("a", "one")), answer("end_turn", "Done."));
    world.evaluator = {
      name: "never/1",
      evaluate: () => {
        throw new Error("asked");
      },
    };
    await world.drive();
    assert.deepEqual(world.hands.runs, ["one"]);
    assert.equal(world.log.all("agentToolUse")[0]?.evaluator, "");
  });

  it("lets an interrupt through while the evaluator hangs", async () => {
    const world = new World(session(AUTO), answer("tool_use", bash("a", "one")));
    const asked = Promise.withResolvers<void>();
    world.evaluator = {
      name: "slow/1",
      evaluate: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    };
    const patient = world.brain(0, { evaluatorMs: 60_000 });
    await asked.promise;
    world.log.client("user.interrupt", {});
    await patient.end;
    assert.equal(world.log.all("agentToolResult")[0]?.outcome, 2);
    assert.equal(world.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });
});
