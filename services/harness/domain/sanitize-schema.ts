// Rules that the Messages API refuses at the root of a tool's schema.
const NOT_AT_ROOT = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const"];
const MAX_DEPTH = 32;

type Schema = Record<string, unknown>;

/**
 * A tool's input schema in a form that the model's API accepts, so that one odd tool does not spoil the request for all
 * (B100, B101). The root becomes a plain object; alternatives at the root are merged into optional properties;
 * references within the document are written out, recursive ones opened up; boolean schemas become open ones. The
 * server's own schema stays in the log as it was. `dropped` names what the model is no longer told.
 */
export function sanitizeSchema(json: Uint8Array): { schema: Schema; dropped: string[] } {
  const root = parse(json);
  const dropped = new Set<string>();
  if (!root) return { schema: { type: "object" }, dropped: ["schema"] };
  const resolved = resolve(root, root, [], dropped, 0) as Schema;
  const { $defs: _defs, definitions: _definitions, $schema: _schema, $id: _id, ...schema } = resolved;
  for (const key of NOT_AT_ROOT) {
    if (!(key in schema)) continue;
    if (key === "anyOf" || key === "oneOf" || key === "allOf") mergeAlternatives(schema, key);
    delete schema[key];
    dropped.add(key);
  }
  if (schema.type !== "object") {
    if (schema.type !== undefined) dropped.add("type");
    schema.type = "object";
  }
  if (schema.properties !== undefined && !isSchema(schema.properties)) delete schema.properties;
  return { schema, dropped: [...dropped] };
}

function mergeAlternatives(schema: Schema, key: string): void {
  const parts = Array.isArray(schema[key]) ? schema[key].filter(isSchema) : [];
  const properties: Schema = isSchema(schema.properties) ? { ...schema.properties } : {};
  for (const part of parts) {
    if (!isSchema(part.properties)) continue;
    for (const [name, value] of Object.entries(part.properties)) {
      if (!Object.hasOwn(properties, name)) properties[name] = value;
    }
    // Every part of an allOf holds; of the others only one does, so what it requires is optional here.
    if (key === "allOf" && Array.isArray(part.required)) {
      const required = Array.isArray(schema.required) ? schema.required : [];
      schema.required = [...new Set([...required, ...part.required])];
    }
  }
  if (Object.keys(properties).length > 0) schema.properties = properties;
}

function resolve(
  value: unknown,
  root: Schema,
  path: readonly string[],
  dropped: Set<string>,
  depth: number,
): unknown {
  if (Array.isArray(value)) return value.map((item) => resolve(item, root, path, dropped, depth + 1));
  if (!isSchema(value)) return value;
  if (depth > MAX_DEPTH) {
    dropped.add("depth");
    return {};
  }
  if (typeof value.$ref === "string") {
    const { $ref, ...rest } = value;
    const target = path.includes($ref) ? undefined : lookUp(root, $ref);
    if (target === undefined) {
      dropped.add("$ref");
      return resolve(rest, root, path, dropped, depth + 1);
    }
    const resolved = resolve(target, root, [...path, $ref], dropped, depth + 1);
    return isSchema(resolved) ? { ...resolved, ...rest } : rest;
  }
  const out: Schema = {};
  for (const [key, item] of Object.entries(value)) {
    if (key === "$defs" || key === "definitions") continue;
    if (key === "properties" && isSchema(item)) {
      out[key] = Object.fromEntries(
        Object.entries(item).map(([name, property]) => [
          name,
          // A boolean schema: anything goes, or nothing; neither can be said here.
          typeof property === "boolean" ? {} : resolve(property, root, path, dropped, depth + 1),
        ]),
      );
    } else out[key] = resolve(item, root, path, dropped, depth + 1);
  }
  return out;
}

function lookUp(root: Schema, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isSchema(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

function parse(json: Uint8Array): Schema | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(json));
    return isSchema(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
