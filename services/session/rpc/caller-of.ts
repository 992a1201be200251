import type { CallContext } from "../../common/grpc/call-context.ts";
import { roleName } from "../../common/grpc/principal.ts";
import { Actor } from "../../gen/ganglion/types/v1/event.ts";
import type { Append } from "../domain/append.ts";
import { type Caller, type CallerRole, workspaceOf } from "../domain/caller.ts";
import { invalidField, workspaceNotFound } from "../domain/errors.ts";
import type { Workspaces } from "../ports/registry-stores.ts";

/** The caller as the rules know it. */
export function callerOf({ principal }: Pick<CallContext, "principal">): Caller {
  return {
    role: roleName(principal.role).toUpperCase() as CallerRole,
    subject: principal.keyId ?? principal.spiffeId,
    workspaceId: principal.workspaceId,
  };
}

/** The caller as an event's actor. */
export function actorOf(ctx: Pick<CallContext, "principal">): Append["actor"] {
  return { role: ctx.principal.role, subject: callerOf(ctx).subject };
}

/** The workspace that a create is about; a confined caller has no other than its own. */
export function requestedWorkspace(ctx: Pick<CallContext, "principal">, named: string): string {
  if (named !== "" && !/^wrkspc_[A-Za-z0-9_]{1,64}$/.test(named)) {
    throw invalidField("workspace_id", "must be an id that starts with wrkspc_");
  }
  const workspaceId = workspaceOf(callerOf(ctx), named);
  if (workspaceId === undefined) throw workspaceNotFound(named);
  return workspaceId;
}

/** The same where nothing that is stored would find out that there is no such workspace. */
export async function existingWorkspace(
  workspaces: Pick<Workspaces, "exists">,
  ctx: Pick<CallContext, "principal" | "signal">,
  named: string,
): Promise<string> {
  const workspaceId = requestedWorkspace(ctx, named);
  if (named !== "" && !(await workspaces.exists(workspaceId, ctx.signal)))
    throw workspaceNotFound(workspaceId);
  return workspaceId;
}

/** The actor as events name it that the log writes by itself for somebody. */
export function requestedBy(ctx: Pick<CallContext, "principal">): Actor {
  return Actor.fromPartial({ role: ctx.principal.role, subject: callerOf(ctx).subject });
}
