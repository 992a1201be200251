import type { Pool, QueryResultRow } from "pg";
import { stripDatabaseError } from "./database-error.ts";

/** One statement with parameters; `name` makes it prepared once per connection. */
export interface Statement {
  name: string;
  text: string;
}

/** Runs a statement in a transaction of its own and answers its rows; errors carry no values. */
export async function query<Row extends QueryResultRow>(
  pool: Pool,
  statement: Statement,
  values: unknown[],
): Promise<Row[]> {
  try {
    return (await pool.query<Row>({ ...statement, values })).rows;
  } catch (error) {
    throw stripDatabaseError(error);
  }
}
