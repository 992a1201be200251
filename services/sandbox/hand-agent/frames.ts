/** Largest frame either side accepts; a longer one is a protocol error, never an allocation. */
export const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** encodeFrame renders one message as a four-byte big-endian length and its JSON. */
export function encodeFrame(message: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(message), "utf8");
  if (body.length > MAX_FRAME_BYTES) throw new RangeError(`frame of ${body.length} bytes is too large`);
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

/** FrameReader cuts a byte stream into messages. It throws on a frame that is too long or is not JSON. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;

  /** push takes the next bytes and returns the messages they complete. */
  push(chunk: Buffer): unknown[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: unknown[] = [];
    for (;;) {
      if (this.#length < 4) return messages;
      const size = this.#peekSize();
      if (size > MAX_FRAME_BYTES) throw new RangeError(`frame of ${size} bytes is too large`);
      if (this.#length < 4 + size) return messages;
      const buffer = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#length);
      messages.push(JSON.parse(buffer.toString("utf8", 4, 4 + size)));
      const rest = buffer.subarray(4 + size);
      this.#chunks = rest.length > 0 ? [rest] : [];
      this.#length = rest.length;
    }
  }

  #peekSize(): number {
    if (this.#chunks[0]!.length < 4) this.#chunks = [Buffer.concat(this.#chunks, this.#length)];
    return this.#chunks[0]!.readUInt32BE(0);
  }
}
