import { LIMITS } from "../domain/limits.ts";
import type { Call } from "../domain/session-state.ts";
import type { DriveContext } from "./drive-context.ts";

/**
 * Shows to whoever watches how far an MCP call is, as its server reports it (B092). Nothing is asked for a call that is
 * over soon; whatever goes wrong costs what would have been shown, and nothing else. Call what it gives when the call is
 * over.
 */
export function showProgress(ctx: DriveContext, call: Call, signal: AbortSignal): () => void {
  const over = new AbortController();
  const timer = setTimeout(() => {
    follow(ctx, call, AbortSignal.any([over.signal, signal, ctx.signal])).catch((error: unknown) => {
      if (!over.signal.aborted) ctx.logger.debug({ err: error }, "the progress of a call cannot be shown");
    });
  }, LIMITS.showProgressAfterMs);
  return () => {
    clearTimeout(timer);
    over.abort();
  };
}

async function follow(ctx: DriveContext, call: Call, signal: AbortSignal): Promise<void> {
  const { traceparent } = ctx;
  const token = await ctx.token.get();
  if (signal.aborted) return;
  for await (const progress of ctx.ports.mcp.watch({ token, key: call.id, signal, traceparent })) {
    // What comes late must not stand behind the result.
    if (signal.aborted) return;
    ctx.previews.progress(call.id, progress);
  }
}
