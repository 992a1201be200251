import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { Violations } from "../errors/violations.ts";

/** Repositories that one session may have. */
export const MAX_REPOSITORIES = 20;

const MAX_URL = 2048;
const MAX_PATH = 1024;
const MAX_BRANCH = 255;
const MOUNT_PATH = /^\/workspace(\/(?!\.{1,2}(\/|$))[^/\p{Cc}]+)+$/u;
const COMMIT = /^([0-9a-f]{40}|[0-9a-f]{64})$/i;
// What git's own rules leave of a name that is not meant to be odd.
const BRANCH = /^(?![-./])(?!.*(\.\.|\/\/|\/\.|@\{|\.lock(\/|$)))[^\s\p{Cc}~^:?*[\\]+(?<![/.])$/u;

/** checkRepository says what is wrong with the address, the folder and the checkout of a repository. */
export function checkRepository(
  violations: Violations,
  at: string,
  { url, mountPath, checkout }: Pick<Repository, "url" | "mountPath" | "checkout">,
): void {
  violations.check(url.length <= MAX_URL && isAddress(url), `${at}.url`, "must be a repository's address");
  const isFolder = mountPath.length <= MAX_PATH && MOUNT_PATH.test(mountPath);
  violations.check(isFolder, `${at}.mount_path`, "must be a folder below /workspace");
  if (checkout?.$case === "branch") {
    const isBranch = checkout.value.length <= MAX_BRANCH && BRANCH.test(checkout.value);
    violations.check(isBranch, `${at}.branch`, "must be the name of a branch");
  } else if (checkout?.$case === "commit") {
    violations.check(COMMIT.test(checkout.value), `${at}.commit`, "must be the id of a commit");
  }
}

/** No user name or password, no query or fragment, nothing that a shell or git could take for something else. */
function isAddress(url: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}@?#\\%]+$/u.test(url) || !URL.canParse(url)) return false;
  // As it is written: a URL has its dots resolved.
  const parts = url.replace(/\/$/, "").split("/").slice(3);
  return parts.length > 0 && parts.every((part) => !/^\.*$/.test(part));
}
