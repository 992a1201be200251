import type { Store } from "../barrier/store.ts";
import { count, flag, stringMap, text } from "../core/request.ts";
import type { Handler, Route } from "../core/route.ts";
import { badRequest, notFound } from "../core/vault-error.ts";
import { newRecord, type SecretRecord } from "./secret-record.ts";

/** metadataRoutes are the routes of a KV mount that never show a secret's value. */
export function metadataRoutes(store: Store, prefix: string): Route[] {
  const write: Handler = ({ data, params }) => {
    if (!params.path) throw badRequest("missing path");
    const after = text(data, "delete_version_after");
    if (after !== "" && after !== "0s" && after !== "0") {
      throw badRequest('field "delete_version_after" is not supported here');
    }
    const before = store.get<SecretRecord>(prefix + params.path) ?? newRecord();
    store.put(prefix + params.path, {
      ...before,
      updatedAt: new Date().toISOString(),
      maxVersions: count(data, "max_versions") ?? before.maxVersions,
      isCasRequired: flag(data, "cas_required") ?? before.isCasRequired,
      customMetadata: stringMap(data, "custom_metadata") ?? before.customMetadata,
    });
    return undefined;
  };
  const list: Handler = ({ params }) => {
    const folder = params.path ? `${params.path}/` : "";
    const names = store.keys(prefix + folder).map((key) => {
      const rest = key.slice(prefix.length + folder.length);
      const slash = rest.indexOf("/");
      return slash < 0 ? rest : rest.slice(0, slash + 1);
    });
    if (names.length === 0) throw notFound();
    return { data: { keys: [...new Set(names)].sort() } };
  };
  return [
    { path: "metadata", handlers: { list } },
    {
      path: "metadata/*path",
      exists: (params) => store.has(prefix + params.path),
      handlers: {
        create: write,
        update: write,
        list,
        read: ({ params }) => {
          const record = store.get<SecretRecord>(prefix + params.path);
          if (!record) throw notFound();
          return { data: describe(record) };
        },
        delete: ({ params }) => {
          store.delete(prefix + params.path);
          return undefined;
        },
      },
    },
  ];
}

function describe(record: SecretRecord): Record<string, unknown> {
  const versions = Object.entries(record.versions).map(([number, version]) => [
    number,
    { created_time: version.createdAt, deletion_time: version.deletedAt, destroyed: version.isDestroyed },
  ]);
  const oldest =
    Object.keys(record.versions)
      .map(Number)
      .sort((a, b) => a - b)[0] ?? 0;
  return {
    cas_required: record.isCasRequired,
    created_time: record.createdAt,
    current_version: record.currentVersion,
    custom_metadata: record.customMetadata,
    delete_version_after: "0s",
    max_versions: record.maxVersions,
    oldest_version: oldest > 1 ? oldest : 0,
    updated_time: record.updatedAt,
    versions: Object.fromEntries(versions),
  };
}
