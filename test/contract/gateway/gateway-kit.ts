import { createHash } from "node:crypto";
import { DEFAULT_IMAGE } from "../../../services/common/config/common-fields.ts";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { type Implementation, implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import { type RunningServer, startServer } from "../../../services/common/grpc/start-server.ts";
import { createLogger } from "../../../services/common/log/create-logger.ts";
import { ApiKey, ApiKeyServiceService } from "../../../services/gen/ganglion/agent/v1/api_key_service.ts";
import { TestCa } from "../../kit/ca.ts";
import { type RunningService, startService } from "../../kit/start-service.ts";

/** A gateway process in front of services that the test plays. */
export interface GatewayUnderTest {
  readonly ca: TestCa;
  readonly gateway: RunningService;
  /** host:port of the public gRPC address. */
  readonly grpc: string;
  /** Base URL of the REST API. */
  readonly rest: string;
  /** Ends the played session service, and starts it again at the same address. */
  stopSession(): Promise<void>;
  startSession(): Promise<void>;
  stop(): Promise<void>;
}

const MAIN = new URL("../../../services/gateway/main.ts", import.meta.url);

/** startGateway starts the gateway; `session` are the methods that the played session service has. */
export async function startGateway(
  session: Implementation[],
  proxy?: { ca: TestCa; address: string },
): Promise<GatewayUnderTest> {
  const ca = proxy?.ca ?? (await TestCa.create());
  let address = "127.0.0.1:0";
  let server: RunningServer | undefined;
  const startSession = async () => {
    server = await startServer({
      service: "session",
      instance: "session-1",
      listen: address,
      tls: await ca.bundle("session"),
      image: DEFAULT_IMAGE,
      implementations: session,
      log: createLogger({ service: "session", instance: "session-1" }, "error"),
      ownsProcess: false,
      drainGraceMs: 200,
    });
    address = server.address;
  };
  await startSession();
  const gateway = await startService(MAIN, {
    env: {
      GANGLION_INSTANCE: "gateway-1",
      GANGLION_LISTEN: "127.0.0.1:0",
      GANGLION_ADMIN_LISTEN: "127.0.0.1:0",
      GANGLION_TLS_DIR: await ca.directory("gateway"),
      GANGLION_PUBLIC_LISTEN: "127.0.0.1:0",
      GANGLION_REST_LISTEN: "127.0.0.1:0",
      GANGLION_SESSION_ADDR: address,
      GANGLION_PROXY_ADDR: proxy?.address ?? "127.0.0.1:1",
      GANGLION_SANDBOX_ADDR: "127.0.0.1:1",
      GANGLION_HARNESS_ADDRS: "127.0.0.1:1",
      GANGLION_DRAIN_GRACE_MS: "1000",
    },
  });
  const doors = await gateway.line(({ msg }) => msg === "public doors are open");
  return {
    ca,
    gateway,
    grpc: String(doors.addr),
    rest: `http://${String(doors.rest_addr)}`,
    startSession,
    stopSession: async () => {
      server?.force();
      await server?.drain();
    },
    stop: async () => {
      await gateway.stop();
      server?.force();
      if (!proxy) ca.remove();
    },
  };
}

/** playApiKeys plays a service that knows one API key, of the workspace "wrkspc_a". */
export function playApiKeys(key: string): Implementation {
  const known = createHash("sha256").update(key).digest();
  const apiKey = ApiKey.fromPartial({ id: "apikey_1", workspaceId: "wrkspc_a", name: "test" });
  return implementSome(ApiKeyServiceService, {
    authenticateApiKey: unary(async ({ keySha256 }) => {
      if (known.equals(keySha256)) return { apiKey };
      throw new GanglionError({ code: "UNAUTHENTICATED", reason: "API_KEY_INVALID", message: "no such key" });
    }),
  });
}

export { implementSome };
