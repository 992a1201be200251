import { type AuditFacts, requestRecord, responseRecord } from "../audit/audit-records.ts";
import type { Caller } from "../token/caller.ts";
import type { TokenEntry } from "../token/token-entry.ts";
import { NO_WRAPPING_TOKEN } from "../wrapping/wrapping-routes.ts";
import { answerBody } from "./answer-body.ts";
import type { Operation, VaultAnswer, VaultRequest } from "./request.ts";
import { matchRoute, type Route } from "./route.ts";
import { findMount, type RouteTable } from "./route-table.ts";
import { badRequest, denied, VaultError, wrapped } from "./vault-error.ts";
import type { VaultState } from "./vault-state.ts";

/** Answer is what goes back over HTTP; no body is 204. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

/**
 * carryOut takes one request through the steps every request takes: who sends it, what it is for, whether that is
 * allowed, the audit record, the handler, wrapping, the audit record of the answer. It is synchronous on purpose:
 * no two requests can interleave.
 */
export function carryOut(state: VaultState, table: RouteTable, asked: VaultRequest): Answer {
  const mount = findMount(state.mounts, asked.path);
  const found = mount && matchRoute(table.routesOf(mount.record), mount.rest);
  const request = withOperation(asked, found?.route, found?.params ?? {});
  let facts: AuditFacts = { request, mount: mount?.record, caller: undefined, isAllowed: false };
  try {
    const caller = found?.route.isOpen ? undefined : authenticate(state, request);
    facts = { ...facts, caller };
    if (caller && !caller.acl.allows(request, found?.route.needsSudo ?? false)) throw denied();
    facts = { ...facts, isAllowed: true };
  } catch (cause) {
    if (!(cause instanceof VaultError)) throw cause;
    return refuse(state, facts, cause, true);
  }
  state.audit.record((salt) => requestRecord(facts, salt));
  try {
    if (!mount) {
      throw new VaultError(404, `no handler for route "${request.path}". route entry not found.`);
    }
    if (!found) throw new VaultError(404, wrapped("unsupported path"));
    const handler = found.route.handlers[request.operation];
    if (!handler) throw new VaultError(405, wrapped("unsupported operation"));
    const answer = handler({ request, data: request.data, caller: facts.caller, params: found.params });
    return finish(state, facts, answer);
  } catch (cause) {
    if (!(cause instanceof VaultError)) throw cause;
    return refuse(state, facts, cause, false);
  }
}

function finish(state: VaultState, facts: AuditFacts, answer: VaultAnswer | undefined): Answer {
  const body = answerBody(state, facts.request, answer);
  // What was done is done; without its record the answer still must not leave.
  state.audit.record((salt) => responseRecord(facts, body ?? {}, salt));
  return { status: answer?.status ?? (body ? 200 : 204), body };
}

function refuse(state: VaultState, facts: AuditFacts, cause: VaultError, isFirstRecord: boolean): Answer {
  const failed = { ...facts, error: cause.message };
  if (isFirstRecord) state.audit.record((salt) => requestRecord(failed, salt));
  state.audit.record((salt) => responseRecord(failed, {}, salt));
  return { status: cause.status, body: { errors: cause.errors } };
}

/** A write is a create where the route can tell that there is nothing yet. */
function withOperation(
  request: VaultRequest,
  route: Route | undefined,
  params: Readonly<Record<string, string>>,
): VaultRequest {
  if (request.operation !== "update" || !route?.exists || route.exists(params)) return request;
  return { ...request, operation: "create" satisfies Operation };
}

function authenticate(state: VaultState, request: VaultRequest): Caller {
  const isUnwrap = request.path === "sys/wrapping/unwrap";
  const { token } = request;
  const found = token === undefined ? undefined : state.tokens.find(token);
  if (token === undefined || !found) {
    if (token !== undefined && isUnwrap) throw badRequest(NO_WRAPPING_TOKEN);
    throw new VaultError(403, "permission denied");
  }
  const entry = spendUse(state, found);
  const { entity, policies, acl } = state.aclOf(entry);
  if (entry.entityId !== "" && (!entity || entity.isDisabled)) throw denied();
  return { token, entry, entity, policies, acl };
}

/** A use counts also when the request is then refused; with the last one the token is gone, before anything is done. */
function spendUse(state: VaultState, entry: TokenEntry): TokenEntry {
  if (entry.usesLeft <= 0) return entry;
  const after = { ...entry, usesLeft: entry.usesLeft === 1 ? -1 : entry.usesLeft - 1 };
  if (entry.usesLeft === 1) state.tokens.revoke(entry.hash);
  else state.tokens.update(after);
  return after;
}
