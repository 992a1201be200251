import type { Pool } from "pg";
import { query } from "./query.ts";

const BEAT = {
  name: "beat",
  text: `INSERT INTO proxy.replicas (instance, boot_id) VALUES ($1, $2)
         ON CONFLICT (instance) DO UPDATE SET boot_id = excluded.boot_id, heartbeat_at = now()`,
};

/** Says that this boot of the instance lives; the boot before it is dead from then on. */
export async function beat(pool: Pool, writer: { instance: string; bootId: string }): Promise<void> {
  await query(pool, BEAT, [writer.instance, writer.bootId]);
}
