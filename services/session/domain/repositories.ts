import { checkRepository, MAX_REPOSITORIES } from "../../common/content/check-repository.ts";
import type { Violations } from "../../common/errors/violations.ts";
import { newId } from "../../common/ids/new-id.ts";
import type { GitRepository } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";

/** Where hands can write and what a session starts in. */
const WORKSPACE = "/workspace";
/** What a session with a token may push to. */
const PUSHED_REFS = ["refs/heads/*", "refs/tags/*"];

/** checkRepositories says what is wrong with the repositories of a session that is to be made. */
export function checkRepositories(violations: Violations, repositories: readonly Repository[]): void {
  violations.count("repositories", repositories.length, { max: MAX_REPOSITORIES });
  const urls = new Set<string>();
  const paths = new Set<string>();
  repositories.forEach((repository, index) => {
    const at = `repositories[${index}]`;
    const { id, url } = repository;
    const mountPath = mountPathOf(repository);
    violations.check(id === "", `${at}.id`, "is minted by the service");
    checkRepository(violations, at, { ...repository, mountPath });
    violations.check(!urls.has(sameFor(url)), `${at}.url`, "is there twice");
    urls.add(sameFor(url));
    const isInside = [...paths].some((other) => isBelow(mountPath, other) || isBelow(other, mountPath));
    violations.check(!isInside, `${at}.mount_path`, "is, or is inside of, another repository's");
    paths.add(mountPath);
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

/** The same for addresses that differ in what does not matter. */
function sameFor(url: string): string {
  return url.replace(/(\.git)?\/?$/, "");
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
