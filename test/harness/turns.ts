/** Returns how many turns the event loop takes while a piece of work is done: in each of them, others could be served. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isWorking = true;
  const count = () => {
    turns++;
    if (isWorking) setImmediate(count);
  };
  setImmediate(count);
  await work().finally(() => {
    isWorking = false;
  });
  return turns;
}
