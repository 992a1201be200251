import { commonFields } from "../common/config/common-fields.ts";
import { choice, integer, optional, path, replicas, text } from "../common/config/fields.ts";

const DAY_MS = 24 * 3_600_000;
const MIB = 1024 ** 2;

/** Settings of the sandbox service. */
export const sandboxFields = {
  ...commonFields,
  GANGLION_SESSION_ADDR: replicas("address of the session service, which confirms leases"),
  GANGLION_PROXY_ADDR: optional(
    replicas("address of mcp-proxy, which says what hands may reach; absent = hands reach nothing"),
  ),
  GANGLION_PROXY_EGRESS_ADDR: optional(
    replicas("address of mcp-proxy's egress door, the only way out of hands; goes with the one above"),
  ),
  GANGLION_HAND_CONNECTIONS: integer(
    "connections to the outside that a hand may have open at a time",
    { min: 1, max: 1_024 },
    64,
  ),
  GANGLION_EGRESS_CONNECTIONS: integer(
    "connections to the outside of all hands at a time; each takes two descriptors of this process",
    { min: 1, max: 100_000 },
    1_024,
  ),
  GANGLION_EGRESS_IDLE_MS: integer(
    "a hand's connection over which nothing came for so long is closed",
    { min: 100, max: DAY_MS },
    300_000,
  ),
  GANGLION_DATA_DIR: path(
    "folder for the journal and the hands' files; hands' users must be able to reach it",
  ),
  GANGLION_NODE: path("Node binary that is shown to hands", process.execPath),
  GANGLION_CGROUP_ROOT: optional(
    text(
      "control group folders given to this service, separated by commas: one of v2, or one per controller of v1",
    ),
  ),
  GANGLION_HAND_UIDS: choice(
    "auto: hands get host user ids of their own where that works; required: no hands where it does not",
    ["auto", "required"],
    "auto",
  ),
  GANGLION_HAND_IDLE_TTL_MS: integer(
    "a hand that ran nothing for so long is ended",
    { min: 1_000, max: 30 * DAY_MS },
    3_600_000,
  ),
  GANGLION_MAX_HANDS: integer("most hands at a time", { min: 1, max: 10_000 }, 64),
  GANGLION_HAND_MEMORY_MIB: integer("memory of a hand that asks for none", { min: 64, max: 65_536 }, 2_048),
  GANGLION_HAND_CPU_MILLIS: integer(
    "processor time of a hand that asks for none",
    { min: 100, max: 64_000 },
    2_000,
  ),
  GANGLION_HAND_PROCESSES: integer("processes of a hand that asks for none", { min: 16, max: 32_768 }, 512),
  GANGLION_HAND_DISK_MIB: integer(
    "largest file of a hand that asks for none",
    { min: 1, max: 1_048_576 },
    4_096,
  ),
  GANGLION_JOURNAL_RETENTION_MS: integer(
    "how long results are kept",
    { min: 3_600_000, max: 365 * DAY_MS },
    7 * DAY_MS,
  ),
  GANGLION_JOURNAL_COMPACT_BYTES: integer(
    "size from which the journal is rewritten",
    { min: 4_096, max: 1024 * MIB },
    64 * MIB,
  ),
};
