import { GanglionError } from "../errors/ganglion-error.ts";
import type { MethodDefinition } from "./handlers.ts";

/** Largest message either way. Larger payloads are chunked or paged by the contract. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** A request that could not be decoded. It reaches the wrapper, which answers properly; grpc-js would say INTERNAL. */
class Undecodable {
  readonly cause: unknown;
  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** Decoder given to grpc-js: never throws. */
export function safeDecoder(method: MethodDefinition<unknown, unknown>): (bytes: Buffer) => unknown {
  return (bytes) => {
    try {
      return method.requestDeserialize(bytes);
    } catch (cause) {
      return new Undecodable(cause);
    }
  };
}

/** The decoded request, or INVALID_ARGUMENT. */
export function decoded(request: unknown): unknown {
  if (!(request instanceof Undecodable)) return request;
  throw new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "MALFORMED_REQUEST",
    message: "the request is not a valid message of its type",
    cause: request.cause,
  });
}

/** Encodes a response within the limit. [M07] */
export function encodeResponse(method: MethodDefinition<unknown, unknown>, response: unknown): Buffer {
  const bytes = method.responseSerialize(response);
  if (bytes.length > MAX_MESSAGE_BYTES) {
    throw new GanglionError({
      code: "RESOURCE_EXHAUSTED",
      reason: "RESPONSE_TOO_LARGE",
      message: `the response is larger than ${MAX_MESSAGE_BYTES} bytes`,
      metadata: { limit_bytes: String(MAX_MESSAGE_BYTES), size_bytes: String(bytes.length) },
    });
  }
  return bytes;
}
