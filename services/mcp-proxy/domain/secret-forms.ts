/**
 * The byte runs that give a secret away: raw, UTF-16LE, hex, percent-encoded, JSON-escaped, and base64 and base64url
 * at each of the three offsets at which it can stand inside something that is encoded (`user:secret` of Basic among
 * them). Of base64 only the characters that depend on nothing but the secret are kept.
 */
export function needlesOf(secret: string): Buffer[] {
  const raw = Buffer.from(secret, "utf8");
  const hex = raw.toString("hex");
  const percent = encodeURIComponent(secret);
  const allPercent = hex.replace(/../g, "%$&");
  const json = JSON.stringify(secret).slice(1, -1);
  const texts = new Set([
    secret,
    hex,
    hex.toUpperCase(),
    percent,
    percent.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    allPercent,
    allPercent.toUpperCase(),
    json,
    json.replaceAll("/", "\\/"),
    ...base64Forms(raw),
  ]);
  const utf16 = Buffer.from(secret, "utf16le");
  return [...[...texts].map((text) => Buffer.from(text, "utf8")), utf16].filter(
    (needle) => needle.length > 0,
  );
}

function base64Forms(raw: Buffer): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), raw]).toString("base64");
    // Characters that also hold bits of what stands before or after are left out.
    const from = offset === 0 ? 0 : offset + 1;
    const bits = (offset + raw.length) * 8;
    const own = text.slice(from, Math.floor(bits / 6));
    return [own, own.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
