import { fileURLToPath } from "node:url";
import { choice, flag, hostPort, integer, optional, path, text } from "./fields.ts";

/** The image that `make gen` writes. */
export const DEFAULT_IMAGE = fileURLToPath(new URL("../../gen/image.binpb", import.meta.url));

/** Settings that every service has. Spread them into the service's own. */
export const commonFields = {
  GANGLION_INSTANCE: text("name of this process within its service, for example session-1"),
  GANGLION_LISTEN: hostPort("where the gRPC server listens", "127.0.0.1:0"),
  GANGLION_ADMIN_LISTEN: optional(hostPort("where /healthz, /readyz and /metrics listen; absent = nowhere")),
  GANGLION_TLS_DIR: path("folder with ca.pem, cert.pem and key.pem; watched"),
  GANGLION_IMAGE: path("descriptors of all protos, made by `make gen`", DEFAULT_IMAGE),
  GANGLION_LOG_LEVEL: choice("least level logged", ["debug", "info", "warn", "error"], "info"),
  GANGLION_REFLECTION: flag("serve gRPC reflection (to operators only)", true),
  GANGLION_DRAIN_GRACE_MS: integer(
    "how long calls may go on after SIGTERM",
    { min: 0, max: 600_000 },
    10_000,
  ),
  GANGLION_BOOTSTRAP_FD: optional(integer("descriptor with the bootstrap document", { min: 3, max: 255 })),
};
