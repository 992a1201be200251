import { parseDestination } from "../../domain/canonical-url.ts";
import { proxyError } from "../../domain/proxy-error.ts";

/** The two services of git's smart HTTP. */
export type GitService = "git-upload-pack" | "git-receive-pack";

/** What a request at the git door asks for. */
export interface GitTarget {
  service: GitService;
  /** True for the advertisement with which each operation begins. */
  isAdvertisement: boolean;
  /** host or host:port. */
  host: string;
  /** Path of the repository as it was asked for, `.git` included if it was there. */
  path: string;
}

const FORM =
  /^\/git\/([A-Za-z0-9.:[\]-]+)((?:\/[A-Za-z0-9._~-]+)+?)\/(info\/refs|git-upload-pack|git-receive-pack)$/;
const SERVICES: ReadonlySet<string> = new Set(["git-upload-pack", "git-receive-pack"]);

/**
 * Reads `/git/<host>/<path>/…`. Only plain characters are taken: what has to be decoded first can be read in two ways
 * (case A071). The older protocol without service is not spoken.
 */
export function readGitTarget(method: string | undefined, url: string): GitTarget {
  const [whole = "", query, ...more] = url.split("?");
  const match = FORM.exec(whole);
  const [, host = "", path = "", action = ""] = match ?? [];
  const isPlain =
    match !== null && more.length === 0 && !path.split("/").some((part) => /^\.{1,2}$/.test(part));
  if (!isPlain || parseDestination(`https://${host}/`) === undefined) throw proxyError("URL_NOT_CANONICAL");
  if (action === "info/refs") {
    const service = /^service=([a-z-]+)$/.exec(query ?? "")?.[1] ?? "";
    if (method !== "GET" || !SERVICES.has(service)) throw proxyError("METHOD_NOT_ALLOWED");
    return { service: service as GitService, isAdvertisement: true, host: host.toLowerCase(), path };
  }
  if (method !== "POST" || query !== undefined) throw proxyError("METHOD_NOT_ALLOWED");
  return { service: action as GitService, isAdvertisement: false, host: host.toLowerCase(), path };
}
