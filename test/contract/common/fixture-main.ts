// A session service with fake handlers, as a process of its own. What its handlers do is named in the session id.
import { commonFields } from "../../../services/common/config/common-fields.ts";
import { integer } from "../../../services/common/config/fields.ts";
import { loadConfig } from "../../../services/common/config/load-config.ts";
import { readBootstrap } from "../../../services/common/config/read-bootstrap.ts";
import { implementSome, serverStream, unary } from "../../../services/common/grpc/handlers.ts";
import { startServer } from "../../../services/common/grpc/start-server.ts";
import { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";

const config = loadConfig("session", {
  ...commonFields,
  GANGLION_FIXTURE_MS: integer("how long a slow call takes", { min: 0, max: 60_000 }, 500),
});
const bootstrap =
  config.GANGLION_BOOTSTRAP_FD === undefined ? {} : readBootstrap(config.GANGLION_BOOTSTRAP_FD);

await startServer({
  service: "session",
  instance: config.GANGLION_INSTANCE,
  listen: config.GANGLION_LISTEN,
  adminListen: config.GANGLION_ADMIN_LISTEN,
  image: config.GANGLION_IMAGE,
  logLevel: config.GANGLION_LOG_LEVEL,
  drainGraceMs: config.GANGLION_DRAIN_GRACE_MS,
  tls: new TlsBundle(config.GANGLION_TLS_DIR),
  implementations: [
    implementSome(SessionServiceService, {
      getSession: unary(async ({ sessionId }, ctx) => {
        if (sessionId === "sesn_slow") {
          await new Promise((resolve) => setTimeout(resolve, config.GANGLION_FIXTURE_MS));
        } else if (sessionId === "sesn_hangs") {
          await new Promise(() => {});
        } else if (sessionId === "sesn_escapes") {
          setTimeout(() => {
            throw new Error("escaped");
          }, 1);
        } else if (sessionId === "sesn_floats") {
          void Promise.reject(new Error("floating"));
        }
        ctx.note({ has_login: bootstrap.postgres !== undefined });
        return { session: undefined };
      }),
      watchEvents: serverStream(
        async function* (_request, ctx) {
          yield { position: 7n, message: { $case: "checkpoint", value: {} } };
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        },
        { resume: (last) => ({ position: String(last.position) }) },
      ),
    }),
  ],
  readiness: async () => [{ name: "fixture", ok: true }],
});
