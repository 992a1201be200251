import { commonFields } from "../common/config/common-fields.ts";
import {
  choice,
  hostPort,
  hostPorts,
  integer,
  optional,
  path,
  replicas,
  text,
  url,
} from "../common/config/fields.ts";

import { SHIPPED_POLICY } from "./policy/policy-file.ts";

/** Settings of mcp-proxy. Its logins come on the bootstrap descriptor, never here. */
export const fields = {
  ...commonFields,
  PGHOST: text("host of the database", "127.0.0.1"),
  PGPORT: integer("port of the database", { min: 1, max: 65_535 }, 5432),
  PGDATABASE: text("name of the database", "ganglion"),
  PGUSER: text("role to log in as", "ganglion_proxy"),
  GANGLION_SESSION_ADDR: replicas("address of the session service"),
  GANGLION_PROXY_HTTP_LISTEN: hostPort("where the model door listens", "127.0.0.1:0"),
  GANGLION_PROXY_HTTP_HOSTS: text(
    "further names (host:port, comma-separated) under which the model door is reached",
    "",
  ),
  GANGLION_PROXY_EGRESS_LISTEN: hostPort("where the egress door listens", "127.0.0.1:0"),
  GANGLION_MODEL_URL: url("base URL of the model's API", "https://api.anthropic.com"),
  GANGLION_SCRIPTED_MODEL_URL: optional(
    url("base URL of a scripted model, used when the session has no key for the other"),
  ),
  GANGLION_PROXY_ALLOW_HTTP_HOSTS: text(
    "destinations (host or host:port, comma-separated) that may be plain HTTP, private or loopback; none by default",
    "",
  ),
  GANGLION_PROXY_FORBIDDEN_ENDPOINTS: hostPorts(
    "further ports of the mesh (host:port, comma-separated) that are never a destination, whatever else allows them",
    "",
  ),
  GANGLION_AUDIT_DIR: optional(
    path("folder for audit records and checkpoints outside of the database, best on another volume"),
  ),
  GANGLION_AUDIT_SINKS: choice(
    "strict: a call goes on when database and folder have its record; any: the folder follows",
    ["strict", "any"],
    "strict",
  ),
  GANGLION_POLICY_FILE: path(
    "the operator's policy; watched, and never replaced by a bad one",
    SHIPPED_POLICY,
  ),
  GANGLION_UPSTREAM_CA_FILE: optional(path("PEM authorities trusted for upstreams beside the public ones")),
};

/** Splits a comma-separated setting. */
export function listOf(setting: string): string[] {
  return setting
    .split(",")
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== "");
}
