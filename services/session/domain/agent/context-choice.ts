import { Violations } from "../../../common/errors/violations.ts";
import { isObject, parseJson } from "../json-shape.ts";

// An agent's metadata is what the unmodified API offers to carry this.
const STRATEGY = "ganglion.context_strategy";
const OPTIONS = "ganglion.context_options";
const NAME = /^[a-z][a-z0-9-]{0,58}\/[0-9]{1,4}$/;

/** checkContext checks the shape of an agent's context strategy. Which names there are is the harness's business. */
export function checkContext(metadata: Readonly<Record<string, string>>): void {
  const violations = new Violations();
  const { [STRATEGY]: strategy, [OPTIONS]: options } = metadata;
  if (strategy !== undefined) {
    violations.check(
      NAME.test(strategy),
      `agent.metadata.${STRATEGY}`,
      'must be a name and a version, such as "compaction/1"',
    );
  }
  if (options !== undefined) {
    const at = `agent.metadata.${OPTIONS}`;
    violations.check(options.length <= 512 && isObject(parse(options)), at, "must be a JSON object");
    violations.check(strategy !== undefined, at, "belongs to a context strategy");
  }
  violations.throwIfAny();
}

/** contextOf reads the strategy and its options as the log keeps them; empty = the harness's default. */
export function contextOf(metadata: Readonly<Record<string, string>>): {
  contextStrategy: string;
  contextOptionsJson: Buffer;
} {
  return {
    contextStrategy: metadata[STRATEGY] ?? "",
    contextOptionsJson: Buffer.from(metadata[OPTIONS] ?? ""),
  };
}

function parse(text: string): unknown {
  return parseJson(Buffer.from(text));
}
