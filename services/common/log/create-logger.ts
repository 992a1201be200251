import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";
import { VERSION } from "../version.ts";
import { logOutput } from "./log-output.ts";

/** Structured logger; `child` adds fields. */
export type Logger = PinoLogger;

/** Levels a service can log at. */
export type LogLevel = "debug" | "info" | "warn" | "error";

// Fields that may hold a credential or a payload, wherever somebody puts them by mistake.
const REDACTED = [
  "authorization",
  "password",
  "secret",
  "secret_id",
  "token",
  "session_token",
  "api_key",
  "key",
  "headers",
  "metadata",
  "payload",
  "body",
  "input",
  "content",
  "prompt",
  "request",
  "response",
];
const PATHS = REDACTED.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

/** What names the process in every line. */
export interface LogIdentity {
  service: string;
  instance: string;
}

/**
 * Makes the JSON logger of a service: one object a line on standard output with ts, level,
 * service, instance and version. Payloads, prompts and headers are never logged.
 */
export function createLogger(
  identity: LogIdentity,
  level: LogLevel,
  destination?: DestinationStream,
): Logger {
  const options = {
    level,
    base: { service: identity.service, instance: identity.instance, version: VERSION },
    timestamp: () => `,"ts":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: PATHS, censor: "[redacted]" },
    serializers: { err: describeError },
  };
  if (destination) return pino(options, destination);
  const output = logOutput();
  return pino(
    {
      ...options,
      hooks: {
        logMethod(args, method, level) {
          method.apply(this, args);
          output.wrote(level);
        },
      },
    },
    output.destination,
  );
}

/** Switches between the configured level and debug on SIGUSR2. */
export function switchLevelOnSignal(log: Logger): void {
  const configured = log.level;
  process.on("SIGUSR2", () => {
    log.level = log.level === "debug" ? configured : "debug";
    log.info({ log_level: log.level }, "log level switched");
  });
}

/**
 * What the log says of an error: its kind, message, stack and causes, and none of the other
 * fields that libraries hang on theirs (requests, headers, queries with parameters).
 */
export function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error, message: cut(String(error)) };
  const { code, reason } = error as { code?: unknown; reason?: unknown };
  return {
    type: error.name,
    message: cut(error.message),
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    ...(typeof reason === "string" ? { reason } : {}),
    stack: error.stack?.split("\n").slice(1, 9).join("\n"),
    ...(error.cause !== undefined && depth < 3 ? { cause: describeError(error.cause, depth + 1) } : {}),
  };
}

function cut(text: string): string {
  return text.length > 500 ? `${text.slice(0, 499)}…` : text;
}
