import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Seals what only mcp-proxy may read: of a row of its own, or of what a hand carries. */
export interface RowBox {
  /** Seals a text for the row, or whatever else `place` names; it opens nowhere else. */
  seal(text: string, place: readonly string[]): Buffer;
  /** Opens it; undefined when it was sealed for another place, with another key, or changed since. */
  open(sealed: Buffer, place: readonly string[]): string | undefined;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Makes the box for mcp-proxy's key (32 bytes, from Vault), which is not used itself: HKDF gives this purpose a key of
 * its own, every other purpose another. AES-256-GCM, so a row that somebody else wrote does not open (what the MACs do for rows in the clear).
 */
export function createRowBox(key: Buffer, purpose = "row-box/v1"): RowBox {
  if (key.length !== 32) throw new Error("the key must have 32 bytes");
  const own = Buffer.from(hkdfSync("sha256", key, Buffer.alloc(0), `ganglion/${purpose}`, 32));
  const bind = (place: readonly string[]) => Buffer.from(JSON.stringify(place));
  return {
    seal: (text, place) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", own, nonce).setAAD(bind(place));
      return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    },
    open: (sealed, place) => {
      if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
      const nonce = sealed.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv("aes-256-gcm", own, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(bind(place)).setAuthTag(sealed.subarray(-TAG_BYTES));
      try {
        const body = sealed.subarray(NONCE_BYTES, -TAG_BYTES);
        return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
      } catch {
        return undefined;
      }
    },
  };
}
