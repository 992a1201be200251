import { commonFields } from "../common/config/common-fields.ts";
import { hostPort, integer, optional, text } from "../common/config/fields.ts";
import { priceListFile } from "./read-price-list.ts";

/** Settings of the session service. */
export const sessionFields = {
  ...commonFields,
  GANGLION_PROXY_ADDR: hostPort("address of mcp-proxy, which binds sessions to vaults"),
  GANGLION_HEARTBEAT_TTL_MS: integer(
    "how long a harness counts as alive after a heartbeat, by the database's clock",
    { min: 200, max: 600_000 },
    3_000,
  ),
  GANGLION_WATCH_QUIET_MS: integer(
    "longest time in which a stream says nothing; the contract promises 30 s",
    { min: 100, max: 30_000 },
    15_000,
  ),
  GANGLION_ADVERTISE_ADDR: optional(
    hostPort("where other replicas reach this one, when that is not GANGLION_LISTEN"),
  ),
  GANGLION_DB_POOL_SIZE: integer(
    "connections to PostgreSQL, the one for hints not counted",
    { min: 2, max: 100 },
    10,
  ),
  GANGLION_MODEL_PRICES_FILE: priceListFile(
    "path of the price list of models, a JSON file; absent: no model has a price",
  ),
  PGHOST: text("host of PostgreSQL"),
  PGPORT: integer("port of PostgreSQL", { min: 1, max: 65_535 }, 5_432),
  PGDATABASE: text("name of the database", "ganglion"),
  PGUSER: text("role to log in as", "ganglion_session"),
};
