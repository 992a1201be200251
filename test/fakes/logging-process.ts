import { createLogger } from "../../services/common/log/create-logger.ts";

// Logs, and ends in the way that it is told.
const log = createLogger({ service: "fixture", instance: "fixture-1" }, "info");
const LINES = 3_000;
switch (process.argv[2]) {
  case "exits":
    log.info("last");
    process.exit(0);
    break;
  case "throws":
    log.info("last");
    throw new Error("on purpose");
  case "is killed":
    log.info("before");
    log.warn("last");
    process.kill(process.pid, "SIGKILL");
    break;
  case "says a lot":
    for (let n = 0; n < LINES; n++) log.info({ n }, "line");
    log.info("last");
    break;
  case "stays":
    log.info("last");
    process.stdin.resume();
}
