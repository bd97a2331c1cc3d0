/* Requests are copied from the plan's frames and patched; answers are checked by code and opaque, bodies passed over. */

#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPAQUE_FIRST 1000000000u /* ten digits, as all that follow */
#define OPAQUE_LAST 2147483647u
#define OFFSET_DIGITS 10u
#define RECEIVE_BYTES (1u << 20)
#define HEAD_BYTES_MAX (1u << 17)
#define ONE_WAY_BYTES (1u << 16) /* what is written at once when nothing is answered */
#define ONE_WAY_SOCKET_BYTES (1 << 18)

static char received[HEAD_BYTES_MAX + RECEIVE_BYTES]; /* of the connection that is read; others keep only a rest */
static uint64_t sequence;                             /* of all messages: no two have the same key */

static void *allocated(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        die("no memory for %zu bytes", bytes);
    return memory;
}

static int connected(const struct plan *plan) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)plan->port)};
    if (inet_pton(AF_INET, plan->host, &address.sin_addr) != 1)
        die("%s is no IPv4 address", plan->host);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        die("no socket: %s", strerror(errno));
    int one = 1, bytes = ONE_WAY_SOCKET_BYTES;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (plan->kind == ONE_WAY) /* megabytes on their way would make the end late */
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        die("%s:%d: %s", plan->host, plan->port, strerror(errno));
    if (fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0)
        die("O_NONBLOCK: %s", strerror(errno));
    return descriptor;
}

void connection_open(struct connection *connection, const struct plan *plan, int index) {
    memset(connection, 0, sizeof *connection);
    connection->descriptor = connected(plan);
    connection->index = index;
    connection->slots = allocated((size_t)plan->in_flight * sizeof *connection->slots);
    for (int slot = 0; slot < plan->in_flight; slot++)
        connection->slots[slot].opaque = OPAQUE_FIRST + (uint32_t)slot;
    connection->out_bytes = (size_t)plan->in_flight * plan->frame_bytes;
    if (plan->kind == ONE_WAY)
        connection->out_bytes = ONE_WAY_BYTES + 2 * plan->frame_bytes; /* the second is the last request */
    connection->out = allocated(connection->out_bytes);
    connection->rest = allocated(HEAD_BYTES_MAX);
}

int connection_has_unsent(const struct connection *connection) {
    return connection->out_start < connection->out_end;
}

void connection_flush(struct connection *connection) {
    while (connection_has_unsent(connection)) {
        ssize_t sent = send(connection->descriptor, connection->out + connection->out_start,
                            connection->out_end - connection->out_start, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            die("connection %d: %s", connection->index, strerror(errno));
        connection->out_start += (size_t)sent;
    }
    connection->out_start = connection->out_end = 0;
}

/* -- requests -------------------------------------------------------------------------------------------------------- */

static void patch_opaque(char *frame, const struct plan *plan, uint32_t opaque) {
    if (!plan->binary_header) {
        write_digits(frame + plan->opaque_at, 10, opaque);
        return;
    }
    uint32_t word = htonl(opaque);
    memcpy(frame + plan->opaque_at, &word, sizeof word);
}

static char *append_frame(struct connection *connection, const struct plan *plan, size_t which) {
    if (connection->out_bytes - connection->out_end < plan->frame_bytes) {
        connection->out_end -= connection->out_start;
        memmove(connection->out, connection->out + connection->out_start, connection->out_end);
        connection->out_start = 0;
    }
    char *frame = connection->out + connection->out_end;
    memcpy(frame, plan->frames + which % plan->frame_count * plan->frame_bytes, plan->frame_bytes);
    connection->out_end += plan->frame_bytes;
    return frame;
}

static char *append_request(struct connection *connection, const struct plan *plan, struct meter *meter, int slot) {
    size_t which = (size_t)connection->index + connection->turn++;
    if (plan->kind == PULL) /* a slot reads one queue */
        which = (size_t)connection->index * (size_t)plan->in_flight + (size_t)slot;
    char *frame = append_frame(connection, plan, which);
    for (size_t index = 0; index < plan->number_count; index++) {
        const struct number *number = &plan->numbers[index];
        uint64_t value = (sequence + number->add) / number->divisor % number->modulus;
        write_digits(frame + number->at, number->width, value);
    }
    sequence += plan->messages_per_frame;
    if (plan->kind != PULL)
        meter->issued += plan->messages_per_frame;
    return frame;
}

static void start_slot(struct connection *connection, const struct plan *plan, struct meter *meter, int index,
                       int64_t now_ns) {
    struct slot *slot = &connection->slots[index];
    char *frame = append_request(connection, plan, meter, index);
    uint32_t step = (uint32_t)plan->in_flight;
    slot->opaque = slot->opaque > OPAQUE_LAST - step ? OPAQUE_FIRST + (uint32_t)index : slot->opaque + step;
    patch_opaque(frame, plan, slot->opaque);
    if (plan->kind == PULL)
        write_digits(frame + plan->offset_at, OFFSET_DIGITS, slot->queue_offset);
    slot->sent_ns = now_ns;
    connection->under_way++;
}

static void fill_one_way(struct connection *connection, const struct plan *plan, struct meter *meter) {
    while (connection->out_end - connection->out_start < ONE_WAY_BYTES &&
           (plan->messages_max == 0 || meter->issued < plan->messages_max)) {
        char *frame = append_request(connection, plan, meter, 0);
        patch_opaque(frame, plan, OPAQUE_FIRST + (uint32_t)(connection->turn % OPAQUE_FIRST));
        meter->messages += plan->messages_per_frame;
    }
}

static int may_issue(const struct plan *plan, const struct meter *meter) {
    return plan->messages_max == 0 || meter->issued < plan->messages_max;
}

void connection_fill(struct connection *connection, const struct plan *plan, struct meter *meter, int64_t now_ns) {
    if (plan->kind == ONE_WAY)
        fill_one_way(connection, plan, meter);
    else
        for (int slot = 0; slot < plan->in_flight && may_issue(plan, meter); slot++)
            start_slot(connection, plan, meter, slot, now_ns);
    connection_flush(connection);
}

void connection_close_one_way(struct connection *connection, const struct plan *plan, int64_t now_ns) {
    struct slot *slot = &connection->slots[0];
    char *frame = append_frame(connection, plan, (size_t)connection->index);
    frame[plan->flag_at] = (char)plan->flag_answered;
    patch_opaque(frame, plan, slot->opaque);
    slot->sent_ns = now_ns;
    connection->under_way = connection->closing = 1;
    connection_flush(connection);
}

/* -- answers --------------------------------------------------------------------------------------------------------- */

static int slot_of(const struct connection *connection, const struct plan *plan, int64_t opaque) {
    if (opaque < (int64_t)OPAQUE_FIRST || opaque > (int64_t)OPAQUE_LAST)
        return -1;
    int index = (int)((opaque - OPAQUE_FIRST) % plan->in_flight);
    const struct slot *slot = &connection->slots[index];
    return slot->sent_ns != 0 && slot->opaque == opaque ? index : -1;
}

/* Counts what a pull brought and moves its slot on, at the end of the queue back to its start. */
static void take_pulled(struct slot *slot, const struct plan *plan, struct meter *meter, const struct answer *answer,
                        size_t body_bytes) {
    int64_t from = (int64_t)slot->queue_offset;
    if (answer->code == 0) {
        if (answer->next_offset <= from)
            die("a pull from %ld brought nothing and goes on at %ld", from, answer->next_offset);
        uint64_t pulled = (uint64_t)(answer->next_offset - from);
        if (body_bytes / pulled < plan->body_bytes)
            die("%zu bytes cannot hold the messages %ld to %ld", body_bytes, from, answer->next_offset);
        meter->messages += pulled;
        meter->issued += pulled;
    }
    int at_end = answer->code != 0 || (uint64_t)answer->next_offset >= plan->queue_length;
    slot->queue_offset = at_end ? 0 : (uint64_t)answer->next_offset;
}

static void take_answer(struct connection *connection, const struct plan *plan, struct meter *meter,
                        const struct answer *answer, size_t body_bytes, int64_t now_ns, int go_on) {
    int index = slot_of(connection, plan, answer->opaque);
    if (!(answer->flag & 1))
        die("the broker sent a request, code %ld", answer->code);
    if (index < 0 && plan->kind == ONE_WAY && answer->code != 0) {
        meter_refused(meter, answer); /* RocketMQ tells who asked for no answer, too, that it is busy */
        meter->messages -= plan->messages_per_frame;
        return;
    }
    if (index < 0)
        die("an answer has the opaque %ld, which no request under way has", answer->opaque);
    struct slot *slot = &connection->slots[index];
    meter_time(meter, now_ns - slot->sent_ns);
    slot->sent_ns = 0;
    connection->under_way--;
    if (answer->code != 0)
        meter_refused(meter, answer);
    if (plan->kind == PULL)
        take_pulled(slot, plan, meter, answer, body_bytes);
    else if (answer->code == 0)
        meter->messages += plan->messages_per_frame;
    if (go_on && !connection->closing && may_issue(plan, meter))
        start_slot(connection, plan, meter, index, now_ns);
}

/* Takes one answer from the front; returns its bytes there, or 0 while its head is not whole. */
static size_t take_one(struct connection *connection, const struct plan *plan, struct meter *meter, const char *at,
                       size_t bytes, int64_t now_ns, int go_on) {
    if (bytes < 8)
        return 0;
    size_t frame_bytes = 4 + (size_t)read_word(at);
    uint32_t word = read_word(at + 4);
    size_t head_bytes = 8 + (word & 0xffffff);
    if (frame_bytes < head_bytes || head_bytes > HEAD_BYTES_MAX)
        die("no answer: a frame of %zu bytes with a head of %zu", frame_bytes, head_bytes);
    if (bytes < head_bytes)
        return 0;
    struct answer answer;
    if (!answer_read(&answer, word, at + 8, head_bytes - 8))
        die("an answer's header is not understood: %.*s", (int)(head_bytes - 8), at + 8);
    take_answer(connection, plan, meter, &answer, frame_bytes - head_bytes, now_ns, go_on);
    if (frame_bytes <= bytes)
        return frame_bytes;
    connection->skip = frame_bytes - bytes;
    return bytes;
}

static void take_all(struct connection *connection, const struct plan *plan, struct meter *meter, char *at,
                     size_t bytes, int go_on) {
    int64_t now_ns = clock_ns();
    while (bytes > 0) {
        size_t taken = connection->skip < bytes ? connection->skip : bytes;
        connection->skip -= taken;
        if (taken == 0)
            taken = take_one(connection, plan, meter, at, bytes, now_ns, go_on);
        if (taken == 0)
            break;
        at += taken;
        bytes -= taken;
    }
    memcpy(connection->rest, at, bytes);
    connection->rest_bytes = bytes;
}

void connection_receive(struct connection *connection, const struct plan *plan, struct meter *meter, int go_on) {
    memcpy(received, connection->rest, connection->rest_bytes);
    ssize_t got = recv(connection->descriptor, received + connection->rest_bytes, RECEIVE_BYTES, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got < 0)
        die("connection %d: %s", connection->index, strerror(errno));
    if (got == 0)
        die("the broker closed connection %d", connection->index);
    take_all(connection, plan, meter, received, connection->rest_bytes + (size_t)got, go_on);
    connection_flush(connection);
}
