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
];
