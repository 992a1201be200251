import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { GanglionError } from "../../../common/errors/ganglion-error.ts";
import { proxyError, reasonOf } from "../../domain/proxy-error.ts";
import { leaving } from "../../domain/traffic.ts";
import type { UpstreamPools } from "../../upstream/pools.ts";
import { UpstreamFailure } from "../../upstream/upstream-failure.ts";
import { counted } from "../counted.ts";
import { explainToHand } from "../explain-to-hand.ts";
import type { HandConnection } from "../hand-connection.ts";
import { createHandWriter } from "../hand-writer.ts";
import { readableBody } from "../readable-body.ts";
import { refuseRequest } from "../refuse-hand.ts";
import { sendOutward } from "../send-outward.ts";
import { cleanGitAnswer } from "./clean-git-answer.ts";
import { bounded, headersOf, judgeAnswer, judgeHeaders } from "./git-exchange.ts";
import { type GitRules, type GitWay, openGit, type ReadGit } from "./open-git.ts";
import { type GitTarget, readGitTarget } from "./read-git-target.ts";
import { type PushCommands, readCommands } from "./receive-commands.ts";
import { refusePush } from "./refuse-push.ts";

/** What the git door needs. */
export interface GitDoorDeps extends GitRules {
  pools: UpstreamPools;
}

/** A request below /git/. */
export interface GitRequest {
  request: IncomingMessage;
  response: ServerResponse;
  connection: HandConnection;
}

const NOWHERE: GitTarget = { service: "git-upload-pack", isAdvertisement: true, host: "invalid", path: "" };
const MAX_ANSWER_BYTES = 16 * 2 ** 30;
/** What a fetch may ask: names of what it wants and has. */
const MAX_ASKED_BYTES = 64 << 20;
const MAX_PUSHED_BYTES = 4 * 2 ** 30;

/** Judges one request of git's smart HTTP and passes it on with the repository's credential. */
export async function passGit(deps: GitDoorDeps, asked: GitRequest): Promise<void> {
  const { request, response, connection } = asked;
  const { signal, end } = connection.begin(response);
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
    const { told, ending } = explainToHand(error, signal);
    await way?.passage.finish({ reason: ending }).catch(() => {});
    if (commands && reasonOf(told) === "REF_NOT_ALLOWED") {
      const { metadata } = told as GanglionError;
      await refusePush(response, commands, new Set(metadata.refs?.split(" ")));
    } else refuseRequest(response, told);
  } finally {
    end();
  }
}

async function passOn(
  deps: GitDoorDeps,
  { passage, route, lookUp }: GitWay,
  { request, response }: GitRequest,
  { target, commands, signal }: ReadGit & { signal: AbortSignal },
): Promise<void> {
  const { destination, credential } = route;
  const secret = await passage.secret();
  const address = lookUp.address();
  const stated = Number(request.headers["content-length"] ?? 0);
  const most = commands ? MAX_PUSHED_BYTES : MAX_ASKED_BYTES;
  if (stated > most) throw proxyError("MESSAGE_TOO_LARGE");
  signal.throwIfAborted();
  await passage.dispatch({ address, requestBytes: stated });
  signal.throwIfAborted();
  const { pathname } = new URL(destination.url);
  const query = target.isAdvertisement ? `/info/refs?service=${target.service}` : `/${target.service}`;
  const key = `git ${passage.access.sessionId} ${credential?.credentialId}.${secret?.version}`;
  const answer = await sendOutward(deps.pools.get(destination, address, key), {
    path: pathname + query,
    method: target.isAdvertisement ? "GET" : "POST",
    headers: headersOf(request, target, secret?.value),
    body: target.isAdvertisement
      ? null
      : Readable.from(leaving(bounded(request, commands, most), passage.traffic)),
    signal,
    met: passage.met,
  });
  passage.traffic.answered();
  const kind = target.isAdvertisement ? "advertisement" : "result";
  const contentType = `application/x-${target.service}-${kind}`;
  judgeAnswer(answer, contentType);
  const counters = { status: answer.status, responseBytes: 0, redactions: 0 };
  const secrets = secret ? [{ value: secret.value, label: credential?.credentialId ?? "" }] : [];
  const form = target.isAdvertisement ? "advertisement" : commands ? "receive-pack" : "upload-pack";
  const body = counted(
    readableBody(answer, { isSearched: true, signal }),
    counters,
    passage.traffic,
    MAX_ANSWER_BYTES,
  );
  const clean = cleanGitAnswer(body, form, secrets, counters);
  response.writeHead(200, { "content-type": contentType, "cache-control": "no-cache" });
  const writer = createHandWriter(response, { isCounted: false, signal });
  try {
    for await (const bytes of clean) {
      signal.throwIfAborted();
      await writer.write(bytes);
    }
  } finally {
    answer.body.destroy();
  }
  await passage.finish({ reason: "ok", ...counters, isReleased: true });
  writer.end();
}
