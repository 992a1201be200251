import type { Entity } from "../identity/entity.ts";

const TEMPLATE = /\{\{\s*([^{}]*?)\s*\}\}/g;

/**
 * fillTemplate puts the caller's identity into a policy path. It gives undefined, so that the path grants
 * nothing, when there is no entity, when the value is missing, or when the value could widen the path.
 */
export function fillTemplate(path: string, entity: Entity | undefined): string | undefined {
  if (!path.includes("{{")) return path;
  let isComplete = true;
  const filled = path.replace(TEMPLATE, (_match, expression: string) => {
    const value = entity ? lookUp(expression, entity) : undefined;
    if (value === undefined || value === "" || /[/*+]/.test(value)) isComplete = false;
    return value ?? "";
  });
  return isComplete && !filled.includes("{{") ? filled : undefined;
}

function lookUp(expression: string, entity: Entity): string | undefined {
  const parts = expression.split(".");
  if (parts[0] !== "identity" || parts[1] !== "entity") return undefined;
  const [subject, key, detail] = [parts[2], parts[3], parts[4]];
  if (subject === "id" && parts.length === 3) return entity.id;
  if (subject === "name" && parts.length === 3) return entity.name;
  if (subject === "metadata" && key && parts.length === 4) return ownValue(entity.metadata, key);
  if (subject !== "aliases" || !key) return undefined;
  const alias = entity.aliases.find((candidate) => candidate.mountAccessor === key);
  if (detail === "id") return alias?.id;
  return detail === "name" ? alias?.name : undefined;
}

function ownValue(map: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
