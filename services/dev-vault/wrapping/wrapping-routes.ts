import { formatSeconds } from "../core/duration.ts";
import { text } from "../core/request.ts";
import type { Call, Route } from "../core/route.ts";
import { badRequest } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";
import type { WrappedAnswer } from "../token/token-entry.ts";
import { known } from "../token/token-routes.ts";

/** The one message for a wrapping token that was used, has ended or never was. */
export const NO_WRAPPING_TOKEN = "wrapping token is not valid or does not exist";

/** wrappingRoutes are the routes of `sys/wrapping/`. */
export function wrappingRoutes(state: VaultState): Route[] {
  const unwrap = (call: Call): WrappedAnswer => {
    const caller = known(call);
    const token = text(call.data, "token");
    // The wrapping token may be the caller: its one use is then already spent, and named in the body as well it is
    // no longer found. A real server fails there too.
    const entry = token === "" ? caller.entry : state.tokens.find(token);
    if (!entry?.wrapped) throw badRequest(NO_WRAPPING_TOKEN);
    state.tokens.revoke(entry.hash);
    return entry.wrapped;
  };
  return [
    {
      path: "wrapping/wrap",
      handlers: {
        update: ({ request, data }) => {
          if (request.wrapTtlMs === 0) throw badRequest("endpoint requires response wrapping to be used");
          return { data };
        },
      },
    },
    { path: "wrapping/unwrap", handlers: { update: (call) => ({ replay: unwrap(call).answer }) } },
    {
      path: "wrapping/lookup",
      isOpen: true,
      handlers: {
        update: ({ data, request }) => {
          const entry = state.tokens.find(text(data, "token") || (request.token ?? ""));
          if (!entry?.wrapped) throw badRequest(NO_WRAPPING_TOKEN);
          const { creationPath, creationTime, ttlMs } = entry.wrapped;
          return {
            data: {
              creation_path: creationPath,
              creation_time: creationTime,
              creation_ttl: formatSeconds(ttlMs),
            },
          };
        },
      },
    },
  ];
}
