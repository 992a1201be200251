/** isHandLost tells whether an error result says that the hand is gone, whatever its exact words. */
export function isHandLost(text: string): boolean {
  return /HAND_(?:LOST|GONE|DEAD)|\bhands?(?:\b|_)[^.]{0,80}\b(?:lost|gone|died|dead|terminated|vanished|no longer)\b/i.test(
    text,
  );
}

/** isFileMissing tells whether a command failed because a file written earlier is not there (any more). */
export function isFileMissing(text: string): boolean {
  return /ENOENT|no such file|cannot find module/i.test(text);
}
