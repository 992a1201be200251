import { admitTools, type PinDeps, refusePending } from "./admit-tools.ts";
import type { Destination } from "./canonical-url.ts";
import { chooseMcpServer } from "./choose-mcp.ts";
import { MCP_KINDS } from "./credential-config.ts";
import type { ResolvedAddress } from "./destination-policy.ts";
import type { McpCaller, McpFailureKind, McpTool } from "./mcp-caller.ts";
import { endingOf, openPassage, type PassageDeps } from "./passage.ts";
import { proxyError, type Reason } from "./proxy-error.ts";

/** What calls to MCP servers need. */
export interface McpDeps extends PassageDeps, PinDeps {
  mcp: McpCaller;
  resolve: (destination: Destination) => Promise<ResolvedAddress>;
}

/** Lists the tools of one server of the session's agent. */
export async function listMcpTools(
  deps: McpDeps,
  asked: { token: string | undefined; caller: string; serverName: string },
  signal: AbortSignal,
): Promise<{ requestId: string; tools: McpTool[] }> {
  const { token, caller, serverName } = asked;
  const passage = await openPassage(deps, {
    token,
    caller,
    operation: "mcp_list_tools",
    target: serverName,
    lookup: { kinds: MCP_KINDS, urls: [], mcpServerName: serverName, pinnedTool: null },
    choose: (access) => {
      refusePending(access.toolPins);
      return chooseMcpServer(access, serverName);
    },
  });
  const { requestId, access, credential } = passage;
  const destination = passage.destination as Destination;
  try {
    const [secret, address] = await Promise.all([passage.secret(), deps.resolve(destination)]);
    await passage.dispatch({ peerAddress: address.address, requestBytes: 0 });
    const target = { access, serverName, destination, address, credential, secret };
    const outcome = await deps.mcp.listTools(target, signal);
    if (!outcome.ok) throw failureError(outcome.failure, credential !== undefined, outcome.counters.status);
    const pins = outcome.value.map(({ pin }) => pin);
    await admitTools(deps, passage, pins);
    await passage.finish({ reason: "ok", ...outcome.counters });
    return { requestId, tools: outcome.value };
  } catch (error) {
    await passage.finish({ reason: endingOf(error), status: statusOf(error) });
    throw error;
  }
}

const REASONS: Record<McpFailureKind, Reason> = {
  not_listed: "MCP_SERVER_NOT_FOUND",
  unreachable: "UPSTREAM_UNREACHABLE",
  broken: "UPSTREAM_MALFORMED",
  malformed: "UPSTREAM_MALFORMED",
  redirect: "UPSTREAM_REDIRECT",
  unauthorized: "UPSTREAM_UNAUTHORIZED",
  refused: "UPSTREAM_MALFORMED",
  too_large: "MESSAGE_TOO_LARGE",
  timeout: "UPSTREAM_TIMEOUT",
  cancelled: "UPSTREAM_TIMEOUT",
  rpc_error: "UPSTREAM_MALFORMED",
};

/** The error for a failure after which the tool certainly did not run. */
export function failureError(failure: McpFailureKind, hasCredential: boolean, status: number) {
  const reason = failure === "unauthorized" && !hasCredential ? "CRED_MISSING" : REASONS[failure];
  return proxyError(reason, status > 0 ? { metadata: { upstream_status: String(status) } } : {});
}

function statusOf(error: unknown): number {
  return Number((error as { metadata?: Record<string, string> }).metadata?.upstream_status ?? 0);
}
