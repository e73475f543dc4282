/* Time, for what is measured and reported. */
#ifndef CLOCK_H
#define CLOCK_H

/* Milliseconds of a clock that only goes forward. */
double now_ms(void);

#endif
