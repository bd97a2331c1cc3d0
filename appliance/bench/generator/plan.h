/* The plan: what to send, how wide, how long. plan.py writes it, plan_read takes it from standard input. */

#ifndef PLAN_H
#define PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define NUMBERS_MAX 256

enum kind { SEND, ONE_WAY, PULL };

/* Decimal digits that differ from frame to frame: (sequence + add) / divisor % modulus. */
struct number {
    size_t at;
    size_t width;
    uint64_t add;
    uint64_t divisor;
    uint64_t modulus;
};

struct plan {
    enum kind kind;
    char host[64];
    int port;
    int connections;
    int in_flight;
    int64_t warm_ms;
    int64_t measure_ms;
    uint64_t messages_max; /* 0: only the time ends it */
    uint64_t messages_per_frame;
    uint64_t body_bytes;
    uint64_t queue_length; /* pull: begin again here */
    int binary_header;     /* ROCKETMQ headers: the opaque is four bytes, else ten digits */
    size_t opaque_at;
    size_t offset_at;      /* pull: ten digits of the queue offset */
    size_t flag_at;        /* one-way: the byte of the flag that asks for no answer */
    int flag_answered;     /* and its value in a request that is answered */
    struct number numbers[NUMBERS_MAX];
    size_t number_count;
    size_t frame_count;
    size_t frame_bytes;
    char *frames;          /* frame_count * frame_bytes: requests that differ only where the plan says so */
};

struct plan plan_read(void);

/* Writes `width` decimal digits of `value`, with zeros in front. */
void write_digits(char *at, size_t width, uint64_t value);

/* Writes one line to standard error and ends the program with 1. */
noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
