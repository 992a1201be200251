import type { ListRecordsRequest } from "../../gen/ganglion/audit/v1/audit_service.ts";
import type { Mesh } from "../client/connect-mesh.ts";

const PAGE = 1000;

/** Yields the lines of the running mesh's audit log, as an export has them. */
export async function* readLiveLines(
  mesh: Mesh,
  filter: Partial<Pick<ListRecordsRequest, "sessionId" | "requestId">> = {},
): AsyncGenerator<string> {
  for (let afterSequence = 0n; ; ) {
    const { records } = await mesh.audit.listRecords({
      afterSequence,
      limit: PAGE,
      sessionId: "",
      requestId: "",
      withLines: true,
      ...filter,
    });
    for (const { line } of records) yield line;
    const last = records.at(-1);
    if (!last) return;
    afterSequence = last.sequence;
  }
}
