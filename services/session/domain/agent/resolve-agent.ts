import { Violations } from "../../../common/errors/violations.ts";
import { type Json, mergeMetadata, Shape } from "../json-shape.ts";
import type { Definition, Model } from "./definition.ts";
import { resolveModel } from "./resolve-model.ts";
import { resolveMcpServers, resolveTools } from "./resolve-tools.ts";

const KEYS = [
  "name",
  "description",
  "model",
  "system",
  "tools",
  "mcp_servers",
  "skills",
  "multiagent",
  "execution_identity",
  "metadata",
];

/** resolveAgent makes a complete definition of the body of "create agent", or throws naming every wrong key. */
export function resolveAgent(field: string, body: Json): Definition {
  return resolve(field, body, body, undefined);
}

/**
 * patchAgent applies the body of "update agent": omitted keys are kept, null or an empty value clears what may be
 * cleared, metadata is merged key by key.
 */
export function patchAgent(field: string, current: Definition, patch: Json): Definition {
  const { type: _type, ...kept } = current;
  const merged: Json = { ...kept };
  for (const key of KEYS) if (key in patch) merged[key] = patch[key];
  merged.metadata = mergeMetadata(current.metadata, patch.metadata, (value) => value === null);
  return resolve(field, patch, merged, current.model);
}

/** True when two definitions say the same. */
export function isSameDefinition(a: Definition, b: Definition): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function resolve(field: string, given: Json, body: Json, current: Model | undefined): Definition {
  const violations = new Violations();
  const shape = new Shape(violations);
  shape.object(field, given, KEYS);
  const at = (key: string) => `${field}.${key}`;
  const servers = resolveMcpServers(shape, at("mcp_servers"), body.mcp_servers);
  shape.unsupported(at("skills"), body.skills);
  shape.unsupported(at("multiagent"), body.multiagent);
  checkIdentity(shape, at("execution_identity"), body.execution_identity);
  const definition: Definition = {
    type: "agent",
    name: shape.string(at("name"), body.name, { min: 1, max: 256 }) ?? "",
    description: optionalText(shape, at("description"), body.description, 2048),
    model: resolveModel(shape, at("model"), body.model, current),
    system: optionalText(shape, at("system"), body.system, 100_000),
    tools: resolveTools(shape, at("tools"), body.tools, servers),
    mcp_servers: servers,
    skills: [],
    multiagent: null,
    execution_identity: { type: "service_account" },
    metadata: shape.metadata(at("metadata"), body.metadata),
  };
  violations.throwIfAny();
  return definition;
}

function optionalText(shape: Shape, path: string, value: unknown, max: number): string | null {
  if (value === undefined || value === null || value === "") return null;
  return shape.string(path, value, { max }) ?? null;
}

function checkIdentity(shape: Shape, path: string, value: unknown): void {
  if (value === undefined || value === null) return;
  const identity = shape.object(path, value, ["type", "role_arn"]);
  if (!identity) return;
  if (identity.type === "aws_role") shape.wrong(`${path}.type`, "aws_role is not supported yet");
  else {
    shape.oneOf(`${path}.type`, identity.type, ["service_account"]);
    shape.unsupported(`${path}.role_arn`, identity.role_arn);
  }
}
