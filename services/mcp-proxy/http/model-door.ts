import type { IncomingMessage, ServerResponse } from "node:http";
import { crashPoint } from "../../common/crash/crash-point.ts";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Tracing } from "../../common/telemetry/tracing.ts";
import { chooseModel, type ModelUpstream } from "../domain/choose-model.ts";
import type { LiveSessions } from "../domain/live-sessions.ts";
import { lookEarly } from "../domain/look-early.ts";
import { openPassage, type Passage, type PassageDeps, secretAndAddress } from "../domain/passage.ts";
import { proxyError } from "../domain/proxy-error.ts";
import { hashSessionToken } from "../domain/session-token.ts";
import { exchange } from "../upstream/exchange.ts";
import { explainFailure } from "../upstream/explain-failure.ts";
import type { UpstreamPools } from "../upstream/pools.ts";
import type { Resolver } from "../upstream/resolver.ts";
import { UpstreamFailure } from "../upstream/upstream-failure.ts";
import { sendError } from "./error-envelope.ts";
import { judgeOnce } from "./judge-once.ts";
import { bearerOf, type DoorRequest, readBody, readHead } from "./read-request.ts";
import { releaseAnswer } from "./release-answer.ts";
import { type WatchedRequest, watchRequest } from "./watch-request.ts";

/** A brain thinks between two requests; a new TLS handshake each time would cost more than the whole way through here. */
const KEEP_ALIVE_MS = 30_000;

/** What the model door needs. */
export interface ModelDoorDeps extends PassageDeps {
  upstreams: readonly ModelUpstream[];
  resolve: Resolver;
  pools: UpstreamPools;
  live: LiveSessions;
  /** Values of the Host header under which this door may be asked. */
  hosts: ReadonlySet<string>;
  isDraining: () => boolean;
  log: Logger;
  tracing: Tracing;
}

/** Makes the listener of the model door: POST /v1/messages for harnesses with a session token, and nothing else. */
export function modelDoor(deps: ModelDoorDeps) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const watched = watchRequest(deps, request, response);
    serve(deps, request, response, watched).catch((error) => {
      if (!GanglionError.is(error))
        deps.log.error({ err: error, trace_id: watched.traceId }, "model door failed");
      sendError(response, error);
    });
  };
}

async function serve(
  deps: ModelDoorDeps,
  request: IncomingMessage,
  response: ServerResponse,
  watched: WatchedRequest,
): Promise<void> {
  const { peer } = watched;
  if (peer?.service !== "harness") {
    refuse(request, response, proxyError("ROLE_NOT_ALLOWED"));
    return;
  }
  if (deps.isDraining()) {
    refuse(request, response, proxyError("DRAINING"));
    return;
  }
  let head: DoorRequest | undefined;
  let body: Buffer = Buffer.alloc(0);
  let problem: unknown;
  let { access } = deps;
  const judge = judgeOnce();
  const lookup = {
    kinds: ["model_api_key" as const],
    urls: deps.upstreams.map(({ destination }) => destination.url),
    mcpServerName: "",
  };
  try {
    head = readHead(request, deps.hosts);
    const tokenHash = hashSessionToken(head.token);
    // A harness brings a request here before it may send it, and its end only then.
    if (tokenHash) access = lookEarly(access, { ...lookup, tokenHash });
    body = await readBody(request, judge);
  } catch (error) {
    // It was given up before it was one: nothing was asked, and nobody waits.
    if (request.errored) return;
    // Denied all the same by the one who writes the decision, so that the log has it.
    problem = error;
  }
  // While the database is asked about the token: to parse a long conversation takes as long.
  if (!problem) setImmediate(judge, body);
  let upstream: ModelUpstream | undefined;
  let passage: Passage;
  try {
    const passageDeps = { ...deps, access };
    passage = await openPassage(passageDeps, {
      token: head ? head.token : bearerOf(request),
      caller: peer.uri,
      callerCert: peer.certSha256 ?? "",
      operation: "model",
      target: `${request.method} ${(request.url ?? "").split("?")[0]}`,
      lookup,
      choose: (access, ask) => {
        if (problem) throw problem;
        const verdict = judge(body);
        if ("error" in verdict) throw verdict.error;
        ask({ door: "models", model: verdict.asked.model });
        const chosen = chooseModel(access, verdict.asked.model, deps.upstreams);
        upstream = chosen.upstream;
        return { destination: chosen.upstream.destination, credential: chosen.credential };
      },
      sendNow: ({ destination, secret }) => {
        const address = secret && deps.resolve.known(destination);
        return address && { address, requestBytes: body.length };
      },
    });
  } catch (error) {
    refuse(request, response, error);
    return;
  }
  crashPoint("model.asked");
  watched.note({ session_id: passage.access.sessionId, proxy_request_id: passage.requestId });
  await forward(deps, {
    passage,
    head: head as DoorRequest,
    body,
    upstream: upstream as ModelUpstream,
    response,
  });
}

interface Forwarded {
  passage: Passage;
  head: DoorRequest;
  body: Buffer;
  upstream: ModelUpstream;
  response: ServerResponse;
}

async function forward(
  deps: ModelDoorDeps,
  { passage, head, body, upstream, response }: Forwarded,
): Promise<void> {
  const { access, credential, dispatched, requestId } = passage;
  const abort = new AbortController();
  const unregister = deps.live.add({
    sessionId: access.sessionId,
    epoch: access.epoch,
    endsWith: "epoch",
    cut: (reason) => abort.abort(proxyError(reason)),
  });
  const onClose = () => abort.abort(new UpstreamFailure("cancelled"));
  response.once("close", onClose);
  // It may have gone while the decision was written, and nobody is told of that twice.
  if (response.destroyed) onClose();
  try {
    const [secret, address] = await secretAndAddress(passage, () => deps.resolve(upstream.destination));
    if (!secret || !credential) throw proxyError("CRED_MISSING");
    if (!dispatched) await passage.dispatch({ address, requestBytes: body.length });
    abort.signal.throwIfAborted();
    const poolKey = `model ${credential.credentialId} ${credential.version}`;
    const base = new URL(upstream.destination.url).pathname.replace(/\/$/, "");
    crashPoint("model.send");
    const asked = exchange(deps.pools.get(upstream.destination, address, poolKey, KEEP_ALIVE_MS), {
      path: base + head.path,
      method: "POST",
      headers: { ...head.headers, "x-api-key": secret.value },
      body,
      signal: abort.signal,
      met: passage.met,
    });
    // Behind the request, which does not wait for it.
    passage.traffic.sent(body);
    passage.traffic.sentAll();
    const answer = await asked;
    passage.traffic.answered();
    crashPoint("model.receive");
    const marks = { "ganglion-model-upstream": upstream.name, "ganglion-request-id": requestId };
    await releaseAnswer({ answer, response, passage, secret: secret.value, marks, signal: abort.signal });
  } catch (error) {
    const { told, ending } = explainFailure(error, abort.signal);
    await passage.finish({ reason: ending });
    if (response.headersSent) response.destroy();
    else sendError(response, told);
  } finally {
    response.off("close", onClose);
    unregister();
  }
}

function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  // What is left of a body that nobody wants is not read; the connection goes with it.
  if (!request.complete) response.setHeader("connection", "close");
  sendError(response, error);
}
