/** Asks a thread what it waits for. */
export const WAITS_FOR = "what do you wait for?";

/** What a thread tells about the test file that it runs. */
export type Message = {
  type: string;
  testFile?: string;
  title?: string;
  skip?: boolean;
  logs?: string[];
  stack?: string | undefined;
  error?: Failure | undefined;
  text?: string;
  /** Of a file that ended without finishing. */
  reason?: string;
};

/** Why a test failed, as ava serializes it. */
export type Failure = {
  name?: string;
  message?: string;
  /** Set if an assertion of ava failed, not the code of the test itself. */
  assertion?: string | null;
  stack?: string;
  source?: { line: number } | null;
  formattedDetails?: { label: string; formatted: string }[];
  formattedError?: string;
  formattedCause?: string | null;
  errors?: Failure[];
  originalError?: unknown;
};

/** What ava's runner tells. */
export type RunnerEvent = Message & { err?: Failure };

/** Returns what can be sent of an event. */
export function toMessage({ err, ...event }: RunnerEvent): Message {
  return { ...event, error: err && toFailure(err) };
}

/** Returns what can be sent of an error: not always the error itself. */
export function toFailure({ originalError, errors = [], ...failure }: Failure): Failure {
  return { ...failure, errors: errors.map(toFailure) };
}

/** Returns the message and the details. */
export function textsOf({ message, formattedError = "", formattedDetails = [], formattedCause }: Failure) {
  const details = formattedDetails.map(({ label, formatted }) => `${label}\n\n${formatted}`);
  const texts = [message ?? formattedError, ...details];
  // The reason of a rejection is a detail, too.
  return formattedCause && !details.join("").includes(formattedCause) ? [...texts, formattedCause] : texts;
}
