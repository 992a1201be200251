import { serverStream } from "../../../common/grpc/handlers.ts";
import type {
  WatchRunnableRequest,
  WatchRunnableResponse,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import type { Deps } from "../deps.ts";

/** Tells a harness that there may be sessions to lease. */
export const watchRunnable = (deps: Deps) =>
  serverStream<WatchRunnableRequest, WatchRunnableResponse>(async function* (_request, ctx) {
    for await (const runnableCount of deps.runnable.watch(ctx.signal, deps.quietMs)) yield { runnableCount };
  });
