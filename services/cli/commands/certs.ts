import { X509Certificate } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { issueCertificate } from "../../common/tls/issue-certificate.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { askSupervisor } from "../up/control-socket.ts";
import { validityOf } from "../up/mesh-certificates.ts";
import { meshFiles } from "../up/mesh-files.ts";
import { clientInstance, DEFAULT_WORKSPACE } from "../up/mesh-holders.ts";
import type { Command, Invocation } from "./command.ts";

const HOUR_MS = 3_600_000;
const MAX_HOURS = 24 * 90;

/** A certificate of the mesh as it lies in the state folder. */
export interface FoundCertificate {
  readonly name: string;
  readonly spiffeId: string;
  readonly until: Date;
}

/** `ganglion certs` shows, renews and issues certificates of the mesh's private authority. */
export const certs: Command = {
  name: "certs",
  usage: "<list|renew|issue> …",
  summary: "show, renew and issue certificates",
  details: [
    "list                                       who has one, and until when",
    "renew                                      give everybody a new one now (they are renewed by themselves)",
    "issue <operator|client> <name> --out <dir> make one for a person or a program",
    "",
    "--hours says how long it is good for (default 24); a client belongs to --workspace.",
  ],
  options: {
    out: { type: "string" },
    hours: { type: "string", default: "24" },
    workspace: { type: "string", default: DEFAULT_WORKSPACE },
  },
  arity: [1, 3],
  run: async (invocation) => {
    const [verb, ...args] = invocation.positionals;
    if (verb === "list") return list(invocation);
    if (verb === "renew") return renew(invocation);
    if (verb === "issue") return issue(invocation, args);
    throw new CliError(`there is no certs ${verb}`, EXIT.usage, "ganglion help certs");
  },
};

/** findCertificates reads the certificates in a state folder. */
export function findCertificates(stateDir: string): FoundCertificate[] {
  const { tls } = meshFiles(stateDir);
  if (!existsSync(tls)) return [];
  return readdirSync(tls)
    .filter((name) => !name.startsWith(".") && lstatSync(join(tls, name)).isSymbolicLink())
    .map((name) => {
      const certificate = new X509Certificate(readFileSync(join(tls, name, "cert.pem")));
      const spiffeId = certificate.subjectAltName?.split(", ").find((one) => one.startsWith("URI:")) ?? "";
      return { name, spiffeId: spiffeId.slice(4), until: validityOf(certificate).until };
    });
}

function list({ stateDir, terminal }: Invocation): number {
  const found = findCertificates(stateDir);
  for (const one of found) terminal.object(one);
  if (found.length === 0) throw new CliError("there are no certificates here", EXIT.noInput, "ganglion up");
  terminal.table([
    ["HOLDER", "GOOD UNTIL", "IDENTITY"],
    ...found.map(({ name, spiffeId, until }) => [name, until.toISOString(), spiffeId]),
  ]);
  return EXIT.ok;
}

async function renew({ stateDir, terminal }: Invocation): Promise<number> {
  const isUp = await askSupervisor(meshFiles(stateDir).socket, { ask: "renew" });
  if (!isUp)
    throw new CliError(
      "no mesh is up here: certificates are renewed when it starts",
      EXIT.unavailable,
      "ganglion up",
    );
  terminal.object({ renewed: true });
  terminal.line("everybody has a new certificate");
  return EXIT.ok;
}

async function issue({ stateDir, terminal, options }: Invocation, args: string[]): Promise<number> {
  const [kind, name] = args;
  const out = options.out;
  const isKind = kind === "operator" || kind === "client";
  if (!isKind || !name || typeof out !== "string") {
    throw new CliError("usage: ganglion certs issue <operator|client> <name> --out <dir>", EXIT.usage);
  }
  const hours = Number(options.hours);
  if (!(hours > 0 && hours <= MAX_HOURS))
    throw new CliError(`--hours must be at most ${MAX_HOURS}`, EXIT.usage);
  const { tls } = meshFiles(stateDir);
  if (!existsSync(join(tls, "ca.key.pem")))
    throw new CliError("there is no authority here", EXIT.noInput, "ganglion up");
  const read = (file: string) => readFileSync(join(tls, file), "utf8");
  const authority = { certPem: read("ca.pem"), keyPem: read("ca.key.pem") };
  const instance = kind === "client" ? clientInstance(String(options.workspace), name) : name;
  const leaf = await issueCertificate(authority, { service: kind, instance, lifeMs: hours * HOUR_MS });
  const folder = resolve(out);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files = { "ca.pem": authority.certPem, "cert.pem": leaf.certPem, "key.pem": leaf.keyPem };
  for (const [file, content] of Object.entries(files)) {
    // Never over somebody's key.
    writeFileSync(join(folder, file), content, { mode: 0o600, flag: "wx" });
  }
  terminal.object({ folder, until: new Date(leaf.notAfter) });
  terminal.line(
    `wrote ca.pem, cert.pem and key.pem to ${folder}, good until ${new Date(leaf.notAfter).toISOString()}`,
  );
  return EXIT.ok;
}
