import type { Store } from "../barrier/store.ts";
import type { MountRecord } from "../core/mount-table.ts";
import type { VaultAnswer } from "../core/request.ts";
import { count } from "../core/request.ts";
import type { Call, Handler, Route } from "../core/route.ts";
import { badRequest, notFound } from "../core/vault-error.ts";
import { mergePatch } from "./merge-patch.ts";
import { metadataRoutes } from "./metadata-routes.ts";
import {
  addVersion,
  changeVersions,
  newRecord,
  type SecretRecord,
  type SecretVersion,
} from "./secret-record.ts";

type Data = Readonly<Record<string, unknown>>;

/** kvRoutes are the routes of a KV version 2 mount. */
export function kvRoutes(store: Store, mount: MountRecord): Route[] {
  const prefix = `kv/${mount.uuid}/`;
  const read = (path: string) => store.get<SecretRecord>(prefix + path);
  const write = (path: string, record: SecretRecord) => store.put(prefix + path, record);
  const exists: Route["exists"] = (params) => store.has(prefix + params.path);

  const put: Handler = ({ data, params }) => {
    const path = secretPath(params.path);
    const record = read(path) ?? newRecord();
    checkCas(record, data);
    const after = addVersion(record, secretData(data));
    write(path, after);
    return { data: versionFields(after, after.currentVersion) };
  };
  const patch: Handler = ({ data, params }) => {
    const path = secretPath(params.path);
    const record = read(path);
    const current = record?.versions[record.currentVersion];
    if (!record || !current) throw notFound();
    if (current.deletedAt !== "" || current.isDestroyed) {
      return { status: 404, data: { data: null, metadata: versionFields(record, record.currentVersion) } };
    }
    checkCas(record, data);
    const after = addVersion(record, mergePatch(current.data, secretData(data)) as Data);
    write(path, after);
    return { data: versionFields(after, after.currentVersion) };
  };
  const get: Handler = (call) => {
    const record = read(secretPath(call.params.path));
    const number = (count(call.data, "version") ?? 0) || record?.currentVersion || 0;
    const version = record?.versions[number];
    if (!record || !version) throw notFound();
    const metadata = versionFields(record, number);
    if (version.deletedAt !== "" || version.isDestroyed) {
      return { status: 404, data: { data: null, metadata } };
    }
    return { data: { data: version.data, metadata } };
  };
  const remove: Handler = ({ params }) => {
    const path = secretPath(params.path);
    const record = read(path);
    if (record) write(path, changeVersions(record, [record.currentVersion], markDeleted));
    return undefined;
  };
  const change = (name: string, how: (version: SecretVersion) => SecretVersion): Route => {
    const handler: Handler = ({ data, params }) => {
      const path = secretPath(params.path);
      const numbers = versionNumbers(data);
      const record = read(path);
      if (!record) {
        if (name === "undelete") throw notFound();
        return undefined;
      }
      write(path, changeVersions(record, numbers, how));
      return undefined;
    };
    return { path: `${name}/*path`, exists, handlers: { create: handler, update: handler } };
  };

  return [
    { path: "data/*path", exists, handlers: { create: put, update: put, patch, read: get, delete: remove } },
    change("delete", markDeleted),
    change("undelete", (version) => ({ ...version, deletedAt: "" })),
    change("destroy", (version) => ({ ...version, isDestroyed: true, data: null })),
    ...metadataRoutes(store, prefix),
    {
      path: "config",
      handlers: {
        read: () => ({ data: { cas_required: false, delete_version_after: "0s", max_versions: 0 } }),
      },
    },
    versionlessRoute(),
  ];
}

/** A path without `data/` is the usual mistake with this engine; Vault answers it with a warning, not an error. */
function versionlessRoute(): Route {
  const warn =
    (verb: string): Handler =>
    (): VaultAnswer => ({
      status: 404,
      data: null,
      warnings: [
        "Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API endpoints" +
          ` to use. If using the Vault CLI, use 'vault kv ${verb}' for this operation.`,
      ],
    });
  return {
    path: "*path",
    handlers: {
      read: warn("get"),
      create: warn("put"),
      update: warn("put"),
      delete: warn("delete"),
      list: warn("list"),
    },
  };
}

/** secretPath refuses a path without a name in it. */
export function secretPath(path: string | undefined): string {
  if (!path) throw badRequest("missing path");
  return path;
}

function secretData(data: Data): Data {
  const secret = data.data;
  if (typeof secret !== "object" || secret === null || Array.isArray(secret)) {
    throw badRequest("no data provided");
  }
  return secret as Data;
}

function checkCas(record: SecretRecord, data: Data): void {
  const options = data.options;
  const cas =
    typeof options === "object" && options !== null && "cas" in options ? (options as Data).cas : undefined;
  if (cas === undefined) {
    if (record.isCasRequired) throw badRequest("check-and-set parameter required for this call");
    return;
  }
  const wanted = typeof cas === "string" && /^\d+$/.test(cas) ? Number(cas) : cas;
  if (typeof wanted !== "number" || !Number.isSafeInteger(wanted)) {
    throw badRequest("error parsing check-and-set parameter");
  }
  if (wanted !== record.currentVersion) {
    throw badRequest("check-and-set parameter did not match the current version");
  }
}

function versionNumbers(data: Call["data"]): number[] {
  const list = typeof data.versions === "string" ? data.versions.split(",") : data.versions;
  const numbers = Array.isArray(list) ? list.map(Number) : [];
  if (numbers.length === 0) throw badRequest("no version number provided");
  if (!numbers.every(Number.isSafeInteger)) throw badRequest("version numbers must be numbers");
  return numbers;
}

function versionFields(record: SecretRecord, number: number): Record<string, unknown> {
  const version = record.versions[number] as SecretVersion;
  return {
    created_time: version.createdAt,
    custom_metadata: record.customMetadata,
    deletion_time: version.deletedAt,
    destroyed: version.isDestroyed,
    version: number,
  };
}

function markDeleted(version: SecretVersion): SecretVersion {
  return version.deletedAt !== "" ? version : { ...version, deletedAt: new Date().toISOString() };
}
