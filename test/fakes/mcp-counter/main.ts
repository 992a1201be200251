import { once } from "node:events";
import { listenOnLoopback } from "../process/listen-on-loopback.ts";
import { readDescriptor } from "../process/read-descriptor.ts";
import { runFake } from "../process/run-fake.ts";
import { createCounterServer } from "./counter-server.ts";

await runFake(async () => {
  const secrets = readDescriptor(["token", "journal_token"]);
  const server = createCounterServer({
    token: secrets.token ?? "",
    journalToken: secrets.journal_token ?? "",
  });
  const addr = await listenOnLoopback(server);
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return { listening: { addr, url: `http://${addr}/mcp` }, stop };
});
