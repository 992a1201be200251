import { ToolPin } from "../../gen/ganglion/mcpproxy/v1/tool_pin_service.ts";
import { connectMesh, type Mesh } from "../client/connect-mesh.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { Command, Invocation } from "./command.ts";
import { findVerb } from "./find-verb.ts";

/** `ganglion mcp` shows what is approved of the tools of MCP servers, and approves what changed. */
export const mcp: Command = {
  name: "mcp",
  usage: "<pins|approve> …",
  summary: "show and approve the pinned tools of MCP servers",
  details: [
    "pins [--url <url>] [--changed]                     list pins; --changed: what waits for an approval",
    "approve <tool> --url <url> --sha256 <digest>       approve the definition with that digest",
    "",
    "A tool is pinned as it is first seen. One that its server describes otherwise later is not",
    "called until its new definition is approved; `pins --changed --json` shows both.",
  ],
  options: {
    url: { type: "string", default: "" },
    sha256: { type: "string", default: "" },
    changed: { type: "boolean", default: false },
    workspace: { type: "string", default: "" },
  },
  arity: [1, 2],
  run: async (invocation) => {
    const [verb = "", ...args] = invocation.positionals;
    const act = findVerb("mcp", VERBS, verb);
    const mesh = connectMesh(invocation.stateDir);
    try {
      await act(mesh, args, invocation);
      return EXIT.ok;
    } finally {
      mesh.close();
    }
  },
};

type Verb = (mesh: Mesh, args: string[], invocation: Invocation) => Promise<void>;

const VERBS: Record<string, Verb> = {
  pins: async (mesh, args, { options, terminal }) => {
    if (args.length > 0) throw new CliError("usage: ganglion mcp pins [--url <url>] [--changed]", EXIT.usage);
    const rows = [["SERVER", "TOOL", "PINNED", "SEEN INSTEAD"]];
    for (let pageToken = ""; ; ) {
      const page = await mesh.toolPins.listToolPins({
        workspaceId: String(options.workspace),
        mcpServerUrl: String(options.url),
        onlyChanged: options.changed === true,
        pageSize: 100,
        pageToken,
      });
      for (const pin of page.pins) {
        terminal.object(ToolPin.toJSON(pin));
        const { mcpServerUrl, toolName, sha256, seenSha256 } = pin;
        rows.push([mcpServerUrl, toolName, sha256.toString("hex"), seenSha256.toString("hex")]);
      }
      pageToken = page.nextPageToken;
      if (!pageToken) break;
    }
    terminal.table(rows);
  },
  approve: async (mesh, args, { options, terminal }) => {
    const [toolName] = args;
    const digest = Buffer.from(String(options.sha256), "hex");
    if (!toolName || options.url === "" || digest.length !== 32) {
      throw new CliError("usage: ganglion mcp approve <tool> --url <url> --sha256 <digest>", EXIT.usage);
    }
    const { pin } = await mesh.toolPins.approveToolPin({
      workspaceId: String(options.workspace),
      mcpServerUrl: String(options.url),
      toolName,
      sha256: digest,
    });
    terminal.object(ToolPin.toJSON(pin as ToolPin));
    terminal.line(`${toolName} may be called as it is described now`);
  },
};
