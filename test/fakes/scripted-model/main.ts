import { once } from "node:events";
import { listenOnLoopback } from "../process/listen-on-loopback.ts";
import { readDescriptor } from "../process/read-descriptor.ts";
import { runFake } from "../process/run-fake.ts";
import { createModelServer } from "./model-server.ts";

await runFake(async () => {
  const secrets = readDescriptor(["api_key"], ["journal_token"]);
  const server = createModelServer({ apiKey: secrets.api_key ?? "", journalToken: secrets.journal_token });
  const addr = await listenOnLoopback(server);
  const stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return { listening: { addr, scripted: true }, stop };
});
