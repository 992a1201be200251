import type { IncomingMessage, ServerResponse } from "node:http";
import type { Destination } from "../domain/canonical-url.ts";
import type { Secret } from "../domain/ports.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { UpstreamPools } from "../upstream/pools.ts";
import { explainToHand } from "./explain-to-hand.ts";
import type { HandConnection } from "./hand-connection.ts";
import { type Egress, type EgressRules, openEgress } from "./open-egress.ts";
import { outwardBody, outwardHeaders } from "./outward-request.ts";
import { refuseRequest } from "./refuse-hand.ts";
import { releaseToHand } from "./release-to-hand.ts";
import { sendOutward } from "./send-outward.ts";

/** What passing a request on needs. */
export interface PassDeps extends EgressRules {
  pools: UpstreamPools;
}

/** One request of a hand. */
export interface HandRequest {
  request: IncomingMessage;
  response: ServerResponse;
  connection: HandConnection;
  destination: Destination;
  /** Path and query as they are sent. */
  path: string;
  problem?: unknown;
}

/** Judges one request of a hand, passes it on with its placeholders replaced, and its answer back without the secrets. */
export async function passRequest(deps: PassDeps, asked: HandRequest): Promise<void> {
  const { request, response, connection, destination, path } = asked;
  const { signal, end } = connection.begin(response);
  let egress: Egress | undefined;
  try {
    egress = await openEgress(deps, {
      connection,
      target: `${request.method} ${destination.origin}${path.split("?")[0]}`,
      destination,
      problem: asked.problem,
      rawHeaders: request.rawHeaders,
      route: { method: request.method ?? "", path },
    });
    await passOn(deps.pools, asked, egress, signal);
  } catch (error) {
    const { told, ending } = explainToHand(error, signal);
    // Without its outcome the request is closed by a recovery record; the hand hears of its own failure.
    await egress?.finish({ reason: ending }).catch(() => {});
    refuseRequest(response, told);
  } finally {
    end();
  }
}

async function passOn(pools: UpstreamPools, asked: HandRequest, egress: Egress, signal: AbortSignal) {
  const { request, response, destination, path } = asked;
  const { passages, variables, tokens } = egress;
  if (!tokens) throw new Error("a request was opened as a way");
  const secrets = await readSecrets(egress);
  const address = egress.lookUp.address();
  const sent = variables.map((variable, i) => ({ ...variable, value: secrets[i]?.value ?? "" }));
  const headers = outwardHeaders(request, sent, tokens);
  const body = await outwardBody(request, sent, tokens, egress.traffic);
  signal.throwIfAborted();
  const { detail } = tokens;
  const dispatched = { address, requestBytes: body.length ?? 0, detail };
  await Promise.all(passages.map((passage) => passage.dispatch(dispatched)));
  signal.throwIfAborted();
  // Connections are shared within a session and a set of secrets only (case A029).
  const versions = secrets.map(({ version }, i) => `${variables[i]?.credential.credentialId}.${version}`);
  const labels = tokens.known.map(({ label }) => label).sort();
  const key = `egress ${passages[0]?.access.sessionId} ${[...versions, ...labels].join(" ")}`;
  const answer = await sendOutward(pools.get(destination, address, key), {
    path,
    method: request.method ?? "GET",
    headers: [...headers, ...body.headers],
    body: body.content,
    signal,
    met: egress.met,
  });
  egress.traffic.answered();
  tokens.close();
  const redacted = sent.map(({ credential, value }) => ({ value, label: credential.credentialId }));
  const { traffic, finish } = egress;
  await releaseToHand({ answer, response, secrets: redacted, tokens, signal, traffic, finish });
}

async function readSecrets({ passages, variables }: Egress): Promise<Secret[]> {
  if (variables.length === 0) return [];
  const secrets = await Promise.all(passages.map((passage) => passage.secret()));
  return secrets.map((secret) => {
    if (!secret) throw proxyError("CRED_MISSING");
    return secret;
  });
}
