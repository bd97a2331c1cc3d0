/* One connection: its requests under way, what it still has to write, and the start of an answer that is not whole. */

#ifndef CONNECTION_H
#define CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "meter.h"
#include "plan.h"

/* One request under way. A slot's opaques are its own, so that an answer finds its slot by a division. */
struct slot {
    int64_t sent_ns; /* 0: nothing is under way */
    uint32_t opaque;
    uint64_t queue_offset; /* pull: where the request begins */
};

struct connection {
    int descriptor;
    int index;
    uint64_t turn; /* frames made so far */
    struct slot *slots;
    int under_way;
    int closing; /* one-way: the last request, which is answered, has been written */
    char *out;
    size_t out_bytes, out_start, out_end;
    char *rest; /* the received part of an answer's head */
    size_t rest_bytes;
    size_t skip; /* bytes of a body that are still to come */
};

void connection_open(struct connection *connection, const struct plan *plan, int index);

/* Fills all free slots with new requests and writes them. */
void connection_fill(struct connection *connection, const struct plan *plan, struct meter *meter, int64_t now_ns);

/* Takes what has arrived, and while go_on is set answers each answer with the next request. */
void connection_receive(struct connection *connection, const struct plan *plan, struct meter *meter, int go_on);

/* Writes what the socket takes. */
void connection_flush(struct connection *connection);

/* One-way: asks for one answer, which comes when all requests before it were taken. */
void connection_close_one_way(struct connection *connection, const struct plan *plan, int64_t now_ns);

int connection_has_unsent(const struct connection *connection);

#endif
