import type { MiddlewareHandler } from "hono";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { PRINCIPAL_KEY } from "../../common/grpc/principal.ts";
import { newId } from "../../common/ids/new-id.ts";
import { endSpan } from "../../common/telemetry/tracing.ts";
import { encodeCaller } from "../auth/forwarded-principal.ts";
import { answerError } from "./answer.ts";
import type { RestDeps, RestVariables } from "./rest-deps.ts";

const LOOPBACK_HOSTS = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/**
 * admit is what every request passes: it gets an id and a trace, must be addressed to this machine by a name that only
 * this machine has (a web page's own name would be DNS rebinding [A040]), and must show an API key.
 */
export function admit(deps: RestDeps): MiddlewareHandler<{ Variables: RestVariables }> {
  return async (c, next) => {
    const span = deps.tracing.startSpan(`${c.req.method} rest`, "server", c.req.header("traceparent"));
    c.set("requestId", newId("req"));
    c.set("traceId", span.traceId);
    c.set("traceparent", span.traceparent);
    try {
      refuseForeignHost(c.req.header("host"), c.req.header("origin"));
      const caller = await deps.authenticator.authenticate({
        authorization: c.req.header("authorization"),
        apiKey: c.req.header("x-api-key"),
        certificate: undefined,
      });
      const workspace = c.req.header("anthropic-workspace-id");
      if (workspace && workspace !== caller.workspaceId) throw foreignWorkspace();
      c.set("caller", caller);
      c.set("call", {
        metadata: { [PRINCIPAL_KEY]: encodeCaller(caller) },
        parent: {
          signal: c.req.raw.signal,
          deadlineMs: Number.POSITIVE_INFINITY,
          traceparent: span.traceparent,
        },
      });
    } catch (error) {
      endSpan(span, error instanceof GanglionError ? error.code : "INTERNAL");
      return answerError(c, error);
    }
    await next();
    endSpan(span, c.res.status < 400 ? "OK" : String(c.res.status));
    return undefined;
  };
}

function refuseForeignHost(host: string | undefined, origin: string | undefined): void {
  const isOwn = host !== undefined && LOOPBACK_HOSTS.test(host);
  const isOwnOrigin =
    origin === undefined || (URL.canParse(origin) && LOOPBACK_HOSTS.test(new URL(origin).host));
  if (isOwn && isOwnOrigin) return;
  throw new GanglionError({
    code: "PERMISSION_DENIED",
    reason: "HOST_NOT_ALLOWED",
    message: "this address answers to localhost only",
  });
}

function foreignWorkspace(): GanglionError {
  return new GanglionError({
    code: "PERMISSION_DENIED",
    reason: "WORKSPACE_NOT_ALLOWED",
    message: "the API key belongs to another workspace",
  });
}
