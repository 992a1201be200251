import { hasDuplicateKeys } from "../domain/duplicate-keys.ts";
import { isMintedToken, OAUTH_FIELDS } from "../domain/minted-token.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { RequestTokens } from "../domain/request-tokens.ts";
import { parseKeepingNumbers } from "../upstream/json-numbers.ts";

/** An answer that is a new credential has no more bytes. */
const MAX_BYTES = 65_536;

/**
 * Reads the answer of a route whose answers are new credentials, and puts a sealed token in the place of each (case A066).
 * Throws for what cannot be read as a whole, has something else than a text in a field that is one, or holds another new
 * credential beside them.
 */
export async function sealAnswer(body: AsyncIterable<Buffer>, tokens: RequestTokens): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_BYTES) throw proxyError("RESPONSE_WITHHELD");
    chunks.push(chunk);
  }
  const json = Buffer.concat(chunks);
  const { fields, elsewhere } = tokens.minting;
  const parsed = parse(json);
  const rest = JSON.stringify(parsed, (key, value) => (fields.includes(key) ? undefined : value));
  // Here they are looked for at any depth: where one is made there may be another.
  if (isMintedToken(Buffer.from(rest), [...elsewhere, ...OAUTH_FIELDS]))
    throw proxyError("RESPONSE_WITHHELD");
  const sealed = JSON.stringify(parsed, (key, value) => {
    if (!fields.includes(key)) return value;
    if (typeof value !== "string") throw proxyError("RESPONSE_WITHHELD");
    return tokens.seal(value, key);
  });
  return Buffer.from(sealed);
}

function parse(json: Buffer): object {
  try {
    const value = parseKeepingNumbers(new TextDecoder("utf-8", { fatal: true }).decode(json));
    if (
      typeof value === "object" &&
      value !== null &&
      !hasDuplicateKeys(json, JSON.parse(json.toString("utf8")))
    )
      return value;
  } catch {
    // Withheld like everything that is no JSON.
  }
  throw proxyError("RESPONSE_WITHHELD");
}
