import { invalidField } from "../domain/errors.ts";

/** Where the next page begins: the sort key of the last row of the page before. */
export interface PageKey {
  /** The database's text of the time, with microseconds. */
  readonly at: string;
  readonly id: string;
}

const AT = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/;

/**
 * writePageToken makes an opaque token. It names the list and its order, so that one list's token is refused by
 * another; it grants nothing: the workspace limit is applied to every page anew. [A140, B056]
 */
export function writePageToken(list: string, key: PageKey): string {
  return Buffer.from(JSON.stringify([list, key.at, key.id])).toString("base64url");
}

/** readPageToken reads a token of that list; an empty one is the first page. */
export function readPageToken(list: string, token: string): PageKey | null {
  if (token === "") return null;
  try {
    const [of, at, id] = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (of === list && typeof at === "string" && AT.test(at) && typeof id === "string" && id.length <= 80) {
      return { at, id };
    }
  } catch {
    // Falls through: whatever it was, it is not one of ours.
  }
  throw invalidField("page_token", "is not a token of this list and order");
}
