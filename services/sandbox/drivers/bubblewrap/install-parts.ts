import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EGRESS_FOLDER } from "../../hand-agent/protocol.ts";

const AGENT_SOURCE = fileURLToPath(new URL("../../hand-agent/", import.meta.url));

const ETC_FILES: Readonly<Record<string, string>> = {
  passwd:
    "root:x:0:0:root:/:/bin/false\nhand:x:1000:1000:hand:/home/hand:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n",
  group: "root:x:0:\nhand:x:1000:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1 localhost hand\n::1 localhost\n",
  hostname: "hand\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
  // What is not there is left out: a hand that may reach the outside has it.
  gitconfig: "[include]\n\tpath = /etc/ganglion/gitconfig\n",
};

/**
 * installAgent writes the agent as plain JavaScript: the types are stripped once here, not at the birth of every
 * hand, and the hand's user need not be able to read the checkout.
 */
export function installAgent(folder: string): void {
  makePublicFolder(folder);
  for (const name of readdirSync(AGENT_SOURCE)) {
    if (name.endsWith(".sh")) writePublicFile(join(folder, name), readFileSync(join(AGENT_SOURCE, name)));
    if (!name.endsWith(".ts")) continue;
    const code = stripTypeScriptTypes(readFileSync(join(AGENT_SOURCE, name), "utf8"));
    const renamed = code.replace(/((?:from\s+|import\()"\.\/[a-z-]+)\.ts"/g, '$1.js"');
    writePublicFile(join(folder, name.replace(/\.ts$/, ".js")), renamed);
  }
  writePublicFile(join(folder, "package.json"), '{"type":"module"}\n');
}

/** installEtc writes the jail's /etc: its own users and hosts, and nothing of the host but the loader's cache. */
export function installEtc(folder: string): void {
  makePublicFolder(folder);
  for (const [name, content] of Object.entries(ETC_FILES)) writePublicFile(join(folder, name), content);
  for (const name of ["ld.so.cache", "localtime"]) {
    if (existsSync(join("/etc", name))) writePublicFile(join(folder, name), readFileSync(join("/etc", name)));
  }
  // The host's links between equivalent programs are mounted here.
  makePublicFolder(join(folder, "alternatives"));
  // What a hand has that may reach the outside; some programs look for authorities by the second name only.
  symlinkSync(EGRESS_FOLDER, join(folder, "ganglion"));
  makePublicFolder(join(folder, "ssl"));
  makePublicFolder(join(folder, "ssl", "certs"));
  symlinkSync("/etc/ganglion/ca-bundle.pem", join(folder, "ssl", "certs", "ca-certificates.crt"));
}

/** The umask of the service does not apply: hands under other user ids read these. */
function makePublicFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o755);
}

function writePublicFile(path: string, content: string | Buffer): void {
  writeFileSync(path, content);
  chmodSync(path, 0o644);
}
