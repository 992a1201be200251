import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { GanglionError } from "../errors/ganglion-error.ts";
import type { MethodDefinition } from "./handlers.ts";

/** Largest message either way. Larger payloads are chunked or paged by the contract. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

// A writer's buffer is not kept when a message made it larger than this.
const KEPT_BYTES = 1024 * 1024;

/** A generated message, for example EmitEventsRequest. */
export interface EncodedMessage {
  encode(message: never, writer: BinaryWriter): BinaryWriter;
}

// One for all messages: it keeps its buffer, and a new one grows by copying.
let writer = new BinaryWriter();

/** Encodes a message as its method's generated serializer does, with less copying. */
export function encodeMessage(type: EncodedMessage, message: unknown): Buffer {
  const own = writer;
  // Whatever becomes of this message, the next one does not begin with a part of it.
  writer = new BinaryWriter();
  const bytes = type.encode(message as never, own).finish();
  if (bytes.length <= KEPT_BYTES) writer = own;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/**
 * A request on its way from the transport to its handler. The transport keeps what it was given to the end of the call;
 * the handler may be done with the request long before.
 */
class Received {
  #request: unknown;
  constructor(request: unknown) {
    this.#request = request;
  }
  take(): unknown {
    const request = this.#request;
    this.#request = undefined;
    return request;
  }
}

/** A request that could not be decoded. It reaches the wrapper, which answers properly; grpc-js would say INTERNAL. */
class Undecodable {
  readonly cause: unknown;
  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** Decoder given to grpc-js: never throws. What it gives is for takeRequest. */
export function safeDecoder(method: MethodDefinition<unknown, unknown>): (bytes: Buffer) => unknown {
  return (bytes) => {
    try {
      return new Received(method.requestDeserialize(bytes));
    } catch (cause) {
      return new Undecodable(cause);
    }
  };
}

/** Takes the decoded request from what came, which is empty afterwards, or throws INVALID_ARGUMENT. */
export function takeRequest(came: unknown): unknown {
  if (came instanceof Received) return came.take();
  throw new GanglionError({
    code: "INVALID_ARGUMENT",
    reason: "MALFORMED_REQUEST",
    message: "the request is not a valid message of its type",
    cause: came instanceof Undecodable ? came.cause : undefined,
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
