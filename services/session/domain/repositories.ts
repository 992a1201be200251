import type { Violations } from "../../common/errors/violations.ts";
import { newId } from "../../common/ids/new-id.ts";
import type { GitRepository } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";

const MAX_REPOSITORIES = 20;
const MAX_URL = 2048;
const MAX_PATH = 1024;
/** Where hands can write and what a session starts in. */
const WORKSPACE = "/workspace";
const MOUNT_PATH = /^\/workspace(\/(?!\.{1,2}(\/|$))[^/\p{Cc}]+)+$/u;
const COMMIT = /^([0-9a-f]{40}|[0-9a-f]{64})$/i;
// What git's own rules leave of a name that is not meant to be odd.
const BRANCH = /^(?![-./])(?!.*(\.\.|\/\/|\/\.|@\{|\.lock(\/|$)))[^\s\p{Cc}~^:?*[\\]+(?<![/.])$/u;
/** What a session with a token may push to. */
const PUSHED_REFS = ["refs/heads/*", "refs/tags/*"];

/** checkRepositories says what is wrong with the repositories of a session that is to be made. */
export function checkRepositories(violations: Violations, repositories: readonly Repository[]): void {
  violations.count("repositories", repositories.length, { max: MAX_REPOSITORIES });
  const urls = new Set<string>();
  const paths = new Set<string>();
  repositories.forEach((repository, index) => {
    const at = `repositories[${index}]`;
    const { id, url, checkout } = repository;
    violations.check(id === "", `${at}.id`, "is minted by the service");
    violations.check(url.length <= MAX_URL && isAddress(url), `${at}.url`, "must be a repository's address");
    violations.check(!urls.has(sameFor(url)), `${at}.url`, "is there twice");
    urls.add(sameFor(url));
    const mountPath = mountPathOf(repository);
    const isFolder = mountPath.length <= MAX_PATH && MOUNT_PATH.test(mountPath);
    violations.check(isFolder, `${at}.mount_path`, "must be a folder below /workspace");
    const isInside = [...paths].some((other) => isBelow(mountPath, other) || isBelow(other, mountPath));
    violations.check(!isInside, `${at}.mount_path`, "is, or is inside of, another repository's");
    paths.add(mountPath);
    if (checkout?.$case === "branch") {
      const isBranch = checkout.value.length <= 255 && BRANCH.test(checkout.value);
      violations.check(isBranch, `${at}.branch`, "must be the name of a branch");
    } else if (checkout?.$case === "commit") {
      violations.check(COMMIT.test(checkout.value), `${at}.commit`, "must be the id of a commit");
    }
  });
}

/** completeRepositories gives checked repositories their ids and folders. */
export function completeRepositories(repositories: readonly Repository[]): Repository[] {
  return repositories.map((repository) => ({
    ...repository,
    id: newId("sesrsc"),
    mountPath: mountPathOf(repository),
  }));
}

/** gitRepositoryOf says what hands may do with a repository through the git door. */
export function gitRepositoryOf({ url, mayPush }: Repository): GitRepository {
  return { url, allowFetch: true, allowPush: mayPush, refs: mayPush ? [...PUSHED_REFS] : [] };
}

function mountPathOf({ url, mountPath }: Repository): string {
  if (mountPath !== "") return mountPath;
  const name = /([^/]*)$/.exec(sameFor(url))?.[1] ?? "";
  return `${WORKSPACE}/${name}`;
}

/** No user name or password, no query or fragment, nothing that a shell or git could take for something else. */
function isAddress(url: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}@?#\\%]+$/u.test(url) || !URL.canParse(url)) return false;
  // As it is written: a URL has its dots resolved.
  const parts = url.replace(/\/$/, "").split("/").slice(3);
  return parts.length > 0 && parts.every((part) => !/^\.*$/.test(part));
}

/** The same for addresses that differ in what does not matter. */
function sameFor(url: string): string {
  return url.replace(/(\.git)?\/?$/, "");
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
