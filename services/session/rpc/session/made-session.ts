import type { CallContext } from "../../../common/grpc/call-context.ts";
import type { Session } from "../../../gen/ganglion/session/v1/session_service.ts";
import { idReused, sessionNotFound } from "../../domain/errors.ts";
import type { RequestKey } from "../../ports/session-store.ts";
import type { Deps } from "../deps.ts";

/** madeSession finds what an earlier call with the same request id made; throws when that call asked for something else. */
export async function madeSession(
  deps: Deps,
  workspaceId: string,
  key: RequestKey,
  ctx: CallContext,
): Promise<Session | undefined> {
  const made = await deps.requestIds.find(workspaceId, key.method, key.requestId, ctx.signal);
  if (!made) return undefined;
  if (Buffer.compare(made.digest, key.digest) !== 0) throw idReused(key.requestId);
  const session = await deps.sessions.get(made.resourceId, workspaceId, ctx.signal);
  // Made and deleted since: making it again would not be the same answer.
  if (!session) throw sessionNotFound(made.resourceId);
  return session;
}
