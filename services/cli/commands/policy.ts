import { readFileSync } from "node:fs";
import { comparePolicies } from "../../common/policy/compare-policies.ts";
import {
  boundFor,
  findMinting,
  findRule,
  type PolicyDestination,
  type PolicyQuestion,
} from "../../common/policy/judge-policy.ts";
import { PolicyInvalid, type ReadPolicy, readPolicy } from "../../common/policy/read-policy.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { Command, Invocation } from "./command.ts";
import { findVerb } from "./find-verb.ts";

/** `ganglion policy` reads policies offline: no mesh has to run, nothing is changed. */
export const policy: Command = {
  name: "policy",
  usage: "<lint|diff|explain> <file> …",
  summary: "check, compare and question policies, offline",
  details: [
    "lint <file>                        say what is wrong with it; 65 when something is",
    "diff <old> <new>                   say what the new one allows (+) and no longer allows (-); 1 when they differ",
    "explain <file> --door <door> …     say which rule allows something; 77 when none does",
    "",
    "Doors: models (--model), mcp, egress, oauth (--url), git (--url https://host/owner/repo --git fetch|push --ref <ref>).",
    "--door mint (--url, --method) says which fields of an answer are new credentials that hands get as sealed tokens.",
    "--inside marks the URL's host as listed in GANGLION_PROXY_ALLOW_HTTP_HOSTS.",
    "A policy bounds; agents, vaults and environments choose within it, and the mesh's own ports are never reached.",
  ],
  options: {
    workspace: { type: "string", default: "wrkspc_default" },
    door: { type: "string" },
    url: { type: "string" },
    model: { type: "string" },
    method: { type: "string", default: "POST" },
    git: { type: "string", default: "fetch" },
    ref: { type: "string" },
    inside: { type: "boolean", default: false },
  },
  arity: [2, 3],
  run: async (invocation) => {
    const [verb = "", ...files] = invocation.positionals;
    const act = findVerb("policy", VERBS, verb);
    if (files.length !== (verb === "diff" ? 2 : 1)) {
      throw new CliError(`policy ${verb} takes ${verb === "diff" ? "two files" : "one file"}`, EXIT.usage);
    }
    return act(files, invocation);
  },
};

const VERBS: Record<string, (files: string[], invocation: Invocation) => number> = {
  lint: ([file], { terminal }) => {
    const { policy: read, digest } = open(file as string);
    const workspaces = Object.keys(read.workspaces ?? {}).length;
    terminal.object({ digest, workspaces });
    terminal.line(`valid; ${workspaces} workspaces have a bound of their own; digest ${digest}`);
    return EXIT.ok;
  },
  diff: ([before, after], { terminal }) => {
    const changes = comparePolicies(open(before as string).policy, open(after as string).policy);
    for (const change of changes) {
      terminal.object(change);
      terminal.line(`${change.sign} ${change.where} ${change.rule}`);
    }
    if (changes.length === 0) terminal.line("both allow the same");
    return changes.length === 0 ? EXIT.ok : EXIT.failed;
  },
  explain: ([file], { options, terminal }) => {
    const { policy: read, digest } = open(file as string);
    const workspace = String(options.workspace);
    const [bound] = boundFor(read, workspace);
    if (options.door === "mint") {
      const { destination, path } = placeOf(options);
      const route = { destination, method: String(options.method), path };
      const { rule, fields, elsewhere } = findMinting(read, workspace, route);
      terminal.object({ allowed: rule !== undefined, rule: rule ?? null, fields, elsewhere, bound, digest });
      const denied = `denied: no rule of ${bound} seals the answer; a new credential in it is withheld`;
      terminal.line(rule === undefined ? denied : `allowed by ${rule}: seals ${fields.join(", ")}`);
      return rule === undefined ? EXIT.noPermission : EXIT.ok;
    }
    const rule = findRule(read, workspace, questionOf(options));
    terminal.object({ allowed: rule !== undefined, rule: rule ?? null, bound, digest });
    terminal.line(rule === undefined ? `denied: no rule of ${bound} allows it` : `allowed by ${rule}`);
    return rule === undefined ? EXIT.noPermission : EXIT.ok;
  },
};

function questionOf(options: Invocation["options"]): PolicyQuestion {
  const { door, model, ref } = options;
  if (door === "models") {
    if (typeof model !== "string") throw new CliError("--door models needs --model", EXIT.usage);
    return { door, model };
  }
  if (door !== "mcp" && door !== "egress" && door !== "oauth" && door !== "git") {
    throw new CliError("--door is one of models, mcp, egress, oauth, git and mint", EXIT.usage);
  }
  const { destination, path } = placeOf(options);
  if (door !== "git") return { door, destination };
  const operation = options.git;
  if (operation !== "fetch" && operation !== "push") {
    throw new CliError("--git is fetch or push", EXIT.usage);
  }
  const repository = path.replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  return { door, destination, repository, operation, refs: typeof ref === "string" ? [ref] : [] };
}

/** Where --url leads, and the path below it without its first slash. */
function placeOf(options: Invocation["options"]): { destination: PolicyDestination; path: string } {
  const url = String(options.url ?? "");
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new CliError("--url is an http or https URL", EXIT.usage);
  }
  const { protocol, hostname, port, pathname } = new URL(url);
  const scheme = protocol === "http:" ? "http" : "https";
  const destination = {
    scheme,
    host: hostname.replace(/^\[|\]$/g, "").replace(/\.$/, ""),
    port: port === "" ? (scheme === "https" ? 443 : 80) : Number(port),
    isListedInside: options.inside === true,
  } as const;
  return { destination, path: pathname.slice(1) };
}

function open(file: string): ReadPolicy {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    throw new CliError(`${file} cannot be read`, EXIT.noInput);
  }
  try {
    return readPolicy(text);
  } catch (error) {
    if (!(error instanceof PolicyInvalid)) throw error;
    throw new CliError([`${file} is not a valid policy`, ...error.problems].join("\n"), EXIT.data);
  }
}
