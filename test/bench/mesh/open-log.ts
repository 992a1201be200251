import { createClient, type MeshClient } from "../../../services/common/grpc/create-client.ts";
import { SessionServiceService } from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";

/** openLog connects a client to the public address for as long as the stand stands. */
export async function openLog({
  door,
  cleanUps,
}: MeshStand): Promise<MeshClient<typeof SessionServiceService>> {
  const log = createClient(SessionServiceService, door.address, door.tls, door.service);
  cleanUps.add(() => log.close());
  await log.waitForReady(20_000);
  return log;
}
