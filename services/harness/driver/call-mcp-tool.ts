import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { acknowledgedKeys } from "../domain/acknowledged-keys.ts";
import { LIMITS } from "../domain/limits.ts";
import { mcpContent } from "../domain/mcp-content.ts";
import { OUTCOME } from "../domain/proto-values.ts";
import type { Call, CallResult } from "../domain/session-state.ts";
import { notRun } from "../domain/settle-call.ts";
import type { NewEvent } from "../ports/event-log.ts";
import type { McpCall, McpKnowledge } from "../ports/mcp-servers.ts";
import { answerOrStop } from "./answer-or-stop.ts";
import type { DriveContext } from "./drive-context.ts";
import { keepResult } from "./keep-result.ts";
import { LeaseLost, saysLeaseIsLost } from "./lease-lost.ts";
import { callResult } from "./new-events.ts";
import { orStop } from "./or-stop.ts";
import { pause } from "./pause.ts";
import { NOT_AUTHENTICATED } from "./resolve-tools.ts";
import { unknown } from "./run-in-hand.ts";
import { showProgress } from "./show-progress.ts";

// The transport failed, so nobody said whether the proxy had begun; everything else comes from the proxy itself, which
// did not run the tool when it was asked that time.
const SILENT = new Set([
  "UNREACHABLE",
  "DEADLINE_EXCEEDED",
  "CANCELLED",
  "INTERNAL",
  "UNKNOWN",
  "CLIENT_FAILURE",
]);
const PASSING = new Set([
  "VAULT_UNAVAILABLE",
  "AUDIT_UNAVAILABLE",
  "DATABASE_UNAVAILABLE",
  "UPSTREAM_UNREACHABLE",
  "LOG_UNAVAILABLE",
  "DRAINING",
]);

/**
 * Calls one MCP tool through the proxy, under the call's key, and gives its result. A call that another brain may have
 * begun is asked for first (law L4). Undefined = stopped by the signal.
 */
export async function callMcpTool(
  ctx: DriveContext,
  call: Call,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  let mayHaveBegun = false;
  if (!ctx.ownCalls.has(call.id)) {
    const stopShowing = showProgress(ctx, call, signal);
    const found = await lookUpMcpCall(ctx, call, signal, ctx.patience.callMs, true).finally(stopShowing);
    if (signal.aborted) return undefined;
    if (found.kind === "known") return finishMcp(ctx, call, found.value, signal);
    // Lost, but annotated read-only or idempotent: calling again under the same key does no harm.
    if (found.kind !== "never" && found.kind !== "repeatable")
      return callResult(call, unknown("The credential proxy cannot be asked"));
    mayHaveBegun = found.kind === "repeatable";
  }
  const until = performance.now() + ctx.patience.callMs;
  for (;;) {
    try {
      const token = await orStop(ctx.token.get(), signal);
      // Stopped while it waited: whoever closes the call says that it was not run, or has cancelled it.
      if (signal.aborted) return undefined;
      ctx.attempted.add(call.id);
      const calling = ctx.ports.mcp.call({
        token,
        // Goes on when the step is stopped: what it comes to may still be of interest.
        signal: ctx.signal,
        traceparent: ctx.traceparent,
        serverName: call.serverName,
        name: call.name,
        inputJson: call.inputJson,
        key: call.id,
        timeoutMs: LIMITS.toolTimeoutMs,
        acknowledgedKeys: acknowledgedKeys(ctx.log.state, "mcp"),
      });
      const stopShowing = showProgress(ctx, call, signal);
      const done = await answerOrStop(ctx, call, calling, signal, mcpResult).finally(stopShowing);
      if (done?.areToolsChanged) ctx.changedServers.add(call.serverName);
      return done && (await finishMcp(ctx, call, done, signal));
    } catch (error) {
      if (saysLeaseIsLost(error)) throw new LeaseLost("the proxy refused the token", { cause: error });
      if (signal.aborted) return undefined;
      const reason = GanglionError.is(error) ? error.reason : "INTERNAL";
      const isSilent = SILENT.has(reason);
      mayHaveBegun ||= isSilent;
      const mayHelp = isSilent || PASSING.has(reason) || ctx.token.renewAfter(error);
      // It is asked for its tools before the model is: if it still refuses, that is an error of the session.
      if (NOT_AUTHENTICATED.has(reason)) ctx.changedServers.add(call.serverName);
      if (!mayHelp || performance.now() > until) {
        return mayHaveBegun
          ? callResult(call, unknown("The credential proxy did not answer"))
          : closeRefused(ctx, call, reason, signal);
      }
      await pause(ctx.patience.retryMs, signal);
    }
  }
}

/**
 * Closes a call that was refused. The channel asks again by itself when an answer was lost, so an attempt before the one
 * that was refused may have come through: only the journal can say that it was not run.
 */
async function closeRefused(
  ctx: DriveContext,
  call: Call,
  reason: string,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  const found = await lookUpMcpCall(ctx, call, signal, ctx.patience.retryMs * LIMITS.journalTries, true);
  if (signal.aborted) return undefined;
  if (found.kind === "known") return finishMcp(ctx, call, found.value, signal);
  if (found.kind === "never") return callResult(call, notRun(`The tool could not be called (${reason}).`));
  return callResult(call, unknown("The credential proxy cannot be asked"));
}

/** What the proxy's journal knows of a call; "running" = it did not end, or could not be asked, in time. */
export async function lookUpMcpCall(
  ctx: DriveContext,
  call: Call,
  signal: AbortSignal,
  forMs: number,
  wait: boolean,
): Promise<McpKnowledge> {
  let until = performance.now() + forMs;
  while (!signal.aborted) {
    try {
      const token = await orStop(ctx.token.get(), signal);
      const { traceparent } = ctx;
      const found = await orStop(ctx.ports.mcp.lookUp({ token, key: call.id, signal, traceparent }), signal);
      if (found.kind !== "running" || !wait) return found;
      until = performance.now() + forMs;
    } catch (error) {
      if (saysLeaseIsLost(error)) throw new LeaseLost("the proxy refused the token", { cause: error });
      ctx.token.renewAfter(error);
      if (performance.now() > until) break;
    }
    await pause(ctx.patience.retryMs, signal);
  }
  return { kind: "running" };
}

/** A journal's or a server's answer as the call's result; undefined = stopped by the signal. */
export function finishMcp(
  ctx: DriveContext,
  call: Call,
  done: McpCall,
  signal: AbortSignal,
): Promise<NewEvent | undefined> {
  const { proxyRequestId, durationMs } = done;
  return keepResult(ctx, call, mcpResult(done), { proxyRequestId, durationMs }, signal);
}

/** A server's answer in the words of a result. */
export function mcpResult(done: McpCall): CallResult {
  return {
    content: mcpContent(done.content, done.structuredContentJson),
    isError: done.isError,
    outcome: done.outcome === 0 ? OUTCOME.UNKNOWN : done.outcome,
  };
}
