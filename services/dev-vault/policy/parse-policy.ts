import { parseDuration } from "../core/duration.ts";
import { type HclBlock, parseHcl } from "./hcl.ts";

export const CAPABILITIES = ["create", "read", "update", "delete", "list", "sudo", "deny", "patch"] as const;
export type Capability = (typeof CAPABILITIES)[number];

/** PathRule is what one policy says about one path. */
export interface PathRule {
  /** May hold `+` segments, a `*` at its end, and `{{identity…}}` templates. */
  readonly path: string;
  readonly capabilities: readonly Capability[];
  readonly minWrappingTtlMs: number;
  readonly maxWrappingTtlMs: number;
  /** Parameter name → allowed values; an empty list allows any. */
  readonly allowedParameters: Readonly<Record<string, readonly unknown[]>> | undefined;
  readonly deniedParameters: Readonly<Record<string, readonly unknown[]>> | undefined;
  readonly requiredParameters: readonly string[];
}

const SHORTHANDS: Record<string, readonly Capability[]> = {
  deny: ["deny"],
  read: ["read", "list"],
  write: ["create", "read", "update", "delete", "list"],
  sudo: ["create", "read", "update", "delete", "list", "sudo"],
};

const KEYS = [
  "capabilities",
  "policy",
  "min_wrapping_ttl",
  "max_wrapping_ttl",
  "allowed_parameters",
  "denied_parameters",
  "required_parameters",
  "comment",
];

/** parsePolicy reads a policy in HCL or JSON; it throws with the reason when any part of it is not understood. */
export function parsePolicy(source: string): PathRule[] {
  const blocks = source.trimStart().startsWith("{") ? readJson(source) : parseHcl(source);
  const rules = blocks.map((block) => {
    if (block.type !== "path") throw new Error(`invalid key "${block.type}"`);
    try {
      return readRule(block);
    } catch (cause) {
      throw new Error(`path "${block.label}": ${(cause as Error).message}`);
    }
  });
  return rules;
}

function readJson(source: string): HclBlock[] {
  const document = JSON.parse(source) as Record<string, unknown>;
  for (const key of Object.keys(document)) {
    if (key !== "path") throw new Error(`invalid key "${key}"`);
  }
  const paths = asMap(document.path, "path");
  return Object.entries(paths).map(([label, body]) => ({ type: "path", label, body: asMap(body, label) }));
}

function readRule(block: HclBlock): PathRule {
  const body = block.body;
  for (const key of Object.keys(body)) {
    if (!KEYS.includes(key)) throw new Error(`invalid key "${key}"`);
  }
  if (block.label.includes("+*")) throw new Error("invalid use of wildcards ('+*' is forbidden)");
  const capabilities = new Set<Capability>();
  if (body.policy !== undefined) {
    const shorthand = SHORTHANDS[String(body.policy)];
    if (!shorthand) throw new Error(`invalid policy "${body.policy}"`);
    for (const capability of shorthand) capabilities.add(capability);
  }
  for (const name of asList(body.capabilities ?? [], "capabilities")) {
    const capability = CAPABILITIES.find((known) => known === name);
    if (!capability) throw new Error(`invalid capability "${name}"`);
    capabilities.add(capability);
  }
  return {
    path: block.label.replace(/^\//, ""),
    // Deny is alone: whatever else stands beside it gives nothing.
    capabilities: capabilities.has("deny") ? ["deny"] : [...capabilities],
    minWrappingTtlMs: parseDuration(body.min_wrapping_ttl, "min_wrapping_ttl"),
    maxWrappingTtlMs: parseDuration(body.max_wrapping_ttl, "max_wrapping_ttl"),
    allowedParameters: parameters(body.allowed_parameters, "allowed_parameters"),
    deniedParameters: parameters(body.denied_parameters, "denied_parameters"),
    requiredParameters: asList(body.required_parameters ?? [], "required_parameters").map(String),
  };
}

function parameters(value: unknown, field: string): Record<string, readonly unknown[]> | undefined {
  if (value === undefined) return undefined;
  const entries = Object.entries(asMap(value, field));
  // Parameter names are compared in lower case.
  return Object.fromEntries(entries.map(([name, list]) => [name.toLowerCase(), asList(list, field)]));
}

function asMap(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`"${field}" must be a map`);
  }
  return value as Record<string, unknown>;
}

function asList(value: unknown, field: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`"${field}" must be a list`);
  return value;
}
