import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { session, World, withBooks } from "./fakes/brain.ts";
import { answer } from "./fakes/scripted-parts.ts";

describe("driving a session with MCP servers", () => {
  it("resolves MCP tools once, calls them by the server's own name, and shows structured content [B103]", async () => {
    const agent = {
      tools: [
        {
          type: "mcp_toolset",
          mcp_server_name: "notes",
          default_config: { permission_policy: { type: "always_allow" } },
        },
      ],
      mcp_servers: [{ type: "url", name: "notes", url: "https://notes.example/mcp" }],
    };
    const world = new World(
      session(agent),
      answer("tool_use", { id: "a", name: "mcp__notes__search", input: {} }),
      answer("end_turn", "Found."),
    );
    const schema = Buffer.from('{"type":"object"}');
    world.mcp.tools.set("notes", [
      {
        name: "search",
        description: "d",
        inputSchemaJson: schema,
        annotationsJson: Buffer.alloc(0),
        pinSha256: Buffer.alloc(32, 1),
      },
    ]);
    world.mcp.answer = {
      content: [
        { type: "text", data: { $case: "json", value: Buffer.from('{"type":"text","text":"1 note"}') } },
      ],
      structuredContentJson: Buffer.from('{"id":1}'),
    };
    await world.drive();
    assert.deepEqual(world.mcp.calls, ["search"]);
    assert.equal(world.log.all("ganglionMcpToolsResolved").length, 1);
    assert.equal(world.log.all("agentMcpToolResult")[0]?.content.length, 2);
  });

  it("lists the tools again when their server has others, and the next request shows them [B088]", async () => {
    const world = withBooks(
      answer("tool_use", { id: "a", name: "mcp__books__find", input: {} }),
      answer("end_turn", "Found."),
    );
    const known = world.mcp.tools.get("books") ?? [];
    world.mcp.answer = { areToolsChanged: true };
    world.mcp.onCall = () => {
      const added = { ...known[0], name: "lend", pinSha256: Buffer.alloc(32, 2) } as (typeof known)[number];
      world.mcp.tools.set("books", [...known, added]);
    };
    await world.drive();
    const resolved = world.log.all("ganglionMcpToolsResolved");
    assert.deepEqual(
      resolved.map(({ tools }) => tools.map(({ name }) => name)),
      [["find"], ["find", "lend"]],
    );
    assert.deepEqual(resolved[1]?.tools[1]?.pinSha256, Buffer.alloc(32, 2));
    const last = world.model.requests.at(-1) as { tools: { name: string }[] };
    assert.ok(last.tools.some(({ name }) => name === "mcp__books__lend"));
  });

  it("goes on without an MCP server that cannot be asked, and says so", async () => {
    const agent = {
      tools: [{ type: "mcp_toolset", mcp_server_name: "notes" }],
      mcp_servers: [{ type: "url", name: "notes", url: "https://notes.example/mcp" }],
    };
    const world = new World(session(agent), answer("end_turn", "Hi."));
    await world.drive();
    const [error] = world.log.all("sessionError");
    assert.deepEqual([error?.errorType, error?.mcpServerName], ["mcp_authentication_failed_error", "notes"]);
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
  });

  it("tells that an MCP server takes the credential no more in the middle of a turn, and goes on", async () => {
    const world = withBooks(
      answer("tool_use", { id: "a", name: "mcp__books__find", input: {} }),
      answer("end_turn", "It is closed."),
    );
    world.mcp.onCall = () => {
      world.mcp.tools.delete("books");
      throw new GanglionError({ code: "FAILED_PRECONDITION", reason: "CRED_REFRESH_FAILED", message: "no" });
    };
    await world.drive();
    const [error] = world.log.all("sessionError");
    assert.deepEqual([error?.errorType, error?.mcpServerName], ["mcp_authentication_failed_error", "books"]);
    const [result] = world.log.all("agentMcpToolResult");
    assert.equal(result?.isError, true);
    assert.equal(world.log.types().at(-1), "sessionStatusIdle");
  });
});
