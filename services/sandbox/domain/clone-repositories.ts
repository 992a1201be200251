import type { ToolCall, ToolRun } from "./hand-driver.ts";

/** A repository of which a hand gets a work tree. */
export type WantedRepository = {
  url: string;
  mountPath: string;
  /** What is checked out; absent = what the remote's HEAD names. */
  checkout?: { branch: string } | { commit: string } | undefined;
};

/** Why a repository is not in a hand. */
export type CloneFailure = {
  url: string;
  kind: "authentication" | "forbidden" | "not_found" | "checkout" | "clone";
};

type RunTool = (call: ToolCall, signal: AbortSignal) => Promise<ToolRun>;

const ALL_MS = 600_000;
const CHECKOUT_FAILED = 91;
const CLONE_FAILED = 92;

/**
 * cloneRepositories clones them one after another with the hand's own git, which finds the git door by its
 * configuration. What fails is told and nothing else stops; rejects only when the hand is lost.
 */
export async function cloneRepositories(
  run: RunTool,
  repositories: readonly WantedRepository[],
  now: () => number,
): Promise<CloneFailure[]> {
  const failures: CloneFailure[] = [];
  const deadline = now() + ALL_MS;
  for (const repository of repositories) {
    const timeoutMs = deadline - now();
    const kind = timeoutMs < 1 ? "clone" : await cloneOne(run, repository, timeoutMs);
    if (kind) failures.push({ url: repository.url, kind });
  }
  return failures;
}

async function cloneOne(
  run: RunTool,
  repository: WantedRepository,
  timeoutMs: number,
): Promise<CloneFailure["kind"] | undefined> {
  const inputJson = JSON.stringify({ command: cloneCommand(repository) });
  const result = await run({ name: "bash", inputJson, timeoutMs }, AbortSignal.timeout(timeoutMs));
  if (!result.isError && result.exitCode === 0) return undefined;
  return result.exitCode === CHECKOUT_FAILED ? "checkout" : kindOf(result.text);
}

/** A shell of its own, so that the hand's shell is as new afterwards. */
function cloneCommand({ url, mountPath, checkout }: WantedRepository): string {
  const path = quote(mountPath);
  const git = "git -c advice.detachedHead=false";
  const clone = `${git} clone --quiet ${checkout ? "--no-checkout " : ""}-- ${quote(url)} ${path}`;
  return `( LC_ALL=C; export LC_ALL; ${clone} || exit ${CLONE_FAILED}; ${checkoutCommand(git, path, checkout)} ) 2>&1`;
}

function checkoutCommand(git: string, path: string, checkout: WantedRepository["checkout"]): string {
  if (!checkout) return ":";
  const orFail = `|| exit ${CHECKOUT_FAILED}`;
  if ("branch" in checkout) {
    const branch = quote(checkout.branch);
    const remote = quote(`refs/remotes/origin/${checkout.branch}`);
    return `${git} -C ${path} checkout --quiet -B ${branch} --track ${remote} -- ${orFail}`;
  }
  const commit = quote(checkout.commit);
  // A commit that no branch reaches is not in the clone; some servers give it when it is named.
  const fetch = `${git} -C ${path} fetch --quiet origin ${commit} && ${git} -C ${path} checkout --quiet --detach ${commit} --`;
  return `${git} -C ${path} checkout --quiet --detach ${commit} -- 2>/dev/null || { ${fetch}; } ${orFail}`;
}

/**
 * What git says is the hand's and only picks one of these words. The git door's own reasons come first: a refused
 * credential is no 401 to the hand, where git would ask its user for a password.
 */
function kindOf(text: string): CloneFailure["kind"] {
  if (/UPSTREAM_UNAUTHORIZED|error: 401|Authentication failed|could not read (Username|Password)/i.test(text))
    return "authentication";
  if (/error: 403/.test(text)) return "forbidden";
  if (/error: 404|repository .* not found/i.test(text)) return "not_found";
  return "clone";
}

function quote(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`;
}
