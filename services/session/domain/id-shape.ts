/** Shape of every id that a caller names or mints. */
export const ID = /^[A-Za-z0-9_-]{1,64}$/;
