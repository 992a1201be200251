import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import type { HandSetup } from "../../domain/way-out.ts";
import { EGRESS_PORT } from "../../hand-agent/protocol.ts";

const PROXY = `http://127.0.0.1:${EGRESS_PORT}`;
// A link of every hand to EGRESS_FOLDER.
const OUTSIDE_FOLDER = "/etc/ganglion";
const AUTHORITY = "egress-ca.pem";
const BUNDLE = "ca-bundle.pem";
const GITCONFIG = "gitconfig";
const ROOTS = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/** readRoots returns the authorities that this host trusts, or those that Node brings along. */
export function readRoots(): string {
  const file = ROOTS.find((path) => existsSync(path));
  return file ? readFileSync(file, "utf8") : rootCertificates.join("\n");
}

/** writeOutsideFiles makes the files of one hand: the authorities that it trusts, and git's addresses. */
export function writeOutsideFiles(folder: string, setup: HandSetup, roots: string): void {
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const files = {
    [AUTHORITY]: setup.authorityPem,
    [BUNDLE]: `${roots.trimEnd()}\n${setup.authorityPem}`,
    [GITCONFIG]: gitconfig(setup),
  };
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), content);
    chmodSync(join(folder, name), 0o644);
  }
}

/**
 * outsideEnvironment is what commands of such a hand get: where the way out is, whom to trust, and placeholders. No
 * placeholder takes the place of the first two.
 */
export function outsideEnvironment({ placeholders }: HandSetup): Record<string, string> {
  const bundle = `${OUTSIDE_FOLDER}/${BUNDLE}`;
  const usable = placeholders.filter(({ name, value }) => isName(name) && !value.includes("\0"));
  return {
    ...Object.fromEntries(usable.map(({ name, value }) => [name, value])),
    HTTP_PROXY: PROXY,
    HTTPS_PROXY: PROXY,
    http_proxy: PROXY,
    https_proxy: PROXY,
    NO_PROXY: "localhost,127.0.0.1",
    no_proxy: "localhost,127.0.0.1",
    // Node looks at the variables above when it is told to.
    NODE_USE_ENV_PROXY: "1",
    NODE_EXTRA_CA_CERTS: `${OUTSIDE_FOLDER}/${AUTHORITY}`,
    SSL_CERT_FILE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    CURL_CA_BUNDLE: bundle,
    GIT_SSL_CAINFO: bundle,
  };
}

function gitconfig({ gitRewrites }: HandSetup): string {
  const sections = gitRewrites.map(
    ({ prefix, path }) => `[url ${quoted(PROXY + path)}]\n\tinsteadOf = ${quoted(prefix)}\n`,
  );
  return `[http]\n\tsslCAInfo = ${OUTSIDE_FOLDER}/${BUNDLE}\n${sections.join("")}`;
}

/** Git's own quoting; a line break cannot be in an address and would begin another line. */
function quoted(value: string): string {
  if (/[\p{Cc}]/u.test(value)) throw new Error("an address for git holds a control character");
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

function isName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name);
}
