import { once } from "node:events";
import { listenOnLoopback } from "../process/listen-on-loopback.ts";
import { readDescriptor } from "../process/read-descriptor.ts";
import { runFake } from "../process/run-fake.ts";
import { createBearerProxy } from "./bearer-proxy.ts";
import { startEverythingServer } from "./everything-server.ts";

await runFake(async () => {
  const secrets = readDescriptor(["token"], ["journal_token"]);
  const everything = await startEverythingServer();
  const { socketPath } = everything;
  const server = createBearerProxy({
    socketPath,
    token: secrets.token ?? "",
    journalToken: secrets.journal_token,
  });
  const addr = await listenOnLoopback(server);
  let isStopping = false;
  // A half-dead upstream would only confuse: whoever supervises it starts both again.
  void everything.exited.then(() => isStopping || process.exit(1));
  const stop = async () => {
    isStopping = true;
    await everything.stop();
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return {
    listening: { addr, url: `http://${addr}/mcp`, server: "server-everything", server_pid: everything.pid },
    stop,
  };
});
