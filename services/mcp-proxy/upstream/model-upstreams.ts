import { parseDestination } from "../domain/canonical-url.ts";
import type { ModelUpstream } from "../domain/choose-model.ts";

/** Reads the configured base URLs of model APIs, the preferred one first. */
export function modelUpstreams(
  urls: readonly (readonly [name: ModelUpstream["name"], url: string | undefined])[],
): ModelUpstream[] {
  return urls.flatMap(([name, text]) => {
    if (text === undefined) return [];
    const destination = parseDestination(text);
    if (!destination) throw new Error(`the ${name} model's URL is not in plain form`);
    return [{ name, destination }];
  });
}
