/* Reads the plan: lines of a name and its values, at last the frames as they are. */

#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPAQUE_BYTES(plan) ((plan)->binary_header ? 4u : 10u)
#define OFFSET_DIGITS 10u
#define FRAMES_BYTES_MAX (1u << 30)

noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void write_digits(char *at, size_t width, uint64_t value) {
    for (size_t left = width; left > 0; left--) {
        at[left - 1] = (char)('0' + value % 10);
        value /= 10;
    }
}

static enum kind kind_of(const char *name) {
    if (strcmp(name, "send") == 0)
        return SEND;
    if (strcmp(name, "one-way") == 0)
        return ONE_WAY;
    if (strcmp(name, "pull") == 0)
        return PULL;
    die("plan: there is no kind %s", name);
}

static void read_number(struct plan *plan, const char *values) {
    if (plan->number_count == NUMBERS_MAX)
        die("plan: more than %d numbers", NUMBERS_MAX);
    struct number *number = &plan->numbers[plan->number_count++];
    if (sscanf(values, "%zu %zu %lu %lu %lu", &number->at, &number->width, &number->add, &number->divisor,
               &number->modulus) != 5 || number->divisor == 0 || number->modulus == 0)
        die("plan: wrong number: %s", values);
}

static void read_frames(struct plan *plan, const char *values) {
    if (sscanf(values, "%zu %zu", &plan->frame_count, &plan->frame_bytes) != 2 || plan->frame_count == 0 ||
        plan->frame_bytes < 8 || plan->frame_bytes > FRAMES_BYTES_MAX / plan->frame_count)
        die("plan: wrong frames: %s", values);
    plan->frames = malloc(plan->frame_count * plan->frame_bytes);
    if (plan->frames == NULL || fread(plan->frames, plan->frame_bytes, plan->frame_count, stdin) != plan->frame_count)
        die("plan: the frames are not whole");
}

static void read_line(struct plan *plan, const char *name, const char *values) {
    int64_t value = strtoll(values, NULL, 10);
    if (strcmp(name, "kind") == 0)
        plan->kind = kind_of(values);
    else if (strcmp(name, "host") == 0)
        snprintf(plan->host, sizeof plan->host, "%s", values);
    else if (strcmp(name, "port") == 0)
        plan->port = (int)value;
    else if (strcmp(name, "connections") == 0)
        plan->connections = (int)value;
    else if (strcmp(name, "in_flight") == 0)
        plan->in_flight = (int)value;
    else if (strcmp(name, "warm_ms") == 0)
        plan->warm_ms = value;
    else if (strcmp(name, "measure_ms") == 0)
        plan->measure_ms = value;
    else if (strcmp(name, "messages_max") == 0)
        plan->messages_max = (uint64_t)value;
    else if (strcmp(name, "messages_per_frame") == 0)
        plan->messages_per_frame = (uint64_t)value;
    else if (strcmp(name, "body_bytes") == 0)
        plan->body_bytes = (uint64_t)value;
    else if (strcmp(name, "queue_length") == 0)
        plan->queue_length = (uint64_t)value;
    else if (strcmp(name, "binary_header") == 0)
        plan->binary_header = (int)value;
    else if (strcmp(name, "opaque_at") == 0)
        plan->opaque_at = (size_t)value;
    else if (strcmp(name, "offset_at") == 0)
        plan->offset_at = (size_t)value;
    else if (strcmp(name, "flag_at") == 0)
        plan->flag_at = (size_t)value;
    else if (strcmp(name, "flag_answered") == 0)
        plan->flag_answered = (int)value;
    else if (strcmp(name, "number") == 0)
        read_number(plan, values);
    else if (strcmp(name, "frames") == 0)
        read_frames(plan, values);
    else
        die("plan: there is no %s", name);
}

/* Every place that is written while the load runs lies in the frame. */
static void check(const struct plan *plan) {
    size_t bytes = plan->frame_bytes;
    if (plan->frames == NULL || plan->host[0] == '\0' || plan->port < 1 || plan->port > 65535)
        die("plan: frames, host or port are missing");
    if (plan->connections < 1 || plan->in_flight < 1 || plan->messages_per_frame < 1)
        die("plan: connections, in_flight and messages_per_frame begin at 1");
    if (plan->warm_ms < 0 || plan->measure_ms <= 0)
        die("plan: measure_ms is missing");
    if (bytes < OPAQUE_BYTES(plan) || plan->opaque_at > bytes - OPAQUE_BYTES(plan))
        die("plan: the opaque is outside the frame");
    if (plan->kind == PULL && (bytes < OFFSET_DIGITS || plan->offset_at > bytes - OFFSET_DIGITS))
        die("plan: the queue offset is outside the frame");
    if (plan->kind == ONE_WAY && plan->flag_at >= bytes)
        die("plan: the flag is outside the frame");
    for (size_t index = 0; index < plan->number_count; index++) {
        const struct number *number = &plan->numbers[index];
        if (number->width > bytes || number->at > bytes - number->width)
            die("plan: a number is outside the frame");
    }
}

struct plan plan_read(void) {
    struct plan plan = {.messages_per_frame = 1};
    char line[512];
    while (plan.frames == NULL && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *space = strchr(line, ' ');
        if (space == NULL)
            die("plan: %s has no value", line);
        *space = '\0';
        read_line(&plan, line, space + 1);
    }
    check(&plan);
    return plan;
}
