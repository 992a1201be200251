import type { Entity } from "../identity/entity.ts";
import type { Acl } from "../policy/acl.ts";
import type { TokenEntry } from "./token-entry.ts";

/** Caller is who sends a request: a live token, its entity and what its policies grant. */
export interface Caller {
  /** The token itself, as sent; needed only to show it back to its owner. */
  readonly token: string;
  readonly entry: TokenEntry;
  readonly entity: Entity | undefined;
  readonly policies: readonly string[];
  readonly acl: Acl;
}
