import type { AuditMacs, BodyMac } from "./audit-macs.ts";
import type { NewRecord, UpstreamEffect } from "./new-record.ts";

/** What is noted of a request's bodies while they pass, for its outcome; an operation of several requests has one. */
export interface Traffic {
  /** A piece of a body leaves. */
  sent(bytes: Buffer | string): void;
  /** That was all of it. */
  sentAll(): void;
  /** A credential stands in the body that leaves. */
  sentSecret(): void;
  /** The head of an answer came. */
  answered(): void;
  /** A piece of its body was read. */
  came(bytes: Buffer): void;
  /** It was read to its end. */
  cameAll(): void;
  /** A credential stands in the answer. */
  cameSecret(): void;
  /** The head of an answer came. */
  readonly isAnswered: boolean;
  /** An answer was read to its end. */
  readonly isWhole: boolean;
  /** What the outcome says of the bodies; to be asked once, when it is written. */
  macs(): Pick<NewRecord, "request_body_hmac" | "response_body_hmac">;
}

/**
 * Begins to take note. MACs are made piece by piece, and nothing is kept. A body in which a credential stood has none: the log
 * holds nothing that follows from one.
 */
export function createTraffic(macs: AuditMacs): Traffic {
  let request: BodyMac | undefined;
  let response: BodyMac | undefined;
  let isSentWhole = false;
  let isSentSecret = false;
  let isCameSecret = false;
  let isAnswered = false;
  let isWhole = false;
  return {
    sent: (bytes) => {
      if (bytes.length === 0) return;
      isSentWhole = false;
      request ??= macs.body();
      request.update(bytes);
    },
    sentAll: () => {
      isSentWhole = true;
    },
    sentSecret: () => {
      isSentSecret = true;
    },
    answered: () => {
      isAnswered = true;
    },
    came: (bytes) => {
      if (bytes.length === 0) return;
      response ??= macs.body();
      response.update(bytes);
    },
    cameAll: () => {
      isWhole = true;
    },
    cameSecret: () => {
      isCameSecret = true;
    },
    get isAnswered() {
      return isAnswered;
    },
    get isWhole() {
      return isWhole;
    },
    macs: () => {
      const made = {
        request_body_hmac: request && isSentWhole && !isSentSecret ? request.digest() : "",
        response_body_hmac: response && !isCameSecret ? response.digest() : "",
      };
      request = undefined;
      response = undefined;
      return made;
    },
  };
}

/** A body on its way out, of which note is taken. */
export async function* leaving(body: AsyncIterable<Buffer>, traffic: Traffic): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    traffic.sent(chunk);
    yield chunk;
  }
  traffic.sentAll();
}

/** What the end of a request says of its answer. */
interface TrafficEnding {
  isReleased?: boolean;
  redactions?: number;
  responseBytes?: number;
}

/** What an outcome says of the bodies, and of how far all came; `isSent` when a connection was written to. */
export function trafficColumns(
  traffic: Traffic,
  { isReleased = false, redactions, responseBytes }: TrafficEnding,
  isSent: boolean,
) {
  if (redactions) traffic.cameSecret();
  const effect: UpstreamEffect = traffic.isWhole ? "complete" : isSent ? "sent" : "none";
  const { request_body_hmac: ofRequest, response_body_hmac: ofAnswer } = traffic.macs();
  return {
    request_body_hmac: effect === "none" ? "" : ofRequest,
    // Where its bytes are not counted, it was not searched for the credential to where it came.
    response_body_hmac: responseBytes ? ofAnswer : "",
    response_withheld: traffic.isAnswered && !isReleased,
    upstream_effect: effect,
  };
}
