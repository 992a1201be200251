import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import {
  Audience,
  BindingServiceService,
  type BindRequest,
} from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { type BindDeps, bindSession, rebindSession } from "../domain/bind-session.ts";
import { parseDestination } from "../domain/canonical-url.ts";
import { isSessionId, isVaultId, isWorkspaceId } from "../domain/ids.ts";
import { type ConfirmedLease, issueToken } from "../domain/issue-token.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { StoredBinding } from "../domain/records.ts";
import { checkText } from "./read-requests.ts";

/** What BindingService needs. */
export interface BindingServiceDeps extends BindDeps {
  /** Asks the session service; undefined when it knows no such session. */
  getLease: (sessionId: string, ctx: CallContext) => Promise<ConfirmedLease | undefined>;
  /**
   * Prepares, off everybody's path, what the session's first call will need: looks up what that is, and makes it once the
   * function that it answers with is called.
   */
  prepare: (sessionId: string) => (binding: StoredBinding, epoch: bigint) => void;
}

const MAX_ENTRIES = 20;

/** Makes BindingService. */
export function bindingService(deps: BindingServiceDeps): Implementation {
  return implement(BindingServiceService, {
    bind: unary(async (req, ctx) => {
      checkBind(req);
      ctx.note({ session_id: req.sessionId });
      await (req.replacesMcpServers ? rebindSession : bindSession)(deps, req);
      return {};
    }),
    issueToken: unary(async (req, ctx) => {
      const found = new Violations();
      checkSessionId(found, req.sessionId);
      found.integer("epoch", req.epoch, { min: 1 });
      found.check(req.audience === Audience.AUDIENCE_HARNESS, "audience", "is required");
      found.throwIfAny();
      ctx.note({ session_id: req.sessionId, epoch: req.epoch });
      const { sessionId, epoch } = req;
      const asked = { sessionId, epoch, audience: "harness" as const, spiffeId: ctx.principal.spiffeId };
      const getLease = (id: string) => confirm(deps, id, ctx);
      const warm = deps.prepare(sessionId);
      const onConfirmed = (binding: StoredBinding) => warm(binding, epoch);
      return issueToken({ ...deps, getLease, onConfirmed }, asked);
    }),
    endBinding: unary(async (req, ctx) => {
      const found = new Violations();
      checkSessionId(found, req.sessionId);
      found.throwIfAny();
      ctx.note({ session_id: req.sessionId });
      await deps.bindings.raiseFence(req.sessionId, 0n, true);
      return {};
    }),
  });
}

async function confirm(deps: BindingServiceDeps, sessionId: string, ctx: CallContext) {
  try {
    return await deps.getLease(sessionId, ctx);
  } catch (error) {
    if (GanglionError.is(error) && error.code === "NOT_FOUND") return undefined;
    throw proxyError("LOG_UNAVAILABLE", { cause: error });
  }
}

function checkBind(req: BindRequest): void {
  const found = new Violations();
  checkSessionId(found, req.sessionId);
  found.string("workspace_id", req.workspaceId, { required: true });
  const isWorkspace = req.workspaceId === "" || isWorkspaceId(req.workspaceId);
  found.check(isWorkspace, "workspace_id", "must be an id that starts with wrkspc_");
  found.count("vault_ids", req.vaultIds.length, { max: MAX_ENTRIES });
  found.count("mcp_servers", req.mcpServers.length, { max: MAX_ENTRIES });
  found.count("models", req.models.length, { max: MAX_ENTRIES });
  found.throwIfAny();
  req.vaultIds.forEach((id, i) => {
    found.check(isVaultId(id), `vault_ids[${i}]`, "must be an id that starts with vlt_");
  });
  found.check(new Set(req.vaultIds).size === req.vaultIds.length, "vault_ids", "must not name a vault twice");
  req.mcpServers.forEach(({ name, url }, i) => {
    checkText(found, `mcp_servers[${i}].name`, name, { required: true, maxLength: 255 });
    found.string(`mcp_servers[${i}].url`, url, { required: true, maxLength: 2048 });
    const isFit = url === "" || parseDestination(url) !== undefined;
    found.check(isFit, `mcp_servers[${i}].url`, "must be an http or https URL in plain form");
  });
  const names = new Set(req.mcpServers.map(({ name }) => name));
  found.check(names.size === req.mcpServers.length, "mcp_servers", "must not name a server twice");
  req.models.forEach((model, i) => {
    checkText(found, `models[${i}]`, model, { required: true, maxLength: 255 });
  });
  found.throwIfAny();
}

function checkSessionId(found: Violations, sessionId: string): void {
  found.string("session_id", sessionId, { required: true });
  found.check(
    sessionId === "" || isSessionId(sessionId),
    "session_id",
    "must be an id that starts with sesn_",
  );
}
