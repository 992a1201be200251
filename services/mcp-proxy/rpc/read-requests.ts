import { createHash } from "node:crypto";
import { Violations } from "../../common/errors/violations.ts";
import type { Principal } from "../../common/grpc/principal.ts";
import { Role } from "../../gen/ganglion/types/v1/access.ts";
import type { Confinement } from "../domain/confinement.ts";
import { MAX_PAIRS } from "../domain/credential-rules.ts";
import { isCredentialId, isVaultId, isWorkspaceId } from "../domain/ids.ts";
import { proxyError } from "../domain/proxy-error.ts";
import type { RecordChange } from "../domain/records.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const CONTROL = /[\u0000-\u001f\u007f]/;

/** The workspace of those who name none. */
const DEFAULT_WORKSPACE = "wrkspc_default";

/** Checks the fields that several requests have. */
export function checkVaultId(found: Violations, vaultId: string): void {
  found.check(vaultId === "" || isVaultId(vaultId), "vault_id", "must be an id that starts with vlt_");
  found.string("vault_id", vaultId, { required: true });
}

/** Checks a required credential id. */
export function checkCredentialId(found: Violations, credentialId: string): void {
  const isFit = credentialId === "" || isCredentialId(credentialId);
  found.check(isFit, "credential_id", "must be an id that starts with vcrd_");
  found.string("credential_id", credentialId, { required: true });
}

/** Checks a name for people; nothing that a terminal or a log would act upon. */
export function checkText(
  found: Violations,
  field: string,
  text: string,
  rules: { required: boolean; maxLength: number },
) {
  found.string(field, text, rules);
  found.check(!CONTROL.test(text) && text.isWellFormed(), field, "must not have control characters");
}

/** Checks metadata: at most 16 pairs, keys of at most 64 characters, values of at most 512. */
export function checkMetadata(found: Violations, metadata: Record<string, string>, field = "metadata"): void {
  const pairs = Object.entries(metadata);
  found.count(field, pairs.length, { max: MAX_PAIRS });
  for (const [key, value] of pairs.slice(0, MAX_PAIRS)) {
    checkText(found, field, key, { required: true, maxLength: 64 });
    checkText(found, field, value, { required: false, maxLength: 512 });
  }
}

/** Checks what people call a record, as a change of it says it. */
export function readRecordChange(
  found: Violations,
  req: { displayName?: string | undefined; metadataSet: Record<string, string>; metadataRemove: string[] },
  { isNameRequired }: { isNameRequired: boolean },
): RecordChange {
  const { displayName, metadataSet, metadataRemove } = req;
  if (displayName !== undefined) {
    checkText(found, "display_name", displayName, { required: isNameRequired, maxLength: 255 });
  }
  checkMetadata(found, metadataSet, "metadata_set");
  found.count("metadata_remove", metadataRemove.length, { max: MAX_PAIRS });
  for (const key of metadataRemove.slice(0, MAX_PAIRS)) {
    checkText(found, "metadata_remove", key, { required: true, maxLength: 64 });
    const isSet = Object.hasOwn(metadataSet, key);
    found.check(!isSet, "metadata_remove", "must not name a key that is set");
  }
  return { displayName, metadataSet, metadataRemove };
}

/** Checks an id that a caller minted. */
export function checkRequestId(found: Violations, requestId: string): void {
  checkText(found, "request_id", requestId, { required: false, maxLength: 64 });
}

/** Checks page fields and answers them with their defaults. */
export function readPage(
  found: Violations,
  { pageSize, pageToken }: { pageSize: number; pageToken: string },
  isCursor: (text: string) => boolean,
  maxToken = 256,
): { limit: number; before: string | null } {
  found.integer("page_size", pageSize, { min: 0, max: 100 });
  const cursor = Buffer.from(pageToken, "base64url").toString("utf8");
  const isKnown = pageToken === "" || (pageToken.length <= maxToken && isCursor(cursor));
  found.check(isKnown, "page_token", "is not a token of an earlier page");
  return { limit: pageSize || 20, before: pageToken === "" ? null : cursor };
}

/** Splits off the row that shows that there is another page. */
export function cutPage<Row>(rows: Row[], limit: number, cursorOf: (row: Row) => string) {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const nextPageToken =
    rows.length > limit && last !== undefined ? Buffer.from(cursorOf(last)).toString("base64url") : "";
  return { page, nextPageToken };
}

/** What a caller is confined to. A client without a workspace is confined to nothing that exists. */
export function confinementOf({ role, workspaceId }: Principal): Confinement {
  if (role === Role.ROLE_CLIENT) return { workspaceId: workspaceId ?? "" };
  return { workspaceId: null };
}

/** The workspace that a request means: a client's own, or the one an operator names. */
export function workspaceOf(principal: Principal, asked: string): string {
  if (principal.role === Role.ROLE_CLIENT) {
    const own = principal.workspaceId ?? "";
    if (asked !== "" && asked !== own) {
      throw proxyError("WORKSPACE_NOT_FOUND", { metadata: { workspace_id: asked.slice(0, 64) } });
    }
    if (!isWorkspaceId(own)) throw proxyError("ROLE_NOT_ALLOWED");
    return own;
  }
  const workspaceId = asked === "" ? DEFAULT_WORKSPACE : asked;
  new Violations()
    .check(isWorkspaceId(workspaceId), "workspace_id", "must be an id that starts with wrkspc_")
    .throwIfAny();
  return workspaceId;
}

/** A digest of a request's parts, to tell whether the same id came with the same body. */
export function digestOf(...parts: (string | Uint8Array)[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest();
}
