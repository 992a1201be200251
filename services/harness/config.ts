import { commonFields } from "../common/config/common-fields.ts";
import { hostPort, integer, optional, path, replicas } from "../common/config/fields.ts";

/** Settings of a harness. It has no setting that could hold a secret. */
export const harnessFields = {
  ...commonFields,
  GANGLION_SESSION_ADDR: replicas("where the session service is"),
  GANGLION_SANDBOX_ADDR: hostPort("where hands are made"),
  GANGLION_PROXY_ADDR: hostPort("where mcp-proxy is, for gRPC"),
  GANGLION_PROXY_HTTP_ADDR: hostPort("where mcp-proxy is, for the model route"),
  GANGLION_HARNESS_MAX_SESSIONS: integer("sessions driven at once", { min: 1, max: 10_000 }, 64),
  GANGLION_HARNESS_LINGER_MS: integer(
    "how long a session without work is kept, so that its next turn begins sooner",
    { min: 0, max: 3_600_000 },
    20_000,
  ),
  GANGLION_HARNESS_POLL_MS: integer(
    "longest time between two looks for work without a hint",
    { min: 50, max: 60_000 },
    1000,
  ),
  GANGLION_HARNESS_EVALUATOR: optional(
    path(
      'a module whose default export decides on calls under the permission policy "auto"; absent = the built-in rules/1',
    ),
  ),
  GANGLION_HARNESS_EVALUATOR_MS: integer(
    "how long the evaluator may take over one call before a person is asked",
    { min: 10, max: 60_000 },
    5000,
  ),
};
