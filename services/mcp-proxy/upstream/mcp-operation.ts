import { AsyncLocalStorage } from "node:async_hooks";
import type { Dispatcher } from "undici";
import type { MeetPeer } from "../domain/peer-facts.ts";
import { createRedactor } from "../domain/redactor.ts";
import type { Traffic } from "../domain/traffic.ts";
import type { UpstreamFailure } from "./upstream-failure.ts";

/**
 * One dispatched operation on an MCP server. Everything that the SDK sends on its behalf runs inside it; outside of
 * one nothing can be sent at all, because only the operation has the credential (law L6).
 */
export interface McpOperation {
  dispatcher: Dispatcher;
  /** Told over which connection each of its requests goes. */
  met: MeetPeer;
  /** Takes note of the bodies. */
  traffic: Traffic;
  secret: string | undefined;
  credentialId: string;
  /** Ends what is open when the operation is over or cancelled. */
  signal: AbortSignal;
  /** Set when nothing may be sent any more. */
  isOver: boolean;
  /** Bytes of a request have, or may have, left. */
  mayHaveSent: boolean;
  requestBytes: number;
  responseBytes: number;
  redactions: number;
  /** The newest bodies of answers as they are passed on, each in its pieces, once somebody wants them. */
  heard: Buffer[][] | undefined;
  status: number;
  /** An answer's stream ended; the SDK does not tell when what was waited for had not come in it. */
  onStreamEnd: (failure: UpstreamFailure | undefined, isResumable: boolean, step: number | undefined) => void;
  /** Rises whenever the operation goes on to something else: the end of an earlier answer matters no more. */
  step: number;
}

/** The operation that the running code belongs to. */
export const currentOperation = new AsyncLocalStorage<McpOperation>();

/** Passes bytes of an answer on, without the credential, and counts. */
export async function* release(
  operation: McpOperation,
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  const redactor = createRedactor(operation.secret, operation.credentialId);
  let size = 0;
  let counted = 0;
  // Counted at once: the answer may be complete, and its outcome written, before its stream has ended.
  const count = () => {
    operation.redactions += redactor.count - counted;
    counted = redactor.count;
  };
  for await (const chunk of body) {
    size += chunk.length;
    operation.responseBytes += chunk.length;
    operation.traffic.came(chunk);
    // Searched also where it is the last: the log has no HMAC of an answer with the credential in it.
    const out = redactor.push(chunk);
    count();
    if (size > maxBytes) throw new RangeError("answer too large");
    if (out.length > 0) yield out;
  }
  const rest = redactor.flush();
  if (rest.length > 0) yield rest;
}
