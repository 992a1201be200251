/** A secret to look for, in every form in which it might lie about. */
export interface Needle {
  readonly name: string;
  /** Its random part: a fixed prefix is no secret and stands in many places. */
  readonly secret: string;
}

/** Characters of the secret in a piece that is looked for: enough to be no accident, few enough to find a part. */
export const WINDOW_CHARS = 12;

/** Where a piece comes from. */
export interface Piece {
  readonly needle: string;
  readonly form: string;
}

/**
 * The forms of a secret: as it is, as V8 and Java keep wide strings, and as headers, logs and dumps
 * encode it. Base64 depends on where in a group of three the secret begins, hence three of them with
 * the characters cut off that the neighbours decide.
 */
function formsOf(secret: string): { form: string; bytes: Buffer; bytesPerChar: number }[] {
  const raw = Buffer.from(secret, "utf8");
  const hex = raw.toString("hex");
  const forms = [
    { form: "raw", bytes: raw, bytesPerChar: 1 },
    { form: "utf-16", bytes: Buffer.from(secret, "utf16le"), bytesPerChar: 2 },
    { form: "hex", bytes: Buffer.from(hex), bytesPerChar: 2 },
    { form: "hex upper case", bytes: Buffer.from(hex.toUpperCase()), bytesPerChar: 2 },
  ];
  for (const offset of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(offset), raw]);
    const whole = shifted.subarray(0, shifted.length - (shifted.length % 3)).toString("base64");
    const known = whole.slice(Math.ceil((offset * 4) / 3));
    const url = known.replaceAll("+", "-").replaceAll("/", "_");
    forms.push({ form: `base64+${offset}`, bytes: Buffer.from(known), bytesPerChar: 4 / 3 });
    forms.push({ form: `base64url+${offset}`, bytes: Buffer.from(url), bytesPerChar: 4 / 3 });
  }
  return forms;
}

/** Every window of every form, by its first four bytes. */
export class NeedleIndex {
  readonly #first = new Uint8Array(1 << 16);
  readonly #windows = new Map<number, { bytes: Buffer; piece: Piece }[]>();

  constructor(needles: readonly Needle[]) {
    for (const { name, secret } of needles) {
      if (Buffer.byteLength(secret) < 2 * WINDOW_CHARS)
        throw new Error(`${name} is too short to be told from noise`);
      for (const { form, bytes, bytesPerChar } of formsOf(secret)) {
        const length = Math.ceil(WINDOW_CHARS * bytesPerChar);
        for (let at = 0; at + length <= bytes.length; at++) {
          this.#add(bytes.subarray(at, at + length), { needle: name, form });
        }
      }
    }
  }

  #add(bytes: Buffer, piece: Piece): void {
    this.#first[bytes.readUInt16LE(0)] = 1;
    const key = bytes.readUInt32LE(0);
    const same = this.#windows.get(key) ?? [];
    if (!same.some((window) => window.bytes.equals(bytes))) same.push({ bytes, piece });
    this.#windows.set(key, same);
  }

  /**
   * The first piece of each secret in `haystack`, and where. Looks at every fourth byte: since windows
   * at all offsets are known, any run of 15 characters in a form is found.
   */
  find(haystack: Buffer): { piece: Piece; at: number }[] {
    const first = this.#first;
    const found = new Map<string, { piece: Piece; at: number }>();
    const end = haystack.length - WINDOW_CHARS;
    for (let at = 0; at <= end; at += 4) {
      if (first[(haystack[at] as number) | ((haystack[at + 1] as number) << 8)] !== 1) continue;
      for (const { bytes, piece } of this.#windows.get(haystack.readUInt32LE(at)) ?? []) {
        if (found.has(piece.needle) || !haystack.subarray(at, at + bytes.length).equals(bytes)) continue;
        found.set(piece.needle, { piece, at });
      }
    }
    return [...found.values()];
  }
}
