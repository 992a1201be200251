/** How many bytes Buffer.concat makes while the work is done: what joins a stream anew for each piece makes very many. */
export async function bytesJoined(work: () => void | Promise<void>): Promise<number> {
  const { concat } = Buffer;
  let joined = 0;
  Buffer.concat = (list, length) => {
    const whole = concat(list, length);
    joined += whole.length;
    return whole;
  };
  try {
    await work();
  } finally {
    Buffer.concat = concat;
  }
  return joined;
}
