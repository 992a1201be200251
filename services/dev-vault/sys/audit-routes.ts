import { stringMap, text } from "../core/request.ts";
import type { Route } from "../core/route.ts";
import { badRequest } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";

/** auditRoutes are `sys/audit` and `sys/audit-hash`. */
export function auditRoutes(state: VaultState): Route[] {
  return [
    {
      path: "audit",
      needsSudo: true,
      handlers: {
        read: () => ({
          repeatsData: true,
          data: Object.fromEntries(
            state.audit
              .list()
              .map(({ path, description, options }) => [
                path,
                { description, local: false, options, path, type: "file" },
              ]),
          ),
        }),
      },
    },
    {
      path: "audit/*path",
      needsSudo: true,
      handlers: {
        update: ({ data, params }) => {
          if (text(data, "type") !== "file") {
            throw badRequest("only the file device can be enabled in the development vault");
          }
          const options = stringMap(data, "options") ?? {};
          if (!options.file_path) throw badRequest("file_path is required");
          state.audit.enable(`${params.path}/`, text(data, "description"), options);
          return undefined;
        },
        delete: ({ params }) => {
          state.audit.disable(`${params.path}/`);
          return undefined;
        },
      },
    },
    {
      path: "audit-hash/*path",
      handlers: {
        update: ({ data, params }) => {
          const hash = state.audit.hash(`${params.path}/`, text(data, "input"));
          if (hash === undefined) throw badRequest(`unknown audit backend "${params.path}/"`);
          return { repeatsData: true, data: { hash } };
        },
      },
    },
  ];
}
