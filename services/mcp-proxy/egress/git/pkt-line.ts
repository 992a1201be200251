/** Longest pkt-line, its length of four bytes included (gitprotocol-common). */
export const MAX_PKT_BYTES = 65_520;

/** One piece of git's wire format. */
export type Pkt =
  | { kind: "data"; payload: Buffer }
  /** 0000 flush, 0001 delimiter, 0002 end of a response. */
  | { kind: "mark"; raw: Buffer }
  /** What follows is a bare pack: the server uses no side band. */
  | { kind: "pack"; rest: Buffer };

/** Cuts a stream of bytes into pkt-lines. */
export interface PktReader {
  /** The pieces that are whole now; undefined when the bytes are no pkt-lines. */
  push(chunk: Buffer): Pkt[] | undefined;
  /** True while a piece has begun and not ended. */
  readonly isMidway: boolean;
}

/** Makes a reader. After a "pack" piece every further chunk comes as one. */
export function createPktReader(): PktReader {
  let held: Buffer = Buffer.alloc(0);
  let isPack = false;
  return {
    push: (chunk) => {
      if (isPack) return [{ kind: "pack", rest: chunk }];
      const pkts: Pkt[] = [];
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      let at = 0;
      while (bytes.length - at >= 4) {
        const text = bytes.toString("latin1", at, at + 4);
        if (text === "PACK") {
          isPack = true;
          held = Buffer.alloc(0);
          return [...pkts, { kind: "pack", rest: bytes.subarray(at) }];
        }
        if (!/^[0-9a-f]{4}$/i.test(text)) return undefined;
        const length = Number.parseInt(text, 16);
        if (length < 3) {
          pkts.push({ kind: "mark", raw: bytes.subarray(at, at + 4) });
          at += 4;
          continue;
        }
        if (length < 4 || length > MAX_PKT_BYTES) return undefined;
        if (bytes.length - at < length) break;
        pkts.push({ kind: "data", payload: bytes.subarray(at + 4, at + length) });
        at += length;
      }
      held = at === bytes.length ? Buffer.alloc(0) : Buffer.from(bytes.subarray(at));
      return pkts;
    },
    get isMidway() {
      return held.length > 0;
    },
  };
}

/** Writes a payload as pkt-lines, as many as it needs; each begins with the band, if there is one. */
export function writePkts(payload: Buffer, band?: number): Buffer {
  const head = band === undefined ? 0 : 1;
  const most = MAX_PKT_BYTES - 4 - head;
  const parts: Buffer[] = [];
  for (let at = 0; at < payload.length || at === 0; at += most) {
    const piece = payload.subarray(at, at + most);
    parts.push(Buffer.from((piece.length + 4 + head).toString(16).padStart(4, "0")));
    if (band !== undefined) parts.push(Buffer.from([band]));
    parts.push(piece);
  }
  return Buffer.concat(parts);
}
