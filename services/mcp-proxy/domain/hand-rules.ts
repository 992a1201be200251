import { type Destination, parseDestination } from "./canonical-url.ts";
import type { Reason } from "./proxy-error.ts";

/** What an environment lets its hands reach. There is no kind "nothing": that is the absence of rules. */
export interface Networking {
  type: "unrestricted" | "limited";
  /** Of "limited": names, addresses, or `*.` and the end of a name. */
  allowedHosts: string[];
  allowMcpServers: boolean;
  allowPackageManagers: boolean;
}

/** A repository that hands may use, and how. */
export interface GitGrant {
  /** In normal form, without `.git`. */
  url: string;
  allowFetch: boolean;
  allowPush: boolean;
  /** Refs that may be pushed: full names, or names that end in `/*` for all below. */
  refs: string[];
}

/** Where the package managers of `allow_package_managers` fetch from. */
export const PACKAGE_HOSTS: ReadonlySet<string> = new Set([
  "pypi.org",
  "files.pythonhosted.org",
  "registry.npmjs.org",
  "registry.yarnpkg.com",
  "index.crates.io",
  "static.crates.io",
  "crates.io",
  "rubygems.org",
  "index.rubygems.org",
  "proxy.golang.org",
  "sum.golang.org",
  "deb.debian.org",
  "security.debian.org",
  "archive.ubuntu.com",
  "security.ubuntu.com",
]);

/** Says why the environment does not let a hand reach a host, or nothing. What no rule names is refused. */
export function judgeNetworking(
  { host }: Pick<Destination, "host">,
  binding: { networking: Networking | null; mcpServers: readonly { url: string }[] },
): Reason | undefined {
  const { networking, mcpServers } = binding;
  if (networking?.type === "unrestricted") return undefined;
  if (networking?.type !== "limited") return "DEST_NOT_ALLOWED";
  if (isHostListed(host, networking.allowedHosts)) return undefined;
  if (networking.allowPackageManagers === true && PACKAGE_HOSTS.has(host)) return undefined;
  if (
    networking.allowMcpServers === true &&
    mcpServers.some(({ url }) => parseDestination(url)?.host === host)
  )
    return undefined;
  return "DEST_NOT_ALLOWED";
}

/** True for a host that is one of the entries, or below one of the form `*.name`; anchored at both ends (case A005). */
export function isHostListed(host: string, entries: readonly string[]): boolean {
  return entries.some((entry) => {
    if (!entry.startsWith("*.")) return entry === host;
    const suffix = entry.slice(1);
    return suffix.length > 1 && host.length > suffix.length && host.endsWith(suffix);
  });
}

/** The normal form of a repository's address, without a trailing `.git`; undefined when it is not plain. */
export function repositoryUrl(text: string): string | undefined {
  const url = parseDestination(text)?.url.replace(/\.git$/, "");
  if (url === undefined || !/^https?:\/\/[^/]+(\/[A-Za-z0-9._~-]+)+$/.test(url)) return undefined;
  return /\/\.{1,2}(\/|$)/.test(url) ? undefined : url;
}

/** True for a ref that a grant names. */
export function isRefGranted(
  ref: string,
  { allowPush, refs }: Pick<GitGrant, "allowPush" | "refs">,
): boolean {
  if (allowPush !== true) return false;
  return refs.some((entry) =>
    entry.endsWith("/*")
      ? ref.length > entry.length - 1 && ref.startsWith(entry.slice(0, -1))
      : entry === ref,
  );
}
