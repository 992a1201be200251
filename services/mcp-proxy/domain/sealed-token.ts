import { createHash } from "node:crypto";
import { isStorable } from "../../common/seal/secret-form.ts";
import { createRowBox } from "./row-box.ts";

/** What every sealed token begins with; base64url follows. */
export const SEALED_PREFIX = "ganglion_sealed_";
/** The longest token that is sealed; what becomes of it still fits into a header of a hand's request. */
const MAX_TOKEN_CHARS = 16_384;

/** A token that an upstream made, and by what right a hand may use it. */
export interface MintedToken {
  value: string;
  /** The route that made it, and the field of its answer; the policy is asked about them again whenever it is used. */
  method: string;
  path: string;
  field: string;
  /** The credentials that could go into the request that made it: it lives no longer than they. */
  credentialIds: readonly string[];
}

/** Where a token was made, and the only place where it may be used. */
export interface SealedPlace {
  sessionId: string;
  /** Scheme, host and port. */
  origin: string;
}

/** Seals tokens for hands to carry. Nothing is stored: all that is needed is in the seal and in a key of all replicas. */
export interface TokenSeal {
  /** The text that a hand gets instead; undefined for what could not be sent later. */
  seal(token: MintedToken, place: SealedPlace): string | undefined;
  /** The token; undefined when it was sealed for another session or origin, with another key, or changed since. */
  open(sealed: string, place: SealedPlace): MintedToken | undefined;
}

/** Makes the seal for mcp-proxy's key (32 bytes, from Vault); AES-256-GCM under a key for this purpose alone. */
export function createTokenSeal(key: Buffer): TokenSeal {
  const box = createRowBox(key, "minted-token/v1");
  const bind = ({ sessionId, origin }: SealedPlace) => [sessionId, origin];
  return {
    seal: ({ value, method, path, field, credentialIds }, place) => {
      if (!isStorable(value) || value.length > MAX_TOKEN_CHARS) return undefined;
      const sealed = box.seal(JSON.stringify({ value, method, path, field, credentialIds }), bind(place));
      return SEALED_PREFIX + sealed.toString("base64url");
    },
    open: (text, place) => {
      const coded = text.slice(SEALED_PREFIX.length);
      const sealed = Buffer.from(coded, "base64url");
      // One text for one seal: the same bytes can be written in more ways than one.
      if (!text.startsWith(SEALED_PREFIX) || sealed.toString("base64url") !== coded) return undefined;
      const opened = box.open(sealed, bind(place));
      return opened === undefined ? undefined : (JSON.parse(opened) as MintedToken);
    },
  };
}

/** The name of a sealed token in records and marks: of what the hand carries, so it says nothing about the token. */
export function sealedName(sealed: string): string {
  return `mint_${createHash("sha256").update(sealed).digest("hex").slice(0, 16)}`;
}
