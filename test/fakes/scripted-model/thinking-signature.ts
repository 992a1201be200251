import { createHash } from "node:crypto";

/** thinkingSignature signs a thinking block the way the stand-in can check again: it proves that the text is unchanged. */
export function thinkingSignature(thinking: string): string {
  return createHash("sha256").update(`scripted thinking\n${thinking}`).digest("base64");
}
