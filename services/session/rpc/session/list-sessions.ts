import { Violations } from "../../../common/errors/violations.ts";
import { unary } from "../../../common/grpc/handlers.ts";
import {
  type ListSessionsRequest,
  type ListSessionsResponse,
  SortOrder,
} from "../../../gen/ganglion/session/v1/session_service.ts";
import type { Status } from "../../domain/append.ts";
import type { ListSessionsQuery } from "../../ports/session-store.ts";
import { statusFromProto } from "../../store/session-row.ts";
import { existingWorkspace } from "../caller-of.ts";
import { checkId, checkPageSize, checkPageToken, checkTime } from "../check-request.ts";
import type { Deps } from "../deps.ts";

/** Lists sessions of one workspace. */
export const listSessions = (deps: Deps) =>
  unary<ListSessionsRequest, ListSessionsResponse>(async (request, ctx) => {
    const query = parseListSessions(request);
    const workspaceId = await existingWorkspace(deps.workspaces, ctx, request.workspaceId);
    return deps.sessions.list({ ...query, workspaceId }, ctx.signal);
  });

function parseListSessions(request: ListSessionsRequest): Omit<ListSessionsQuery, "workspaceId"> {
  const { agentId, agentVersion, statuses, order } = request;
  const violations = new Violations();
  const pageSize = checkPageSize(violations, request.pageSize);
  checkPageToken(violations, request.pageToken);
  if (agentId !== "") checkId(violations, "agent_id", agentId);
  violations.integer("agent_version", agentVersion, { min: 0 });
  violations.check(agentVersion === 0 || agentId !== "", "agent_version", "needs agent_id");
  violations.count("statuses", statuses.length, { max: 4 });
  const names = statuses.map((status, index): Status => {
    const name = statusFromProto(status);
    violations.check(name !== undefined, `statuses[${index}]`, "is not a status");
    return name ?? "idle";
  });
  violations.check(
    order >= 0 && order <= SortOrder.SORT_ORDER_DESC,
    "order",
    "must be ascending or descending",
  );
  const createdAtOrAfter = checkTime(violations, "created_at_or_after", request.createdAtOrAfter);
  const createdBefore = checkTime(violations, "created_before", request.createdBefore);
  violations.throwIfAny();
  return {
    pageSize,
    pageToken: request.pageToken,
    agentId: agentId === "" ? null : agentId,
    agentVersion: agentVersion === 0 ? null : agentVersion,
    statuses: names.length > 0 ? names : null,
    includeArchived: request.includeArchived,
    isAscending: order === SortOrder.SORT_ORDER_ASC,
    createdAtOrAfter,
    createdBefore,
  };
}
