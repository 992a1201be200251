import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { GanglionMcpToolsResolved_Tool } from "../../gen/ganglion/types/v1/event.ts";
import type { Failure } from "../domain/failures.ts";
import { LIMITS } from "../domain/limits.ts";
import { mcpModelName } from "../domain/mcp-tool-names.ts";
import { PART, RETRY } from "../domain/proto-values.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { McpTool } from "../ports/mcp-servers.ts";
import type { DriveContext } from "./drive-context.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { newEvent, sessionError, statusRunning } from "./new-events.ts";
import { orStop } from "./or-stop.ts";
import { pause } from "./pause.ts";
import { stepSignal } from "./step-signal.ts";

const TRIES = 2;

/** Reasons of mcp-proxy for a server that takes no credential of the session's. */
export const NOT_AUTHENTICATED: ReadonlySet<string> = new Set([
  ...["UPSTREAM_UNAUTHORIZED", "CRED_MISSING", "CRED_MALFORMED", "CRED_REFRESH_FAILED"],
]);

/**
 * Asks MCP servers for their tools, all at once, and writes down what each said, so that every brain offers the model
 * the same. A server that cannot be asked is an error that is told; the turn goes on without its tools and it is asked
 * again when the session next begins to run.
 */
export async function resolveTools(ctx: DriveContext, servers: readonly string[]): Promise<void> {
  const { signal, dispose } = stepSignal(ctx);
  try {
    const listed = servers.map((server) => listTools(ctx, server, signal));
    for (const list of listed) list.catch(() => {});
    if (ctx.log.state.status !== "running") await ctx.log.append([statusRunning()], ctx.traceparent);
    const events = (await Promise.all(listed)).flat();
    if (events.length > 0) await ctx.log.append(events, ctx.traceparent);
  } finally {
    dispose();
  }
}

async function listTools(ctx: DriveContext, serverName: string, signal: AbortSignal): Promise<NewEvent[]> {
  for (let tried = 1; ; tried++) {
    try {
      const token = await orStop(ctx.token.get(), signal);
      const { traceparent } = ctx;
      const tools = await orStop(ctx.ports.mcp.listTools({ token, serverName, signal, traceparent }), signal);
      return resolved(serverName, tools);
    } catch (error) {
      if (saysLeaseIsLost(error)) throw new LeaseLost("the proxy refused the token", { cause: error });
      if (signal.aborted) return [];
      const mayHelp =
        GanglionError.is(error) && (error.code === "UNAVAILABLE" || ctx.token.renewAfter(error));
      if (mayHelp && tried < TRIES) await pause(ctx.patience.retryMs, signal);
      else return [sessionError(failureOf(error), RETRY.RETRYING, { mcpServerName: serverName })];
    }
  }
}

/** The tools as the log keeps them, up to what an event takes; what is left out is told. */
function resolved(serverName: string, listed: readonly McpTool[]): NewEvent[] {
  const tools: GanglionMcpToolsResolved_Tool[] = [];
  let size = 0;
  for (const tool of listed) {
    const entry = {
      name: tool.name,
      modelName: mcpModelName(serverName, tool.name),
      description: tool.description,
      inputSchemaJson: Buffer.from(tool.inputSchemaJson),
      annotationsJson: Buffer.from(tool.annotationsJson),
      pinSha256: Buffer.from(tool.pinSha256),
    };
    size += tool.inputSchemaJson.length + tool.annotationsJson.length + 4 * tool.description.length + 512;
    if (size > LIMITS.mcpToolsBytes) break;
    tools.push(entry);
  }
  const event = newEvent({ $case: "ganglionMcpToolsResolved", value: { mcpServerName: serverName, tools } });
  if (tools.length === listed.length) return [event];
  const left = `${listed.length - tools.length} of ${listed.length} tools are left out: together they are too large.`;
  return [
    event,
    sessionError({ ...connectionFailed, message: left, reason: "MESSAGE_TOO_LARGE" }, RETRY.RETRYING),
  ];
}

const connectionFailed: Failure = {
  part: PART.UPSTREAM,
  errorType: "mcp_connection_failed_error",
  message: "The tools of an MCP server could not be listed.",
  reason: "UPSTREAM_UNREACHABLE",
};

function failureOf(error: unknown): Failure {
  const reason = GanglionError.is(error) ? error.reason : "INTERNAL";
  if (NOT_AUTHENTICATED.has(reason)) {
    const message = "An MCP server does not accept the stored credential, or there is none.";
    return { part: PART.UPSTREAM, errorType: "mcp_authentication_failed_error", message, reason };
  }
  if (reason === "PIN_CHANGED") {
    const message = "An MCP server describes a tool otherwise than was approved; somebody has to approve it.";
    return { ...connectionFailed, message, reason };
  }
  const part = reason.startsWith("UPSTREAM_")
    ? PART.UPSTREAM
    : reason.startsWith("VAULT_")
      ? PART.VAULT
      : PART.PROXY;
  return { ...connectionFailed, part, reason };
}
