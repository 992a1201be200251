import type { Pool, QueryResultRow } from "pg";
import { crashPoint } from "../../common/crash/crash-point.ts";
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
    crashPoint("pg", statement.name, "before");
    const { rows } = await pool.query<Row>({ ...statement, values });
    crashPoint("pg", statement.name, "after");
    return rows;
  } catch (error) {
    throw stripDatabaseError(error);
  }
}
