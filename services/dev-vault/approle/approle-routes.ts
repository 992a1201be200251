import { formatSeconds, parseDuration } from "../core/duration.ts";
import { count, stringMap, text } from "../core/request.ts";
import type { Call, Handler, Route } from "../core/route.ts";
import { badRequest, notFound, VaultError } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import type { Approle, SecretId } from "./approle-store.ts";
import { loginWithApprole } from "./login.ts";
import { describeApprole, readApprole } from "./read-approle.ts";

/** approleRoutes are the routes of `auth/approle/`. */
export function approleRoutes(state: VaultState): Route[] {
  const roles = state.approles;
  const existing = (call: Call): Approle => {
    const name = call.params.role as string;
    const role = roles.read(name);
    if (!role) throw new VaultError(404, `role "${name}" does not exist`);
    return role;
  };
  const byAccessor = (call: Call): SecretId | undefined => {
    const accessor = text(call.data, "secret_id_accessor");
    if (accessor === "") throw badRequest("missing secret_id_accessor");
    return roles.secretIds(existing(call).name).find((secretId) => secretId.accessor === accessor);
  };
  const byValue = (call: Call): SecretId | undefined => {
    const value = text(call.data, "secret_id");
    if (value === "") throw badRequest("missing secret_id");
    return roles.findSecretId(existing(call).name, value);
  };
  const look =
    (find: (call: Call) => SecretId | undefined): Handler =>
    (call) => {
      const secretId = find(call);
      return secretId ? { data: describe(secretId) } : undefined;
    };
  const destroy =
    (find: (call: Call) => SecretId | undefined): Handler =>
    (call) => {
      const secretId = find(call);
      if (secretId) roles.deleteSecretId(secretId);
      return undefined;
    };
  const write: Handler = ({ data, params }) => {
    const name = params.role as string;
    roles.write(readApprole(name, data, roles.read(name)));
    return undefined;
  };

  return [
    { path: "login", isOpen: true, handlers: { update: loginWithApprole(state) } },
    { path: "role", handlers: { list: () => list(roles.list()) } },
    {
      path: "role/:role",
      exists: (params) => roles.read(params.role as string) !== undefined,
      handlers: {
        create: write,
        update: write,
        read: ({ params }) => {
          const role = roles.read(params.role as string);
          if (!role) throw notFound();
          return { data: describeApprole(role) };
        },
        delete: ({ params }) => {
          roles.delete(params.role as string);
          return undefined;
        },
      },
    },
    {
      path: "role/:role/role-id",
      handlers: {
        read: ({ params }) => {
          const role = roles.read(params.role as string);
          if (!role) throw notFound();
          return { data: { role_id: role.roleId } };
        },
        update: (call) => {
          const roleId = text(call.data, "role_id");
          if (roleId === "") throw badRequest("missing role_id");
          roles.write({ ...existing(call), roleId });
          return undefined;
        },
      },
    },
    {
      path: "role/:role/secret-id",
      handlers: {
        list: (call) => list(roles.secretIds(existing(call).name).map((secretId) => secretId.accessor)),
        update: (call) => {
          const role = existing(call);
          const numUses = count(call.data, "num_uses") ?? role.secretIdNumUses;
          const ttlMs =
            call.data.ttl === undefined ? role.secretIdTtlMs : parseDuration(call.data.ttl, "ttl");
          const metadata = stringMap(call.data, "metadata") ?? {};
          const { value, secretId } = roles.addSecretId(role, metadata, numUses, ttlMs);
          return {
            wrappedAccessor: secretId.accessor,
            data: {
              secret_id: value,
              secret_id_accessor: secretId.accessor,
              secret_id_num_uses: numUses,
              secret_id_ttl: formatSeconds(ttlMs),
            },
          };
        },
      },
    },
    { path: "role/:role/secret-id/lookup", handlers: { update: look(byValue) } },
    {
      path: "role/:role/secret-id/destroy",
      handlers: { update: destroy(byValue), delete: destroy(byValue) },
    },
    { path: "role/:role/secret-id-accessor/lookup", handlers: { update: look(byAccessor) } },
    {
      path: "role/:role/secret-id-accessor/destroy",
      handlers: { update: destroy(byAccessor), delete: destroy(byAccessor) },
    },
  ];
}

function list(keys: readonly string[]) {
  if (keys.length === 0) throw notFound();
  return { data: { keys } };
}

function describe(secretId: SecretId): Record<string, unknown> {
  return {
    cidr_list: [],
    creation_time: secretId.createdAt,
    expiration_time:
      secretId.expiresAt === null ? "0001-01-01T00:00:00Z" : new Date(secretId.expiresAt).toISOString(),
    metadata: secretId.metadata,
    secret_id_accessor: secretId.accessor,
    secret_id_num_uses: secretId.usesLeft,
    secret_id_ttl: formatSeconds(secretId.ttlMs),
    token_bound_cidrs: [],
  };
}
