import { asObject, invalid } from "./refuse.ts";

/** metadataFromJson reads the metadata of something new; absent and null are empty. */
export function metadataFromJson(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {};
  const metadata = asObject(value, "metadata");
  for (const [key, text] of Object.entries(metadata)) {
    if (typeof text !== "string") throw invalid(`metadata.${key}`, "must be a string");
  }
  return metadata as Record<string, string>;
}

/** metadataChangeFromJson reads a change of metadata: text sets a key, null removes it, what is not named stays. */
export function metadataChangeFromJson(value: unknown): {
  metadataSet: Record<string, string>;
  metadataRemove: string[];
} {
  const metadataSet: Record<string, string> = {};
  const metadataRemove: string[] = [];
  const metadata = value === undefined || value === null ? {} : asObject(value, "metadata");
  for (const [key, text] of Object.entries(metadata)) {
    if (text === null) metadataRemove.push(key);
    else if (typeof text === "string") metadataSet[key] = text;
    else throw invalid(`metadata.${key}`, "must be a string or null");
  }
  return { metadataSet, metadataRemove };
}
