import { mkdirSync } from "node:fs";
import { choice, hostPort, path, text } from "../common/config/fields.ts";
import { EXIT_CONFIG, loadConfig } from "../common/config/load-config.ts";
import { installLifecycle } from "../common/grpc/process-lifecycle.ts";
import { createLogger } from "../common/log/create-logger.ts";
import { TlsBundle } from "../common/tls/tls-bundle.ts";
import { Seal } from "./barrier/seal.ts";
import { Vault } from "./core/vault.ts";
import { createHandler } from "./http/handler.ts";
import { type RunningServer, startServer } from "./http/server.ts";
import { parseLoopback } from "./listen-address.ts";
import { OpenEndpoints } from "./sys/open-endpoints.ts";

const SWEEP_MS = 60_000;

const config = loadConfig("dev-vault", {
  GANGLION_INSTANCE: text("name of this process", "vault"),
  GANGLION_LISTEN: hostPort("where to listen; loopback only", "127.0.0.1:0"),
  GANGLION_TLS_DIR: path("folder with ca.pem, cert.pem and key.pem; watched"),
  GANGLION_DATA_DIR: path("folder for the encrypted data"),
  GANGLION_LOG_LEVEL: choice("least level logged", ["debug", "info", "warn", "error"], "info"),
});
const log = createLogger(
  { service: "dev-vault", instance: config.GANGLION_INSTANCE },
  config.GANGLION_LOG_LEVEL,
);

const where = readListen(config.GANGLION_LISTEN);
process.umask(0o077);
mkdirSync(config.GANGLION_DATA_DIR, { recursive: true, mode: 0o700 });
const vault = new Vault(config.GANGLION_DATA_DIR, new Seal(config.GANGLION_DATA_DIR));
const bundle = new TlsBundle(config.GANGLION_TLS_DIR);
bundle.on("rejected", (cause) => log.warn({ err: cause }, "a renewed certificate was not taken"));

let server: RunningServer | undefined;
const sweeper = setInterval(() => vault.sweep(), SWEEP_MS);
installLifecycle(log, {
  drain: async () => {
    clearInterval(sweeper);
    await server?.close();
    vault.seal();
  },
  force: () => server?.closeNow(),
});

const onBug = (cause: unknown) => log.error({ err: cause }, "request failed by a bug");
server = await startServer({
  ...where,
  bundle,
  handler: createHandler(vault, new OpenEndpoints(vault), onBug),
});
log.warn(
  "THIS IS THE DEVELOPMENT VAULT: one key share, no replication, loopback only. For anything that matters, " +
    "give `ganglion up` a real Vault or OpenBao.",
);
log.info({ addr: server.address, sealed: vault.isSealed }, "listening");

function readListen(listen: string): { host: string; port: number } {
  try {
    return parseLoopback(listen);
  } catch (cause) {
    process.stderr.write(
      `dev-vault: the configuration is wrong\n  GANGLION_LISTEN ${(cause as Error).message}\n`,
    );
    process.exit(EXIT_CONFIG);
  }
}
