import { admitTools, type PinDeps, refusePending } from "./admit-tools.ts";
import type { Destination } from "./canonical-url.ts";
import { chooseMcpServer } from "./choose-mcp.ts";
import { MCP_KINDS } from "./credential-config.ts";
import type { ResolvedAddress } from "./destination-policy.ts";
import type { McpCaller, McpFailureKind, McpTool } from "./mcp-caller.ts";
import { type Renewals, renewAfterRefusal } from "./oauth/renewals.ts";
import { endingOf, openPassage, type Passage, type PassageDeps, secretAndAddress } from "./passage.ts";
import { proxyError, type Reason, reasonOf } from "./proxy-error.ts";

/** What calls to MCP servers need. */
export interface McpDeps extends PassageDeps, PinDeps {
  mcp: McpCaller;
  resolve: {
    (destination: Destination): Promise<ResolvedAddress>;
    /** The same when nobody has to be asked. */
    known(destination: Destination): ResolvedAddress | undefined;
  };
  renewals: Renewals;
}

/** Which server's tools are asked for, and by whom. */
interface AskedList {
  token: string | undefined;
  caller: string;
  callerCert: string;
  /** Metadata in which the caller brings a credential of its own, which it may not (cases A025, B110). */
  ownCredential?: string;
  serverName: string;
}

/** What a list came to. */
interface Listed {
  requestId: string;
  tools: McpTool[];
}

/** Lists the tools of one server of the session's agent; once more when an OAuth token was refused that could be renewed. */
export async function listMcpTools(deps: McpDeps, asked: AskedList, signal: AbortSignal): Promise<Listed> {
  const seen: { passage?: Passage; version: bigint } = { version: 0n };
  try {
    return await listOnce(deps, asked, signal, seen);
  } catch (error) {
    const { passage, version } = seen;
    if (!passage || !isTokenRefused(error)) throw error;
    if (!(await renewAfterRefusal(deps.renewals, passage.access, passage.credential, version))) throw error;
    return listOnce(deps, asked, signal, seen);
  }
}

async function listOnce(
  deps: McpDeps,
  asked: AskedList,
  signal: AbortSignal,
  seen: { passage?: Passage; version: bigint },
): Promise<Listed> {
  const { token, caller, callerCert, serverName } = asked;
  const passage = await openPassage(deps, {
    token,
    caller,
    callerCert,
    operation: "mcp_list_tools",
    target: serverName,
    lookup: { kinds: MCP_KINDS, urls: [], mcpServerName: serverName, pinnedTool: null },
    choose: (access, ask) => {
      refuseOwnCredential(asked);
      refusePending(access.toolPins);
      return chooseMcpServer(access, serverName, ask);
    },
    sendNow: ({ destination }) => {
      const address = deps.resolve.known(destination);
      return address && { address, requestBytes: 0 };
    },
  });
  const { requestId, access, credential, dispatched } = passage;
  const destination = passage.destination as Destination;
  seen.passage = passage;
  try {
    const [secret, address] = await secretAndAddress(passage, () => deps.resolve(destination));
    seen.version = secret?.version ?? 0n;
    if (!dispatched) await passage.dispatch({ address, requestBytes: 0 });
    const { met, traffic } = passage;
    const target = { access, serverName, destination, address, credential, secret, met, traffic };
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
  not_called: "UPSTREAM_MALFORMED",
  asks_back: "UPSTREAM_MALFORMED",
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

/** Refuses a caller that brings a credential of its own: only the one of the session's vaults is sent. */
export function refuseOwnCredential({ ownCredential }: { ownCredential?: string }): void {
  if (ownCredential !== undefined) {
    throw proxyError("HEADER_FORBIDDEN", { metadata: { header: ownCredential.slice(0, 64) } });
  }
}

/** The error for a failure after which the tool certainly did not run. */
export function failureError(failure: McpFailureKind, hasCredential: boolean, status: number) {
  const reason = failure === "unauthorized" && !hasCredential ? "CRED_MISSING" : REASONS[failure];
  return proxyError(reason, status > 0 ? { metadata: { upstream_status: String(status) } } : {});
}

/** True when the server did not take the token (401); a 403 is about rights, which a new token has no more of. */
export function isTokenRefused(error: unknown): boolean {
  return reasonOf(error) === "UPSTREAM_UNAUTHORIZED" && statusOf(error) === 401;
}

/** The upstream's status that an error of failureError has; 0 = none. */
export function statusOf(error: unknown): number {
  return Number((error as { metadata?: Record<string, string> }).metadata?.upstream_status ?? 0);
}
