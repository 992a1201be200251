import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { Violations } from "../../common/errors/violations.ts";
import type { CallContext } from "../../common/grpc/call-context.ts";
import { type Implementation, implement, unary } from "../../common/grpc/handlers.ts";
import { Audience, BindingServiceService } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import { auditedDenial } from "../domain/audited-change.ts";
import { type BindDeps, bindSession, endBinding, rebindSession } from "../domain/bind-session.ts";
import { type ConfirmedLease, issueHandToken, issueToken } from "../domain/issue-token.ts";
import type { AuditedCaller } from "../domain/new-record.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { StoredBinding } from "../domain/records.ts";
import { type HandSetupDeps, setUpHand } from "../domain/set-up-hand.ts";
import { checkHandId, checkSessionId, readBind } from "./read-bind.ts";

/** What BindingService needs. */
export interface BindingServiceDeps extends BindDeps, HandSetupDeps {
  /** Asks the session service; undefined when it knows no such session. */
  getLease: (sessionId: string, ctx: CallContext) => Promise<ConfirmedLease | undefined>;
  /**
   * Prepares, off everybody's path, what the session's first call will need: looks up what that is, and makes it once the
   * function that it answers with is called.
   */
  prepare: (sessionId: string) => (binding: StoredBinding, epoch: bigint) => void;
}

/** Makes BindingService. */
export function bindingService(deps: BindingServiceDeps): Implementation {
  return implement(BindingServiceService, {
    bind: unary(async (req, ctx) => {
      const binding = readBind(req);
      ctx.note({ session_id: req.sessionId });
      await (req.replacesMcpServers ? rebindSession : bindSession)(deps, binding, callerOf(ctx));
      return {};
    }),
    issueToken: unary(async (req, ctx) => {
      const { sessionId, handId, epoch, audience } = req;
      const isHand = audience === Audience.AUDIENCE_HAND;
      const found = new Violations();
      checkSessionId(found, sessionId);
      found.check(isHand || audience === Audience.AUDIENCE_HARNESS, "audience", "is required");
      if (isHand) checkHandId(found, handId);
      else found.check(handId === "", "hand_id", "is for tokens of hands only");
      found.integer("epoch", epoch, isHand ? { min: 0, max: 0 } : { min: 1 });
      found.throwIfAny();
      const { spiffeId, role } = ctx.principal;
      const getLease = (id: string) => confirm(deps, id, ctx);
      const issue = async () => {
        if (role !== (isHand ? Role.ROLE_SANDBOX : Role.ROLE_HARNESS)) throw proxyError("ROLE_NOT_ALLOWED");
        if (isHand) {
          ctx.note({ session_id: sessionId, hand_id: handId });
          return issueHandToken({ ...deps, getLease }, { sessionId, handId, spiffeId });
        }
        ctx.note({ session_id: sessionId, epoch });
        const asked = { sessionId, epoch, audience: "harness" as const, spiffeId };
        const warm = deps.prepare(sessionId);
        const onConfirmed = (binding: StoredBinding) => warm(binding, epoch);
        return issueToken({ ...deps, getLease, onConfirmed }, asked);
      };
      // One that is issued has no record of its own: a brain waits for it, and each decision that it leads to names it.
      const wanted = { sessionId, epoch, audience: isHand ? "hand" : "harness", target: handId };
      return auditedDenial(
        deps.ledger,
        { operation: "binding.issue_token", who: callerOf(ctx), ...wanted },
        issue,
      );
    }),
    getHandSetup: unary(async (req, ctx) => {
      const found = new Violations();
      checkSessionId(found, req.sessionId);
      checkHandId(found, req.handId);
      found.throwIfAny();
      ctx.note({ session_id: req.sessionId, hand_id: req.handId });
      return setUpHand(deps, req.sessionId);
    }),
    endBinding: unary(async (req, ctx) => {
      const found = new Violations();
      checkSessionId(found, req.sessionId);
      found.throwIfAny();
      ctx.note({ session_id: req.sessionId });
      await endBinding(deps, req.sessionId, callerOf(ctx));
      return {};
    }),
  });
}

function callerOf({ principal: { spiffeId, peerCertSha256 = "" } }: CallContext): AuditedCaller {
  return { caller: spiffeId, callerCert: peerCertSha256 };
}

async function confirm(deps: BindingServiceDeps, sessionId: string, ctx: CallContext) {
  try {
    return await deps.getLease(sessionId, ctx);
  } catch (error) {
    if (GanglionError.is(error) && error.code === "NOT_FOUND") return undefined;
    throw proxyError("LOG_UNAVAILABLE", { cause: error });
  }
}
