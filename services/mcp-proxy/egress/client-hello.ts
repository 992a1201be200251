/** What the first message of a TLS connection says. */
export type Hello =
  /** More bytes are needed. */
  | { kind: "partial" }
  /** Not TLS, or not a message that everybody reads the same way. */
  | { kind: "invalid" }
  | { kind: "hello"; serverName: string | undefined };

const MAX_BYTES = 65_536;
/** A greeting needs one record, or two; each piece that comes is read from the beginning. */
const MAX_RECORDS = 16;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const INVALID: Hello = { kind: "invalid" };
const PARTIAL: Hello = { kind: "partial" };

/** Reads the server's name from the first bytes of a TLS connection (RFC 8446 §4.1.2, RFC 6066 §3). */
export function readClientHello(bytes: Buffer): Hello {
  const parts: Buffer[] = [];
  let have = 0;
  let need = Number.POSITIVE_INFINITY;
  let at = 0;
  for (let record = 0; record < MAX_RECORDS; record += 1) {
    if (bytes.length > at && bytes[at] !== HANDSHAKE) return INVALID;
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return INVALID;
    if (bytes.length < at + 5) return bytes.length > MAX_BYTES ? INVALID : PARTIAL;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > 16_384) return INVALID;
    const fragment = bytes.subarray(at + 5, at + 5 + length);
    parts.push(fragment);
    have += fragment.length;
    if (at === 0 && have > 0 && fragment[0] !== CLIENT_HELLO) return INVALID;
    if (have >= 4 && need > MAX_BYTES) {
      need = 4 + Buffer.concat(parts, have).readUIntBE(1, 3);
      if (need > MAX_BYTES) return INVALID;
    }
    if (have >= need) return readBody(Buffer.concat(parts, have).subarray(4, need));
    if (fragment.length < length) return bytes.length > MAX_BYTES ? INVALID : PARTIAL;
    at += 5 + length;
  }
  return INVALID;
}

function readBody(body: Buffer): Hello {
  try {
    // Version and random, then three lists with their lengths before them.
    let at = 34;
    at += 1 + body.readUInt8(at);
    at += 2 + body.readUInt16BE(at);
    at += 1 + body.readUInt8(at);
    if (at === body.length) return { kind: "hello", serverName: undefined };
    const end = at + 2 + body.readUInt16BE(at);
    if (end !== body.length) return INVALID;
    at += 2;
    let serverName: string | undefined;
    while (at < end) {
      const type = body.readUInt16BE(at);
      const length = body.readUInt16BE(at + 2);
      const extension = body.subarray(at + 4, at + 4 + length);
      if (extension.length !== length) return INVALID;
      if (type === SERVER_NAME) {
        const name = readServerName(extension);
        if (name === undefined || serverName !== undefined) return INVALID;
        serverName = name;
      }
      at += 4 + length;
    }
    return at === end ? { kind: "hello", serverName } : INVALID;
  } catch (error) {
    if (error instanceof RangeError) return INVALID;
    throw error;
  }
}

/** The one name of type host_name in the list; two would let each reader take another. */
function readServerName(extension: Buffer): string | undefined {
  const length = extension.readUInt16BE(0);
  if (length !== extension.length - 2 || extension.readUInt8(2) !== 0) return undefined;
  const nameLength = extension.readUInt16BE(3);
  if (nameLength !== length - 3 || nameLength === 0) return undefined;
  return extension.toString("latin1", 5).toLowerCase();
}
