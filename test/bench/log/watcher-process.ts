// Watches one session many times over a few connections and tells on standard output when each watch had each event:
// {"ready":true}, then one line an event, {"position","at":[…]}, in nanoseconds of the machine's monotonic clock.
import { createClient } from "../../../services/common/grpc/create-client.ts";
import { TlsBundle } from "../../../services/common/tls/tls-bundle.ts";
import {
  SessionServiceService,
  WatchEventsRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";

const [address = "", tlsDir = "", sessionId = "", watchers = "0", connections = "1"] = process.argv.slice(2);
const count = Number(watchers);
const tls = new TlsBundle(tlsDir);
const clients = Array.from({ length: Number(connections) }, () =>
  createClient(SessionServiceService, address, tls, "session"),
);
const arrivals = new Map<bigint, string[]>();
let ready = 0;

async function watch(n: number): Promise<void> {
  const client = clients[n % clients.length];
  if (!client) throw new Error("no connection");
  const request = WatchEventsRequest.fromPartial({ sessionId, fromHead: true });
  let isReady = false;
  for await (const { position, message } of client.watchEvents(request)) {
    if (!isReady) {
      isReady = true;
      ready += 1;
      if (ready === count) tell({ ready: true });
    }
    if (message?.$case !== "event") continue;
    const at = arrivals.get(position) ?? [];
    at.push(String(process.hrtime.bigint()));
    arrivals.set(position, at);
    if (at.length === count) {
      arrivals.delete(position);
      tell({ position: String(position), at });
    }
  }
}

function tell(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

await Promise.all(Array.from({ length: count }, (_, n) => watch(n)));
