import type { AccessRow, CredentialRow } from "./access.ts";
import { type Destination, parseDestination } from "./canonical-url.ts";
import { type DestinationPolicy, judgeDestination } from "./destination-policy.ts";
import { type GitGrant, isRefGranted, repositoryUrl } from "./hand-rules.ts";
import { proxyError } from "./proxy-error.ts";

/** What a hand wants of a repository. */
export interface GitQuestion {
  host: string;
  /** As asked for, `.git` included if it was there. */
  path: string;
  operation: "fetch" | "push";
  /** Refs that a push changes. */
  refs: readonly string[];
}

/** The grant that a request falls under, and where it leads. */
export interface GitRoute {
  grant: GitGrant;
  destination: Destination;
  credential: CredentialRow | undefined;
}

/** Addresses for which a credential of a repository may be stored: the repository's own, then its host's. */
export function credentialUrls({ host, path }: Pick<GitQuestion, "host" | "path">): string[] {
  const urls = ["https", "http"].map((scheme) => `${scheme}://${host}${path.replace(/\.git$/, "")}`);
  return urls.filter((url) => URL.canParse(url)).flatMap(credentialUrlsOf);
}

function credentialUrlsOf(url: string): string[] {
  return [url, `${url}.git`, new URL(url).origin].flatMap((text) => parseDestination(text)?.url ?? []);
}

/** Finds the grant for a repository and judges the operation; throws the proxyError of a denial. */
export function judgeGit(question: GitQuestion, access: AccessRow, policy: DestinationPolicy): GitRoute {
  const { host, path, operation, refs } = question;
  const [url, grant] =
    ["https", "http"]
      .map((scheme) => `${scheme}://${host}${path}`)
      .map((text) => [text, findGrant(access, repositoryUrl(text))] as const)
      .find(([, found]) => found !== undefined) ?? [];
  const destination = parseDestination(url ?? "");
  if (!grant || !destination) throw proxyError("REPO_NOT_ALLOWED");
  const isGranted = operation === "fetch" ? grant.allowFetch === true : grant.allowPush === true;
  if (!isGranted) throw proxyError("METHOD_NOT_ALLOWED");
  const refused = refs.filter((ref) => !isRefGranted(ref, grant));
  if (refused.length > 0) {
    throw proxyError("REF_NOT_ALLOWED", { metadata: { refs: refused.join(" ").slice(0, 1024) } });
  }
  const reason = judgeDestination(destination, policy);
  if (reason) throw proxyError(reason);
  const bearers = access.credentials.filter(({ kind }) => kind === "static_bearer");
  const credential = credentialUrlsOf(grant.url)
    .map((wanted) => bearers.find((row) => row.url === wanted))
    .find((row) => row !== undefined);
  return { grant, destination, credential };
}

function findGrant({ gitRepositories }: AccessRow, url: string | undefined): GitGrant | undefined {
  return url === undefined ? undefined : gitRepositories.find((grant) => grant.url === url);
}
