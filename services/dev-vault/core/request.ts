import { badRequest } from "./vault-error.ts";

/** What a policy grants, and what a request asks for. */
export type Operation = "create" | "read" | "update" | "delete" | "list" | "patch";

/** VaultRequest is one API call, after its HTTP form has been read. */
export interface VaultRequest {
  readonly id: string;
  readonly operation: Operation;
  /** Path below `/v1/`, decoded, never with empty or dot segments. */
  readonly path: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly token: string | undefined;
  /** Asked by X-Vault-Wrap-TTL; 0 when the answer is not to be wrapped. */
  readonly wrapTtlMs: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** AuthBlock is what a login, a token creation or a renewal hands out. */
export interface AuthBlock {
  readonly client_token: string;
  readonly accessor: string;
  readonly policies: readonly string[];
  readonly token_policies: readonly string[];
  readonly identity_policies?: readonly string[];
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly lease_duration: number;
  readonly renewable: boolean;
  readonly entity_id: string;
  readonly token_type: "service";
  readonly orphan: boolean;
  readonly mfa_requirement: null;
  readonly num_uses: number;
}

/** VaultAnswer is a handler's result; `undefined` from a handler is 204. */
export interface VaultAnswer {
  readonly status?: number;
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly auth?: AuthBlock;
  readonly warnings?: readonly string[];
  /** Some sys/ endpoints repeat their data at the top level, for old clients. */
  readonly repeatsData?: boolean;
  /** Accessor of what the answer holds, shown beside a wrapping token. */
  readonly wrappedAccessor?: string;
  /** An answer that was made before and is given again as it was (unwrapping). */
  readonly replay?: Readonly<Record<string, unknown>>;
}

/** text reads an optional string field. */
export function text(data: Readonly<Record<string, unknown>>, field: string): string {
  const value = data[field];
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  throw badRequest(`field "${field}" must be a string`);
}

/** flag reads an optional boolean field. */
export function flag(data: Readonly<Record<string, unknown>>, field: string): boolean | undefined {
  const value = data[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "boolean") return value;
  if (value === "true" || value === "1") return true;
  if (value === "false" || value === "0") return false;
  throw badRequest(`field "${field}" must be a boolean`);
}

/** count reads an optional whole number of at least 0. */
export function count(data: Readonly<Record<string, unknown>>, field: string): number | undefined {
  const value = data[field];
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number) || number < 0) {
    throw badRequest(`field "${field}" must be a number`);
  }
  return number;
}

/** names reads a list of strings, or one string with commas. */
export function names(data: Readonly<Record<string, unknown>>, field: string): string[] | undefined {
  const value = data[field];
  if (value === undefined || value === null) return undefined;
  const list = typeof value === "string" ? value.split(",") : value;
  if (!Array.isArray(list) || list.some((item) => typeof item !== "string")) {
    throw badRequest(`field "${field}" must be a list of strings`);
  }
  return (list as string[]).map((item) => item.trim()).filter((item) => item !== "");
}

/** stringMap reads an object whose values are strings, or such an object as a JSON string. */
export function stringMap(
  data: Readonly<Record<string, unknown>>,
  field: string,
): Record<string, string> | undefined {
  let value = data[field];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "string") {
    try {
      value = JSON.parse(value);
    } catch {
      throw badRequest(`field "${field}" must be a map of strings`);
    }
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw badRequest(`field "${field}" must be a map of strings`);
  }
  const entries = Object.entries(value);
  if (entries.some(([, item]) => typeof item !== "string")) {
    throw badRequest(`field "${field}" must be a map of strings`);
  }
  return Object.fromEntries(entries) as Record<string, string>;
}
