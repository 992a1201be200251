import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { Ajv2020 } from "ajv/dist/2020.js";
import { LineCounter, type Node, parseDocument, visit } from "yaml";
import { sortedJson } from "../json/sorted-json.ts";
import schema from "./policy.schema.json" with { type: "json" };
import type { Policy, PolicyBound } from "./policy.ts";

/** A policy that was read, and the digest by which audit records name it. */
export interface ReadPolicy {
  readonly policy: Policy;
  /** SHA-256 of the policy as JSON with sorted keys, in hex: layout and comments do not change it. */
  readonly digest: string;
}

/** What is wrong with a policy; all of it, not the first fault only. */
export class PolicyInvalid extends Error {
  override readonly name = "PolicyInvalid";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`the policy is not valid: ${problems.slice(0, 5).join("; ")}`);
    this.problems = problems;
  }
}

/** A policy of that size was not written by somebody who can know what it says. */
export const MAX_POLICY_BYTES = 1024 * 1024;
const MAX_PROBLEMS = 50;

// With `verbose` an error would quote what the file says at that place.
const validate = new Ajv2020({ allErrors: true, verbose: false }).compile<Policy>(schema);

/**
 * Reads a policy from YAML. Whatever could mean something else than it says is refused: unknown keys, aliases and
 * anchors, tags, keys that occur twice, more than one document, an empty file (case A155).
 */
export function readPolicy(text: string): ReadPolicy {
  if (Buffer.byteLength(text) > MAX_POLICY_BYTES) throw new PolicyInvalid(["larger than 1 MiB"]);
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: true,
    merge: false,
    prettyErrors: false,
  });
  const at = (offset: number) => `line ${lines.linePos(offset).line}`;
  const faults = [...document.errors, ...document.warnings].map(
    ({ pos: [offset], code }) => `${at(offset)}: ${code.toLowerCase().replaceAll("_", " ")}`,
  );
  if (document.contents === null) faults.push("empty");
  visit(document, {
    Alias: (_, { range }) => {
      faults.push(`${at(range?.[0] ?? 0)}: aliases are not allowed`);
    },
    Node: (_, node: Node & { anchor?: string }) => {
      if (node.anchor) faults.push(`${at(node.range?.[0] ?? 0)}: anchors are not allowed`);
      if (node.tag) faults.push(`${at(node.range?.[0] ?? 0)}: tags are not allowed`);
    },
  });
  if (faults.length > 0) throw new PolicyInvalid(faults.slice(0, MAX_PROBLEMS));
  const policy: unknown = document.toJS({ maxAliasCount: 0 });
  if (!validate(policy)) {
    const problems = (validate.errors ?? []).map(({ instancePath, message, params }) => {
      const { additionalProperty } = params as { additionalProperty?: string };
      const what = additionalProperty === undefined ? "" : ` (${additionalProperty.slice(0, 64)})`;
      return `${instancePath || "/"}: ${message ?? "not as the schema wants it"}${what}`;
    });
    throw new PolicyInvalid(problems.slice(0, MAX_PROBLEMS));
  }
  const problems = problemsOf(policy);
  if (problems.length > 0) throw new PolicyInvalid(problems.slice(0, MAX_PROBLEMS));
  return { policy, digest: createHash("sha256").update(sortedJson(policy)).digest("hex") };
}

/** Every bound of a policy with the path by which reports name it. */
export function boundsOf(policy: Policy): [path: string, bound: PolicyBound][] {
  return [
    ["default", policy.default],
    ...Object.entries(policy.workspaces ?? {}).map(([id, bound]): [string, PolicyBound] => [
      `workspaces.${id}`,
      bound,
    ]),
  ];
}

/** What a schema cannot say. */
function problemsOf(policy: Policy): string[] {
  const problems: string[] = [];
  for (const [path, bound] of boundsOf(policy)) {
    for (const section of ["mcp", "egress", "git", "oauth", "mint"] as const) {
      for (const [i, { to }] of (bound[section] ?? []).entries()) {
        for (const host of typeof to === "string" ? [] : to) {
          const where = `${path}.${section}[${i}]`;
          const name = host.replace(/^\*\./, "");
          if (isIP(name) !== 0 || /^[0-9.]+$/.test(name)) {
            problems.push(`${where}: ${host} is an address; those are listed with listed_inside_hosts`);
          }
          if (name === "localhost" || name.endsWith(".localhost")) {
            problems.push(`${where}: ${host} is this machine; it is listed with listed_inside_hosts`);
          }
        }
      }
    }
    for (const [i, rule] of (bound.git ?? []).entries()) {
      if (rule.operations.includes("push") && !rule.refs) {
        problems.push(`${path}.git[${i}]: push without refs would change nothing`);
      }
      if (rule.refs && !rule.operations.includes("push")) {
        problems.push(`${path}.git[${i}]: refs without push mean nothing`);
      }
    }
  }
  return problems;
}
