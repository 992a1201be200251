import { text } from "node:stream/consumers";
import { serveControl } from "./control-socket.ts";
import { Supervisor } from "./supervisor.ts";
import type { StartLine, SupervisorOptions } from "./supervisor-options.ts";

// Node's own answer would be to open its inspector, and this process holds the keys of the mesh. [A096]
process.on("SIGUSR1", () => console.error("supervisor: SIGUSR1 ignored"));

// Options come on standard input: they may hold logins. Progress goes to standard output until whoever started us
// has seen enough and closes it; from then on there is nobody to tell.
const options = JSON.parse(await text(process.stdin)) as SupervisorOptions;
process.stdout.on("error", () => {});
const say = (line: StartLine) => void process.stdout.write(`${JSON.stringify(line)}\n`);

// Whatever escapes is logged and lived through: ending here would leave a mesh without anybody to restart its parts.
process.on("uncaughtException", (error) => console.error("supervisor:", error));
process.on("unhandledRejection", (error) => console.error("supervisor:", error));

const supervisor = new Supervisor(options);
const close = await serveControl(supervisor.files.socket, async (request, tell) => {
  if (request.ask === "status") tell(supervisor.status());
  else if (request.ask === "wait") await supervisor.ready(request.part, request.notPid);
  else if (request.ask === "renew") await supervisor.renew();
  else if (request.ask === "down") await supervisor.stop((step) => tell({ stopping: step }));
  else throw new Error("the supervisor does not know that request");
});
supervisor.once("stopped", () => {
  close();
  // The answer to whoever asked leaves first.
  setTimeout(() => process.exit(process.exitCode ?? 0), 50);
});
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(
    signal,
    () => void supervisor.stop().catch((error: Error) => console.error("supervisor:", error)),
  );
}

try {
  await supervisor.start(say);
} catch (error) {
  console.error("supervisor:", error);
  process.exitCode = 1;
  say({ failed: (error as Error).message });
}
