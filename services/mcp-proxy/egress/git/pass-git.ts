import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { isCredentialShaped } from "../../domain/credential-shaped.ts";
import type { DestinationPolicy, ResolvedAddress } from "../../domain/destination-policy.ts";
import { credentialUrls, type GitRoute, judgeGit } from "../../domain/judge-git.ts";
import { endingOf, openPassage, type Passage, type PassageDeps } from "../../domain/passage.ts";
import { proxyError, reasonOf } from "../../domain/proxy-error.ts";
import type { UpstreamPools } from "../../upstream/pools.ts";
import type { Resolver } from "../../upstream/resolver.ts";
import { UpstreamFailure } from "../../upstream/upstream-failure.ts";
import type { HandConnection } from "../hand-connection.ts";
import { readableBody } from "../readable-body.ts";
import { refuseRequest } from "../refuse-hand.ts";
import { type OutwardAnswer, sendOutward } from "../send-outward.ts";
import { cleanGitAnswer } from "./clean-git-answer.ts";
import { type GitTarget, readGitTarget } from "./read-git-target.ts";
import { type PushCommands, readCommands } from "./receive-commands.ts";
import { refusePush } from "./refuse-push.ts";

/** What the git door needs. */
export interface GitDoorDeps extends PassageDeps {
  policy: DestinationPolicy;
  resolve: Resolver;
  pools: UpstreamPools;
}

/** A request below /git/. */
export interface GitRequest {
  request: IncomingMessage;
  response: ServerResponse;
  connection: HandConnection;
}

const NOWHERE: GitTarget = { service: "git-upload-pack", isAdvertisement: true, host: "invalid", path: "" };
/** What a fetch may ask: names of what it wants and has. */
const MAX_ASKED_BYTES = 64 << 20;
const MAX_PUSHED_BYTES = 4 * 2 ** 30;
const MAX_ANSWER_BYTES = 16 * 2 ** 30;
const PROTOCOL = /^version=[0-2]$/;

/** Judges one request of git's smart HTTP and passes it on with the repository's credential. */
export async function passGit(deps: GitDoorDeps, asked: GitRequest): Promise<void> {
  const { request, response, connection } = asked;
  const { abort, end } = connection.begin();
  const { signal } = abort;
  const onClose = () => abort.abort(new UpstreamFailure("cancelled"));
  response.once("close", onClose);
  let target = NOWHERE;
  let commands: PushCommands | undefined;
  let problem: unknown;
  try {
    target = readGitTarget(request.method, request.url ?? "");
    judgeHeaders(request, target);
    if (target.service === "git-receive-pack" && !target.isAdvertisement)
      commands = await readCommands(request);
  } catch (error) {
    // Denied all the same by the one who writes the decision, so that the log has it.
    problem = reasonOf(error) ? error : new UpstreamFailure("cancelled");
  }
  let way: GitWay | undefined;
  try {
    way = await openGit(deps, asked, { target, commands, problem });
    await passOn(deps, way, asked, { target, commands, signal });
  } catch (error) {
    const known = explain(error, signal);
    const isGone = signal.aborted && signal.reason instanceof UpstreamFailure;
    await way?.passage.finish({ reason: isGone ? "cancelled" : endingOf(known) }).catch(() => {});
    if (commands && reasonOf(known) === "REF_NOT_ALLOWED") {
      const { metadata } = known as GanglionError;
      await refusePush(response, commands, new Set(metadata.refs?.split(" ")));
    } else refuseRequest(response, known);
  } finally {
    response.off("close", onClose);
    end();
  }
}

interface GitWay {
  passage: Passage;
  route: GitRoute;
  address(): ResolvedAddress;
}

interface ReadRequest {
  target: GitTarget;
  commands: PushCommands | undefined;
  problem?: unknown;
}

async function openGit(
  deps: GitDoorDeps,
  { request, connection }: GitRequest,
  { target, commands, problem }: ReadRequest,
): Promise<GitWay> {
  const operation = target.service === "git-upload-pack" ? ("fetch" as const) : ("push" as const);
  const question = { host: target.host, path: target.path, operation, refs: commands?.refs ?? [] };
  let route: GitRoute | undefined;
  let address: ResolvedAddress | undefined;
  let failure: unknown;
  const passage = await openPassage(deps, {
    token: connection.token,
    caller: connection.caller,
    audience: "hand",
    operation: "git",
    target: problem
      ? `${request.method} ${(request.url ?? "").split("?")[0]}`
      : `${operation} ${target.host}${target.path} ${question.refs.join(" ")}`.trim(),
    lookup: { kinds: ["static_bearer"], urls: credentialUrls(target), mcpServerName: "" },
    choose: async (access, ask) => {
      connection.belongTo(access.sessionId);
      if (problem) throw problem;
      route = judgeGit(question, access, deps.policy);
      ask({ door: "git", destination: route.destination, operation, refs: question.refs });
      address = await deps.resolve(route.destination).catch((error: unknown) => {
        if (reasonOf(error) !== "UPSTREAM_UNREACHABLE") throw error;
        failure = error;
        return undefined;
      });
      const { destination, credential } = route;
      return { destination, ...(credential ? { credential } : {}) };
    },
  });
  return {
    passage,
    route: route as GitRoute,
    address: () => {
      if (!address) throw failure;
      return address;
    },
  };
}

async function passOn(
  deps: GitDoorDeps,
  { passage, route, address: addressOf }: GitWay,
  { request, response }: GitRequest,
  { target, commands, signal }: ReadRequest & { signal: AbortSignal },
): Promise<void> {
  const { destination, credential } = route;
  const secret = await passage.secret();
  const address = addressOf();
  const stated = Number(request.headers["content-length"] ?? 0);
  const most = commands ? MAX_PUSHED_BYTES : MAX_ASKED_BYTES;
  if (stated > most) throw proxyError("MESSAGE_TOO_LARGE");
  signal.throwIfAborted();
  await passage.dispatch({ peerAddress: address.address, requestBytes: stated });
  signal.throwIfAborted();
  const { pathname } = new URL(destination.url);
  const query = target.isAdvertisement ? `/info/refs?service=${target.service}` : `/${target.service}`;
  const key = `git ${passage.access.sessionId} ${credential?.credentialId}.${secret?.version}`;
  const answer = await sendOutward(deps.pools.get(destination, address, key), {
    path: pathname + query,
    method: target.isAdvertisement ? "GET" : "POST",
    headers: headersOf(request, target, secret?.value),
    body: target.isAdvertisement ? null : Readable.from(bounded(request, commands, most)),
    signal,
  });
  const kind = target.isAdvertisement ? "advertisement" : "result";
  const contentType = `application/x-${target.service}-${kind}`;
  judgeAnswer(answer, contentType);
  const counters = { status: answer.status, responseBytes: 0, redactions: 0 };
  const secrets = secret ? [{ value: secret.value, label: credential?.credentialId ?? "" }] : [];
  const form = target.isAdvertisement ? "advertisement" : commands ? "receive-pack" : "upload-pack";
  const clean = cleanGitAnswer(counted(readableBody(answer, true), counters), form, secrets, counters);
  response.writeHead(200, { "content-type": contentType, "cache-control": "no-cache" });
  let last: Buffer = Buffer.alloc(0);
  try {
    for await (const bytes of clean) {
      signal.throwIfAborted();
      const before = last;
      last = bytes;
      if (before.length > 0 && !response.write(before)) await once(response, "drain", { signal });
    }
  } finally {
    answer.body.destroy();
  }
  // The end is held until the log knows of it.
  await passage.finish({ reason: "ok", ...counters });
  response.end(last);
}

/** What git sends beside the body, of which nothing can carry a credential (case A025). */
function judgeHeaders(request: IncomingMessage, { service, isAdvertisement }: GitTarget): void {
  for (const name of Object.keys(request.headersDistinct)) {
    if (!isCredentialShaped(name)) continue;
    throw proxyError("HEADER_FORBIDDEN", { metadata: { header: name.slice(0, 64) } });
  }
  if (isAdvertisement) return;
  const isType = request.headers["content-type"] === `application/x-${service}-request`;
  if (!isType) throw proxyError("INVALID_FIELD", { message: "the content-type is not the service's" });
  const coding = request.headers["content-encoding"];
  // What a push wants to change is read here, and so it must be readable.
  const isReadable = coding === undefined || (coding === "gzip" && service === "git-upload-pack");
  if (!isReadable) throw proxyError("HEADER_FORBIDDEN", { metadata: { header: "content-encoding" } });
}

function headersOf(
  request: IncomingMessage,
  { isAdvertisement, service }: GitTarget,
  token?: string,
): string[] {
  const headers = ["user-agent", "git/2 (ganglion)", "accept-encoding", "identity"];
  const { "git-protocol": protocol, "content-encoding": coding, "content-length": length } = request.headers;
  if (typeof protocol === "string" && PROTOCOL.test(protocol)) headers.push("git-protocol", protocol);
  if (token !== undefined) {
    headers.push("authorization", `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`);
  }
  if (isAdvertisement) return [...headers, "accept", "*/*"];
  headers.push(
    "content-type",
    `application/x-${service}-request`,
    "accept",
    `application/x-${service}-result`,
  );
  if (coding !== undefined) headers.push("content-encoding", coding);
  if (length !== undefined) headers.push("content-length", length);
  return headers;
}

/** A git server's answer is passed on when it is one; what else it says stays outside. */
function judgeAnswer({ status, headers, body }: OutwardAnswer, contentType: string): void {
  if (status === 200 && headers["content-type"] === contentType) return;
  body.destroy();
  if (status >= 300 && status < 400) throw proxyError("GIT_REDIRECT");
  // Not passed on as it is: git would ask its user for a password.
  if (status === 401 || status === 403) throw proxyError("UPSTREAM_UNAUTHORIZED");
  if (status === 404) throw proxyError("REPO_NOT_FOUND");
  throw proxyError("UPSTREAM_MALFORMED");
}

async function* bounded(
  request: IncomingMessage,
  commands: PushCommands | undefined,
  most: number,
): AsyncGenerator<Buffer> {
  let size = commands?.read.length ?? 0;
  if (commands) yield commands.read;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw proxyError("MESSAGE_TOO_LARGE");
    yield chunk;
  }
}

async function* counted(
  body: AsyncIterable<Buffer>,
  counters: { responseBytes: number },
): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    counters.responseBytes += chunk.length;
    if (counters.responseBytes > MAX_ANSWER_BYTES) throw new UpstreamFailure("too_large");
    yield chunk;
  }
}

function explain(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted && !(signal.reason instanceof UpstreamFailure)) return signal.reason;
  if (reasonOf(error) === "TOKEN_STALE_EPOCH") return proxyError("VAULT_UNAVAILABLE", { cause: error });
  if (!(error instanceof UpstreamFailure)) return error;
  if (error.kind === "unreachable") return proxyError("UPSTREAM_UNREACHABLE");
  if (error.kind === "timeout") return proxyError("UPSTREAM_TIMEOUT");
  if (error.kind === "too_large") return proxyError("MESSAGE_TOO_LARGE");
  return proxyError("UPSTREAM_MALFORMED");
}
