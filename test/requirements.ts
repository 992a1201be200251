/** A promise or a known failure that some test must cite by its id. */
export interface Requirement {
  /** Id as tests cite it, in square brackets in a test's title. */
  readonly id: string;
  /** What the test shows, in a few words. */
  readonly shows: string;
}

/**
 * The manifest: every id here must be cited by a test that runs. It grows with each kind of case that
 * comes to touch what exists; an id never leaves it.
 */
export const REQUIREMENTS: readonly Requirement[] = [
  { id: "B126", shows: "a reader that stops is bounded, then cut off with a position to resume from" },
  { id: "B127", shows: "a reader in bursts gets every message in order" },
  {
    id: "B128",
    shows: "pages are cut by bytes and a single oversized event is refused with the limit named",
  },
  { id: "B130", shows: "watchers that vanish leave nothing behind" },
  {
    id: "B132",
    shows: "SIGTERM: health first, streams ended with UNAVAILABLE, calls finished, exit in time",
  },
  { id: "B134", shows: "the shorter deadline wins downstream and a child ends with its parent" },
  { id: "B135", shows: "clients survive a restart of the server without help" },
  { id: "B136", shows: "our keepalive suits servers that allow one ping in five minutes" },
  { id: "B138", shows: "a quiet watch still says something within 30 seconds" },
  { id: "B140", shows: "list, describe and call work by reflection alone, for every service" },
  { id: "B142", shows: "a handler that throws answers INTERNAL at once and the process lives" },
  { id: "B144", shows: "positions above 2^53 survive, and are strings in JSON" },
  { id: "B146", shows: "JSON nulls at any depth come back as they were" },
  { id: "B147", shows: "0, null, false, the empty string and absence stay five different things" },
  { id: "M01", shows: "reflection serves the original descriptors, imports included" },
  { id: "M02", shows: "an async handler that rejects neither kills the process nor hangs the caller" },
  { id: "M03", shows: "a handler that throws synchronously answers INTERNAL" },
  { id: "M04", shows: "stream writes wait for the reader" },
  { id: "M05", shows: "nothing is written after the caller went away" },
  { id: "M06", shows: "open streams do not keep a server from stopping" },
  { id: "M07", shows: "answers stay below the message limit" },
  { id: "M09", shows: "payloads are verbatim bytes, never Struct" },
  { id: "M11", shows: "bytes that are no UTF-8 survive" },
  { id: "B001", shows: "a call left open by a dead brain gets one result, asked for and never run blindly" },
  { id: "B002", shows: "of parallel calls only the one without a result is settled" },
  { id: "B004", shows: "results are paired within their turn when an id comes again" },
  { id: "B005", shows: "a late or second result is never projected" },
  { id: "B007", shows: "an interrupt during a hanging tool is honoured within two seconds" },
  { id: "B008", shows: "replayed blocks are byte for byte what the API sent" },
  { id: "B010", shows: "redacted thinking survives untouched" },
  { id: "B011", shows: "empty text stays in the log and out of the request" },
  { id: "B013", shows: "all results of a turn are one message right after it" },
  { id: "B014", shows: "two projections of one log are the same bytes" },
  { id: "B016", shows: "nothing of an answer that was cut counts, and it is asked again" },
  { id: "B018", shows: "an overload inside a stream is retried by the harness and visible" },
  { id: "B019", shows: "a retry leaves one answer in the log" },
  { id: "B020", shows: "Retry-After is honoured by one layer, with the lease kept" },
  { id: "B023", shows: "each kind of final model error keeps a reason of its own" },
  { id: "B025", shows: "a call cut at the token limit is not run, the model is told, tries are bounded" },
  { id: "B027", shows: "every way an answer ends is told apart, unknown ones fail closed" },
  { id: "B031", shows: "a huge result is kept whole in the log and capped for the model" },
  { id: "B032", shows: "one cap at one place for every source of tool output" },
  { id: "B034", shows: "a result without its call is stripped" },
  { id: "B035", shows: "an image that is too large becomes a note before it is projected" },
  { id: "B036", shows: "images are measured as they are sent" },
  { id: "B097", shows: "names of MCP tools are deterministic, short, safe and unique" },
  { id: "B100", shows: "a root anyOf does not spoil the other tools" },
  { id: "B101", shows: "odd schemas are offered in an accepted form, drops visible" },
  { id: "B103", shows: "structured content reaches the model" },
  { id: "B104", shows: "an image instead of promised structure is delivered" },
  { id: "B149", shows: "one brain drives a session at a time" },
  { id: "B150", shows: "a brain that slept through its lease writes nothing" },
  { id: "B152", shows: "an effect whose result was lost is asked for by key" },
  { id: "M17", shows: "the SDK never retries by itself" },
  { id: "M18", shows: "waiting for the model is visible and keeps the lease" },
  { id: "M19", shows: "errors inside a stream are known by their type" },
  { id: "M20", shows: "half a tool input is never taken for a whole one" },
  { id: "M21", shows: "a tool input that is no JSON loses nothing else of the turn" },
  { id: "M22", shows: "a stream that ends early is a failure, whichever way it ends" },
  { id: "M23", shows: "stop reasons are switched exhaustively" },
  { id: "A158", shows: "no model credential reaches a harness by its environment" },
];
