/* Counts what was acknowledged and what was refused, and in the measured part the time of every answer. */

#ifndef METER_H
#define METER_H

#include <stdint.h>

#include "answer.h"
#include "plan.h"

#define TIMES_COUNT 4096
#define ERRORS_MAX 32

struct moment {
    int64_t ns;
    uint64_t messages;
    int64_t cpu_ns;
};

struct refusal {
    int64_t code;
    char remark[REMARK_BYTES + 1];
    uint64_t count;
};

struct meter {
    uint64_t messages; /* acknowledged, pulled, or sent one-way */
    uint64_t issued;   /* messages of all requests made so far */
    uint64_t refused;  /* answers with another code than 0 */
    struct moment start, from, to;
    int measuring, over;
    uint64_t times[TIMES_COUNT]; /* microseconds, counted with a precision of 1 % */
    uint64_t timed;
    int64_t longest_ns;
    struct refusal refusals[ERRORS_MAX];
    int refusal_count;
};

int64_t clock_ns(void);
void meter_start(struct meter *meter);

/* Whether to go on sending; marks the borders of the measured part as they pass. */
int meter_goes_on(struct meter *meter, const struct plan *plan, int64_t now_ns);

void meter_time(struct meter *meter, int64_t ns);
void meter_refused(struct meter *meter, const struct answer *answer);

/* The whole run was measured: one-way requests, whose last one is answered after all others. */
void meter_measure_all(struct meter *meter);

/* One line of JSON: the fields of LoadResult. */
void meter_print(const struct meter *meter);

#endif
