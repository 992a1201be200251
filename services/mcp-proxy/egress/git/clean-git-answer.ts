import { proxyError } from "../../domain/proxy-error.ts";
import { type Redacted, redactorsFor } from "../../domain/redact-all.ts";
import type { Redactor } from "../../domain/redactor.ts";
import { UpstreamFailure } from "../../upstream/upstream-failure.ts";
import { createPktReader, type Pkt, writePkts } from "./pkt-line.ts";

/** Which answer of a git server it is. */
export type GitAnswerKind = "advertisement" | "upload-pack" | "receive-pack";

const PACK_BAND = 1;
const QUESTION_MARK = 0x3f;

/**
 * Passes on a git server's answer while it comes, without the credential, and with nothing in its texts that a terminal
 * would act upon (case A077): git prints what comes over the side bands as it is. A pack that holds the credential
 * cannot be mended and is cut. Anything that is not in git's format is refused.
 */
export async function* cleanGitAnswer(
  body: AsyncIterable<Buffer>,
  kind: GitAnswerKind,
  secrets: readonly Redacted[],
  count: { redactions: number },
): AsyncGenerator<Buffer> {
  const reader = createPktReader();
  const newRedactor = redactorsFor(secrets);
  const bands = new Map<number, Redactor>();
  const bandOf = (band: number) => {
    const known = bands.get(band) ?? newRedactor();
    bands.set(band, known);
    return known;
  };
  const total = () => [...bands.values()].reduce((sum, { count: found }) => sum + found, 0);
  let lines = 0;

  const passBand = (band: number, bytes: Buffer): Buffer[] => {
    if (bytes.length === 0) return [];
    return [writePkts(band === PACK_BAND && kind === "upload-pack" ? bytes : withoutControls(bytes), band)];
  };
  const flushBands = (): Buffer[] => [...bands].flatMap(([band, one]) => passBand(band, one.flush()));
  const pass = (pkt: Pkt): Buffer[] => {
    if (pkt.kind === "pack") {
      const bytes = bandOf(0).push(pkt.rest);
      return bytes.length === 0 ? [] : [bytes];
    }
    if (pkt.kind === "mark") return [...flushBands(), pkt.raw];
    const band = pkt.payload[0] ?? 0;
    if (kind !== "advertisement" && band >= 1 && band <= 3) {
      const bytes = bandOf(band).push(pkt.payload.subarray(1));
      if (band === PACK_BAND && bandOf(band).count > 0) throw proxyError("RESPONSE_WITHHELD");
      return passBand(band, bytes);
    }
    const one = newRedactor();
    const text = Buffer.concat([one.push(pkt.payload), one.flush()]);
    lines += one.count;
    return [writePkts(withoutControls(text))];
  };

  for await (const chunk of body) {
    const pkts = reader.push(chunk);
    if (!pkts) throw new UpstreamFailure("malformed");
    for (const pkt of pkts) for (const bytes of pass(pkt)) yield bytes;
    count.redactions = lines + total();
    if ((bands.get(0)?.count ?? 0) > 0) throw proxyError("RESPONSE_WITHHELD");
  }
  if (reader.isMidway) throw new UpstreamFailure("malformed");
  const bare = bands.get(0)?.flush() ?? Buffer.alloc(0);
  bands.delete(0);
  for (const bytes of [bare, ...flushBands()]) if (bytes.length > 0) yield bytes;
}

/**
 * Bytes of the same number without control characters: ESC and its like, C1 controls and the marks that turn the
 * direction of writing (both in UTF-8). Line ends, tabs and the NUL of the protocol stay.
 */
function withoutControls(bytes: Buffer): Buffer {
  const clean = Buffer.from(bytes);
  for (let at = 0; at < clean.length; at += 1) {
    const byte = clean[at] as number;
    const isControl = (byte < 0x20 && ![0, 0x09, 0x0a, 0x0d].includes(byte)) || byte === 0x7f;
    const width = isControl ? 1 : widthOfHidden(clean, at);
    clean.fill(QUESTION_MARK, at, at + width);
    at += Math.max(0, width - 1);
  }
  return clean;
}

/**
 * Bytes of the C1 control or direction mark that begins here; 0 when there is none. What may be the beginning of one at the
 * end of a piece counts: the other half may come in the next.
 */
function widthOfHidden(bytes: Buffer, at: number): number {
  const [first, second, third] = [bytes[at], bytes[at + 1], bytes[at + 2]];
  if (first === 0xc2) return second === undefined ? 1 : second >= 0x80 && second <= 0x9f ? 2 : 0;
  if (first !== 0xe2) return 0;
  if (second === undefined) return 1;
  if (second !== 0x80 && second !== 0x81) return 0;
  if (third === undefined) return 2;
  // U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
  if (second === 0x81) return third >= 0xa6 && third <= 0xa9 ? 3 : 0;
  return third === 0x8e || third === 0x8f || (third >= 0xaa && third <= 0xae) ? 3 : 0;
}
