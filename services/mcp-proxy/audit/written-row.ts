/** A record that the database wrote, with its line. */
export interface WrittenRow {
  sequence: string;
  line: string | null;
}
