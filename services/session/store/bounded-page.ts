import type { Row, Statement } from "./database.ts";

// Below the 4 MiB of a message, with room for what a row's other columns add.
const PAGE_BYTES = 3 << 20;
const ROW_BYTES = 1024;

/**
 * boundedPage makes a list's statement end its page by bytes as well as by rows, in the database, so that what is not
 * sent is not read. `select` has its own order and limit, and a column `size` with the bytes of a row's documents.
 */
export function boundedPage(name: string, select: string, order: string): Statement {
  return {
    name,
    text: `SELECT * FROM (
        SELECT r.*, sum(r.size + ${ROW_BYTES}) OVER (ORDER BY ${order}) AS total, count(*) OVER () AS available
        FROM (${select}) r
      ) page WHERE page.total <= ${PAGE_BYTES} OR page.total = page.size + ${ROW_BYTES} ORDER BY ${order}`,
  };
}

/** The rows of a page of at most that many, and the last of them when more follow. */
export function cutPage(rows: readonly Row[], pageSize: number): { page: Row[]; last: Row | undefined } {
  const page = rows.slice(0, pageSize);
  const hasMore = page.length > 0 && rows[0]?.available > BigInt(page.length);
  return { page, last: hasMore ? page.at(-1) : undefined };
}
