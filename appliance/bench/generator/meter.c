/* Times in logarithmic classes: exact below 256 us, above that 128 classes for each doubling. */

#include "meter.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXACT_BITS 8
#define CLASSES 128u

static int64_t read_clock(clockid_t which) {
    struct timespec time;
    clock_gettime(which, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int64_t clock_ns(void) { return read_clock(CLOCK_MONOTONIC); }

static struct moment moment_at(const struct meter *meter, int64_t now_ns) {
    return (struct moment){now_ns, meter->messages, read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

void meter_start(struct meter *meter) {
    memset(meter, 0, sizeof *meter);
    meter->start = moment_at(meter, clock_ns());
}

int meter_goes_on(struct meter *meter, const struct plan *plan, int64_t now_ns) {
    if (meter->over)
        return 0;
    if (!meter->measuring && now_ns >= meter->start.ns + plan->warm_ms * 1000000) {
        meter->from = moment_at(meter, now_ns); /* when the machine gets to it, which may be late */
        meter->measuring = 1;
    }
    int in_time = !meter->measuring || now_ns < meter->from.ns + plan->measure_ms * 1000000;
    if (meter->timed == 0 && plan->kind != ONE_WAY)
        in_time = 1; /* a server that stood still all the while has no rate yet: it is measured to its first answer */
    if (in_time && (plan->messages_max == 0 || meter->issued < plan->messages_max))
        return 1;
    if (in_time && meter->messages + meter->refused * plan->messages_per_frame < meter->issued)
        return 1; /* all are sent: measured until all are answered */
    meter->to = moment_at(meter, now_ns);
    if (!meter->measuring || meter->from.ns == now_ns)
        meter->from = meter->start;
    meter->over = 1;
    return 0;
}

void meter_measure_all(struct meter *meter) {
    meter->from = meter->start;
    meter->to = moment_at(meter, clock_ns());
}

static unsigned class_of(uint64_t us) {
    if (us < 1u << EXACT_BITS)
        return (unsigned)us;
    unsigned doublings = 63u - (unsigned)__builtin_clzll(us) - EXACT_BITS; /* above the exact part */
    unsigned class = (1u << EXACT_BITS) + doublings * CLASSES + (unsigned)((us >> (doublings + 1)) - CLASSES);
    return class < TIMES_COUNT ? class : TIMES_COUNT - 1;
}

static uint64_t middle_of(unsigned class) {
    if (class < 1u << EXACT_BITS)
        return class;
    unsigned doublings = (class - (1u << EXACT_BITS)) / CLASSES;
    uint64_t steps = (class - (1u << EXACT_BITS)) % CLASSES + CLASSES;
    return (steps << (doublings + 1)) + (UINT64_C(1) << doublings);
}

void meter_time(struct meter *meter, int64_t ns) {
    if (!meter->measuring || meter->over)
        return;
    meter->times[class_of((uint64_t)ns / 1000)]++;
    meter->timed++;
    if (ns > meter->longest_ns)
        meter->longest_ns = ns;
}

/* Quotes, control characters and what is not ASCII become dots: the text goes into JSON. */
static void copy_remark(char *to, const struct answer *answer) {
    size_t bytes = answer->remark_bytes < REMARK_BYTES ? answer->remark_bytes : REMARK_BYTES;
    for (size_t index = 0; index < bytes; index++) {
        char byte = answer->remark[index];
        to[index] = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\' ? byte : '.';
    }
    to[bytes] = '\0';
}

void meter_refused(struct meter *meter, const struct answer *answer) {
    char remark[REMARK_BYTES + 1];
    copy_remark(remark, answer);
    meter->refused++;
    for (int index = 0; index < meter->refusal_count; index++) {
        struct refusal *refusal = &meter->refusals[index];
        int last = index == ERRORS_MAX - 1; /* collects all further kinds */
        if (last || (refusal->code == answer->code && strcmp(refusal->remark, remark) == 0)) {
            refusal->count++;
            return;
        }
    }
    struct refusal *refusal = &meter->refusals[meter->refusal_count++];
    refusal->code = answer->code;
    refusal->count = 1;
    strcpy(refusal->remark, remark);
}

static double percentile_ms(const struct meter *meter, double percent) {
    double wanted = (double)meter->timed * percent / 100;
    uint64_t seen = 0;
    for (unsigned class = 0; class < TIMES_COUNT; class++) {
        seen += meter->times[class];
        if (seen > 0 && (double)seen >= wanted)
            return (double)middle_of(class) / 1000;
    }
    return 0;
}

void meter_print(const struct meter *meter) {
    double seconds = (double)(meter->to.ns - meter->from.ns) / 1e9;
    double cpu_s = (double)(meter->to.cpu_ns - meter->from.cpu_ns) / 1e9;
    uint64_t measured = meter->to.messages - meter->from.messages;
    if (seconds <= 0)
        seconds = 1e-9;
    printf("{\"rate\":%.3f,\"acknowledged\":%lu,\"measured\":%lu,\"measured_s\":%.9f,", (double)measured / seconds,
           meter->messages, measured, seconds);
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,", percentile_ms(meter, 50), percentile_ms(meter, 99),
           (double)meter->longest_ns / 1e6);
    printf("\"cpu_share\":%.6f,\"cpu_us_per_message\":%.6f,\"errors\":{", cpu_s / seconds,
           cpu_s / (double)(measured ? measured : 1) * 1e6);
    for (int index = 0; index < meter->refusal_count; index++)
        printf("%s\"%ld %s\":%lu", index ? "," : "", meter->refusals[index].code, meter->refusals[index].remark,
               meter->refusals[index].count);
    printf("}}\n");
}
