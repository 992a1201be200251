import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import {
  isSameDefinition,
  patchAgent,
  resolveAgent,
} from "../../../services/session/domain/agent/resolve-agent.ts";
import { BUILT_IN_TOOLS } from "../../../services/session/domain/agent/resolve-toolset.ts";
import { sessionAgent } from "../../../services/session/domain/agent/session-agent.ts";

const MINIMAL = { name: "a", model: "claude-x" };
const SERVER = { type: "url", name: "notes", url: "https://notes.example/mcp" };

const fieldsOf = (run: () => unknown): string[] => {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof GanglionError, String(error));
    return error.violations.map(({ field }) => field);
  }
  return [];
};
const refuses = (body: object, field: string) => {
  const fields = fieldsOf(() => resolveAgent("d", { ...MINIMAL, ...body }));
  assert.ok(fields.includes(field), `${field} in ${fields.join(", ")}`);
};

describe("resolving an agent", () => {
  it("fills in everything a minimal definition leaves out", () => {
    assert.deepEqual(resolveAgent("d", MINIMAL), {
      type: "agent",
      name: "a",
      description: null,
      model: { id: "claude-x", effort: { type: "high" }, speed: "standard" },
      system: null,
      tools: [],
      mcp_servers: [],
      skills: [],
      multiagent: null,
      execution_identity: { type: "service_account" },
      metadata: {},
    });
  });

  it("takes a model as text or object, and efforts in both forms", () => {
    const model = (value: unknown) => resolveAgent("d", { ...MINIMAL, model: value }).model;
    assert.deepEqual(model({ id: "m", effort: "low" }), {
      id: "m",
      effort: { type: "low" },
      speed: "standard",
    });
    assert.deepEqual(model({ id: "m", effort: { type: "max" }, speed: "fast", inference_geo: "eu" }), {
      id: "m",
      effort: { type: "max" },
      speed: "fast",
      inference_geo: "eu",
    });
    assert.deepEqual(model({ id: "m", effort: null, speed: null }).effort, { type: "high" });
  });

  it("resolves all eight built-in tools, allowed unless the agent says otherwise", () => {
    const [toolset] = resolveAgent("d", {
      ...MINIMAL,
      tools: [
        {
          type: "agent_toolset_20260401",
          default_config: { permission_policy: { type: "always_ask" } },
          configs: [{ name: "bash", enabled: false, permission_policy: { type: "always_allow" } }],
        },
      ],
    }).tools as unknown as [{ default_config: object; configs: Record<string, unknown>[] }];
    assert.deepEqual(toolset.default_config, { enabled: true, permission_policy: { type: "always_ask" } });
    assert.deepEqual(
      toolset.configs.map(({ name }) => name),
      [...BUILT_IN_TOOLS],
    );
    assert.deepEqual(toolset.configs[0], {
      type: "bash",
      name: "bash",
      enabled: false,
      permission_policy: { type: "always_allow" },
    });
    assert.deepEqual(toolset.configs[1]?.permission_policy, { type: "always_ask" });
    assert.equal(toolset.configs.find(({ name }) => name === "web_fetch")?.url_sources, null);
    const [plain] = resolveAgent("d", { ...MINIMAL, tools: [{ type: "agent_toolset_20260401" }] }).tools;
    assert.deepEqual(plain?.default_config, { enabled: true, permission_policy: { type: "always_allow" } });
  });

  it("asks before the tools of MCP servers unless the agent says otherwise", () => {
    const definition = resolveAgent("d", {
      ...MINIMAL,
      mcp_servers: [SERVER],
      tools: [
        {
          type: "mcp_toolset",
          mcp_server_name: "notes",
          configs: [{ name: "read", permission_policy: { type: "always_allow" } }],
        },
      ],
    });
    assert.deepEqual(definition.tools, [
      {
        type: "mcp_toolset",
        mcp_server_name: "notes",
        default_config: { enabled: true, permission_policy: { type: "always_ask" } },
        configs: [{ name: "read", enabled: true, permission_policy: { type: "always_allow" } }],
      },
    ]);
  });

  it("a resolved definition resolves to itself", () => {
    const first = resolveAgent("d", {
      ...MINIMAL,
      description: "d",
      metadata: { b: "2", a: "1" },
      mcp_servers: [SERVER],
      tools: [
        { type: "agent_toolset_20260401", configs: [{ name: "web_search", allowed_domains: ["a.example"] }] },
        { type: "mcp_toolset", mcp_server_name: "notes" },
        { type: "custom", name: "book", description: "Books.", input_schema: { type: "object" } },
      ],
    });
    const { type: _type, ...again } = first;
    assert.deepEqual(resolveAgent("d", again), first);
    assert.ok(isSameDefinition(patchAgent("d", first, {}), first));
  });

  for (const [field, body] of [
    ["d.name", { name: "" }],
    ["d.name", { name: "x".repeat(257) }],
    ["d.name", { name: "half \ud800" }],
    ["d.name", { name: "nul \0" }],
    ["d.model", { model: null }],
    ["d.model", { model: "" }],
    ["d.model.id", { model: {} }],
    ["d.model.effort", { model: { id: "m", effort: "huge" } }],
    ["d.model.speed", { model: { id: "m", speed: "warp" } }],
    ["d.model.colour", { model: { id: "m", colour: "red" } }],
    ["d.description", { description: "x".repeat(2049) }],
    ["d.system", { system: "x".repeat(100_001) }],
    ["d.skills", { skills: [{ type: "anthropic", skill_id: "xlsx" }] }],
    ["d.multiagent", { multiagent: { type: "coordinator", agents: [] } }],
    ["d.execution_identity.type", { execution_identity: { type: "aws_role", role_arn: "x" } }],
    ["d.metadata", { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ""])) }],
    ["d.metadata.k", { metadata: { k: 1 } }],
    ["d.extra", { extra: 1 }],
    ["d.tools[0].type", { tools: [{ type: "agent_toolset_20991231" }] }],
    ["d.tools[0].type", { tools: [null] }],
    [
      "d.tools[0].configs[0].name",
      { tools: [{ type: "agent_toolset_20260401", configs: [{ name: "fly" }] }] },
    ],
    [
      "d.tools[0].configs[0].permission_policy.type",
      {
        tools: [
          {
            type: "agent_toolset_20260401",
            configs: [{ name: "bash", permission_policy: { type: "sometimes" } }],
          },
        ],
      },
    ],
    [
      "d.tools[0].configs[1].name",
      { tools: [{ type: "agent_toolset_20260401", configs: [{ name: "bash" }, { name: "bash" }] }] },
    ],
    ["d.tools[1]", { tools: [{ type: "agent_toolset_20260401" }, { type: "agent_toolset_20260401" }] }],
    ["d.tools[0].mcp_server_name", { tools: [{ type: "mcp_toolset", mcp_server_name: "absent" }] }],
    ["d.mcp_servers[0].name", { mcp_servers: [SERVER] }],
    ["d.mcp_servers[1].name", { mcp_servers: [SERVER, SERVER] }],
    ["d.mcp_servers[0].url", { mcp_servers: [{ ...SERVER, url: "ftp://x" }] }],
    ["d.mcp_servers[0].url", { mcp_servers: [{ ...SERVER, url: "https://me:pass@x" }] }],
    ["d.mcp_servers[0].headers", { mcp_servers: [{ ...SERVER, headers: {} }] }],
    [
      "d.tools[0].name",
      { tools: [{ type: "custom", name: "bash", description: "d", input_schema: { type: "object" } }] },
    ],
    [
      "d.tools[0].name",
      { tools: [{ type: "custom", name: "mcp__x", description: "d", input_schema: { type: "object" } }] },
    ],
    [
      "d.tools[0].description",
      { tools: [{ type: "custom", name: "x", description: "", input_schema: { type: "object" } }] },
    ],
    ["d.tools[0].input_schema", { tools: [{ type: "custom", name: "x", description: "d" }] }],
    [
      "d.tools[0].input_schema.oneOf",
      {
        tools: [{ type: "custom", name: "x", description: "d", input_schema: { type: "object", oneOf: [] } }],
      },
    ],
    [
      "d.tools[0].input_schema",
      {
        tools: [
          {
            type: "custom",
            name: "x",
            description: "d",
            input_schema: { type: "object", properties: { a: { $ref: "#" } } },
          },
        ],
      },
    ],
  ] as [string, object][]) {
    it(`refuses ${field} of ${JSON.stringify(body).slice(0, 80)}`, () => refuses(body, field));
  }

  it("names everything that is wrong at once", () => {
    assert.deepEqual(fieldsOf(() => resolveAgent("d", { x: 1 })).sort(), ["d.model", "d.name", "d.x"]);
  });
});

describe("updating an agent", () => {
  const base = resolveAgent("d", {
    ...MINIMAL,
    description: "d",
    system: "s",
    model: { id: "m", effort: "low" },
    metadata: { a: "1", b: "2" },
    mcp_servers: [SERVER],
    tools: [{ type: "mcp_toolset", mcp_server_name: "notes" }],
  });

  it("keeps what is omitted, clears what may be cleared, and merges metadata", () => {
    const patched = patchAgent("p", base, { description: null, system: "", metadata: { a: null, c: "3" } });
    assert.deepEqual(
      [patched.description, patched.system, patched.metadata],
      [null, null, { b: "2", c: "3" }],
    );
    assert.deepEqual([patched.name, patched.tools], [base.name, base.tools]);
    assert.deepEqual(patchAgent("p", base, { tools: null, mcp_servers: [] }).tools, []);
  });

  it("keeps an effort while the model stays the same, and forgets it with the model", () => {
    assert.deepEqual(patchAgent("p", base, { model: { id: "m", speed: "fast" } }).model.effort, {
      type: "low",
    });
    assert.deepEqual(patchAgent("p", base, { model: "other" }).model.effort, { type: "high" });
  });

  it("cannot clear name or model, nor leave tools and servers apart", () => {
    assert.deepEqual(
      fieldsOf(() => patchAgent("p", base, { name: null })),
      ["p.name"],
    );
    assert.deepEqual(
      fieldsOf(() => patchAgent("p", base, { model: null })),
      ["p.model"],
    );
    assert.deepEqual(
      fieldsOf(() => patchAgent("p", base, { mcp_servers: [] })),
      ["p.tools[0].mcp_server_name"],
    );
    assert.deepEqual(
      fieldsOf(() => patchAgent("p", base, { version: 1 })),
      ["p.version"],
    );
  });

  it("a session shows the definition with id and version, without metadata", () => {
    const shown = sessionAgent("agent_1", 3, base);
    assert.deepEqual(
      [shown.id, shown.version, shown.type, "metadata" in shown],
      ["agent_1", 3, "agent", false],
    );
  });
});
