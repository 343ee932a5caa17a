/** Returns whether a change may be applied to this version (RFC 9110 §13.1.1). */
export type Precondition = (version: number) => boolean;
