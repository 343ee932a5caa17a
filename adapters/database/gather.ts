// How many batches run concurrently before items wait for the next one. With one, the database would be idle while the
// process prepares the next batch; each further one makes the batches smaller.
const CONCURRENCY = 2;
// A batch that takes longer waits for a lock, and must not hold up the others.
const STALLED_MS = 100;
// Stays below PostgreSQL's limit of 65,535 parameters per statement for every table.
const MAX_ITEMS = 500;

/**
 * Creates a function that adds an item to the next batch. A batch runs at the end of the turn of the event loop, or when
 * an earlier batch is finished, so the busier the database is, the larger the batches are.
 *
 * @param run processes a batch, and never rejects
 */
export function createGatherer<Item>(run: (batch: Item[]) => Promise<void>): (item: Item) => void {
  const waiting: Item[] = [];
  let running = 0;
  let isScheduled = false;

  function schedule() {
    if (isScheduled || running >= CONCURRENCY || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(start);
  }

  function start() {
    isScheduled = false;
    running++;
    let isCounted = true;
    const end = () => {
      if (isCounted) running--;
      isCounted = false;
      schedule();
    };
    const timer = setTimeout(end, STALLED_MS);
    void run(waiting.splice(0, MAX_ITEMS)).finally(() => {
      clearTimeout(timer);
      end();
    });
    schedule();
  }

  return (item) => {
    waiting.push(item);
    schedule();
  };
}
