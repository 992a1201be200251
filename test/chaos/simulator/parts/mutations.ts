/**
 * Faults that can be built into the simulated parts, never into the services: each of them breaks a promise that the
 * services rely on, and the checks must notice.
 */
export const MUTATIONS = {
  storeForgetsEpoch: {
    words: "the store takes appends of whoever asks, whatever the epoch",
    shows: /epoch|held no lease|results|comes to rest|answers/,
  },
  storeKeepsDuplicates: {
    words: "the store keeps an event that comes twice twice",
    shows: /twice|results|took effect|epoch|told/,
  },
  storeLosesAppends: {
    words: "the store confirms what it does not keep",
    shows: /is not there|comes to rest|are not answered|is of epoch/,
  },
  storeIgnoresExpectedPosition: {
    words: "the store ignores at which position an idle or a request was meant",
    shows: /after the client had answered|left behind|comes to rest|results|gives no request/,
  },
  leasesAreGivenTwice: {
    words: "a session is given away while its holder lives",
    shows: /while its holder lived|comes to rest|are not answered/,
  },
  journalForgetsKeys: {
    words: "the sandbox's journal forgets the keys that were used",
    shows: /took effect/,
  },
  diskLosesRecords: {
    words: "the sandbox's disk keeps nothing through a crash",
    shows: /took effect/,
  },
  proxyClaimsTwice: {
    words: "the proxy lets a key be claimed again",
    shows: /took effect/,
  },
  brainSkipsLookUp: {
    words: "brains believe that no journal knows a key",
    shows: /took effect/,
  },
} as const;

/** Name of a mutation. */
export type Mutation = keyof typeof MUTATIONS;
