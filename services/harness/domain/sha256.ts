import { createHash } from "node:crypto";

/** SHA-256 as 32 bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

/** SHA-256 as 64 hexadecimal digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return sha256(data).toString("hex");
}
